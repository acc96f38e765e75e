//! Deadlines of callers: a gRPC call with a deadline ends at its deadline with DEADLINE_EXCEEDED.
//!
//! The deadline is in the header `grpc-timeout`. The transport reads the header too and would answer CANCELLED, so the
//! call ends here a little earlier. The deadline is for the start of the answer; a stream that has begun is ended by
//! its caller.

use std::time::Duration;

use axum::Router;
use axum::extract::Request;
use axum::http::HeaderMap;
use axum::middleware::{Next, from_fn};
use axum::response::Response;
use tokio::time::timeout;
use tonic::Status;

use crate::protocol::refusal::{answer, is_grpc};

/// How much earlier than in the transport a call ends: more than the resolution of timers.
const EARLIER: Duration = Duration::from_millis(2);

/// Ends calls of a router at their deadlines.
pub(crate) fn around(router: Router) -> Router {
    router.layer(from_fn(within))
}

async fn within(request: Request, next: Next) -> Response {
    let patience = patience(request.headers()).filter(|_| is_grpc(request.headers()));
    let Some(patience) = patience else { return next.run(request).await };
    let longest = patience.saturating_sub(EARLIER).max(patience / 2);
    timeout(longest, next.run(request)).await.unwrap_or_else(|_| {
        answer(Status::deadline_exceeded(format!("no answer within {patience:?}, the call's deadline")), true)
    })
}

/// The deadline of a caller: at most eight digits and a unit.
fn patience(headers: &HeaderMap) -> Option<Duration> {
    let text = headers.get("grpc-timeout")?.to_str().ok()?;
    let (number, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    if number.len() > 8 || !number.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let number: u64 = number.parse().ok()?;
    match unit {
        "H" => Some(Duration::from_secs(3600 * number)),
        "M" => Some(Duration::from_secs(60 * number)),
        "S" => Some(Duration::from_secs(number)),
        "m" => Some(Duration::from_millis(number)),
        "u" => Some(Duration::from_micros(number)),
        "n" => Some(Duration::from_nanos(number)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::guard::trial::{HELD, Tardy, client, raw, router, serve, slow};

    #[tokio::test]
    async fn calls_that_are_late_say_so() {
        let address = serve(around(router(&Tardy::default())), None).await;
        // Raw calls, because a tonic client has a separate timer with another error.
        for timeout in ["0m", "1m", "5m", "60m", "60000u"] {
            let answer = raw(address, &[("millis", &HELD.to_string()), ("grpc-timeout", timeout)]).await;
            assert_eq!(answer["grpc-status"], "4", "DEADLINE_EXCEEDED after {timeout}: {answer:?}");
        }
        let mut question = slow(10);
        question.set_timeout(Duration::from_secs(60));
        client(address).await.ask(question).await.expect("it is in time");
    }

    #[test]
    fn timeouts_are_read_as_grpc_writes_them() {
        let of = |value: &str| {
            let mut headers = HeaderMap::new();
            headers.insert("grpc-timeout", value.parse().expect("a header"));
            patience(&headers)
        };
        for (value, wait) in [
            ("2H", Duration::from_secs(7200)),
            ("3M", Duration::from_secs(180)),
            ("4S", Duration::from_secs(4)),
            ("5m", Duration::from_millis(5)),
            ("6u", Duration::from_micros(6)),
            ("99999999n", Duration::from_nanos(99_999_999)),
        ] {
            assert_eq!(of(value), Some(wait));
        }
        for none in ["", "S", "1", "1s", "-1S", "+1S", "100000000n", "1 S", "é"] {
            assert_eq!(of(none), None, "{none}");
        }
        assert_eq!(patience(&HeaderMap::new()), None);
    }
}
