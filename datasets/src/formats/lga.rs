//! Longitudinal graphs of the Internet Archive: two files of JSON lines in one directory, plain or gzip.
//!
//! - `id.map`: `{"surt_url": "org,archive)/", "url": "http://archive.org/", "id": 7}`;
//! - `id.graph`: `{"id": 7, "timestamp": "20080430204826", "outlink_ids": [1, 2]}`, a capture a line. Without
//!   `outlink_ids`, the links of the capture are unknown.
//!
//! The graph needs the map. The reader finds the map by name in the same directory (`x.graph.gz`: `x.map.gz` or
//! `x.map`) and keeps the whole map in memory: about 40 bytes and the URL for each id. A map that is an input itself
//! has no captures, and its lines are no damage. Damage: broken lines, ids that the map does not contain, and a missing
//! map, without which nothing can be read.

use crate::capture::date;
use crate::capture::meaning::Seen;
use crate::files::head::{Head, fields};
use crate::files::json_text::{LONE_SURROGATES, json_text};
use crate::files::lines::Lines;
use crate::{Capture, CaptureReader, Error, Finding, Tally};
use flate2::bufread::MultiGzDecoder;
use serde::Deserialize;
use std::borrow::Cow;
use std::collections::HashMap;
use std::fs::File;
use std::io::{BufRead, BufReader, ErrorKind};
use std::path::{Path, PathBuf};

pub(crate) fn open(text: Box<dyn BufRead + Send>, path: &Path) -> Box<dyn CaptureReader> {
    Box::new(Graph { lines: Lines::new(text, path), map: None })
}

/// Whether a text begins with lines of a graph or a map.
pub(crate) fn is_own(head: &Head<'_>) -> bool {
    let is_own = |line| {
        let fields = fields(line);
        let has = |name: &[u8]| fields.contains(&name);
        has(b"surt_url") || has(b"outlink_ids")
    };
    head.lines().take(LINES_MAX).any(|(line, _)| is_own(line))
}

/// The number of lines that [`is_own`] reads.
const LINES_MAX: usize = 8;

struct Graph {
    lines: Lines,
    /// The map, loaded at the first capture.
    map: Option<Map>,
}

/// URLs by id.
#[derive(Default)]
struct Map {
    text: String,
    /// The offset and the length of each URL in `text`.
    offsets_by_id: HashMap<u64, (usize, usize)>,
}

impl Map {
    fn url(&self, id: u64) -> Option<&str> {
        let (start, length) = *self.offsets_by_id.get(&id)?;
        self.text.get(start..start + length)
    }
}

/// A line of a graph or a map.
#[derive(Deserialize)]
struct Line<'a> {
    id: u64,
    #[serde(borrow)]
    url: Option<Cow<'a, str>>,
    #[serde(borrow)]
    timestamp: Option<Cow<'a, str>>,
    outlink_ids: Option<Vec<u64>>,
}

impl CaptureReader for Graph {
    fn read(&mut self, capture: &mut Capture, tally: &mut Tally) -> Result<bool, Error> {
        while self.lines.read(tally)? {
            capture.clear();
            let (path, start) = (&self.lines.path, self.lines.start);
            let text = line_text(&self.lines, tally);
            let Some(line) = parse(&text, &self.lines, tally) else { continue };
            let (links, Some(timestamp)) = (line.outlink_ids, line.timestamp) else {
                if line.url.is_none() {
                    tally.damage(Finding::BadJson, path, start, "the line is neither a capture nor a URL");
                }
                continue;
            };
            let map = match &mut self.map {
                Some(map) => map,
                none => none.insert(load_map(path, tally)?),
            };
            if map.offsets_by_id.is_empty() {
                tally.unread(Finding::UnreadFile, path, "LGA graph without an id map next to it");
                return Ok(false);
            }
            let Some(date) = date::parse(&timestamp) else {
                tally.damage(Finding::BadDate, path, start, timestamp);
                continue;
            };
            let Some(url) = map.url(line.id) else {
                tally.damage(Finding::BadRow, path, start, format!("the id map has no URL for id {}", line.id));
                continue;
            };
            capture.url.push_str(url);
            capture.time = date.counted(tally);
            let has_links = links.is_some();
            for link in links.into_iter().flatten() {
                match map.url(link) {
                    Some(url) => capture.links.push(url),
                    None => tally.damage(Finding::BadRow, path, start, format!("the id map has no URL for id {link}")),
                }
            }
            if (Seen { has_links, ..Seen::default() }).settle(false, capture, tally) {
                return Ok(true);
            }
        }
        capture.clear();
        Ok(false)
    }
}

/// The text of the line at hand. Counts a text that was changed.
fn line_text<'a>(lines: &'a Lines, tally: &mut Tally) -> Cow<'a, str> {
    let (text, is_changed) = json_text(lines.line());
    if is_changed {
        tally.damage(Finding::BadJson, &lines.path, lines.start, LONE_SURROGATES);
    }
    text
}

/// Parses the text of the line at hand. Returns `None` if the line is empty or broken; a broken line is damage.
fn parse<'a>(text: &'a str, lines: &Lines, tally: &mut Tally) -> Option<Line<'a>> {
    if text.trim_ascii().is_empty() {
        return None;
    }
    let parsed = serde_json::from_str(text);
    parsed.map_err(|error| tally.damage(Finding::BadJson, &lines.path, lines.start, error.to_string())).ok()
}

/// Loads the map beside a graph. The map is empty if the file is missing.
fn load_map(graph: &Path, tally: &mut Tally) -> Result<Map, Error> {
    let mut map = Map::default();
    let open = |path: PathBuf| match File::open(&path) {
        Err(error) if error.kind() == ErrorKind::NotFound => None,
        opened => Some(opened.map_err(|source| Error::io(&path, source)).map(|file| (path, file))),
    };
    let Some(opened) = candidates(graph).into_iter().find_map(open) else {
        return Ok(map);
    };
    let (path, file) = opened?;
    let mut text = BufReader::new(file);
    let is_gzip = text.fill_buf().map_err(|source| Error::io(&path, source))?.starts_with(&[0x1f, 0x8b]);
    let text: Box<dyn BufRead + Send> =
        if is_gzip { Box::new(BufReader::new(MultiGzDecoder::new(text))) } else { Box::new(text) };
    let mut lines = Lines::new(text, &path);
    while lines.read(tally)? {
        let text = line_text(&lines, tally);
        let Some(Line { id, url: Some(url), .. }) = parse(&text, &lines, tally) else { continue };
        map.offsets_by_id.insert(id, (map.text.len(), url.len()));
        map.text.push_str(&url);
    }
    Ok(map)
}

/// The possible paths of the map of a graph: the name of the graph with `map` in place of the last `graph`, unchanged,
/// with `.gz`, and without `.gz`.
fn candidates(graph: &Path) -> Vec<PathBuf> {
    let name = graph.file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
    let Some(offset) = name.rfind("graph") else { return Vec::new() };
    let name = format!("{}map{}", &name[..offset], &name[offset + "graph".len()..]);
    let plain = name.strip_suffix(".gz").unwrap_or(&name);
    vec![graph.with_file_name(&name), graph.with_file_name(format!("{plain}.gz")), graph.with_file_name(plain)]
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::Compression;
    use flate2::write::GzEncoder;
    use std::io::{Cursor, Write};

    const MAP: &str = concat!(
        "{\"surt_url\":\"example,a)/\",\"url\":\"http://a.example/\",\"id\":1}\n",
        "{\"surt_url\":\"example,b)/\",\"url\":\"http://b.example/\\u00e9\",\"id\":20}\n",
    );
    const GRAPH: &str = concat!(
        "{\"id\":1,\"timestamp\":\"20080430204826\",\"outlink_ids\":[1,20]}\n",
        "{\"id\":20,\"timestamp\":\"20080430204826\",\"outlink_ids\":[3,1]}\n",
        "{\"id\":3,\"timestamp\":\"20080430204826\",\"outlink_ids\":[1]}\n",
        "{\"id\":1,\"timestamp\":\"soon\",\"outlink_ids\":[1]}\n",
        "{\"id\":1}\n",
        "{\"id\":\n",
    );

    fn read_all(text: &'static str, path: &Path) -> (Vec<String>, Tally) {
        let mut reader = open(Box::new(Cursor::new(text)), path);
        let (mut captures, mut capture, mut tally) = (Vec::new(), Capture::default(), Tally::default());
        while reader.read(&mut capture, &mut tally).unwrap() {
            let links: Vec<&str> = capture.links.iter().collect();
            captures.push(format!("{} {} {}", capture.url, capture.time, links.join(" ")));
        }
        (captures, tally)
    }

    #[test]
    fn a_graph_with_its_map() {
        for (graph, map) in
            [("id.graph", "id.map"), ("id.graph.gz", "id.map.gz"), ("my-graph.gz", "my-map"), ("id.graph", "id.map.gz")]
        {
            let dir = tempfile::tempdir().unwrap();
            let mut bytes = MAP.as_bytes().to_vec();
            if map.ends_with(".gz") {
                let mut gzip = GzEncoder::new(Vec::new(), Compression::fast());
                gzip.write_all(&bytes).unwrap();
                bytes = gzip.finish().unwrap();
            }
            std::fs::write(dir.path().join(map), bytes).unwrap();
            let (captures, tally) = read_all(GRAPH, &dir.path().join(graph));
            assert_eq!(
                captures,
                [
                    "http://a.example/ 1209588506 http://a.example/ http://b.example/é",
                    "http://b.example/é 1209588506 http://a.example/",
                ]
            );
            let counts = [Finding::BadRow, Finding::BadDate, Finding::BadJson].map(|finding| tally.of(finding));
            assert_eq!((counts, tally.damaged()), ([2, 1, 2], 5), "{graph}");
        }
    }

    #[test]
    fn a_map_alone_and_a_graph_alone() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(read_all(MAP, &dir.path().join("id.map")), (vec![], Tally::default()));
        let (captures, tally) = read_all(GRAPH, &dir.path().join("id.graph"));
        assert_eq!((captures.len(), tally.of(Finding::UnreadFile), tally.damaged()), (0, 1, 0));
    }
}
