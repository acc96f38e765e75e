//! `POST /v1/query`: questions as JSON lines in, answers as JSON lines out, in the same order; the same forms as those of
//! `webstrata query`.
//!
//! ```text
//! body --> [Lines] whole lines --> as many as wait, [BATCH] at most --> [answers] alike ones asked together --> body
//! ```
//!
//! A line that is no question, and a question that cannot be answered, get an answer that says so, and the next line is read.
//! Lines that are there are answered before more are waited for, so that a program may ask by and by. All answers are of one
//! epoch. Memory: a batch of questions with the UIDs of its answers, one answer's text, and a line; nothing is read that has
//! not been asked for, and nothing goes on when the caller has gone.

use std::collections::HashMap;
use std::mem::size_of;

use axum::body::{Body, Bytes};
use axum::extract::{RawQuery, Request, State};
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use futures_util::stream::{StreamExt, TryStreamExt, unfold};
use futures_util::{FutureExt, Stream};
use serde_json::{Value as Shown, json};
use tonic::Status;
use tonic_types::StatusExt;
use webstrata_layers::{CaptureTime, Direction, Precision, Window, format_time};

use super::address::canonical;
use super::lines::{LINE_MAX, Line, Lines};
use super::links::is_unknown;
use super::params::Params;
use super::texts::Texts;
use super::{Refused, pinned};
use crate::clerk::Pinned;
use crate::question::{Op, Question, Way};
use crate::server::Shared;
use crate::status::{Reason, refuse};

pub(super) const QUERY: &[&str] = &["epoch"];

/// Questions that are asked together.
const BATCH: usize = 256;
/// Links whose URLs are asked for at once.
const RUN: usize = 1 << 14;

/// What questions have in common that are asked together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Kind {
    Links(Way, Window),
    Captures,
}

/// A line as a question, or what is wrong with it.
struct Asked {
    /// What the answer begins with: `id`, or the number of the line.
    name: (&'static str, Shown),
    question: Result<(Kind, String), String>,
}

impl Asked {
    fn of(line: &Line) -> Self {
        let number = || ("line", json!(line.number));
        let Some(text) = &line.text else {
            return Self { name: number(), question: Err(format!("longer than {LINE_MAX} bytes")) };
        };
        match serde_json::from_slice::<Question>(text) {
            Ok(mut question) => Self { name: ("id", question.id.take()), question: kind(&question) },
            Err(error) => {
                let id = serde_json::from_slice::<Shown>(text).ok().and_then(|value| value.get("id").cloned());
                let name = id.map_or_else(number, |id| ("id", id));
                Self { name, question: Err(format!("not a question: {error}")) }
            }
        }
    }
}

/// What a question asks, and of which URL.
fn kind(question: &Question) -> Result<(Kind, String), String> {
    let window = question.window()?;
    let url = canonical(&question.url).ok_or_else(|| format!("not an http or https URL: {}", question.url))?;
    let kind = match question.op {
        Op::Links => Kind::Links(question.direction, window),
        Op::Captures => Kind::Captures,
    };
    Ok((kind, url))
}

/// What is known of a question.
#[derive(Clone)]
enum Found {
    Links { uids: Vec<u64>, unknown: bool },
    Captures(Vec<CaptureTime>),
    NotThere,
    Failed(Status),
}

/// `/v1/query`.
pub(super) async fn query(
    State(shared): State<Shared>,
    RawQuery(query): RawQuery,
    request: Request,
) -> Result<Response, Refused> {
    let params = Params::of(query.as_deref(), QUERY, &[])?;
    let pinned = pinned(&shared, params.number("epoch", 1..=u64::MAX)?.unwrap_or(0)).await?;
    let body = request.into_body().into_data_stream().map_err(axum::Error::into_inner);
    let answers = Answers {
        body: Some(Box::pin(body)),
        lines: Lines::default(),
        pinned,
        bytes_max: shared.bounds.values.saturating_mul(size_of::<u64>()),
        batch: Vec::new().into_iter(),
    };
    let answers = unfold(answers, |mut answers| async move { Some((answers.next().await?, answers)) });
    Ok(([(CONTENT_TYPE, "application/x-ndjson")], Body::from_stream(answers)).into_response())
}

type Broken = Box<dyn std::error::Error + Send + Sync>;
type Incoming = std::pin::Pin<Box<dyn Stream<Item = Result<Bytes, Broken>> + Send>>;

/// A conversation.
struct Answers {
    /// Until it ends.
    body: Option<Incoming>,
    lines: Lines,
    pinned: Pinned,
    bytes_max: usize,
    /// Questions of the batch that are not answered yet, with what is known of them.
    batch: std::vec::IntoIter<(Asked, Found)>,
}

impl Answers {
    /// The text of the next answers.
    async fn next(&mut self) -> Option<Result<Vec<u8>, Broken>> {
        if self.batch.as_slice().is_empty() {
            match self.read().await {
                Ok(lines) if lines.is_empty() => return None,
                Ok(lines) => {
                    let asked: Vec<Asked> = lines.iter().map(Asked::of).collect();
                    let found = found(&self.pinned, &asked).await;
                    self.batch = asked.into_iter().zip(found).collect::<Vec<_>>().into_iter();
                }
                Err(error) => {
                    self.body = None;
                    return Some(Err(error));
                }
            }
        }
        Some(Ok(self.write().await))
    }

    /// The lines that are there, at least one unless the body has ended.
    async fn read(&mut self) -> Result<Vec<Line>, Broken> {
        while let Some(body) = self.body.as_mut().filter(|_| self.lines.len() < BATCH) {
            let chunk = match (body.next().now_or_never(), self.lines.is_empty()) {
                (Some(chunk), _) => chunk,
                (None, true) => body.next().await,
                (None, false) => break,
            };
            match chunk {
                Some(chunk) => self.lines.take_in(&chunk?),
                None => {
                    self.body = None;
                    self.lines.finish();
                }
            }
        }
        Ok(self.lines.take(BATCH))
    }

    /// Answers as lines: one, or as many as their URLs can be asked for together.
    async fn write(&mut self) -> Vec<u8> {
        let links = |found: &Found| if let Found::Links { uids, .. } = found { uids.len() } else { 0 };
        let mut size = 0;
        let fitting = self.batch.as_slice().iter().take_while(|(_, found)| {
            size += links(found);
            size <= RUN
        });
        let count = fitting.count().max(1);
        let run: Vec<_> = self.batch.by_ref().take(count).collect();
        let wanted = run.iter().filter(|(_, found)| links(found) <= RUN).flat_map(|(_, found)| match found {
            Found::Links { uids, .. } => uids.as_slice(),
            _ => &[],
        });
        let texts = Texts::of(&self.pinned, wanted.copied().collect()).await;
        let mut out = Vec::new();
        for (asked, found) in run {
            let shown = match (&texts, found) {
                (_, Found::Links { uids, unknown }) if uids.len() > RUN => {
                    long(&self.pinned, &uids, self.bytes_max).await.map(|urls| (urls, unknown))
                }
                (Ok(texts), Found::Links { uids, unknown }) => {
                    Ok((uids.iter().map(|&uid| texts.get(uid).to_owned()).collect(), unknown))
                }
                (Err(status), Found::Links { .. }) => Err(status.clone()),
                (_, other) => {
                    self.line(&asked, shown_of(&asked, other), &mut out);
                    continue;
                }
            };
            let shown = match shown {
                Ok((urls, unknown)) if unknown => json!({"links": urls, "unknown": true}),
                Ok((urls, _)) => json!({"links": urls}),
                Err(status) => shown_of(&asked, Found::Failed(status)),
            };
            self.line(&asked, shown, &mut out);
        }
        out
    }

    fn line(&self, asked: &Asked, mut shown: Shown, out: &mut Vec<u8>) {
        let (name, value) = &asked.name;
        shown[*name] = value.clone();
        shown["epoch"] = json!(self.pinned.epoch());
        out.extend_from_slice(shown.to_string().as_bytes());
        out.push(b'\n');
    }
}

/// The URLs of very many links.
async fn long(pinned: &Pinned, uids: &[u64], bytes_max: usize) -> Result<Vec<String>, Status> {
    let (mut urls, mut bytes) = (Vec::new(), 0);
    for uids in uids.chunks(RUN) {
        let own = pinned.urls(uids).await?;
        bytes += own.iter().map(String::len).sum::<usize>();
        if bytes > bytes_max {
            let message = format!("more than {bytes_max} bytes of links; /v1/links gives them in parts");
            return Err(refuse(Reason::AnswerTooLarge, message, &[("most", bytes_max as u64)]));
        }
        urls.extend(own);
    }
    Ok(urls)
}

/// An answer that has no URLs.
fn shown_of(asked: &Asked, found: Found) -> Shown {
    let error = match (&asked.question, found) {
        (Err(error), _) => error.clone(),
        (_, Found::NotThere) => "url not in store".to_owned(),
        (_, Found::Failed(status)) => {
            let mut shown = json!({"error": status.message()});
            if let Some(info) = status.get_details_error_info() {
                shown["reason"] = json!(info.reason);
            }
            return shown;
        }
        (_, Found::Captures(captures)) => {
            let times = |captures: &mut dyn Iterator<Item = &CaptureTime>| -> Vec<String> {
                captures.map(|capture| format_time(capture.time)).collect()
            };
            let unknown = times(&mut captures.iter().filter(|capture| !capture.known));
            let mut shown = json!({"captures": times(&mut captures.iter())});
            if !unknown.is_empty() {
                shown["unknown"] = json!(unknown);
            }
            return shown;
        }
        (_, Found::Links { .. }) => return json!({}),
    };
    json!({"error": error})
}

/// What the clerk says of questions.
async fn found(pinned: &Pinned, asked: &[Asked]) -> Vec<Found> {
    let mut found = vec![Found::NotThere; asked.len()];
    let good: Vec<(usize, &(Kind, String))> =
        asked.iter().enumerate().filter_map(|(at, asked)| Some((at, asked.question.as_ref().ok()?))).collect();
    let urls: Vec<&str> = good.iter().map(|(_, (_, url))| url.as_str()).collect();
    let uids = match pinned.uids(&urls).await {
        Ok(uids) => uids,
        Err(status) => {
            good.iter().for_each(|(at, _)| found[*at] = Found::Failed(status.clone()));
            return found;
        }
    };
    let mut groups: HashMap<Kind, Vec<(usize, u64)>> = HashMap::new();
    for ((at, (kind, _)), uid) in good.into_iter().zip(uids) {
        if let Some(uid) = uid {
            groups.entry(*kind).or_default().push((at, uid));
        }
    }
    for (kind, group) in groups {
        let mut rest = group.as_slice();
        let mut step = rest.len();
        while !rest.is_empty() {
            let (now, after) = rest.split_at(step.min(rest.len()));
            let uids: Vec<u64> = now.iter().map(|&(_, uid)| uid).collect();
            match alike(pinned, kind, &uids).await {
                Ok(answers) => now.iter().zip(answers).for_each(|(&(at, _), answer)| found[at] = answer),
                // Fewer may be answered.
                Err(status) if Reason::of(&status) == Some(Reason::AnswerTooLarge) && now.len() > 1 => {
                    step = now.len() / 2;
                    continue;
                }
                Err(status) => now.iter().for_each(|&(at, _)| found[at] = Found::Failed(status.clone())),
            }
            rest = after;
        }
    }
    found
}

/// The answers to questions of one kind.
async fn alike(pinned: &Pinned, kind: Kind, uids: &[u64]) -> Result<Vec<Found>, Status> {
    let Kind::Links(way, window) = kind else {
        return Ok(pinned.captures(uids).await?.iter().map(|captures| Found::Captures(captures.to_vec())).collect());
    };
    let direction = match way {
        Way::Out => Direction::Out,
        Way::In => Direction::In(Precision::Exact),
    };
    let links = pinned.links(uids, direction, window).await?;
    let unknown: Vec<bool> = match (way, window) {
        (Way::Out, Window::AsOf(at)) => {
            pinned.captures(uids).await?.iter().map(|captures| is_unknown(captures, at)).collect()
        }
        _ => vec![false; uids.len()],
    };
    Ok(links.iter().zip(unknown).map(|(uids, unknown)| Found::Links { uids: uids.to_vec(), unknown }).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use webstrata_layers::parse_time;

    fn asked(text: &str) -> Asked {
        Asked::of(&Line { number: 7, text: Some(text.as_bytes().to_vec()) })
    }

    #[test]
    fn a_line_that_is_too_long_is_told_so() {
        let asked = Asked::of(&Line { number: 3, text: None });
        assert_eq!((asked.name, asked.question), (("line", json!(3)), Err("longer than 65536 bytes".to_owned())));
    }

    #[test]
    fn questions_are_those_of_the_command_line() {
        let own = asked(r#"{"id": [1], "op": "links", "url": "HTTP://A.example#x", "direction": "in", "at": "2006"}"#);
        let at = parse_time("20061231235959", true).unwrap();
        assert_eq!(own.name, ("id", json!([1])));
        assert_eq!(own.question, Ok((Kind::Links(Way::In, Window::AsOf(at)), "http://a.example/".to_owned())));
        let own = asked(r#"{"op": "captures", "url": "http://a.example/"}"#);
        assert_eq!((own.name, own.question.unwrap().0), (("id", Shown::Null), Kind::Captures));
        for (text, name, error) in [
            ("{", ("line", json!(7)), "not a question"),
            (r#"{"id": 3, "op": "link"}"#, ("id", json!(3)), "not a question"),
            (
                r#"{"id": 3, "op": "links", "url": "http://a/", "form": "2006"}"#,
                ("id", json!(3)),
                "not a question: unknown field `form`",
            ),
            (r#"{"id": 3, "op": "links", "url": "http://a/", "from": "206"}"#, ("id", json!(3)), "not a time: 206"),
            (r#"{"id": 3, "op": "links", "url": "http://a/", "to": "0000"}"#, ("id", json!(3)), "not a time: 0000"),
            (
                r#"{"id": 3, "op": "links", "url": "http://a/", "from": "2007", "to": "2006"}"#,
                ("id", json!(3)),
                "from 2007-01-01T00:00:00Z is later than to 2006-12-31T23:59:59Z",
            ),
            (
                r#"{"id": 3, "op": "links", "url": "http://a/", "from": "2006", "at": "2006"}"#,
                ("id", json!(3)),
                "\"at\" goes",
            ),
            (r#"{"id": 3, "op": "links", "url": "ftp://a/"}"#, ("id", json!(3)), "not an http or https URL"),
        ] {
            let own = asked(text);
            assert_eq!(own.name, name, "{text}");
            assert!(own.question.as_ref().is_err_and(|own| own.starts_with(error)), "{text}: {:?}", own.question);
        }
    }
}
