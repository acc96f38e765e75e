//! Attending calls to their end: an answer's body that keeps something until it has ended, and notes how it ended.
//!
//! A call ends when its answer's body ends, fails or is dropped because the caller went away; then its attendant is
//! dropped, once. Bytes and their borders are passed on as they are. One allocation a call.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use axum::body::{Body, Bytes, HttpBody};
use axum::http::{HeaderMap, Response};
use http_body::{Frame, SizeHint};
use tonic::{Code, Status};

use crate::guard::refusal::{code_of, is_grpc};

/// What stays with a call until its answer has ended, and learns from `drop` that it has.
pub(crate) trait Attendant: Send + Unpin + 'static {
    /// Where it wants noted how the call ends.
    fn outcome(&mut self) -> Option<&mut Outcome> {
        None
    }

    /// Runs a step of the answer, in what it should see as its surroundings.
    fn within<T>(&self, step: impl FnOnce() -> T) -> T {
        step()
    }
}

/// How a call ended, as far as it has.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    code: Option<Code>,
    /// The answer was given to its end.
    whole: bool,
    /// Of the answer's body.
    pub(crate) bytes: u64,
}

impl Outcome {
    /// The code of the answer; of one that was not given to its end because the caller went away, that.
    pub(crate) fn code(&self) -> Code {
        if self.whole { self.code.unwrap_or(Code::Unknown) } else { Code::Cancelled }
    }

    /// gRPC has its status in the headers where there is nothing else, or behind the answer.
    fn begin(&mut self, response: &Response<Body>) {
        self.code = if is_grpc(response.headers()) { status(response.headers()) } else { Some(code_of(response)) };
    }

    fn pass(&mut self, frame: &Frame<Bytes>) {
        if let Some(data) = frame.data_ref() {
            self.bytes += u64::try_from(data.len()).unwrap_or(0);
        }
        if let Some(trailers) = frame.trailers_ref() {
            self.code = status(trailers).or(self.code);
            self.whole = true;
        }
    }
}

fn status(headers: &HeaderMap) -> Option<Code> {
    Some(Code::from_bytes(headers.get(Status::GRPC_STATUS)?.as_bytes()))
}

/// The answer, with an attendant.
pub(crate) fn attended(response: Response<Body>, mut attendant: impl Attendant) -> Response<Body> {
    let over = response.body().is_end_stream();
    if let Some(outcome) = attendant.outcome() {
        outcome.begin(&response);
        outcome.whole = over;
    }
    if over { response } else { response.map(|inner| Body::new(Attended { inner, attendant: Some(attendant) })) }
}

struct Attended<A> {
    inner: Body,
    /// Until the end.
    attendant: Option<A>,
}

impl<A: Attendant> HttpBody for Attended<A> {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let Self { inner, attendant } = self.get_mut();
        let mut step = || Pin::new(&mut *inner).poll_frame(context);
        let frame = ready!(match attendant {
            Some(attendant) => attendant.within(step),
            None => step(),
        });
        // Who reads may stop at the last frame, and need not ask for the end.
        let over = !matches!(frame, Some(Ok(_))) || inner.is_end_stream();
        if let Some(outcome) = attendant.as_mut().and_then(Attendant::outcome) {
            if let Some(Ok(frame)) = &frame {
                outcome.pass(frame);
            }
            outcome.whole |= over && !matches!(frame, Some(Err(_)));
        }
        if over {
            *attendant = None;
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}
