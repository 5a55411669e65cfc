//! The report as tables for a terminal.

use crate::bars::{self, Scale};
use crate::columns::LAST;
use crate::document::{About, Document, Mark, Row, Table};
use crate::text::wrap;
use comfy_table::{CellAlignment, Table as Grid};

/// Blanks between two columns.
const GAP: usize = 2;
/// The least width of a column of prose.
const PROSE_WIDTH_MIN: usize = 20;

/// Columns that are at least as expendable go before the bars.
const BARS_EXPENDABLE: u8 = LAST + 6;

const BOLD: &str = "1";
const GREEN: &str = "32";
const YELLOW: &str = "33";
const DIM: &str = "2";

/// The whole report, at most `width` columns wide where the axes allow it.
pub(crate) fn render(document: &Document, width: usize, colour: bool) -> String {
    let mut out = Out { text: String::new(), width, colour };
    out.prose(&document.title, "", Some(BOLD));
    for text in [&document.question, &document.constants] {
        if !text.is_empty() {
            out.prose(text, "", None);
        }
    }
    if !document.answers.is_empty() {
        out.line("", None);
    }
    for text in &document.answers {
        out.prose(text, "", None);
    }
    for table in document.tables.iter().chain(&document.claims) {
        out.line("", None);
        out.table(table);
    }
    out.line("", None);
    for line in &document.closing {
        out.prose(line, "", None);
    }
    out.text
}

/// Returns the title, the heads and the rows of a table, without its notes.
pub(crate) fn table_lines(table: &Table, width: usize) -> Vec<String> {
    let mut out = Out { text: String::new(), width, colour: false };
    out.title_and_rows(table, &Layout::of(table, width));
    out.text.lines().map(str::to_owned).collect()
}

struct Out {
    text: String,
    width: usize,
    colour: bool,
}

impl Out {
    fn line(&mut self, line: &str, style: Option<&str>) {
        let line = line.trim_end();
        match style {
            Some(style) if self.colour && !line.is_empty() => {
                self.text.push_str(&format!("\u{1b}[{style}m{line}\u{1b}[0m"));
            }
            _ => self.text.push_str(line),
        }
        self.text.push('\n');
    }

    /// Wrapped text, its lines but the first after an indent.
    fn prose(&mut self, text: &str, indent: &str, style: Option<&str>) {
        let width = self.width.saturating_sub(indent.len()).max(PROSE_WIDTH_MIN);
        for (index, line) in wrap(text, width).iter().enumerate() {
            let indent = if index == 0 { "" } else { indent };
            self.line(&format!("{indent}{line}"), style);
        }
    }

    fn title_and_rows(&mut self, table: &Table, layout: &Layout) {
        self.line(&table.title, Some(BOLD));
        let (grid, marks) = grid(table, layout);
        let mut lines = grid.lines();
        for head in lines.by_ref().take(2) {
            self.line(&head, None);
        }
        let spaced = table.groups.iter().any(|group| group.len() > 1);
        for (line, (mark, opens)) in lines.zip(marks) {
            if spaced && opens {
                self.line("", None);
            }
            self.line(&line, style(mark));
        }
    }

    fn table(&mut self, table: &Table) {
        let layout = Layout::of(table, self.width);
        self.title_and_rows(table, &layout);
        let notes = table.notes.iter().filter(|note| layout.shows(note.about));
        let dropped = layout.dropped(table, self.width);
        let texts = notes.map(|note| &note.text).chain(&dropped);
        for (index, text) in texts.enumerate() {
            if index == 0 {
                self.line("", None);
            }
            self.prose(text, "  ", None);
        }
    }
}

fn style(mark: Mark) -> Option<&'static str> {
    match mark {
        Mark::Plain => None,
        Mark::Good => Some(GREEN),
        Mark::Bad => Some(YELLOW),
        Mark::Muted => Some(DIM),
    }
}

/// Parts of a table that are shown.
struct Layout {
    /// Indices of the columns.
    columns: Vec<usize>,
    /// True if figures have their spread beside them.
    spreads: bool,
    /// Width of the last column, where it is prose.
    prose: Option<usize>,
    /// Width of the bars, where there is room for them.
    bar: Option<usize>,
}

impl Layout {
    /// Drops columns, the most expendable first, then the spreads, then the
    /// columns that go last. Bars go before a column that matters.
    fn of(table: &Table, width: usize) -> Layout {
        let mut layout = Layout { columns: (0..table.heads.len()).collect(), spreads: true, prose: None, bar: None };
        let mut widths = widths(table, true);
        if table.ends_in_prose {
            widths.pop();
            let others: usize = widths.iter().map(|column| column + GAP).sum();
            layout.prose = Some(width.saturating_sub(others).max(PROSE_WIDTH_MIN));
            return layout;
        }
        let total = |columns: &[usize], widths: &[usize]| -> usize {
            let content: usize = columns.iter().map(|column| widths[*column]).sum();
            content + GAP * columns.len().saturating_sub(1)
        };
        let least = |(scale, _): &(Scale, usize)| bars::WIDTH_MIN.max(scale.head().chars().count());
        layout.bar = table.bars.as_ref().map(least);
        let entries = || table.groups.iter().flatten().flat_map(|row| &row.entries);
        let has_spreads = entries().any(|entry| !entry.spread.is_empty());
        while total(&layout.columns, &widths) + layout.bar.map_or(0, |bar| bar + GAP) > width {
            let expendable = |column: &&usize| table.heads[**column].expendable;
            match layout.columns.iter().max_by_key(expendable).copied() {
                Some(column) if layout.bar.is_some() && table.heads[column].expendable < BARS_EXPENDABLE => {
                    layout.bar = None;
                }
                Some(column) if table.heads[column].expendable > LAST => {
                    layout.columns.retain(|other| *other != column);
                }
                _ if layout.spreads && has_spreads => {
                    layout.spreads = false;
                    widths = self::widths(table, false);
                }
                Some(column) if table.heads[column].expendable == LAST => {
                    layout.columns.retain(|other| *other != column);
                }
                _ => break,
            }
        }
        let left = width.saturating_sub(total(&layout.columns, &widths) + GAP);
        layout.bar = layout.bar.map(|least| left.min(bars::WIDTH_MAX).max(least));
        layout
    }

    /// Returns the place of the bars among the columns.
    fn bar_place(&self, table: &Table) -> Option<(usize, usize)> {
        let (_, beside) = table.bars.as_ref()?;
        let place = self.columns.iter().position(|column| column == beside)?;
        Some((place + 1, self.bar?))
    }

    fn shows(&self, about: About) -> bool {
        match about {
            About::Rows => true,
            About::Spreads => self.spreads,
            About::Column(column) => self.columns.contains(&column),
        }
    }

    /// Returns a remark on the columns that are not shown.
    fn dropped(&self, table: &Table, width: usize) -> Option<String> {
        let heads = table.heads.iter().enumerate();
        let mut names: Vec<&str> =
            heads.filter(|(index, _)| !self.columns.contains(index)).map(|(_, head)| head.name.as_str()).collect();
        if !self.spreads {
            names.push("the intervals (±)");
        }
        (!names.is_empty()).then(|| {
            let names = names.join(", ");
            format!("hidden at {width} columns: {names}; {} has all", table.whole)
        })
    }
}

fn widths(table: &Table, spreads: bool) -> Vec<usize> {
    let mut grid = Grid::new();
    grid.set_header(table.heads.iter().map(|head| head.name.as_str()));
    for row in table.groups.iter().flatten() {
        grid.add_row(row.entries.iter().map(|entry| match spreads {
            true => entry.whole(),
            false => entry.text.clone(),
        }));
    }
    let widths = grid.column_max_content_widths();
    widths.into_iter().map(usize::from).collect()
}

/// The table as a grid of single lines, and for each line below the head how
/// it stands out and whether it opens a group other than the first.
fn grid(table: &Table, layout: &Layout) -> (Grid, Vec<(Mark, bool)>) {
    use comfy_table::{ContentArrangement, ContentLineStyle, LineStyle, TableStyle};
    let mut grid = Grid::new();
    grid.set_content_arrangement(ContentArrangement::Disabled);
    grid.load_style(
        TableStyle::new()
            .header_lines(ContentLineStyle::none())
            .header_separator(LineStyle::none().fill('─'))
            .content_lines(ContentLineStyle::none()),
    );
    let mut heads: Vec<(String, bool)> = layout
        .columns
        .iter()
        .map(|column| &table.heads[*column])
        .map(|head| (head.name.clone(), head.is_figure))
        .collect();
    if let (Some((place, _)), Some((scale, _))) = (layout.bar_place(table), &table.bars) {
        heads.insert(place, (scale.head(), false));
    }
    grid.set_header(heads.iter().map(|(name, _)| name.as_str()));
    let mut marks = Vec::new();
    for (index, group) in table.groups.iter().enumerate() {
        for (place, row) in group.iter().enumerate() {
            for (part, texts) in texts(table, layout, row, place == 0).into_iter().enumerate() {
                grid.add_row(texts);
                marks.push((row.mark, index > 0 && place == 0 && part == 0));
            }
        }
    }
    let last = heads.len().saturating_sub(1);
    for (index, ((_, is_figure), column)) in heads.iter().zip(grid.column_iter_mut()).enumerate() {
        column.set_padding((0, if index == last { 0 } else { GAP as u16 }));
        if *is_figure {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    (grid, marks)
}

/// The lines of a row: one, or as many as its prose needs. Its place on the
/// axes stands in the first row of a group only.
fn texts(table: &Table, layout: &Layout, row: &Row, opens: bool) -> Vec<Vec<String>> {
    let mut texts: Vec<String> = layout
        .columns
        .iter()
        .map(|column| match &row.entries[*column] {
            _ if table.heads[*column].is_axis && !opens => String::new(),
            entry if layout.spreads => entry.whole(),
            entry => entry.text.clone(),
        })
        .collect();
    if let (Some((place, width)), Some((scale, _))) = (layout.bar_place(table), &table.bars) {
        texts.insert(place, row.bar.map(|value| scale.bar(value, width)).unwrap_or_default());
    }
    let Some(width) = layout.prose else {
        return vec![texts];
    };
    let blank = vec![String::new(); texts.len().saturating_sub(1)];
    let mut lines = wrap(&texts.pop().unwrap_or_default(), width).into_iter();
    texts.extend(lines.next());
    let more = lines.map(|line| blank.iter().cloned().chain([line]).collect());
    [texts].into_iter().chain(more).collect()
}
