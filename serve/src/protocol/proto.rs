//! The gRPC services and their messages, generated from `proto/webstrata.proto`, which is their reference.
//!
//! What is generated lies in `proto/`, so that nobody who builds this needs the generator; `tests/generated.rs` holds
//! it to the reference, and writes it anew when asked.

#![expect(missing_docs, clippy::pedantic, clippy::allow_attributes, reason = "generated")]

include!("proto/webstrata.v1.rs");

/// The compiled file, for the reflection service.
pub const DESCRIPTOR: &[u8] = include_bytes!("proto/webstrata.bin");
