//! The system's figures about this process, from `/proc`: memory and CPU time; 0 on systems without `/proc`. Also gives
//! free memory back to the system: glibc keeps much of the memory that is freed, which counts as memory of the process.
//! Other allocators are left unchanged.

use std::fs::read_to_string;

/// Returns the current memory of the process in bytes.
pub fn memory_bytes() -> u64 {
    let Ok(status) = read_to_string("/proc/self/status") else { return 0 };
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kibibytes = line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<u64>().ok());
    kibibytes.map_or(0, |kibibytes| kibibytes << 10)
}

/// Returns the limit of the address space of the process in bytes; `None` if no limit is set.
pub(crate) fn address_space_max() -> Option<u64> {
    let limits = read_to_string("/proc/self/limits").ok()?;
    let line = limits.lines().find_map(|line| line.strip_prefix("Max address space"))?;
    line.split_whitespace().next()?.parse().ok()
}

/// Returns the memory limit of the control group of the process in bytes; `None` if no limit is set.
pub(crate) fn group_memory_max() -> Option<u64> {
    let groups = read_to_string("/proc/self/cgroup").ok()?;
    let group = groups.lines().find_map(|line| line.strip_prefix("0::"))?;
    read_to_string(format!("/sys/fs/cgroup{group}/memory.max")).ok()?.trim().parse().ok()
}

/// Buffers of at least this many bytes go back to the system when they are freed.
#[cfg(target_env = "gnu")]
const LARGE_BYTES: i32 = 1 << 20;

/// Makes large buffers go back to the system when they are freed, from now on. Without this call, glibc raises its
/// threshold with each such buffer, up to 32 MiB, and each thread keeps twice the threshold: a fifth of the memory of a
/// build with little memory.
#[cfg_attr(
    target_env = "gnu",
    expect(unsafe_code, reason = "a function of C; it takes two numbers and refers to no memory")
)]
pub fn give_back_large() {
    #[cfg(target_env = "gnu")]
    // SAFETY: no pointer goes in or out, and the allocator locks what it changes. If the call fails, nothing changes.
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, LARGE_BYTES);
    }
}

/// Gives all free memory back to the system, in pieces of any size.
#[cfg_attr(
    target_env = "gnu",
    expect(unsafe_code, reason = "a function of C; it takes a number and touches only memory that is free")
)]
pub fn give_back() {
    #[cfg(target_env = "gnu")]
    // SAFETY: no pointer goes in or out, and the allocator locks its free lists while it reads them.
    unsafe {
        libc::malloc_trim(0);
    }
}

/// Returns the CPU time of all threads so far, user and system, in seconds, in steps of a hundredth of a second.
pub(crate) fn cpu_seconds() -> f64 {
    // The name may contain anything but ends at the last parenthesis. After the name, utime and stime are fields 12 and
    // 13. The kernel reports both in hundredths of a second on all platforms.
    let ticks = || -> Option<u64> {
        let stat = read_to_string("/proc/self/stat").ok()?;
        let mut fields = stat.rsplit_once(')')?.1.split_whitespace().skip(11);
        Some(fields.next()?.parse::<u64>().ok()? + fields.next()?.parse::<u64>().ok()?)
    };
    ticks().unwrap_or(0) as f64 / 100.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(target_os = "linux")]
    fn the_system_tells() {
        let before = cpu_seconds();
        let held = memory_bytes();
        let more: Vec<u64> = (0..4 << 20).collect();
        assert!(memory_bytes() >= held + (16 << 20));
        let mut sum = more.len() as u64;
        while cpu_seconds() < before + 0.03 {
            sum = more.iter().fold(sum, |sum, n| sum.wrapping_mul(31).wrapping_add(*n));
        }
        assert!(sum > 0 && cpu_seconds() > before);
    }
}
