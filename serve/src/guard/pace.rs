//! Callers that are slow: requests that do not come to their end, answers that are not taken.
//!
//! A call has a place as long as its request is read and its answer is sent ([`crate::guard::limits`]), and both go as fast as the
//! caller likes. So a request must have come within a time, from when it is first waited for; and an answer that is ready and
//! has not been asked for in that time is dropped when its place is wanted by another, and not before: who reads slowly harms
//! nobody while there are places. Answers that wait for the server are not late. Costs of a call: an allocation for each
//! body, a lock that nobody else wants for each piece of an answer.

use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::body::{Body, Bytes, HttpBody};
use axum::extract::Request;
use axum::response::Response;
use futures_util::FutureExt;
use http_body::{Frame, SizeHint};
use tokio::time::{Instant, Sleep, sleep};
use tonic::Status;

/// The request, whose body fails when it has not come within the time.
pub(crate) fn timely(request: Request, within: Duration) -> Request {
    request.map(|inner| Body::new(Timely { inner, within, end: None }))
}

struct Timely {
    inner: Body,
    within: Duration,
    /// From when it was first waited for.
    end: Option<Pin<Box<Sleep>>>,
}

impl HttpBody for Timely {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        if let Poll::Ready(frame) = Pin::new(&mut self.inner).poll_frame(context) {
            return Poll::Ready(frame);
        }
        let within = self.within;
        ready!(self.end.get_or_insert_with(|| Box::pin(sleep(within))).poll_unpin(context));
        let late = Status::deadline_exceeded(format!("the request did not come within {within:?}"));
        Poll::Ready(Some(Err(axum::Error::new(late))))
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}

/// Answers on their way.
#[derive(Default)]
pub(crate) struct Answers(Mutex<Vec<Weak<Answer>>>);

/// An answer's body, and since when nobody has asked for what is ready of it.
struct Answer(Mutex<(Option<Body>, Option<Instant>)>);

impl Answers {
    /// The response, as one that can be dropped by [`Answers::drop_stale`].
    pub(crate) fn watched(&self, response: Response) -> Response {
        response.map(|body| {
            if body.is_end_stream() {
                return body;
            }
            let answer = Arc::new(Answer(Mutex::new((Some(body), Some(Instant::now())))));
            let mut all = lock(&self.0);
            // As many as there are places are there; those that have ended go before the list grows.
            if all.len() == all.capacity() {
                all.retain(|answer| answer.strong_count() > 0);
            }
            all.push(Arc::downgrade(&answer));
            Body::new(Watched(answer))
        })
    }

    /// Drops answers that have been ready for so long and were not asked for.
    pub(crate) fn drop_stale(&self, after: Duration) {
        let all: Vec<Arc<Answer>> = lock(&self.0).iter().filter_map(Weak::upgrade).collect();
        for answer in all {
            let mut own = lock(&answer.0);
            let stale = own.1.is_some_and(|since| since.elapsed() >= after).then(|| own.0.take());
            // What the body holds may want other locks.
            drop(own);
            drop(stale);
        }
    }
}

struct Watched(Arc<Answer>);

impl HttpBody for Watched {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let mut own = lock(&self.0.0);
        let Some(body) = &mut own.0 else {
            let late = Status::deadline_exceeded("the answer was not taken in time, and others wanted its place");
            return Poll::Ready(Some(Err(axum::Error::new(late))));
        };
        let frame = Pin::new(body).poll_frame(context);
        own.1 = frame.is_ready().then(Instant::now);
        frame
    }

    fn is_end_stream(&self) -> bool {
        lock(&self.0.0).0.as_ref().is_some_and(HttpBody::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        lock(&self.0.0).0.as_ref().map(HttpBody::size_hint).unwrap_or_default()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // What is behind these locks is whole after every statement.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::body::to_bytes;
    use futures_util::{StreamExt, stream};

    fn pending_after(pieces: usize) -> Body {
        let pieces = stream::iter(0..pieces).map(|_| Ok::<_, std::io::Error>(Bytes::from_static(b"!")));
        Body::from_stream(pieces.chain(stream::pending()))
    }

    #[tokio::test]
    async fn requests_come_in_time_or_fail() {
        let within = Duration::from_millis(100);
        let read = |body| async move { to_bytes(timely(Request::new(body), within).into_body(), 1 << 20).await };
        assert_eq!(read(Body::from("all of it")).await.expect("a body"), "all of it");
        read(pending_after(3)).await.expect_err("it never ends");
        // A piece now and then does not help.
        let drops = stream::unfold((), |()| async {
            sleep(Duration::from_millis(5)).await;
            Some((Ok::<_, std::io::Error>(Bytes::from_static(b"!")), ()))
        });
        let begun = Instant::now();
        read(Body::from_stream(drops)).await.expect_err("it never ends");
        assert!(begun.elapsed() >= within);
    }

    #[tokio::test]
    async fn answers_that_nobody_takes_are_dropped_when_they_are_in_the_way() {
        let (answers, after) = (Answers::default(), Duration::from_millis(40));
        let mut read = answers.watched(Response::new(pending_after(2))).into_body();
        let mut stuck = answers.watched(Response::new(Body::from("something"))).into_body();
        for _ in 0..2 {
            assert!(matches!(next(&mut read).await, Some(Ok(_))));
        }
        assert!(is_pending(&mut read));
        sleep(2 * after).await;
        answers.drop_stale(after);
        assert!(is_pending(&mut read), "it waits for the server");
        assert!(matches!(next(&mut stuck).await, Some(Err(_))), "it was not asked for");
        drop((read, stuck));
        (0..1000).for_each(|_| drop(answers.watched(Response::new(Body::from("something")))));
        assert!(lock(&answers.0).len() < 20, "those that have ended are forgotten");
    }

    type Next = Option<Result<Frame<Bytes>, axum::Error>>;

    /// The next frame of a body.
    async fn next(body: &mut Body) -> Next {
        std::future::poll_fn(|context| Pin::new(&mut *body).poll_frame(context)).await
    }

    fn is_pending(body: &mut Body) -> bool {
        next(body).now_or_never().is_none()
    }
}
