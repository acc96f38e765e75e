//! The text of an answer: JSON in pieces, which are freed one by one while the caller reads them.
//!
//! The call is charged for the text until the answer has ended. Its other memory, which the values of the answer took,
//! is given back when the text is made. Memory: the text, and while it is made the values.

use std::collections::VecDeque;
use std::io::{self, Write};
use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::{Body, Bytes, HttpBody};
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use bytes::BytesMut;
use http_body::{Frame, SizeHint};
use serde::Serialize;
use tonic::Status;

use crate::clerk::Pinned;
use crate::http::Refused;

/// Bytes of a piece. A server sends no more at a time.
const PIECE: usize = 64 << 10;

/// The answer to a question, as JSON.
///
/// # Errors
/// OVERLOADED and ANSWER_TOO_LARGE: see [`crate::guard::memory`].
pub(in crate::http) async fn told(pinned: &Pinned, answer: impl Serialize) -> Result<Response, Refused> {
    let mut text = Text::default();
    serde_json::to_writer(&mut text, &answer).map_err(|error| Status::internal(error.to_string()))?;
    drop(answer);
    pinned.charge().settle(text.bytes).await?;
    Ok(([(CONTENT_TYPE, "application/json")], text.into_body()).into_response())
}

/// A text in pieces.
#[derive(Default)]
struct Text {
    pieces: VecDeque<Bytes>,
    last: BytesMut,
    bytes: usize,
}

impl Write for Text {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.last.extend_from_slice(bytes);
        self.bytes += bytes.len();
        if self.last.len() >= PIECE {
            self.pieces.push_back(self.last.split().freeze());
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Text {
    fn into_body(mut self) -> Body {
        self.pieces.push_back(self.last.split().freeze());
        Body::new(Sent { pieces: self.pieces, bytes: self.bytes as u64 })
    }
}

/// The pieces that are not sent yet.
struct Sent {
    pieces: VecDeque<Bytes>,
    bytes: u64,
}

impl HttpBody for Sent {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let piece = self.pieces.pop_front();
        self.bytes -= piece.as_ref().map_or(0, |piece| piece.len() as u64);
        Poll::Ready(piece.map(|piece| Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.pieces.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::body::to_bytes;

    #[tokio::test]
    async fn the_pieces_are_the_text() {
        for count in [0, 1, 1000, 100_000] {
            let values: Vec<String> = (0..count).map(|number| format!("\"{number}\"")).collect();
            let mut text = Text::default();
            serde_json::to_writer(&mut text, &values).unwrap();
            let expected = serde_json::to_string(&values).unwrap();
            let body = text.into_body();
            assert_eq!(body.size_hint().exact(), Some(expected.len() as u64));
            assert_eq!(to_bytes(body, usize::MAX).await.unwrap(), expected);
        }
    }
}
