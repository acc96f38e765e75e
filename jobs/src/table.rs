//! Tables for people: a head over every column, numbers to the right, texts to the left. Columns are separated by two
//! blanks, or by one blank if two do not fit.
//!
//! ```text
//! first       last            pages  referrer
//! 2006-05-01  2012-03-04+        12  http://example.net/links.html
//! ```
//!
//! A table is as wide as the terminal, or 80 columns. Columns of [`Name`](Column::Name) share the room that the other
//! columns leave. A name column that needs less than its share leaves the rest to longer ones. A table without rows
//! prints nothing.

use crate::bars::{cut, width};
use console::measure_text_width;
use std::io::{self, Write};

/// A column and its head.
#[derive(Clone, Debug)]
pub(crate) enum Column {
    /// Text that is never cut.
    Word(String),
    /// Text that is cut in the middle if it does not fit.
    Name(String),
    /// A number. A long head stands above it in short lines.
    Number(String),
    /// The last column, which is never cut, for text that a reader may want to copy.
    Rest(String),
}

impl Column {
    pub(crate) fn word(head: &str) -> Self {
        Self::Word(head.to_owned())
    }

    pub(crate) fn name(head: &str) -> Self {
        Self::Name(head.to_owned())
    }

    pub(crate) fn number(head: &str) -> Self {
        Self::Number(head.to_owned())
    }

    pub(crate) fn rest(head: &str) -> Self {
        Self::Rest(head.to_owned())
    }

    /// The lines of the head.
    fn head(&self) -> Vec<String> {
        match self {
            Self::Number(head) => short_lines(head),
            Self::Word(head) | Self::Name(head) | Self::Rest(head) => vec![head.clone()],
        }
    }
}

/// The smallest width of a name that is cut.
const NAME_MIN: usize = 8;
/// The number of blanks between two columns, and the number if two do not fit.
const BETWEEN: [usize; 2] = [2, 1];
/// The longest line of the head of a number, unless a word of the head is longer.
const HEAD_LINE: usize = 7;

/// A table, which is printed when all its rows are known.
#[derive(Clone, Debug)]
pub(crate) struct Table {
    columns: Vec<Column>,
    rows: Vec<Vec<String>>,
    indent: usize,
}

impl Table {
    pub(crate) fn new(columns: impl IntoIterator<Item = Column>) -> Self {
        Self { columns: columns.into_iter().collect(), rows: Vec::new(), indent: 0 }
    }

    /// The same table, indented by `indent` blanks.
    pub(crate) fn indented(self, indent: usize) -> Self {
        Self { indent, ..self }
    }

    /// Adds a row, with a cell for each column.
    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.rows.push(cells.into_iter().collect());
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Prints the table as wide as the terminal.
    pub(crate) fn print(&self, out: &mut dyn Write) -> io::Result<()> {
        self.print_within(width(), out)
    }

    fn print_within(&self, width: usize, out: &mut dyn Write) -> io::Result<()> {
        if self.is_empty() {
            return Ok(());
        }
        let widths = BETWEEN.map(|between| self.widths(width, between));
        let is_fitting = |widths: &[usize]| {
            let between = BETWEEN[0] * widths.len().saturating_sub(1);
            let rest = matches!(self.columns.last(), Some(Column::Rest(_)));
            let fixed = &widths[..widths.len() - usize::from(rest)];
            self.indent + fixed.iter().sum::<usize>() + between <= width
        };
        let at = usize::from(!is_fitting(&widths[0]));
        let (widths, between) = (&widths[at], BETWEEN[at]);
        let heads: Vec<Vec<String>> = self.columns.iter().map(Column::head).collect();
        let lines = heads.iter().map(Vec::len).max().unwrap_or(0);
        for line in 0..lines {
            // All heads end on the line above the rows.
            let cells = heads.iter().map(|head| (line + head.len()).checked_sub(lines).map_or("", |at| &head[at]));
            writeln!(out, "{}", self.line(cells, (widths, between)))?;
        }
        for row in &self.rows {
            writeln!(out, "{}", self.line(row.iter().map(String::as_str), (widths, between)))?;
        }
        Ok(())
    }

    /// The width of each column.
    fn widths(&self, width: usize, between: usize) -> Vec<usize> {
        let wanted = self.columns.iter().enumerate().map(|(at, column)| {
            let cells = self.rows.iter().filter_map(|row| row.get(at)).map(String::as_str);
            let cells = cells.map(measure_text_width).max().unwrap_or(0);
            column.head().iter().map(|line| measure_text_width(line)).max().unwrap_or(0).max(cells)
        });
        let mut widths: Vec<usize> = wanted.collect();
        let is_name = |at: &usize| matches!(self.columns[*at], Column::Name(_));
        let mut names: Vec<usize> = (0..widths.len()).filter(is_name).collect();
        names.sort_by_key(|&at| widths[at]);
        let taken: usize = (0..widths.len()).filter(|at| !is_name(at)).map(|at| widths[at]).sum();
        let mut room = width.saturating_sub(self.indent + taken + between * widths.len().saturating_sub(1));
        let mut left = names.len();
        for at in names {
            widths[at] = widths[at].min((room / left).max(NAME_MIN));
            (room, left) = (room.saturating_sub(widths[at]), left - 1);
        }
        widths
    }

    fn line<'a>(&self, cells: impl Iterator<Item = &'a str>, (widths, between): (&[usize], usize)) -> String {
        let mut line = " ".repeat(self.indent);
        for (at, ((cell, column), &width)) in cells.zip(&self.columns).zip(widths).enumerate() {
            if at > 0 {
                line.push_str(&" ".repeat(between));
            }
            let cell = if matches!(column, Column::Name(_)) { cut(cell, width) } else { cell.to_owned() };
            let blanks = " ".repeat(width.saturating_sub(measure_text_width(&cell)));
            match column {
                Column::Number(_) => line.push_str(&(blanks + &cell)),
                Column::Rest(_) => line.push_str(&cell),
                Column::Word(_) | Column::Name(_) => line.push_str(&(cell + &blanks)),
            }
        }
        line.trim_end().to_owned()
    }
}

/// A head in short lines, broken between words.
fn short_lines(head: &str) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in head.split([' ', '_']) {
        match lines.last_mut().filter(|line| line.len() + 1 + word.len() <= HEAD_LINE) {
            Some(line) => {
                line.push(' ');
                line.push_str(word);
            }
            None => lines.push(word.to_owned()),
        }
    }
    lines
}

/// Prints names with a number each. The numbers are aligned.
pub(crate) fn print_numbers<'a>(
    numbers: impl IntoIterator<Item = (&'a str, String)>,
    out: &mut dyn Write,
) -> io::Result<()> {
    let numbers: Vec<(&str, String)> = numbers.into_iter().collect();
    let widest = |of: fn(&(&str, String)) -> usize| numbers.iter().map(of).max().unwrap_or(0);
    let (name, number) = (widest(|(name, _)| name.len()), widest(|(_, number)| number.len()));
    for (text, value) in &numbers {
        writeln!(out, "  {text:<name$}  {value:>number$}")?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn printed(table: &Table, width: usize) -> String {
        let mut out = Vec::new();
        table.print_within(width, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    fn hosts() -> Table {
        let heads = [Column::word("period"), Column::name("src"), Column::name("dst"), Column::number("new_pages")];
        let mut table = Table::new(heads).indented(2);
        let row = |period: &str, src: &str, dst: &str, links: &str| [period, src, dst, links].map(str::to_owned);
        table.row(row("2006-01-01", "a.example", "a-very-long-name-of-a-host.harbour.example", "1,204"));
        table.row(row("2007-01-01", "another.example", "b.example", "3"));
        table
    }

    #[test]
    fn every_column_has_a_head_and_its_own_room() {
        let expected = "                                                                             new
  period      src              dst                                         pages
  2006-01-01  a.example        a-very-long-name-of-a-host.harbour.example  1,204
  2007-01-01  another.example  b.example                                       3
";
        assert_eq!(printed(&hosts(), 160), expected);
    }

    #[test]
    fn names_are_cut_to_the_terminal_and_short_ones_are_not() {
        for columns in [56, 70] {
            let text = printed(&hosts(), columns);
            assert!(text.lines().all(|line| measure_text_width(line) <= columns), "{text}");
            assert!(text.contains("another.example") && text.contains("…"), "{text}");
        }
        // If nothing fits, names are still printed.
        assert!(printed(&hosts(), 10).contains("an…"));
    }

    #[test]
    fn the_last_column_is_never_cut_and_an_empty_table_has_no_head() {
        let mut table = Table::new([Column::word("first"), Column::rest("link")]);
        assert_eq!(printed(&table, 10), "");
        table.row(["2006", "http://example.org/a/long/path"].map(str::to_owned));
        assert_eq!(printed(&table, 10), "first  link\n2006   http://example.org/a/long/path\n");
    }

    #[test]
    fn numbers_stand_one_below_the_other() {
        let mut out = Vec::new();
        let numbers = [("nodes", "12".to_owned()), ("a name that is long", "1,204".to_owned())];
        print_numbers(numbers, &mut out).unwrap();
        assert_eq!(out, b"  nodes                   12\n  a name that is long  1,204\n");
    }
}
