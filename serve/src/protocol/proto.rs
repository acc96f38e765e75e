//! The gRPC services and their messages, generated from `proto/webstrata.proto`. The proto file is the reference.
//!
//! The generated code is committed in `proto/`, so that a build needs no generator. `tests/generated.rs` compares the
//! code with the proto file, and regenerates the code on request.

#![expect(missing_docs, clippy::pedantic, clippy::allow_attributes, reason = "generated")]

include!("proto/webstrata.v1.rs");

/// The compiled file, for the reflection service.
pub const DESCRIPTOR: &[u8] = include_bytes!("proto/webstrata.bin");
