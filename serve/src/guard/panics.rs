//! Panics: a call that panics ends alone. Its caller gets an error, the log one line, and a metric a count.
//!
//! Each panic is an error of this program, so the line of the log has the call and the place in the code. A call that
//! panics before its answer has begun is answered with INTERNAL (HTTP 500). An answer that has begun is cut: over gRPC
//! by a status behind it, over HTTP by the end of the stream or of the connection, so that no caller takes a part for
//! the whole.
//!
//! [`guarded`] is also the place where answers end: after its last frame, a body is dropped and is never polled again.
//! Encoders of compressed answers poll once more than streams allow. The layer is therefore below compression, and a
//! second time around everything else.
//!
//! The panic hook of the process is asked about all other panics, as if this file did not exist. Cost of a call: an
//! allocation.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::pin::{Pin, pin};
use std::sync::{LazyLock, Once};
use std::task::{Context, Poll, ready};

use axum::body::{Body, Bytes, HttpBody};
use axum::extract::Request;
use axum::http::{HeaderMap, Uri};
use axum::middleware::Next;
use axum::response::Response;
use http_body::{Frame, SizeHint};
use prometheus_client::metrics::counter::Counter;
use tonic::Status;

use crate::protocol::refusal::{answer, is_grpc};

/// The panics of all calls of the process. A panic says nothing of a server, but of the program.
static PANICS: LazyLock<Counter> = LazyLock::new(Counter::default);

thread_local! {
    /// How many steps of calls this thread is inside of.
    static STEPS: Cell<usize> = const { Cell::new(0) };
    /// The place of the last panic inside a step.
    static PLACE: RefCell<String> = const { RefCell::new(String::new()) };
}

/// The counter of panics, for metrics.
pub(crate) fn counter() -> Counter {
    PANICS.clone()
}

/// Runs one step of a call. `what` names the call in the log.
///
/// # Errors
/// INTERNAL if the step panicked.
pub(crate) fn caught<T>(what: &dyn std::fmt::Display, step: impl FnOnce() -> T) -> Result<T, Status> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let others = take_hook();
        set_hook(Box::new(move |panic| {
            if STEPS.get() == 0 {
                return others(panic);
            }
            let place = panic.location().map_or_else(String::new, ToString::to_string);
            PLACE.with_borrow_mut(|known| *known = place);
        }));
    });
    STEPS.set(STEPS.get() + 1);
    // Locks of this crate are safe after a panic, and the caller drops what the step was about.
    let done = catch_unwind(AssertUnwindSafe(step));
    STEPS.set(STEPS.get() - 1);
    done.map_err(|panic| {
        PANICS.inc();
        let place = PLACE.take();
        let text = text_of(&*panic);
        tracing::error!(call = %what, place, "a call panicked, which is an error of this program: {text}");
        Status::internal("the server panicked on this call; see its log")
    })
}

/// The message of a panic.
fn text_of(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("no message")
}

/// Runs a call. See the head of this file.
pub(crate) async fn guarded(request: Request, next: Next) -> Response {
    let (grpc, uri) = (is_grpc(request.headers()), request.uri().clone());
    let mut call = pin!(next.run(request));
    let answered = poll_fn(|context| match caught(&uri, || call.as_mut().poll(context)) {
        Ok(step) => step.map(Ok),
        Err(status) => Poll::Ready(Err(status)),
    });
    match answered.await {
        Ok(response) if response.body().is_end_stream() => response,
        Ok(response) => response.map(|inner| Body::new(Guarded { inner: Some(inner), uri, grpc })),
        Err(status) => answer(status, grpc),
    }
}

struct Guarded {
    /// `None` after the end.
    inner: Option<Body>,
    uri: Uri,
    grpc: bool,
}

impl HttpBody for Guarded {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let Self { inner, uri, grpc } = self.get_mut();
        let Some(body) = inner else { return Poll::Ready(None) };
        let frame = match caught(uri, || Pin::new(body).poll_frame(context)) {
            Ok(step) => ready!(step),
            Err(status) if *grpc => {
                let mut trailers = HeaderMap::new();
                // Cannot fail: the message is a valid header.
                let _ = status.add_header(&mut trailers);
                *inner = None;
                return Poll::Ready(Some(Ok(Frame::trailers(trailers))));
            }
            Err(status) => Some(Err(axum::Error::new(status))),
        };
        if !matches!(frame, Some(Ok(_))) {
            *inner = None;
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.inner.as_ref().is_none_or(HttpBody::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.as_ref().map_or_else(|| SizeHint::with_exact(0), HttpBody::size_hint)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::guard::trial::{http, serve};
    use axum::Router;
    use axum::body::to_bytes;
    use axum::middleware::from_fn;
    use axum::routing::{get, post};
    use futures_util::stream;
    use tower::ServiceExt;

    /// A stream that panics if it is polled after its end, or, if `fails`, instead of its end.
    fn strict(fails: bool) -> Body {
        Body::from_stream(stream::unfold(0, move |at| async move {
            match at {
                0..3 => Some((Ok::<_, std::io::Error>("some text "), at + 1)),
                _ if fails => panic!("as was asked for"),
                _ => None,
            }
        }))
    }

    fn router() -> Router {
        Router::new()
            .route("/whole", get(async || strict(false)))
            .route("/cut", get(async || strict(true)).post(async || strict(true)))
            .route("/never", get(never).post(never))
            .route("/text", post(async |body: String| body))
            .layer(from_fn(guarded))
    }

    async fn never() {
        panic!("{}", "before its answer");
    }

    async fn call(path: &str, grpc: bool) -> Response {
        let request =
            if grpc { Request::post(path).header("content-type", "application/grpc") } else { Request::get(path) };
        let request = request.body(Body::empty()).expect("a request");
        router().oneshot(request).await.expect("an answer")
    }

    #[tokio::test]
    async fn a_call_that_panics_ends_alone() {
        let before = counter().get();
        let response = call("/never", false).await;
        assert_eq!(response.status(), 500);
        let body = to_bytes(response.into_body(), 1000).await.expect("a body");
        assert!(String::from_utf8_lossy(&body).contains("\"INTERNAL\""), "{body:?}");
        let response = call("/never", true).await;
        assert_eq!(response.headers()["grpc-status"], "13");

        let response = call("/cut", false).await;
        assert_eq!(response.status(), 200);
        to_bytes(response.into_body(), 1000).await.expect_err("a part is not the whole");
        let mut body = call("/cut", true).await.into_body();
        let mut frames = Vec::new();
        while let Some(frame) = poll_fn(|context| Pin::new(&mut body).poll_frame(context)).await {
            frames.push(frame.expect("a frame"));
        }
        assert_eq!(frames.len(), 4);
        assert_eq!(frames[3].trailers_ref().expect("a status")["grpc-status"], "13");
        // Other tests of the process may panic too.
        assert!(counter().get() >= before + 4);
    }

    #[tokio::test]
    async fn other_calls_of_the_server_go_on() {
        let address = serve(router(), None).await;
        for _ in 0..3 {
            assert!(http(address, "/never", "").await.starts_with("HTTP/1.1 500 "));
            let cut = http(address, "/cut", "").await;
            assert!(!cut.ends_with("0\r\n\r\n"), "a part is not the whole: {cut}");
            let whole = http(address, "/whole", "").await;
            assert!(whole.ends_with("0\r\n\r\n"), "{whole}");
        }
    }

    #[tokio::test]
    async fn nothing_is_polled_after_its_end() {
        let mut body = call("/whole", false).await.into_body();
        let mut frames = 0;
        while poll_fn(|context| Pin::new(&mut body).poll_frame(context)).await.is_some() {
            frames += 1;
        }
        assert_eq!(frames, 3);
        for _ in 0..3 {
            assert!(poll_fn(|context| Pin::new(&mut body).poll_frame(context)).await.is_none());
            assert!(body.is_end_stream());
        }
    }

    #[test]
    fn a_step_in_a_step_is_caught_by_the_inner() {
        let outer = caught(&"outer", || caught(&"inner", || panic!("{}", "inside")).is_err());
        assert!(outer.expect("no panic"));
        assert_eq!(STEPS.get(), 0);
    }
}
