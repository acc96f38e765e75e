//! Methods of requests: only the response to a GET is a capture of the page.
//!
//! A response to HEAD has no body, and a response to POST says nothing of what a GET of the URL would give. The readers
//! find the method in the request of a WARC file or a WAT, in a field `method`, or in the arguments that indexers add
//! to a URL or its key (`__wb_method=POST`). Names are compared without regard to case.

use crate::{Finding, Tally};

/// The methods that are counted by name.
const NAMED: [&str; 9] = ["HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT", "PROPFIND"];
/// The name under which all other methods are counted.
const OTHER: &str = "other";

/// The argument that has the method.
const ARGUMENT: &[u8] = b"__wb_method=";
/// Arguments of older indexers that only requests with a body have.
const BODY_ARGUMENTS: [&[u8]; 2] = [b"__wb_post_data=", b"__warc_post_data="];

/// A method other than GET, by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Other(&'static str);

impl Other {
    /// The method with this name; `None` for GET and for no name.
    pub(crate) fn of(name: &str) -> Option<Other> {
        let name = name.trim();
        if matches!(name, "" | "-") || name.eq_ignore_ascii_case("GET") {
            return None;
        }
        Some(Other(NAMED.into_iter().find(|named| named.eq_ignore_ascii_case(name)).unwrap_or(OTHER)))
    }

    /// The method that a line of an index names in the arguments of a URL or of its key.
    pub(crate) fn of_arguments(line: &[u8]) -> Option<Other> {
        let Some(at) = memchr::memmem::find(line, ARGUMENT) else {
            let has_body = BODY_ARGUMENTS.iter().any(|argument| memchr::memmem::find(line, argument).is_some());
            return has_body.then_some(Other("POST"));
        };
        let value = &line[at + ARGUMENT.len()..];
        let letters = value.iter().take_while(|byte| byte.is_ascii_alphabetic()).count();
        Other::of(&String::from_utf8_lossy(&value[..letters]))
    }

    /// The method of a request as it was sent: `POST /path HTTP/1.1`.
    pub(crate) fn of_request(block: &[u8]) -> Option<Other> {
        let block = block.trim_ascii_start();
        let letters = block.iter().take_while(|byte| byte.is_ascii_alphabetic() || **byte == b'-').count();
        let name = std::str::from_utf8(&block[..letters]).ok().filter(|_| block.get(letters) == Some(&b' '))?;
        Other::of(name)
    }

    /// Counts a response to a request with this method.
    pub(crate) fn count(self, tally: &mut Tally) {
        tally.count_as(Finding::OtherMethod, self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn methods_in_every_spelling() {
        for (name, other) in [
            ("GET", None),
            ("get", None),
            (" Get ", None),
            ("", None),
            ("-", None),
            ("HEAD", Some("HEAD")),
            ("post", Some("POST")),
            ("BREW", Some("other")),
        ] {
            assert_eq!(Other::of(name), other.map(Other), "{name}");
        }
        for (line, other) in [
            ("a)/?__wb_method=post&q=1 20200101000000", Some("POST")),
            ("a)/?__wb_method=HEAD", Some("HEAD")),
            ("a)/?__wb_method=get&x=1", None),
            ("a)/?__wb_post_data=eD0x", Some("POST")),
            ("a)/?x=1&__warc_post_data=eD0x", Some("POST")),
            ("a)/?method=post", None),
        ] {
            assert_eq!(Other::of_arguments(line.as_bytes()), other.map(Other), "{line}");
        }
        for (block, other) in [
            ("GET / HTTP/1.1\r\n", None),
            ("\r\nPOST /a HTTP/1.1\r\n", Some("POST")),
            ("M-SEARCH * HTTP/1.1\r\n", Some("other")),
            ("gemini://a.example/\r\n", None),
            ("HEAD", None),
            ("", None),
        ] {
            assert_eq!(Other::of_request(block.as_bytes()), other.map(Other), "{block}");
        }
    }
}
