//! `POST /v1/query`: questions come in as JSON lines, answers go out as JSON lines in the same order. `webstrata query`
//! uses the same format.
//!
//! ```text
//! body --> [Lines] complete lines --> the waiting lines, [BATCH] at most --> [Answering] asked together --> body
//! ```
//!
//! An invalid line, or a question that fails, is answered with an error, and reading continues with the next line. The
//! server answers the lines that have arrived before it waits for more, so a program can ask step by step. All answers
//! are of one epoch. Memory: a batch of questions with the UIDs of the answers, the text of one answer, and one line.
//! The server reads no further than the caller reads answers, and stops when the caller goes away.

use std::mem::size_of;

use axum::body::{Body, Bytes};
use axum::extract::{RawQuery, Request, State};
use axum::http::header::{ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_TYPE};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use futures_util::stream::{StreamExt, TryStreamExt, unfold};
use futures_util::{FutureExt, Stream};

use super::describe::{Answer as Form, Call};
use super::question::address::{find, meant};
use super::question::parameters::EPOCH;
use super::question::params::Params;
use super::{Refused, pinned};
use crate::answering::{Answering, BATCH, Long, failure_of};
use crate::clerk::Pinned;
use crate::protocol::status::{Reason, refuse};
use crate::shared::Shared;
use webstrata_layers::read::question::lines::{Line, Lines};
use webstrata_layers::read::question::{Asked, Meant};
use webstrata_url::canonical;

pub(super) const QUERY: Call = Call {
    id: "query",
    summary: "Many questions, one JSON line each. Answers are lines in the same order and of one epoch, sent as they \
        are found.",
    about: None,
    parameters: &[EPOCH],
    answer: Form::Lines,
};

/// `/v1/query`.
pub(super) async fn query(
    State(shared): State<Shared>,
    RawQuery(query): RawQuery,
    request: Request,
) -> Result<Response, Refused> {
    let params = Params::of(query.as_deref(), QUERY.parameters)?;
    if let Some(encoding) = request.headers().get(CONTENT_ENCODING).filter(|encoding| *encoding != "identity") {
        return Ok(encoded(encoding));
    }
    let pinned = pinned(&shared, params.epoch()?).await?;
    let body = request.into_body().into_data_stream().map_err(axum::Error::into_inner);
    let long = Long::Refused { bytes_max: shared.bounds.values.saturating_mul(size_of::<u64>()) };
    let answers =
        Answers { body: Some(Box::pin(body)), lines: Lines::default(), answering: Answering::new(pinned, long) };
    let answers = unfold(answers, |mut answers| async move { Some((answers.next().await?, answers)) });
    Ok(([(CONTENT_TYPE, "application/x-ndjson")], Body::from_stream(answers)).into_response())
}

/// The answer to questions that are compressed. A compressed body would be read as invalid lines.
fn encoded(encoding: &HeaderValue) -> Response {
    let message = format!("Content-Encoding: {encoding:?} is not read; send the questions as they are");
    let mut response = Refused(refuse(Reason::BadRequest, message, &[])).into_response();
    *response.status_mut() = StatusCode::UNSUPPORTED_MEDIA_TYPE;
    response.headers_mut().insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
    response
}

type Broken = Box<dyn std::error::Error + Send + Sync>;
type Incoming = std::pin::Pin<Box<dyn Stream<Item = Result<Bytes, Broken>> + Send>>;

/// One call: the lines that arrive and the answers that leave.
struct Answers {
    /// The body, until it ends.
    body: Option<Incoming>,
    lines: Lines,
    answering: Answering,
}

impl Answers {
    /// The text of the next answers.
    async fn next(&mut self) -> Option<Result<Vec<u8>, Broken>> {
        let mut answers = self.answering.next().await;
        if answers.is_empty() {
            match self.read().await {
                Ok(lines) => {
                    for line in lines {
                        let question = meaning_of(self.answering.pinned(), &line).await;
                        self.answering.push(question);
                    }
                }
                Err(error) => {
                    self.body = None;
                    return Some(Err(error));
                }
            }
            answers = self.answering.next().await;
        }
        let mut out = Vec::new();
        for (question, answer) in &answers {
            let answer = answer.as_ref().map_or_else(failure_of, Clone::clone);
            if let Err(error) = serde_json::to_writer(&mut out, &question.line(self.answering.epoch(), answer)) {
                return Some(Err(error.into()));
            }
            out.push(b'\n');
        }
        (!answers.is_empty()).then_some(Ok(out))
    }

    /// The lines that have arrived: at least one unless the body has ended.
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
}

/// The question of a line. A text without a scheme means the URL that the other paths find for it.
async fn meaning_of(pinned: &Pinned, line: &Line) -> Asked {
    let question = question_of(line);
    if question.question().is_ok() {
        return question;
    }
    let first = |text: &str| meant(text).ok()?.into_iter().next();
    let Some((text, first)) = Asked::bare(line, first) else { return question };
    if !first.is_open() {
        return first;
    }
    let meant = match find(pinned, &text).await {
        Ok((url, _)) => Meant::Url(url),
        Err(status) if Reason::of(&status) == Some(Reason::BadRequest) => Meant::Both,
        // If the store cannot be asked, the answer to the question says so.
        Err(_) => Meant::Nothing,
    };
    first.meaning(&text, meant)
}

fn question_of(line: &Line) -> Asked {
    Asked::of(line, |url| canonical(None, url).ok())
}

#[cfg(test)]
mod tests {
    use super::*;
    use webstrata_layers::read::question::Kind;
    use webstrata_layers::{Way, Window};

    #[test]
    fn lines_are_read_as_the_command_line_reads_them() {
        let text = br#"{"op": "links", "url": "HTTP://A.example#x"}"#.to_vec();
        let own = question_of(&Line { number: 3, text: Some(text) });
        assert_eq!(own.question(), Ok((Kind::Links(Way::Out, Window::ALWAYS), "http://a.example/")));
    }
}
