//! A comparison as a comment under a pull request.

use super::comparison::Comparison;
use super::page;
use crate::document::Table;
use crate::markdown::{escape, push_table};
use crate::text::clean;

/// Longest name of a results folder that is shown, characters.
const NAME_CHARS: usize = 200;

/// Returns the summary, the changes, and the rest folded.
pub(super) fn render(comparison: &Comparison, names: [&str; 2]) -> String {
    let [a, b] = names.map(|name| escape(&clean(name, NAME_CHARS)));
    let mut out = format!("**{}** (A: {a}, B: {b})\n\n", comparison.tally);
    let shown = [page::gates(comparison), page::environment(comparison), page::changed(comparison)];
    push(&mut out, shown.into_iter().flatten());
    out.push_str("<details><summary>The rest</summary>\n\n");
    push(&mut out, [page::undecided(comparison), page::alike(comparison)].into_iter().flatten());
    for line in page::closing(comparison) {
        out.push_str(&format!("{}\n\n", escape(&line)));
    }
    out.push_str("</details>\n");
    out
}

fn push(out: &mut String, tables: impl Iterator<Item = Table>) {
    tables.for_each(|table| push_table(out, &table));
}
