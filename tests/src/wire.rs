//! Traffic that the clients of Webstrata never send: random bytes as gRPC messages, changed messages, random bytes
//! instead of gRPC frames, and hand-written HTTP/2.
//!
//! Seeded: the same seed gives the same changes. Waits for answers, at most for the time that the caller gives.

use std::time::Duration;

use bytes::{Buf, BufMut, Bytes};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tonic::client::Grpc;
use tonic::codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder};
use tonic::codegen::{Service, http};
use tonic::transport::Channel;
use tonic::{Code, Request, Status};

use crate::crawls::Random;

/// A codec that passes messages unchanged.
#[derive(Clone, Copy, Default)]
struct Plain;

impl Codec for Plain {
    type Encode = Bytes;
    type Decode = Bytes;
    type Encoder = Self;
    type Decoder = Self;

    fn encoder(&mut self) -> Self {
        Self
    }

    fn decoder(&mut self) -> Self {
        Self
    }
}

impl Encoder for Plain {
    type Item = Bytes;
    type Error = Status;

    fn encode(&mut self, item: Bytes, buffer: &mut EncodeBuf<'_>) -> Result<(), Status> {
        buffer.put(item);
        Ok(())
    }
}

impl Decoder for Plain {
    type Item = Bytes;
    type Error = Status;

    fn decode(&mut self, buffer: &mut DecodeBuf<'_>) -> Result<Option<Bytes>, Status> {
        Ok(Some(buffer.copy_to_bytes(buffer.remaining())))
    }
}

/// Calls a method with bytes as its message. Returns the messages of the answer, at most the first 16.
///
/// # Errors
/// The error of the call.
pub async fn call(
    channel: &Channel,
    path: &'static str,
    message: Bytes,
    within: Duration,
) -> Result<Vec<Bytes>, Status> {
    let mut grpc =
        Grpc::new(channel.clone()).max_decoding_message_size(usize::MAX).max_encoding_message_size(usize::MAX);
    grpc.ready().await.map_err(|error| Status::unavailable(error.to_string()))?;
    let mut request = Request::new(message);
    request.set_timeout(within);
    let path = http::uri::PathAndQuery::from_static(path);
    let mut stream = grpc.server_streaming(request, path, Plain).await?.into_inner();
    let mut answers = Vec::new();
    while let Some(answer) = stream.message().await? {
        answers.push(answer);
        if answers.len() == 16 {
            break;
        }
    }
    Ok(answers)
}

/// Sends bytes as the body of a gRPC call, including the frame of gRPC. Returns the code of the answer.
///
/// # Errors
/// If the connection fails.
pub async fn call_framed(
    channel: &Channel,
    path: &'static str,
    body: Vec<u8>,
) -> Result<Code, tonic::transport::Error> {
    let mut channel = channel.clone();
    std::future::poll_fn(|context| channel.poll_ready(context)).await?;
    let request = http::Request::post(format!("http://a.example{path}"))
        .header("content-type", "application/grpc")
        .header("te", "trailers")
        .body(tonic::body::Body::new(axum::body::Body::from(body)))
        .expect("a request");
    let response = channel.call(request).await?;
    let status = Status::from_header_map(response.headers()).map(|status| status.code());
    let body = axum::body::Body::new(response.into_body());
    // The status is in the headers or behind the body. A body without a status is cut off.
    let read = axum::body::to_bytes(body, 1 << 26).await;
    Ok(status.unwrap_or(if read.is_ok() { Code::Ok } else { Code::Unknown }))
}

/// The message with some bytes changed, cut off, repeated, or taken from another message.
pub fn mutated(message: &[u8], other: &[u8], random: &mut Random) -> Bytes {
    let mut bytes = message.to_vec();
    for _ in 0..1 + random.below(3) {
        let at = |random: &mut Random, end: usize| usize::try_from(random.below(end as u64 + 1)).expect("an index");
        let (one, two) = (at(random, bytes.len()), at(random, bytes.len()));
        let (start, end) = (one.min(two), one.max(two));
        match random.below(8) {
            0 => bytes.truncate(start),
            1 if start < bytes.len() => bytes[start] ^= 1 << random.below(8),
            2 if start < bytes.len() => bytes[start] = random.draw().to_le_bytes()[0],
            3 => bytes.splice(start..start, random_bytes(random, 12)).for_each(drop),
            4 => bytes = [&bytes[..end], &bytes[start..]].concat(),
            5 => bytes = [&bytes[..start], &other[at(random, other.len())..]].concat(),
            6 => {
                // A varint of up to ten bytes, as a number or as a length.
                let large = [u64::MAX, 1 << 63, (1 << 32) - 1, 1 << 31][at(random, 3)];
                let mut varint = Vec::new();
                prost::encoding::encode_varint(large, &mut varint);
                bytes.splice(start..(start + 1).min(bytes.len()), varint).for_each(drop);
            }
            _ => drop(bytes.drain(start..end)),
        }
    }
    bytes.into()
}

/// The message with other values. The result is still a message, with the same fields, or with fewer, more, or
/// reordered fields.
pub fn altered(message: &[u8], random: &mut Random) -> Bytes {
    let Some(mut fields) = fields(message).filter(|fields| !fields.is_empty()) else {
        return mutated(message, &[], random);
    };
    let at = random.index(fields.len());
    match random.below(8) {
        0 => drop(fields.remove(at)),
        1 => fields.push(fields[at].clone()),
        2 => {
            let other = random.index(fields.len());
            fields.swap(at, other);
        }
        _ => match &mut fields[at].1 {
            Value::Number(number) => *number = strange(random),
            Value::Bytes(bytes) => match random.below(4) {
                // Several numbers, one after the other.
                0 => {
                    bytes.clear();
                    (0..random.below(40)).for_each(|_| prost::encoding::encode_varint(strange(random), bytes));
                }
                1 => *bytes = bytes.repeat(random.index(1 + (1 << 16) / (1 + bytes.len()).min(1 << 16))),
                _ => *bytes = altered(bytes, random).to_vec(),
            },
        },
    }
    let mut bytes = Vec::new();
    for (number, value) in fields {
        match value {
            Value::Number(value) => {
                prost::encoding::encode_varint(number << 3, &mut bytes);
                prost::encoding::encode_varint(value, &mut bytes);
            }
            Value::Bytes(value) => {
                prost::encoding::encode_varint(number << 3 | 2, &mut bytes);
                prost::encoding::encode_varint(value.len() as u64, &mut bytes);
                bytes.extend(value);
            }
        }
    }
    bytes.into()
}

/// A number that is often at a boundary.
fn strange(random: &mut Random) -> u64 {
    let small = random.below(60);
    match random.below(6) {
        0 => u64::MAX - small,
        1 => (1 << 63) - 1 + small,
        2 => 1 << random.below(64),
        3 => random.draw(),
        _ => small,
    }
}

/// The value of a field. With one exception, requests have no fixed-width numbers.
#[derive(Clone)]
enum Value {
    Number(u64),
    Bytes(Vec<u8>),
}

/// The fields of a message, each with its number; `None` if the bytes are not a message.
fn fields(mut bytes: &[u8]) -> Option<Vec<(u64, Value)>> {
    let mut fields = Vec::new();
    while !bytes.is_empty() {
        let tag = prost::encoding::decode_varint(&mut bytes).ok()?;
        let value = match tag & 7 {
            0 => Value::Number(prost::encoding::decode_varint(&mut bytes).ok()?),
            2 => {
                let length = usize::try_from(prost::encoding::decode_varint(&mut bytes).ok()?).ok()?;
                let (value, rest) = bytes.split_at_checked(length)?;
                bytes = rest;
                Value::Bytes(value.to_vec())
            }
            _ => return None,
        };
        fields.push((tag >> 3, value));
    }
    Some(fields)
}

/// Random bytes, fewer than `end`.
pub fn random_bytes(random: &mut Random, end: u64) -> Vec<u8> {
    (0..random.below(end)).map(|_| random.draw().to_le_bytes()[0]).collect()
}

/// The preface that begins every HTTP/2 connection.
const GREETING: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Frames that an HTTP/2 connection may have in any order.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    /// A part of the body of a request or an answer.
    Data = 0,
    /// The headers of a request, or the trailers behind it.
    Headers = 1,
    /// The early end of a stream.
    Reset = 3,
    /// Limits for the messages of the other side.
    Settings = 4,
    /// The amount of data that the other side may send.
    WindowUpdate = 8,
}

/// A frame.
pub fn frame(kind: Kind, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    frame_of(kind as u8, flags, stream, payload)
}

fn frame_of(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).expect("a small frame").to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

/// The headers of a gRPC call, each as a literal.
pub fn headers(path: &str) -> Vec<u8> {
    let pairs = [
        (":method", "POST"),
        (":scheme", "http"),
        (":path", path),
        (":authority", "localhost"),
        ("content-type", "application/grpc"),
        ("te", "trailers"),
    ];
    let text = |text: &str| [&[u8::try_from(text.len()).expect("a short text")], text.as_bytes()].concat();
    pairs.iter().flat_map(|(name, value)| [vec![0], text(name), text(value)].concat()).collect()
}

/// Connects, and begins an HTTP/2 connection. `settings` is the payload of the client's settings frame.
///
/// # Errors
/// If the connection fails.
pub async fn greeted(address: &str, settings: &[u8]) -> std::io::Result<TcpStream> {
    let mut stream = TcpStream::connect(address).await?;
    stream.write_all(&[GREETING, &frame(Kind::Settings, 0, 0, settings)].concat()).await?;
    Ok(stream)
}

/// Opens a connection, and sends bytes that are not frames, or random frames. Reads until the server ends the
/// connection, or sends nothing more. Returns the number of bytes read.
///
/// # Errors
/// If the connection fails, which is a valid answer.
pub async fn noise(address: &str, random: &mut Random) -> std::io::Result<usize> {
    let mut stream = match random.below(3) {
        0 => TcpStream::connect(address).await?,
        _ => greeted(address, &[]).await?,
    };
    let mut bytes = Vec::new();
    match random.below(3) {
        0 => bytes = random_bytes(random, 2000),
        1 => bytes.extend(b"GET /".iter().copied().chain(random_bytes(random, 200)).chain(*b"\r\n\r\n")),
        _ => {
            for _ in 0..random.below(40) {
                let [kind, flags, ..] = random.draw().to_le_bytes();
                let stream = u32::try_from(random.below(9)).expect("small");
                let payload =
                    if random.once_in(3) { headers("/webstrata.v1.Links/Stats") } else { random_bytes(random, 60) };
                bytes.extend(frame_of(kind % 11, flags, stream, &payload));
            }
        }
    }
    stream.write_all(&bytes).await?;
    stream.shutdown().await?;
    let mut read = 0;
    let mut room = [0; 4096];
    loop {
        match tokio::time::timeout(Duration::from_millis(200), stream.read(&mut room)).await {
            Ok(Ok(0)) | Err(_) => return Ok(read),
            Ok(count) => read += count?,
        }
    }
}

/// Opens `streams` streams, each with a call, and resets each stream immediately.
///
/// # Errors
/// If the server ends the connection.
pub async fn rapid_resets(address: &str, path: &str, streams: u32) -> std::io::Result<()> {
    let mut stream = greeted(address, &[]).await?;
    for number in 0..streams {
        let id = 2 * number + 1;
        let reset = frame(Kind::Reset, 0, id, &8u32.to_be_bytes());
        stream.write_all(&[frame(Kind::Headers, 4, id, &headers(path)), reset].concat()).await?;
    }
    Ok(())
}
