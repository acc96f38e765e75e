//! Processes with private mounts, and small file systems in memory, which no other process sees. This needs `unshare`
//! and the right to make user namespaces, which some machines do not have. The tests are ignored by default, and fail
//! without these.

#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]
#![allow(dead_code, reason = "each test uses a part of it")]

use std::env;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

/// This variable is set in the process that may mount.
const OWN_MOUNTS: &str = "WEBSTRATA_OWN_MOUNTS";

/// Runs the test of this name again, in a process with private mounts. In that process, runs the body.
pub(crate) fn with_own_mounts(test: &str, body: impl FnOnce()) {
    if env::var_os(OWN_MOUNTS).is_some() {
        return body();
    }
    let dir = tempfile::tempdir().unwrap();
    let mut command = Command::new("unshare");
    // All files are in memory, so that nothing waits for a real disk.
    command.args(["-rm", "sh", "-c", "mount -t tmpfs tmpfs \"$TMPDIR\" && exec \"$@\"", "sh"]);
    command.arg(env::current_exe().unwrap()).args(["--exact", test, "--nocapture", "--ignored"]);
    let output = command.env("TMPDIR", dir.path()).env(OWN_MOUNTS, "1").output().unwrap();
    let [said, failed] = [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).unwrap());
    assert!(output.status.success() && said.contains("1 passed"), "{said}{failed}");
}

/// A private file system.
pub(crate) struct Disk(pub(crate) PathBuf);

impl Disk {
    pub(crate) fn mount(at: PathBuf, kib: u64) -> Disk {
        fs::create_dir_all(&at).unwrap();
        let disk = Disk(at);
        disk.with_options(&format!("size={kib}k"));
        disk
    }

    pub(crate) fn resize(&self, kib: u64) {
        self.with_options(&format!("remount,size={kib}k"));
    }

    fn with_options(&self, options: &str) {
        let mount = Command::new("mount").args(["-t", "tmpfs", "-o", options, "tmpfs"]).arg(&self.0).output().unwrap();
        assert!(mount.status.success(), "{options}: {mount:?}");
    }

    /// The size of its files, in KiB.
    pub(crate) fn used(&self) -> u64 {
        let output = Command::new("df").args(["--output=used", "-k"]).arg(&self.0).output().unwrap();
        String::from_utf8(output.stdout).unwrap().lines().nth(1).unwrap().trim().parse().unwrap()
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        // The mount ends with the process at the latest.
        let _ = Command::new("umount").arg(&self.0).output();
    }
}
