//! The beginning of a text, from which each format says whether the text is its own.

/// The beginning of a text.
pub(crate) struct Head<'a> {
    pub(crate) text: &'a [u8],
    /// Whether the head is the whole text.
    pub(crate) is_all: bool,
}

impl<'a> Head<'a> {
    /// The lines that are not empty, and for each whether it goes on beyond the head.
    pub(crate) fn lines(&self) -> impl Iterator<Item = (&'a [u8], bool)> {
        let lines = self.text.split_inclusive(|byte| *byte == b'\n');
        let lines = lines.map(|line| (line.trim_ascii_end(), !self.is_all && !line.ends_with(b"\n")));
        lines.filter(|(line, _)| !line.is_empty())
    }

    /// The lines that are not empty, without a line that goes on beyond the head.
    pub(crate) fn whole_lines(&self) -> impl Iterator<Item = &'a [u8]> {
        self.lines().filter(|&(_, is_cut)| !is_cut).map(|(line, _)| line)
    }
}

/// The names of the fields of a JSON object at the beginning of a text, which may be cut off.
pub(crate) fn fields(text: &[u8]) -> Vec<&[u8]> {
    let text = text.trim_ascii_start();
    let (mut names, mut depth, mut at, mut is_name) = (Vec::new(), 0usize, 0, true);
    if !text.starts_with(b"{") {
        return names;
    }
    while at < text.len() {
        match text[at] {
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth = depth.saturating_sub(1),
            b',' if depth == 1 => is_name = true,
            b'"' => {
                let start = at + 1;
                at = start;
                while at < text.len() && text[at] != b'"' {
                    at += 1 + usize::from(text[at] == b'\\');
                }
                if std::mem::take(&mut is_name) && depth == 1 && at < text.len() {
                    names.push(&text[start..at]);
                }
            }
            _ => {}
        }
        at += 1;
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_fields_of_cut_lines() {
        let names = |text: &'static str| fields(text.as_bytes());
        assert_eq!(names(r#" {"a":{"x":["y","z"]},"b\"":"c,d","e":1}"#), [&b"a"[..], b"b\\\"", b"e"]);
        assert_eq!(names(r#"{"a":["x","y"#), [b"a"]);
        assert_eq!(names(r#"{"a":1,"b"#), [b"a"]);
        assert_eq!(names(r#"["a"]"#), [b""; 0]);
    }
}
