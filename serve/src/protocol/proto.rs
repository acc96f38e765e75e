//! The gRPC services and their messages, generated from `proto/webstrata.proto`, which is their reference.

#![expect(missing_docs, clippy::pedantic, clippy::allow_attributes, reason = "generated")]

tonic::include_proto!("webstrata.v1");

/// The compiled file, for the reflection service.
pub const DESCRIPTOR: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/webstrata.bin"));
