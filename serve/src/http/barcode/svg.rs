//! `/v1/barcode.svg`: a barcode as a picture for use in other pages. The picture explains itself: it shows its page,
//! its times, the meaning of its marks, and its source.
//!
//! ```text
//! https://example.org/                                title
//! 1,319 links in 1,283 captures, 1998-02-13 to ...    how many rows are shown, and of how many
//!              2000      2005      2010               years, and a tick for each capture
//! /faq.html    ========----                           a name, bars, and a thin line up to the capture without the link
//! ```
//!
//! The picture shows the rows with the longest runs in total, the longest first. Colours are from the light theme of
//! the explorer, and fonts are fonts that the reader has. Texts of the store are only shown as text; characters that
//! could change how a line is read are shown as U+FFFD. Cost: the same as `/v1/barcode` with this number of rows.

use std::cmp::Reverse;
use std::fmt::Write;

use axum::extract::{RawQuery, State};
use axum::http::header::{CONTENT_SECURITY_POLICY, CONTENT_TYPE, VARY};
use axum::http::{HeaderMap, HeaderValue, Uri};
use axum::response::{IntoResponse, Response};
use webstrata_layers::record::capture::{gone_after, telling};
use webstrata_layers::record::key::host_of;
use webstrata_layers::{Error, Links, RangeLength, Spans, Uid, counted, format_time};

use super::{Barcode, Refused, outward_rows, pinned};
use crate::http::describe::{Call, text_call};
use crate::http::question::home;
use crate::http::question::parameter::{Parameter, number};
use crate::http::question::parameters::{DIRECTION, EPOCH, URL};
use crate::http::question::params::Params;
use crate::shared::Shared;

const LIMIT: Parameter = number(
    "limit",
    "The most rows in the picture. Rows whose runs are longest in all are kept. 0: as many as one picture may have.",
    0,
    500,
)
.default(40)
.example(&["10"]);
const WIDTH: Parameter = number("width", "The width in pixels. The height follows from the rows.", 320, 4_000)
    .default(960)
    .example(&["640"]);
pub(in crate::http) const PICTURE: Call = text_call(
    "barcodePicture",
    "The times of the links of a page, or of the pages that link to it, as a picture (SVG) to be quoted elsewhere.",
    &[URL, DIRECTION, LIMIT, WIDTH, EPOCH],
    &["image/svg+xml"],
);

/// Pixels: the margin, the height above the rows, the height of a row, and the height of its bar.
const MARGIN: f64 = 20.0;
const HEAD: f64 = 92.0;
const LINE: f64 = 15.0;
const BAR: f64 = 7.0;
/// The least distance between the names of two years, and the approximate width of a letter.
const YEAR: f64 = 44.0;
const LETTER: f64 = 6.1;
/// The background is pale after this many seconds without a capture.
const PALE: i64 = 150 * 86_400;
const SANS: &str = "Inter, Segoe UI, Roboto, Helvetica Neue, Arial, sans-serif";
const SERIF: &str = "Palatino Linotype, Palatino, Georgia, serif";
const OUTWARD_KEY: &str = "Bar: there, from the first to the last capture that has the link. Thin line: gone by its \
                           end. Hatched: captured, not all links known. Pale: not captured for 150 days.";
const INWARD_KEY: &str = "Bar: the page links, from the first to the last capture that has the link. Thin line: gone \
                          by its end.";

/// A run: its first and its last second, and the second by which the link was gone.
type Run = (i64, i64, Option<i64>);

/// `/v1/barcode.svg`.
pub(in crate::http) async fn svg(
    State(shared): State<Shared>,
    RawQuery(query): RawQuery,
    uri: Uri,
    headers: HeaderMap,
) -> Result<Response, Refused> {
    let params = Params::of(query.as_deref(), PICTURE.parameters)?;
    let (limit, width) = (params.limit()?, params.number("width")?.unwrap_or_default());
    let pinned = pinned(&shared, params.epoch()?).await?;
    let barcode = Barcode::of(&pinned, &params, limit, shared.bounds).await?;
    let names = pinned.urls(&barcode.rows.links).await?;
    let address = format!("{} · epoch {}", home::home(&shared, &uri, &headers)?, pinned.epoch());
    let picture = picture(&barcode, &names, f64::from(u32::try_from(width).unwrap_or(u32::MAX)), &address);
    let fields = [
        (CONTENT_TYPE, HeaderValue::from_static("image/svg+xml")),
        (CONTENT_SECURITY_POLICY, HeaderValue::from_static("default-src 'none'; style-src 'unsafe-inline'")),
        (VARY, home::VARIES),
    ];
    Ok((fields, picture).into_response())
}

/// The barcode of a page as a self-contained SVG, for callers that have a graph and no server. It shows the `limit`
/// longest-lived links and is `width` pixels wide.
///
/// # Errors
/// The errors of all questions.
pub fn picture_of(links: &dyn Links, uid: Uid, url: &str, limit: usize, width: u32) -> Result<String, Error> {
    let (captures, mut runs) = (links.captures(uid)?, Vec::new());
    links.spans_into(uid, Spans::Runs, &mut runs)?;
    let (rows, rest) = outward_rows(&captures, &runs, limit);
    let names = links.urls_of(&rows.links)?;
    let barcode = Barcode { url: url.to_owned(), uid, is_inward: false, captures, rows, rest, found: Vec::new() };
    Ok(picture(&barcode, &names, f64::from(width), &format!("epoch {}", links.epoch())))
}

/// The rows with their runs, the longest-lived row first.
fn rows<'a>(barcode: &Barcode, names: &'a [String]) -> Vec<(&'a str, Vec<Run>)> {
    let telling = telling(&barcode.captures);
    let time = |place: i64| usize::try_from(place).ok().and_then(|place| barcode.captures.get(place));
    let time = |place: i64| time(place).map_or(0, |capture| capture.time);
    let (mut rows, mut at) = (Vec::new(), 0);
    let mut take = |count: usize| {
        at += count;
        barcode.rows.runs.get(at - count..at).unwrap_or_default()
    };
    for (name, &count) in names.iter().zip(&barcode.rows.counts) {
        let mut runs: Vec<Run> = Vec::with_capacity(count);
        if barcode.is_inward {
            let gone = |time: i64| (time != 0).then_some(time);
            runs.extend(take(3 * count).chunks_exact(3).map(|run| (run[0], run[1], gone(run[2]))));
        } else {
            let mut end = 0;
            for run in take(2 * count).chunks_exact(2) {
                let (first, last) = (end + run[0], end + run[0] + run[1]);
                end = last + 1;
                // A run before a cut capture does not say that the link is gone where the next run goes on with it.
                if let Some((_, _, gone)) = runs.last_mut() {
                    *gone = gone.filter(|&gone| gone < time(first));
                }
                runs.push((time(first), time(last), gone_after(&telling, time(last))));
            }
        }
        rows.push((name.as_str(), runs));
    }
    let life = |runs: &[Run]| runs.iter().map(|run| run.1 - run.0 + 1).sum::<i64>();
    rows.sort_by_key(|(_, runs)| (Reverse(life(runs)), runs.first().map(|run| run.0)));
    rows
}

/// The picture, `width` pixels wide.
fn picture(barcode: &Barcode, names: &[String], width: f64, address: &str) -> String {
    let rows = rows(barcode, names);
    let ends = rows.iter().flat_map(|(_, runs)| runs).flat_map(|&(first, last, gone)| [first, gone.unwrap_or(last)]);
    let times: Vec<i64> = ends.chain(barcode.captures.iter().map(|capture| capture.time)).collect();
    let (first, last) = times.iter().min().zip(times.iter().max()).map_or((0, 0), |(&first, &last)| (first, last));
    let last = last.max(first + 86_400);
    let left = MARGIN + (0.3 * width).min(300.0);
    let room = width - left - MARGIN;
    #[expect(clippy::cast_precision_loss, reason = "a place on a picture")]
    let x = |time: i64| left + room * ((time - first) as f64 / (last - first) as f64);
    #[expect(clippy::cast_precision_loss, reason = "fewer than a thousand rows")]
    let below = HEAD + LINE * rows.len() as f64;
    let key = if barcode.is_inward { INWARD_KEY } else { OUTWARD_KEY };
    let key = wrapped(key, width - 2.0 * MARGIN);
    #[expect(clippy::cast_precision_loss, reason = "a few lines")]
    let height = below + 44.0 + 14.0 * key.len() as f64;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} \
         {height}\" font-family=\"{SANS}\" font-size=\"11\" role=\"img\"><title>{}</title><defs><pattern id=\"h\" \
         width=\"5\" height=\"5\" patternUnits=\"userSpaceOnUse\" patternTransform=\"rotate(45)\"><rect width=\"1\" \
         height=\"5\" fill=\"#8f8875\"/></pattern></defs><rect width=\"{width}\" height=\"{height}\" \
         fill=\"#faf8f3\"/>",
        shown(&barcode.url, usize::MAX)
    );
    let mut text = |x: f64, y: f64, more: &str, words: &str| {
        // Writing into a string cannot fail.
        let _ = write!(svg, "<text x=\"{x:.1}\" y=\"{y:.1}\" {more}>{words}</text>");
    };
    let title = shown(&barcode.url, letters(width - 2.0 * MARGIN, 10.0));
    text(MARGIN, 32.0, &format!("font-family=\"{SERIF}\" font-size=\"20\" fill=\"#1c1b18\""), &title);
    text(MARGIN, 50.0, "font-size=\"12\" fill=\"#57534a\"", &facts(barcode, rows.len()));
    for (at, line) in key.iter().enumerate() {
        #[expect(clippy::cast_precision_loss, reason = "a few lines")]
        let y = below + 20.0 + 14.0 * at as f64;
        text(MARGIN, y, "font-size=\"10\" fill=\"#57534a\"", line);
    }
    text(MARGIN, height - 10.0, "font-size=\"9\" fill=\"#716c60\"", &shown(address, 400));
    let mut named = f64::MIN;
    for start in RangeLength::Year.starts(first, last).filter(|&start| start >= first) {
        let at = x(start);
        rect(&mut svg, (at, HEAD - 10.0), (1.0, below - HEAD + 10.0), "#ece8dd");
        if at - named >= YEAR && at + YEAR / 2.0 < width {
            let _ = write!(
                svg,
                "<text x=\"{:.1}\" y=\"74\" fill=\"#57534a\">{}</text>",
                at + 2.0,
                &format_time(start)[..4]
            );
            named = at;
        }
    }
    if !barcode.is_inward {
        grounds(&mut svg, barcode, below, &x);
    }
    for capture in &barcode.captures {
        let colour = if capture.status.is_failure() { "#1c1b18" } else { "#8a8577" };
        let (colour, width) = if capture.is_whole() { (colour, 1.0) } else { ("url(#h)", 3.0) };
        rect(&mut svg, (x(capture.time), HEAD - 12.0), (width, 8.0), colour);
    }
    for (at, (name, runs)) in rows.iter().enumerate() {
        #[expect(clippy::cast_precision_loss, reason = "fewer than a thousand rows")]
        let y = HEAD + LINE * at as f64;
        let words = shown(short(name, &barcode.url), letters(left - MARGIN - 10.0, LETTER));
        let _ = write!(svg, "<text x=\"{MARGIN}\" y=\"{:.1}\" fill=\"#1c1b18\">{words}</text>", y + 11.0);
        for &(first, last, gone) in runs {
            if let Some(gone) = gone {
                rect(&mut svg, (x(last), y + 7.0), (x(gone) - x(last), 1.0), "#8b8f98");
            }
            rect(&mut svg, (x(first), y + 4.0), ((x(last) - x(first)).max(1.0), BAR), "#3d4452");
        }
    }
    svg + "</svg>\n"
}

/// A URL without its scheme; for a URL on the host of the page, its path.
fn short<'a>(url: &'a str, page: &str) -> &'a str {
    let bare = |url: &'a str| url.split_once("://").map_or(url, |(_, rest)| rest);
    let path = host_of(url).filter(|host| host_of(page) == Some(host)).and_then(|host| bare(url).strip_prefix(host));
    path.filter(|path| path.starts_with('/')).unwrap_or(bare(url))
}

/// The contents of the picture, as a sentence.
fn facts(barcode: &Barcode, rows: usize) -> String {
    let all = rows + barcode.rest.links;
    let mut facts = match barcode.is_inward {
        true => format!("linked by {}", counted(all as u64, "page")),
        false => counted(all as u64, "link"),
    };
    if let [first, .., last] | [first @ last] = &barcode.captures[..] {
        let day = |time: i64| format_time(time)[..10].to_owned();
        let captures = counted(barcode.captures.len() as u64, "capture");
        let (first, last) = (day(first.time), day(last.time));
        let _ = write!(facts, "; {captures}, {first} to {last}");
    }
    if barcode.rest.links > 0 {
        let _ = write!(facts, "; the {rows} that were there longest are shown");
    }
    facts
}

/// Draws the background: pale without captures, hatched if links are unknown.
fn grounds(svg: &mut String, barcode: &Barcode, below: f64, x: &impl Fn(i64) -> f64) {
    for pair in barcode.captures.windows(2) {
        let (start, end) = (x(pair[0].time), x(pair[1].time));
        if pair[1].time - pair[0].time > PALE {
            rect(svg, (start, HEAD), (end - start, below - HEAD), "#f0ece1");
        }
        if !pair[0].is_whole() {
            rect(svg, (start, HEAD), ((end - start).clamp(2.0, 12.0), below - HEAD), "url(#h)");
        }
    }
}

fn rect(svg: &mut String, (x, y): (f64, f64), (width, height): (f64, f64), fill: &str) {
    let (width, height) = (width.max(0.0), height.max(0.0));
    let _ =
        write!(svg, "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\" fill=\"{fill}\"/>");
}

/// The number of letters that fit.
fn letters(room: f64, letter: f64) -> usize {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a width in pixels")]
    let count = (room / letter).max(1.0) as usize;
    count
}

/// A sentence, wrapped into lines.
fn wrapped(text: &str, room: f64) -> Vec<String> {
    let most = letters(room, 5.2);
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.is_empty() => line.push_str(word),
            Some(line) if line.len() + 1 + word.len() <= most => *line += &format!(" {word}"),
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

/// A text of a store as text of a picture: shortened in the middle, without characters that change how it is read.
fn shown(text: &str, letters_max: usize) -> String {
    let all: Vec<char> = text.chars().collect();
    let mut kept: Vec<char> = if all.len() <= letters_max {
        all
    } else {
        let before = letters_max * 2 / 5;
        let after = letters_max.saturating_sub(before + 1);
        [&all[..before], &['…'], &all[all.len() - after..]].concat()
    };
    // Characters that have no width, separate lines, or change the direction in which text is read.
    let hidden = ['\u{200b}'..='\u{200f}', '\u{2028}'..='\u{202e}', '\u{2066}'..='\u{2069}', '\u{fffe}'..='\u{ffff}'];
    let is_hidden = |letter: char| letter.is_control() || hidden.iter().any(|letters| letters.contains(&letter));
    kept.iter_mut().filter(|letter| is_hidden(**letter)).for_each(|letter| *letter = '\u{fffd}');
    let escaped = |letter: char| match letter {
        '&' => "&amp;".to_owned(),
        '<' => "&lt;".to_owned(),
        '>' => "&gt;".to_owned(),
        '"' => "&quot;".to_owned(),
        letter => letter.to_string(),
    };
    kept.into_iter().map(escaped).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_go_by_their_path_on_the_host_of_the_page() {
        let page = "http://a.example/x";
        let names = ["https://a.example/", "http://a.example:81/y", "http://b.a.example/", "mailto:a"];
        let found = names.map(|name| short(name, page));
        assert_eq!(found, ["/", "a.example:81/y", "b.a.example/", "mailto:a"]);
    }

    #[test]
    fn texts_are_cut_in_the_middle_and_harmless() {
        assert_eq!(shown("http://a.example/", 40), "http://a.example/");
        assert_eq!(shown("0123456789", 6), "01…789");
        assert_eq!(shown("a<b>&\"\u{202e}\n", 40), "a&lt;b&gt;&amp;&quot;\u{fffd}\u{fffd}");
        assert_eq!(wrapped("one two three", 40.0), ["one two", "three"]);
    }
}
