//! Generates the gRPC types from `proto/webstrata.proto`, with its descriptor for the reflection service. Needs no `protoc`.

use std::error::Error;
use std::path::PathBuf;

use prost::Message;

fn main() -> Result<(), Box<dyn Error>> {
    let proto = "proto/webstrata.proto";
    println!("cargo:rerun-if-changed={proto}");
    let files = protox::compile([proto], ["proto"])?;
    let out = PathBuf::from(std::env::var("OUT_DIR")?);
    std::fs::write(out.join("webstrata.bin"), files.encode_to_vec())?;
    tonic_prost_build::configure()
        .bytes(".webstrata.v1.FetchResponse")
        .bytes(".webstrata.v1.LinkLists")
        .compile_fds(files)?;
    Ok(())
}
