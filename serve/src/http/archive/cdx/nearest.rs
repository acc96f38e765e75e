//! The captures of several pages that are nearest to a time.
//!
//! Of two equally near captures, the one that comes first counts as nearer. Memory: twice the number of requested
//! lines.

use super::field::Line;

/// The nearest lines so far.
pub(super) struct Nearest {
    time: i64,
    count: usize,
    /// The seconds from the time, the place among all lines, and the line.
    kept: Vec<(u64, u64, Line)>,
    pushed: u64,
}

impl Nearest {
    /// Keeps the `count` lines that are nearest to a time.
    pub(super) fn new(time: i64, count: usize) -> Self {
        Self { time, count, kept: Vec::new(), pushed: 0 }
    }

    pub(super) fn push(&mut self, line: Line) {
        self.kept.push((line.capture.time.abs_diff(self.time), self.pushed, line));
        self.pushed += 1;
        if self.kept.len() >= 2 * self.count.max(1) {
            self.kept.select_nth_unstable_by_key(self.count, |&(far, place, _)| (far, place));
            self.kept.truncate(self.count);
        }
    }

    /// The kept lines, the nearest first.
    pub(super) fn sorted(mut self) -> impl Iterator<Item = Line> {
        self.kept.sort_unstable_by_key(|&(far, place, _)| (far, place));
        self.kept.into_iter().take(self.count).map(|(_, _, line)| line)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::question::resume::PagePosition;
    use proptest::prelude::*;
    use webstrata_layers::{CaptureTime, Status};

    proptest! {
        #[test]
        fn the_nearest_are_the_first_of_all_by_distance(
            times in proptest::collection::vec(-50..50_i64, 0..60), time in -60..60_i64, count in 0..20_usize,
        ) {
            let mut nearest = Nearest::new(time, count);
            for (sent, &time) in times.iter().enumerate() {
                let position = PagePosition { sent, ..PagePosition::default() };
                let capture = CaptureTime { time, known: true, status: Status::OK };
                nearest.push(Line { url: "http://a/".into(), capture, position });
            }
            let found: Vec<usize> = nearest.sorted().map(|line| line.position.sent).collect();
            let mut expected: Vec<usize> = (0..times.len()).collect();
            expected.sort_by_key(|&place| times[place].abs_diff(time));
            expected.truncate(count);
            prop_assert_eq!(found, expected);
        }
    }
}
