//! The report as GitHub Markdown.

use crate::document::{Document, Mark, Table};

/// The whole report; every column, and every row with its place on the axes.
pub(crate) fn render(document: &Document) -> String {
    let mut out = format!("# {}\n\n", escape(&document.title));
    for text in [&document.question, &document.constants].into_iter().chain(&document.answers) {
        if !text.is_empty() {
            out.push_str(&format!("{}\n\n", escape(text)));
        }
    }
    for table in document.tables.iter().chain(&document.claims) {
        push_table(&mut out, table);
    }
    for line in &document.closing {
        out.push_str(&format!("{}\n\n", escape(line)));
    }
    out.truncate(out.trim_end().len());
    out.push('\n');
    out
}

pub(crate) fn push_table(out: &mut String, table: &Table) {
    out.push_str(&format!("## {}\n\n", escape(&table.title)));
    let heads = table.heads.iter().map(|head| escape(&head.name));
    push_row(out, heads);
    let rules = table.heads.iter().map(|head| match head.is_figure {
        true => "---:".to_owned(),
        false => "---".to_owned(),
    });
    push_row(out, rules);
    for row in table.groups.iter().flatten() {
        let last = row.entries.len().saturating_sub(1);
        let entries = row.entries.iter().enumerate().map(|(index, entry)| {
            let text = escape(&entry.whole());
            match row.mark {
                Mark::Good if index == last && !table.ends_in_prose => format!("**{text}**"),
                _ => text,
            }
        });
        push_row(out, entries);
    }
    out.push('\n');
    for note in &table.notes {
        out.push_str(&format!("- {}\n", escape(&note.text)));
    }
    if !table.notes.is_empty() {
        out.push('\n');
    }
}

fn push_row(out: &mut String, entries: impl Iterator<Item = String>) {
    out.push('|');
    for entry in entries {
        out.push_str(&format!(" {entry} |"));
    }
    out.push('\n');
}

/// Takes the meaning from every character that Markdown or HTML gives one to.
pub(crate) fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '\\' | '`' | '*' | '_' | '[' | ']' | '|' | '~' | '#' => out.extend(['\\', c]),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_keeps_its_meaning() {
        assert_eq!(
            escape("a|b <img src=x> [l](u) `c` *d* \\"),
            "a\\|b &lt;img src=x&gt; \\[l\\](u) \\`c\\` \\*d\\* \\\\"
        );
    }
}
