//! Tests in processes with mounts of their own, which no other process sees.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::env;
use std::process::Command;

/// Set in the process that may mount.
const OWN_MOUNTS: &str = "WEBSTRATA_OWN_MOUNTS";

/// Runs the test of this name in a process with mounts of its own; there, the body.
pub(crate) fn with_own_mounts(test: &str, body: impl FnOnce()) {
    if env::var_os(OWN_MOUNTS).is_some() {
        return body();
    }
    let dir = tempfile::tempdir().unwrap();
    let mut command = Command::new("unshare");
    // All is in memory, so that nothing waits for a real disk.
    command.args(["-rm", "sh", "-c", "mount -t tmpfs tmpfs \"$TMPDIR\" && exec \"$@\"", "sh"]);
    command.arg(env::current_exe().unwrap()).args(["--exact", test, "--nocapture", "--ignored"]);
    let output = command.env("TMPDIR", dir.path()).env(OWN_MOUNTS, "1").output().unwrap();
    let [said, failed] = [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).unwrap());
    assert!(output.status.success() && said.contains("1 passed"), "{said}{failed}");
}
