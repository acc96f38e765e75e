//! Attendants: values that stay with a call until its answer has ended, and that learn how the answer ended.
//!
//! A call ends when the body of its answer ends, fails, or is dropped because the caller went away. Then the attendant
//! is dropped, exactly once. The frames of the body pass unchanged. Cost: one allocation a call.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use axum::body::{Body, Bytes, HttpBody};
use axum::http::{HeaderMap, Response};
use http_body::{Frame, SizeHint};
use tonic::{Code, Status};

use crate::protocol::refusal::{code_of, is_grpc};

/// A value that stays with a call. It is dropped when the answer has ended.
pub(crate) trait Attendant: Send + Unpin + 'static {
    /// The record of the end of the call, if the attendant needs one.
    fn outcome(&mut self) -> Option<&mut Outcome> {
        None
    }

    /// Runs one step of the answer, for example inside a span.
    fn within<T>(&self, step: impl FnOnce() -> T) -> T {
        step()
    }
}

/// How a call ended. The fields are filled while the answer is sent.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    code: Option<Code>,
    /// Whether the answer was sent to its end.
    is_complete: bool,
    /// Bytes of the answer's body.
    pub(crate) bytes: u64,
}

impl Outcome {
    /// The code of the answer; CANCELLED if the caller went away before the end.
    pub(crate) fn code(&self) -> Code {
        if self.is_complete { self.code.unwrap_or(Code::Unknown) } else { Code::Cancelled }
    }

    /// A gRPC status is in the headers if there is no message, else in the trailers.
    fn begin(&mut self, response: &Response<Body>) {
        self.code = if is_grpc(response.headers()) { status(response.headers()) } else { Some(code_of(response)) };
    }

    fn pass(&mut self, frame: &Frame<Bytes>) {
        if let Some(data) = frame.data_ref() {
            self.bytes += u64::try_from(data.len()).unwrap_or(0);
        }
        if let Some(trailers) = frame.trailers_ref() {
            self.code = status(trailers).or(self.code);
            self.is_complete = true;
        }
    }
}

fn status(headers: &HeaderMap) -> Option<Code> {
    Some(Code::from_bytes(headers.get(Status::GRPC_STATUS)?.as_bytes()))
}

/// Attaches an attendant to an answer.
pub(crate) fn attended(response: Response<Body>, mut attendant: impl Attendant) -> Response<Body> {
    let is_over = response.body().is_end_stream();
    if let Some(outcome) = attendant.outcome() {
        outcome.begin(&response);
        outcome.is_complete = is_over;
    }
    if is_over { response } else { response.map(|inner| Body::new(Attended { inner, attendant: Some(attendant) })) }
}

struct Attended<A> {
    inner: Body,
    /// `None` after the end.
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
        // A reader may stop at the last frame without polling for the end.
        let is_over = !matches!(frame, Some(Ok(_))) || inner.is_end_stream();
        if let Some(outcome) = attendant.as_mut().and_then(Attendant::outcome) {
            if let Some(Ok(frame)) = &frame {
                outcome.pass(frame);
            }
            outcome.is_complete |= is_over && !matches!(frame, Some(Err(_)));
        }
        if is_over {
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
