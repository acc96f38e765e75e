//! The generated code and the descriptor of the protocol agree with the reference, `proto/webstrata.proto`.
//!
//! After a change of the reference or of the generator, write both again with `WEBSTRATA_REGENERATE=1 cargo test -p
//! webstrata-serve --test generated`. This needs no `protoc`.

use prost::Message;
use std::fs;
use std::path::Path;

#[test]
fn generated_files_are_those_of_the_reference() {
    let this = Path::new(env!("CARGO_MANIFEST_DIR"));
    let reference = this.join("proto");
    let files = protox::compile([reference.join("webstrata.proto")], [reference]).unwrap();
    let descriptor = files.encode_to_vec();
    let out = tempfile::tempdir().unwrap();
    tonic_prost_build::configure()
        .bytes(".webstrata.v1.FetchResponse")
        .bytes(".webstrata.v1.LinkLists")
        .out_dir(out.path())
        .compile_fds(files)
        .unwrap();
    let code = fs::read(out.path().join("webstrata.v1.rs")).unwrap();
    for (name, generated) in [("webstrata.v1.rs", code), ("webstrata.bin", descriptor)] {
        let path = this.join("src/protocol/proto").join(name);
        if std::env::var_os("WEBSTRATA_REGENERATE").is_some_and(|asked| asked == "1") {
            fs::write(&path, &generated).unwrap();
        }
        assert!(
            fs::read(&path).is_ok_and(|kept| kept == generated),
            "{} is not what proto/webstrata.proto gives: WEBSTRATA_REGENERATE=1 cargo test -p webstrata-serve --test \
             generated writes it anew",
            path.display()
        );
    }
}
