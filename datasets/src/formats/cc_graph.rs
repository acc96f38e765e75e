//! Releases of Common Crawl's host and domain graphs: hosts with ids, and edges between ids.
//!
//! ```text
//! 0  com.example.www                 vertices: id, name with reversed labels; in domain graphs, the number of hosts
//! 0  1                               edges: from, to; in some graphs, the number of links
//! #harmonicc_pos  #harmonicc_val     ranks: a table of their own ([`ranks`])
//! ```
//!
//! Columns are separated by tabs. Ids belong to one release. They rise from line to line, and from part to part, if a
//! table has several parts. The content shows which table a file is a part of ([`kind`]). Any number of files of both
//! tables is one release, and a build reads one release.
//!
//! A release is one capture of each host that has edges to other hosts. The page of a host is `http://HOST/`, and the
//! time is the first second of the time of the release. A host to which edges lead and from which none leads is only a
//! link: the release does not say whether anybody looked for its links. A host without edges is counted and left out.
//!
//! Until November 2025, Common Crawl left out a leading `www` of a name with more than two labels. With `Www::Fold`,
//! all releases are read in this way, so that no host seems to appear in that month. The two hosts are then one page,
//! and edges between them are counted and left out. Domain graphs have no such hosts and are never folded.
//!
//! Edges may also be a BVGraph, the format of WebGraph ([`bv`]): `X.graph` with `X.properties`, whose nodes are the
//! ids. Common Crawl publishes the transpose beside it as `X-t`, with the same edges from the other end: it is not
//! read.
//!
//! Each file with edges is an input, so that many workers read a release. They share the hosts ([`vertices`]), which
//! the first reader loads. Damage: lines of another form, names that no host has, ids out of order, edges with ids that
//! no host has. Edges out of order are counted, and read like all others. Offsets count bytes of the uncompressed text,
//! or nodes.
//!
//! The Parquet of cc-pyspark, with links between names of hosts, belongs to a release, too. It needs no vertices.
//!
//! Source: commoncrawl/cc-webgraph, cc-pyspark, and the notes on the releases at commoncrawl.org/web-graphs.

pub(crate) mod bv;
pub(crate) mod edges;
pub(crate) mod names;
pub(crate) mod ranks;
pub(crate) mod vertices;

use crate::Error;
use crate::files::compressed::{self, Notes, Text};
use crate::files::hashed::{DigestCell, Hashed};
use crate::files::head::Head;
use crate::files::lines::Lines;
use crate::files::place::Place;
use memchr::memmem;

/// The description of a file of a release in a build that reads no web graph.
pub(crate) const NEEDS_OPTIONS: &str = "web graph of Common Crawl: read one release with --format cc-graph and --time";

/// The kind of a file of a release.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Hosts, with the first id.
    Vertices(u64),
    Edges,
    Ranks,
}

/// The number of lines that [`kind`] reads.
const LINES_MAX: usize = 200;

/// The kind of a file with this beginning: the kind of most lines. `None` for files that belong to no release.
pub(crate) fn kind(head: &Head<'_>) -> Option<Kind> {
    if head.text.starts_with(b"#harmonicc_pos") {
        return Some(Kind::Ranks);
    }
    let (mut first, mut vertices, mut edges, mut others) = (None, 0, 0, 0);
    for line in head.whole_lines().take(LINES_MAX) {
        if edges::parse(line).is_some() {
            edges += 1;
        } else if let Some((id, rest)) = vertices::parse(line) {
            // The tables of other tools have URLs.
            let is_url = memmem::find(cell(rest).0, b"://").is_some();
            vertices += usize::from(!is_url);
            others += usize::from(is_url);
            first = first.or(Some(id));
        } else {
            others += 1;
        }
    }
    match first {
        Some(id) if vertices > 0 && vertices >= others + edges => Some(Kind::Vertices(id)),
        _ if edges > 0 && edges >= others + vertices => Some(Kind::Edges),
        _ => None,
    }
}

/// The lines of a file that may be compressed, and the damage of its compression. `digest` gets the digest of the file.
fn lines_of(place: &Place, digest: DigestCell) -> Result<(Lines, Notes), Error> {
    let path = place.path.as_path();
    let io = |error| Error::io(path, error);
    let source = Hashed::new(place.reader().map_err(io)?, digest);
    let notes = Notes::default();
    let text = Text::new(Box::new(source), Notes::clone(&notes)).map_err(io)?;
    Ok((Lines::new(Box::new(compressed::Lines(text)), path), notes))
}

/// An id or a count; `None` if the text is not a number of digits.
fn number(text: &[u8]) -> Option<u64> {
    let digits = text.iter().all(u8::is_ascii_digit) && !text.is_empty();
    if !digits {
        return None;
    }
    text.iter().try_fold(0u64, |number, digit| number.checked_mul(10)?.checked_add(u64::from(digit - b'0')))
}

/// The part of a line before the first tab, and the part after it if there is one.
fn cell(line: &[u8]) -> (&[u8], Option<&[u8]>) {
    match memchr::memchr(b'\t', line) {
        Some(tab) => (&line[..tab], Some(&line[tab + 1..])),
        None => (line, None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_told_apart_by_most_lines() {
        let kind = |text: &str| kind(&Head { text: text.as_bytes(), is_all: true });
        for (text, expected) in [
            ("0\tcom.example\n1\tcom.example.www\n", Some(Kind::Vertices(0))),
            ("70\tcom.example\t12\n71\tcom.example2\t1\n", Some(Kind::Vertices(70))),
            ("7\t4.3.2.1\n", Some(Kind::Vertices(7))),
            ("0\t1\n0\t2\n1\t0\n", Some(Kind::Edges)),
            ("0\t1\t70\n", Some(Kind::Edges)),
            ("damage\n0\t1\n", Some(Kind::Edges)),
            ("damage\nmore\n0\t1\n", None),
            ("#harmonicc_pos\t#harmonicc_val\t#pr_pos\n1\t2\t3\n", Some(Kind::Ranks)),
            ("0 1\n", None),
            ("-1\tcom.example\n", None),
            ("20080430204826\thttp://a.example/\thttp://b.example/\n", None),
            ("0\tcom.b?cher\n1\tcom.example\n", Some(Kind::Vertices(0))),
            ("99999999999999999999\t1\n", None),
            ("", None),
        ] {
            assert_eq!(kind(text), expected, "{text}");
        }
    }
}
