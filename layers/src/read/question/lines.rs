//! Cuts text that arrives in pieces into lines of questions. Memory: the complete lines, and 64 KiB of the incomplete
//! line.

use std::collections::VecDeque;
use std::mem::take;

/// The largest size of the line of a question in bytes.
pub(crate) const QUESTION_BYTES_MAX: usize = 65_536;

/// A complete line.
#[derive(Debug, PartialEq, Eq)]
pub struct Line {
    /// The number of the line, from 1.
    pub number: u64,
    /// The text; `None` if the line was too long.
    pub text: Option<Vec<u8>>,
}

/// Cuts a body into lines. Empty lines are counted and skipped.
#[derive(Default)]
pub struct Lines {
    open: Vec<u8>,
    is_too_long: bool,
    number: u64,
    complete: VecDeque<Line>,
}

impl Lines {
    /// Adds the next piece of the body.
    pub fn take_in(&mut self, bytes: &[u8]) {
        for piece in bytes.split_inclusive(|&byte| byte == b'\n') {
            let (text, is_end) = piece.strip_suffix(b"\n").map_or((piece, false), |text| (text, true));
            self.is_too_long |= self.open.len() + text.len() > QUESTION_BYTES_MAX;
            if self.is_too_long {
                self.open.clear();
            } else {
                self.open.extend_from_slice(text);
            }
            if is_end {
                self.end();
            }
        }
    }

    /// The number of complete lines.
    pub fn len(&self) -> usize {
        self.complete.len()
    }

    /// Whether there are no complete lines.
    pub fn is_empty(&self) -> bool {
        self.complete.is_empty()
    }

    /// Removes and returns the first complete lines, at most `lines_max`.
    pub fn take(&mut self, lines_max: usize) -> Vec<Line> {
        let count = self.complete.len().min(lines_max);
        self.complete.drain(..count).collect()
    }

    fn end(&mut self) {
        self.number += 1;
        let text = take(&mut self.open);
        let is_too_long = take(&mut self.is_too_long);
        if is_too_long || !text.trim_ascii().is_empty() {
            self.complete.push_back(Line { number: self.number, text: (!is_too_long).then_some(text) });
        }
    }

    /// Ends the body: text after the last line end is a line.
    pub fn finish(&mut self) {
        if self.is_too_long || !self.open.is_empty() {
            self.end();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn lines(parts: &[&[u8]]) -> Vec<Line> {
        let mut lines = Lines::default();
        parts.iter().for_each(|part| lines.take_in(part));
        lines.finish();
        lines.take(usize::MAX)
    }

    #[test]
    fn long_lines_are_passed_over() {
        let (most, more) = (vec![b'x'; QUESTION_BYTES_MAX], vec![b'x'; QUESTION_BYTES_MAX + 1]);
        let body = [&most[..], b"\n\n", &more, b"\n \r\na\r\n", &more].concat();
        let long = |number| Line { number, text: None };
        let told = |number, text: &[u8]| Line { number, text: Some(text.to_vec()) };
        assert_eq!(lines(&[&body]), [told(1, &most), long(3), told(5, b"a\r"), long(6)]);
        assert_eq!(lines(&[b"\n\n"]), []);
    }

    proptest! {
        #[test]
        fn lines_do_not_depend_on_how_they_come(parts in proptest::collection::vec("[a\n ]{0,4}", 0..8)) {
            let parts: Vec<&[u8]> = parts.iter().map(String::as_bytes).collect();
            let whole = parts.concat();
            let text = String::from_utf8(whole.clone()).unwrap();
            let expected: Vec<Line> = (1..)
                .zip(text.split('\n'))
                .filter(|(_, line)| !line.trim().is_empty())
                .map(|(number, line)| Line { number, text: Some(line.as_bytes().to_vec()) })
                .collect();
            prop_assert_eq!(lines(&parts), expected.as_slice());
            prop_assert_eq!(lines(&[&whole]), expected);
        }
    }
}
