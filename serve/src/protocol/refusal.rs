//! Refusals: how a server reports an error over gRPC and over HTTP.
//!
//! A refusal is a [`Status`] with a google.rpc.ErrorInfo of the domain `webstrata`; `proto/webstrata.proto` lists them.
//! A gRPC caller gets the status unchanged. An HTTP caller gets the matching HTTP status and a small body: `{"error":
//! {"code": "RESOURCE_EXHAUSTED", "reason": "OVERLOADED", "message": "..."}}`, with `metadata` if there is any. The
//! gRPC code stays in the extensions of the HTTP answer, so that metrics count both protocols by the same code.

use std::collections::HashMap;

use axum::Json;
use axum::body::Body;
use axum::http::{HeaderMap, HeaderValue, Response, StatusCode, header};
use axum::response::IntoResponse;
use serde_json::json;
use tonic::{Code, Status};
use tonic_types::{ErrorDetails, StatusExt};

/// The domain of all reasons.
pub const DOMAIN: &str = "webstrata";

/// Bytes of a message; longer messages are cut. gRPC sends the message twice in headers, and headers that are too long
/// end the connection with all its calls.
const MESSAGE_MAX: usize = 800;

/// A refusal with a reason and metadata for programs. A message may quote the caller's input, so a long message is cut
/// to its beginning.
#[must_use]
pub fn refusal(code: Code, reason: &str, message: impl Into<String>, metadata: &[(&str, String)]) -> Status {
    let mut message = message.into();
    if message.len() > MESSAGE_MAX {
        let end = (0..MESSAGE_MAX).rev().find(|&end| message.is_char_boundary(end));
        message.truncate(end.unwrap_or(0));
        message.push_str("...");
    }
    let metadata: HashMap<_, _> = metadata.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
    Status::with_error_details(code, message, ErrorDetails::with_error_info(reason, DOMAIN, metadata))
}

/// Whether the headers are of a gRPC call.
#[must_use]
pub fn is_grpc(headers: &HeaderMap) -> bool {
    headers.get(header::CONTENT_TYPE).is_some_and(|kind| kind.as_bytes().starts_with(b"application/grpc"))
}

/// The answer to a refused call, in the protocol of the caller.
#[must_use]
pub fn answer(status: Status, grpc: bool) -> Response<Body> {
    if grpc {
        return status.into_http();
    }
    let (reason, metadata) =
        status.get_details_error_info().map(|info| (info.reason, info.metadata)).unwrap_or_default();
    let mut error = json!({ "code": name(status.code()), "reason": reason, "message": status.message() });
    if !metadata.is_empty() {
        error["metadata"] = json!(metadata);
    }
    let code = http_status(status.code());
    let mut response = (code, Json(json!({ "error": error }))).into_response();
    response.extensions_mut().insert(status.code());
    let (header, value) = match code {
        StatusCode::UNAUTHORIZED => (header::WWW_AUTHENTICATE, "Bearer"),
        StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE => (header::RETRY_AFTER, "1"),
        _ => return response,
    };
    response.headers_mut().insert(header, HeaderValue::from_static(value));
    response
}

/// The names of all gRPC codes, by number.
const NAMES: [&str; 17] = [
    "OK",
    "CANCELLED",
    "UNKNOWN",
    "INVALID_ARGUMENT",
    "DEADLINE_EXCEEDED",
    "NOT_FOUND",
    "ALREADY_EXISTS",
    "PERMISSION_DENIED",
    "RESOURCE_EXHAUSTED",
    "FAILED_PRECONDITION",
    "ABORTED",
    "OUT_OF_RANGE",
    "UNIMPLEMENTED",
    "INTERNAL",
    "UNAVAILABLE",
    "DATA_LOSS",
    "UNAUTHENTICATED",
];

/// The name of a code, as in the gRPC specification.
#[must_use]
pub fn name(code: Code) -> &'static str {
    usize::try_from(i32::from(code)).ok().and_then(|number| NAMES.get(number)).copied().unwrap_or("UNKNOWN")
}

/// The HTTP counterpart of a code.
#[must_use]
pub fn http_status(code: Code) -> StatusCode {
    match code {
        Code::Ok => StatusCode::OK,
        Code::InvalidArgument | Code::FailedPrecondition => StatusCode::BAD_REQUEST,
        Code::OutOfRange => StatusCode::PAYLOAD_TOO_LARGE,
        Code::Unauthenticated => StatusCode::UNAUTHORIZED,
        Code::PermissionDenied => StatusCode::FORBIDDEN,
        Code::NotFound => StatusCode::NOT_FOUND,
        Code::AlreadyExists | Code::Aborted => StatusCode::CONFLICT,
        Code::ResourceExhausted => StatusCode::TOO_MANY_REQUESTS,
        // Proxies answer 499 when a caller goes away; no standard defines a number.
        Code::Cancelled => StatusCode::from_u16(499).unwrap_or(StatusCode::BAD_REQUEST),
        Code::Unimplemented => StatusCode::NOT_IMPLEMENTED,
        Code::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
        Code::DeadlineExceeded => StatusCode::GATEWAY_TIMEOUT,
        Code::Unknown | Code::Internal | Code::DataLoss => StatusCode::INTERNAL_SERVER_ERROR,
    }
}

/// The gRPC code under which metrics count an HTTP answer.
#[must_use]
pub(crate) fn code_of(response: &Response<Body>) -> Code {
    if let Some(code) = response.extensions().get() {
        return *code;
    }
    match response.status().as_u16() {
        100..=399 => Code::Ok,
        401 => Code::Unauthenticated,
        403 => Code::PermissionDenied,
        404 => Code::NotFound,
        405 | 501 => Code::Unimplemented,
        408 | 504 => Code::DeadlineExceeded,
        409 => Code::Aborted,
        413 => Code::OutOfRange,
        429 => Code::ResourceExhausted,
        499 => Code::Cancelled,
        400..=498 => Code::InvalidArgument,
        503 => Code::Unavailable,
        _ => Code::Internal,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::body::to_bytes;

    #[test]
    fn answers_count_by_their_code() {
        for number in 1..17 {
            let code = Code::from(number);
            let response = answer(Status::new(code, ""), false);
            assert_eq!((code_of(&response), response.status()), (code, http_status(code)));
            let mut bare = Response::new(Body::empty());
            *bare.status_mut() = response.status();
            assert_eq!(http_status(code_of(&bare)), response.status(), "of the status alone");
        }
        assert_eq!(code_of(&Response::new(Body::empty())), Code::Ok);
        assert_eq!((name(Code::Ok), name(Code::Unauthenticated)), ("OK", "UNAUTHENTICATED"));
    }

    #[test]
    fn long_messages_are_cut() {
        for text in ["a", "é", "日本", "\0"] {
            let status = refusal(Code::InvalidArgument, "BAD_REQUEST", text.repeat(100_000), &[]);
            let headers = answer(status.clone(), true).headers().clone();
            assert!(headers.iter().map(|(name, value)| name.as_str().len() + value.len() + 32).sum::<usize>() < 8000);
            let read = Status::from_header_map(&headers).expect("a status");
            assert_eq!(read.message(), status.message());
            assert!(read.message().starts_with(&text.repeat(100)) && read.message().ends_with("..."));
        }
        assert_eq!(refusal(Code::Unavailable, "NOT_READY", "short", &[]).message(), "short");
    }

    #[tokio::test]
    async fn callers_are_answered_in_their_protocol() {
        let status = || refusal(Code::ResourceExhausted, "OVERLOADED", "ask later", &[("most", "3".to_owned())]);
        let response = answer(status(), true);
        assert_eq!(response.status(), StatusCode::OK);
        let read = Status::from_header_map(response.headers()).expect("a status");
        let info = read.get_details_error_info().expect("an ErrorInfo");
        assert_eq!(
            (read.code(), info.reason.as_str(), info.domain.as_str()),
            (Code::ResourceExhausted, "OVERLOADED", DOMAIN)
        );
        assert_eq!(info.metadata["most"], "3");

        let response = answer(status(), false);
        assert_eq!(response.status(), StatusCode::TOO_MANY_REQUESTS);
        assert_eq!(response.headers()[header::RETRY_AFTER], "1");
        let body = to_bytes(response.into_body(), 1000).await.expect("a body");
        let body: serde_json::Value = serde_json::from_slice(&body).expect("JSON");
        let error = json!({ "code": "RESOURCE_EXHAUSTED", "reason": "OVERLOADED", "message": "ask later",
            "metadata": { "most": "3" } });
        assert_eq!(body, json!({ "error": error }));
    }
}
