//! Bars in the terminal: a row for each link, filled while it was there, on one axis of time.
//!
//! ```text
//!                             2006        2007        2008
//! example.net/                ██████████████████▌──╴
//! example.org/news                  ▐████████████████████
//! captures                    ││ │ │ ││ │░ │ │ ×││ │ │ ││
//! ```
//!
//! A cell of the axis has two halves. A half is filled if the link was there at some time in the half. A thin line
//! after a bar ends at the first capture without the link. In the row of captures, a cell with a capture has a line.
//! The cell is shaded if no capture has known links, and crossed if all captures failed.
//!
//! Rows are as wide as the terminal, or 80 columns. Names that are too long are cut in the middle.

use console::{Term, measure_text_width, style};
use webstrata_layers::{CaptureTime, RangeLength, format_time};

/// Blocks that fill a cell step by step, from below, and from the left.
const BLOCKS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
const PARTS: [char; 9] = [' ', '▏', '▎', '▍', '▌', '▋', '▊', '▉', '█'];

/// How many eighths of some cells a share fills; at least one if the share is not zero.
fn eighths(share: f64, cells: usize) -> usize {
    let all = 8 * cells;
    let least = usize::from(share > 0.0);
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "from nothing to all")]
    let filled = (share.clamp(0.0, 1.0) * all as f64).round() as usize;
    filled.clamp(least, all)
}

/// A bar of at most `cells` cells, for a share from 0 to 1.
pub(crate) fn bar(share: f64, cells: usize) -> String {
    let filled = eighths(share, cells);
    let mut drawn = "█".repeat(filled / 8);
    if !filled.is_multiple_of(8) {
        drawn.push(PARTS[filled % 8]);
    }
    drawn
}

/// The width of the terminal in columns, or the width of other output.
pub(crate) fn width() -> usize {
    let term = Term::stdout();
    if term.is_term() { usize::from(term.size().1).max(40) } else { WIDTH }
}

/// The columns of output that is not a terminal.
const WIDTH: usize = 80;
/// The widest and the narrowest axis, in cells.
const AXIS: std::ops::RangeInclusive<usize> = 20..=160;

/// A stretch of time in which a link was there: the first and last capture with the link, and the next capture without
/// it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Bar {
    pub(crate) first: i64,
    pub(crate) last: i64,
    pub(crate) gone: Option<i64>,
}

/// An axis of time, and the room for names beside it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Axis {
    from: i64,
    to: i64,
    /// The number of cells.
    cells: usize,
    /// The number of columns for names.
    names: usize,
    /// Whether bars have colours.
    colours: bool,
}

/// The number of rows that fit into a terminal, with room for other lines; no limit if the output is not a terminal.
pub(crate) fn rows_max() -> usize {
    let term = Term::stdout();
    if term.is_term() { usize::from(term.size().0).saturating_sub(6).max(5) } else { usize::MAX }
}

impl Axis {
    /// The axis of an interval for rows with these names, as wide as the output.
    pub(crate) fn of_terminal<'a>((from, to): (i64, i64), names: impl IntoIterator<Item = &'a str>) -> Self {
        Self { colours: console::colors_enabled(), ..Self::new((from, to), names, width()) }
    }

    fn new<'a>((from, to): (i64, i64), names: impl IntoIterator<Item = &'a str>, width: usize) -> Self {
        let longest = names.into_iter().map(measure_text_width).max().unwrap_or(0);
        let names = longest.clamp(8, (width * 2 / 5).max(8));
        let cells = width.saturating_sub(names + 2).clamp(*AXIS.start(), *AXIS.end());
        Self { from, to: to.max(from + 1), cells, names, colours: false }
    }

    /// The half of a cell that contains a time. Times beyond the ends are in the first or the last half.
    fn half(&self, time: i64) -> usize {
        let halves = 2 * self.cells;
        let share = i128::from(time.clamp(self.from, self.to) - self.from) * halves as i128;
        usize::try_from(share / (i128::from(self.to - self.from) + 1)).unwrap_or(0).min(halves - 1)
    }

    /// The line of years above the bars.
    pub(crate) fn head(&self) -> String {
        const YEAR: i64 = 365 * 24 * 60 * 60;
        let mut line = vec![' '; self.cells];
        let cell = (self.to - self.from) / self.cells as i64;
        let steps = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000];
        let step = steps.into_iter().find(|step| step * YEAR >= 6 * cell).unwrap_or(5000);
        let mut year = RangeLength::Year.start(self.from);
        let mut is_empty = true;
        while year <= self.to {
            let text: Vec<char> = format_time(year).chars().take(4).collect();
            let number: i64 = text.iter().collect::<String>().parse().unwrap_or(0);
            let at = self.half(year) / 2;
            if number % step == 0 && year + cell >= self.from && at + text.len() <= self.cells {
                line[at..at + text.len()].copy_from_slice(&text);
                is_empty = false;
            }
            year = RangeLength::Year.end(year) + 1;
        }
        if is_empty {
            let text: Vec<char> = format_time(self.from).chars().take(10.min(self.cells)).collect();
            line[..text.len()].copy_from_slice(&text);
        }
        let text: String = line.into_iter().collect();
        format!("{:names$}  {}", "", text.trim_end(), names = self.names)
    }

    /// The row of a link.
    pub(crate) fn row(&self, name: &str, bars: &[Bar]) -> String {
        let mut there = vec![false; 2 * self.cells];
        let mut thin = vec![None; self.cells];
        for bar in bars {
            let (first, last) = (self.half(bar.first), self.half(bar.last));
            there[first..=last].fill(true);
            if let Some(gone) = bar.gone.map(|gone| self.half(gone) / 2).filter(|&gone| gone > last / 2) {
                thin[last / 2 + 1..gone].fill(Some('─'));
                thin[gone] = Some('╴');
            }
        }
        let cell = |(at, thin): (usize, &Option<char>)| match (there[2 * at], there[2 * at + 1]) {
            (true, true) => '█',
            (true, false) => '▌',
            (false, true) => '▐',
            (false, false) => thin.unwrap_or(' '),
        };
        let drawn: String = thin.iter().enumerate().map(cell).collect();
        self.line(name, drawn.trim_end())
    }

    /// The row of a number over time: each cell has a block as high as the largest value in the cell.
    pub(crate) fn heights(&self, name: &str, values: &[(i64, f64)]) -> String {
        let mut most = vec![None; self.cells];
        for &(time, value) in values {
            let cell = &mut most[self.half(time) / 2];
            *cell = Some(f64::max(cell.unwrap_or(0.0), value));
        }
        let height = most.iter().flatten().copied().fold(0.0, f64::max);
        let block = |value: &Option<f64>| match value {
            Some(value) if height > 0.0 => BLOCKS[eighths(value / height, 1)],
            _ => ' ',
        };
        let drawn: String = most.iter().map(block).collect();
        self.line(name, drawn.trim_end())
    }

    /// The row of captures.
    pub(crate) fn captures(&self, name: &str, captures: &[CaptureTime]) -> String {
        // The best-known capture of each cell: a failure, a capture with unknown links, or one with known links.
        let mut best = vec![0; self.cells];
        for capture in captures {
            let is_failure = capture.status.is_failure();
            let known = if is_failure { 1 } else { 2 + u8::from(capture.known) };
            let cell = &mut best[self.half(capture.time) / 2];
            *cell = known.max(*cell);
        }
        let drawn: String = best.into_iter().map(|best| [' ', '×', '░', '│'][usize::from(best)]).collect();
        self.line(name, drawn.trim_end())
    }

    fn line(&self, name: &str, drawn: &str) -> String {
        let name = cut(name, self.names);
        let room = " ".repeat(self.names.saturating_sub(measure_text_width(&name)));
        let drawn = if self.colours { style(drawn).cyan().to_string() } else { drawn.to_owned() };
        format!("{name}{room}  {drawn}").trim_end().to_owned()
    }
}

/// Captures as a calendar: a row for each year, a column for each week. Weeks with more captures are darker.
pub(crate) fn calendar(captures: &[CaptureTime]) -> Vec<String> {
    const WEEK: i64 = 7 * 24 * 60 * 60;
    const WEEKS: usize = 53;
    let (Some(first), Some(last)) = (captures.first(), captures.last()) else { return Vec::new() };
    let months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let head: String =
        (0..12).map(|month| format!("{:<w$}", months[month], w = if month % 3 == 0 { 5 } else { 4 })).collect();
    let mut lines = vec![format!("      {}", head.trim_end())];
    let mut rest = captures;
    let mut year = RangeLength::Year.start(first.time);
    while year <= last.time {
        let end = RangeLength::Year.end(year);
        let (own, after) = rest.split_at(rest.partition_point(|capture| capture.time <= end));
        rest = after;
        if own.is_empty() {
            // Consecutive years without a capture are one line.
            let next = rest.first().map_or(end + 1, |capture| RangeLength::Year.start(capture.time));
            let last = &format_time(next - 1)[..4];
            let name = &format_time(year)[..4];
            lines.push(if name == last { name.to_owned() } else { format!("{name} to {last}: none") });
            year = next;
            continue;
        }
        let mut weeks = vec![(0_u32, false, false); WEEKS];
        for capture in own {
            let week = usize::try_from((capture.time - year) / WEEK).unwrap_or(0).min(WEEKS - 1);
            let (count, is_known, is_there) = &mut weeks[week];
            *count += 1;
            *is_known |= capture.known && !capture.status.is_failure();
            *is_there |= !capture.status.is_failure();
        }
        let cell = |(count, is_known, is_there): (u32, bool, bool)| match (count, is_known, is_there) {
            (0, ..) => ' ',
            (_, _, false) => '×',
            (_, false, _) => '░',
            (count, ..) => ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'][count.ilog2().min(7) as usize],
        };
        let drawn: String = weeks.into_iter().map(cell).collect();
        lines.push(format!("{}  {}", &format_time(year)[..4], drawn).trim_end().to_owned());
        year = end + 1;
    }
    lines
}

/// A text of at most `columns` columns, cut in the middle. Control characters are replaced.
pub(crate) fn cut(text: &str, columns: usize) -> String {
    let shown: String = text.chars().map(|sign| if sign.is_control() { '\u{fffd}' } else { sign }).collect();
    if measure_text_width(&shown) <= columns {
        return shown;
    }
    let signs: Vec<char> = shown.chars().collect();
    let head = columns.saturating_sub(1) * 2 / 5;
    let mut cut: String = signs[..head.min(signs.len())].iter().collect();
    cut.push('…');
    let mut end = String::new();
    for &sign in signs.iter().rev() {
        let longer = format!("{sign}{end}");
        if measure_text_width(&cut) + measure_text_width(&longer) > columns {
            break;
        }
        end = longer;
    }
    cut + &end
}

#[cfg(test)]
mod tests {
    use super::*;
    use webstrata_layers::{Status, parse_time};

    fn time(text: &str) -> i64 {
        parse_time(text, false).unwrap()
    }

    fn axis(columns: usize) -> Axis {
        Axis::new((time("2006"), time("2010")), ["example.net/"], columns)
    }

    #[test]
    fn rows_are_bars_on_one_axis() {
        let axis = axis(14 + 40);
        assert_eq!(axis.cells, 40);
        assert_eq!(axis.head(), "              2006     2007      2008       2009");
        let bar = |first: &str, last: &str, gone: Option<&str>| Bar {
            first: time(first),
            last: time(last),
            gone: gone.map(time),
        };
        assert_eq!(axis.row("example.net/", &[bar("2006", "200612", Some("200707"))]), "example.net/  █████████▌────╴");
        assert_eq!(axis.row("b", &[bar("2007", "2007", None), bar("2009", "2010", None)]).chars().count(), 14 + 40);
        assert_eq!(axis.row("b", &[bar("2007", "2007", None)]), "b                      ▐");
        assert_eq!(axis.row("none", &[]), "none");
    }

    #[test]
    fn numbers_over_time_are_blocks() {
        let axis = axis(14 + 40);
        let row = axis.heights("pages", &[(time("2006"), 8.0), (time("200601"), 1.0), (time("2008"), 0.1)]);
        assert_eq!(row, "pages         █                  ▁");
        assert_eq!(axis.heights("none", &[(time("2006"), 0.0)]), "none");
        assert_eq!([0.0, 0.01, 0.5, 0.75, 1.0].map(|share| bar(share, 2)), ["", "▏", "█", "█▌", "██"]);
    }

    #[test]
    fn the_best_known_capture_of_a_cell_is_shown() {
        let axis = axis(14 + 40);
        let capture =
            |text: &str, code, known| CaptureTime { time: time(text), known, status: Status::new(code).unwrap() };
        let captures = [
            capture("2006", 200, true),
            capture("2007", 404, true),
            capture("20080101", 200, false),
            capture("20090101", 503, true),
            capture("20090102", 200, true),
        ];
        assert_eq!(axis.captures("captures", &captures), "captures      │        ×         ░          │");
    }

    #[test]
    fn a_calendar_has_a_row_a_year() {
        let capture =
            |text: &str, code| CaptureTime { time: time(text), known: true, status: Status::new(code).unwrap() };
        let captures =
            [capture("20060101", 200), capture("20060102", 200), capture("20060110", 404), capture("20080108", 200)];
        let lines = calendar(&captures);
        assert_eq!(lines[1..], ["2006  ▂×", "2007", "2008   ▁"]);
        assert!(lines[0].starts_with("      Jan  Feb Mar Apr"), "{}", lines[0]);
        let far = calendar(&[captures[0], CaptureTime { time: time("9999"), ..captures[0] }]);
        assert_eq!(far[1..], ["2006  ▁", "2007 to 9998: none", "9999  ▁"]);
        assert_eq!(calendar(&[]), Vec::<String>::new());
    }

    #[test]
    fn long_names_are_cut_in_the_middle() {
        assert_eq!(cut("http://example.org/", 40), "http://example.org/");
        assert_eq!(cut("http://example.org/a/long/path.html", 20), "http://…ng/path.html");
        assert_eq!(cut("a\u{1b}[2Jb\n", 20), "a\u{fffd}[2Jb\u{fffd}");
        for columns in 8..30 {
            assert!(measure_text_width(&cut("http://例え.テスト/とても長い道/ここ", columns)) <= columns);
        }
    }
}
