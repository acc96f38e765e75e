//! Slow callers: requests that do not arrive and answers that are not read.
//!
//! A call holds a permit while its request arrives and its answer is sent ([`crate::guard::limits`]), and the caller
//! sets the speed of both. A request must therefore arrive within a time, counted from the server's first wait for its
//! bytes. An answer is dropped when its caller takes nothing for that time, or when it has waited for its caller for
//! that time in total. Each [`RATE`] bytes that the caller reads add a second to the total, but not to a single wait,
//! because the buffers of a connection take the first bytes at once. Time that an answer waits for the server does not
//! count.
//!
//! Large answers are sent in pieces, so that at most one piece is buffered for a caller that does not read. Costs of a
//! call: an allocation for each body, and an uncontended lock for each piece of an answer.

use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
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

/// The largest piece of an answer, in bytes.
const PIECE: usize = 64 << 10;
/// The slowest rate at which a caller may read, in bytes a second.
const RATE: u64 = 64 << 10;

/// Makes the body of a request fail if it does not arrive within the time.
pub(crate) fn timely(request: Request, within: Duration) -> Request {
    request.map(|inner| Body::new(Timely { inner, within, end: None }))
}

struct Timely {
    inner: Body,
    within: Duration,
    /// The deadline, set when the server first waits for the body.
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
        let late = Status::deadline_exceeded(format!("the request did not arrive within {within:?}"));
        Poll::Ready(Some(Err(axum::Error::new(late))))
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}

/// The answers that are being sent.
#[derive(Default)]
pub(crate) struct Answers {
    open_answers: Mutex<Vec<Weak<Mutex<Answer>>>>,
    given_up: AtomicU64,
}

/// An answer's body, and how long it has waited for its caller.
struct Answer {
    /// `None` after the answer was dropped.
    body: Option<Body>,
    /// The rest of a frame that was larger than a piece.
    rest: Bytes,
    /// Since when a piece is ready that the caller has not asked for.
    since: Option<Instant>,
    waited: Duration,
    /// Bytes that the caller has read.
    taken: u64,
}

impl Answer {
    /// The next piece for the caller.
    fn step(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        if self.rest.is_empty() {
            let Some(body) = &mut self.body else {
                let late = Status::deadline_exceeded("the caller did not read the answer in time");
                return Poll::Ready(Some(Err(axum::Error::new(late))));
            };
            match ready!(Pin::new(body).poll_frame(context)) {
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(data) => self.rest = data,
                    Err(frame) => return Poll::Ready(Some(Ok(frame))),
                },
                end => return Poll::Ready(end),
            }
        }
        let piece = self.rest.split_to(PIECE.min(self.rest.len()));
        self.taken += u64::try_from(piece.len()).unwrap_or(0);
        Poll::Ready(Some(Ok(Frame::data(piece))))
    }

    fn is_stale(&self, stall: Duration) -> bool {
        let waits = self.since.map(|since| since.elapsed());
        let total_max = stall + Duration::from_secs(self.taken / RATE);
        waits.is_some_and(|waits| waits >= stall || self.waited + waits >= total_max)
    }
}

impl Answers {
    /// Wraps a response, so that [`Answers::give_up`] can drop it.
    pub(crate) fn watched(&self, response: Response) -> Response {
        response.map(|body| {
            if body.is_end_stream() {
                return body;
            }
            let since = Some(Instant::now());
            let answer = Answer { body: Some(body), rest: Bytes::new(), since, waited: Duration::ZERO, taken: 0 };
            let answer = Arc::new(Mutex::new(answer));
            let mut all = lock(&self.open_answers);
            // There are at most as many answers as permits. Ended answers are removed before the list grows.
            if all.len() == all.capacity() {
                all.retain(|answer| answer.strong_count() > 0);
            }
            all.push(Arc::downgrade(&answer));
            Body::new(Watched(answer))
        })
    }

    /// Drops answers that have waited too long for their callers, with everything they hold.
    pub(crate) fn give_up(&self, stall: Duration) {
        let all: Vec<_> = lock(&self.open_answers).iter().filter_map(Weak::upgrade).collect();
        for answer in all {
            let mut waiting = lock(&answer);
            let stale = waiting.is_stale(stall).then(|| (waiting.body.take(), std::mem::take(&mut waiting.rest)));
            // Dropping the body may take other locks.
            drop(waiting);
            if let Some((Some(_), _)) = stale {
                self.given_up.fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    /// The number of answers dropped since the start.
    pub(crate) fn given_up(&self) -> u64 {
        self.given_up.load(Ordering::Relaxed)
    }
}

struct Watched(Arc<Mutex<Answer>>);

impl HttpBody for Watched {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let mut answer = lock(&self.0);
        let waited = answer.since.take().map_or(Duration::ZERO, |since| since.elapsed());
        answer.waited += waited;
        let step = answer.step(context);
        answer.since = step.is_ready().then(Instant::now);
        step
    }

    fn is_end_stream(&self) -> bool {
        let answer = lock(&self.0);
        answer.rest.is_empty() && answer.body.as_ref().is_some_and(HttpBody::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        let answer = lock(&self.0);
        let rest = u64::try_from(answer.rest.len()).unwrap_or(0);
        let of_body = answer.body.as_ref().map(HttpBody::size_hint).unwrap_or_default();
        let mut hint = SizeHint::new();
        hint.set_lower(of_body.lower() + rest);
        if let Some(upper) = of_body.upper() {
            hint.set_upper(upper + rest);
        }
        hint
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // A poisoned lock is safe to use: every statement leaves valid state behind it.
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
        // A request that sends a piece now and then fails too.
        let drops = stream::unfold((), |()| async {
            sleep(Duration::from_millis(5)).await;
            Some((Ok::<_, std::io::Error>(Bytes::from_static(b"!")), ()))
        });
        let begun = Instant::now();
        read(Body::from_stream(drops)).await.expect_err("it never ends");
        assert!(begun.elapsed() >= within);
    }

    #[tokio::test]
    async fn answers_that_nobody_takes_are_given_up() {
        let (answers, stall) = (Answers::default(), Duration::from_millis(40));
        let mut read = answers.watched(Response::new(pending_after(2))).into_body();
        let mut stuck = answers.watched(Response::new(Body::from("something"))).into_body();
        for _ in 0..2 {
            assert!(matches!(next(&mut read).await, Some(Ok(_))));
        }
        assert!(is_pending(&mut read));
        sleep(2 * stall).await;
        answers.give_up(stall);
        answers.give_up(stall);
        assert!(is_pending(&mut read), "it waits for the server");
        assert!(matches!(next(&mut stuck).await, Some(Err(_))), "it was not asked for");
        assert_eq!(answers.given_up(), 1, "counted once");
        drop((read, stuck));
        (0..1000).for_each(|_| drop(answers.watched(Response::new(Body::from("something")))));
        assert!(lock(&answers.open_answers).len() < 20, "those that have ended are forgotten");
    }

    #[tokio::test]
    async fn who_takes_a_byte_now_and_then_is_given_up_and_who_takes_all_slowly_is_not() {
        let (answers, stall) = (Answers::default(), Duration::from_millis(600));
        let drops = stream::iter((0..100).map(|_| Ok::<_, std::io::Error>(Bytes::from_static(b"!"))));
        let mut drops = answers.watched(Response::new(Body::from_stream(drops))).into_body();
        let all = PIECE * 20 + 1;
        let mut large = answers.watched(Response::new(Body::from(vec![7; all]))).into_body();
        assert_eq!(large.size_hint().exact(), Some(all as u64));
        let (mut bytes, mut dropped) = (0, false);
        for _ in 0..21 {
            sleep(stall / 10).await;
            answers.give_up(stall);
            dropped |= next(&mut drops).await.expect("no end").is_err();
            assert!(!large.is_end_stream());
            let piece = next(&mut large).await.expect("no end").expect("a piece").into_data().expect("data");
            assert!(piece.len() <= PIECE);
            bytes += piece.len();
            assert_eq!(large.size_hint().exact(), Some((all - bytes) as u64));
        }
        assert!(dropped, "it was read, by a byte at a time");
        assert!(large.is_end_stream() && bytes == all);
        assert_eq!(answers.given_up(), 1);
    }

    #[tokio::test]
    async fn what_buffers_took_buys_no_time() {
        let (answers, stall) = (Answers::default(), Duration::from_millis(40));
        let mut large = answers.watched(Response::new(Body::from(vec![7; PIECE * 20]))).into_body();
        for _ in 0..10 {
            assert!(matches!(next(&mut large).await, Some(Ok(_))));
        }
        sleep(2 * stall).await;
        answers.give_up(stall);
        assert_eq!(answers.given_up(), 1);
        assert!(matches!(next(&mut large).await, Some(Err(_))));
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
