//! What the system says of this process: memory and CPU time, from `/proc`; 0 on systems without it. And what goes back
//! to it: glibc keeps much of what is freed, which counts as this process's memory; other allocators are left as they
//! are.

use std::fs::read_to_string;

/// Bytes of memory that are held now.
pub fn memory_bytes() -> u64 {
    let Ok(status) = read_to_string("/proc/self/status") else { return 0 };
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kibibytes = line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<u64>().ok());
    kibibytes.map_or(0, |kibibytes| kibibytes << 10)
}

/// Bytes of address space that the process may have; `None` without a limit.
pub fn address_space_max() -> Option<u64> {
    let limits = read_to_string("/proc/self/limits").ok()?;
    let line = limits.lines().find_map(|line| line.strip_prefix("Max address space"))?;
    line.split_whitespace().next()?.parse().ok()
}

/// Bytes of memory that the control group of the process may have; `None` without a limit.
pub fn group_memory_max() -> Option<u64> {
    let groups = read_to_string("/proc/self/cgroup").ok()?;
    let group = groups.lines().find_map(|line| line.strip_prefix("0::"))?;
    read_to_string(format!("/sys/fs/cgroup{group}/memory.max")).ok()?.trim().parse().ok()
}

/// Buffers of this many bytes and more go back to the system when they are freed.
#[cfg(target_env = "gnu")]
const LARGE_BYTES: i32 = 1 << 20;

/// From now on large buffers go back to the system when they are freed. By itself glibc raises the size from which on
/// it does so with each of them, up to 32 MiB, and each thread keeps twice that: a fifth of a build with little memory.
#[cfg_attr(
    target_env = "gnu",
    expect(unsafe_code, reason = "a function of C; it takes two numbers and refers to no memory")
)]
pub fn give_back_large() {
    #[cfg(target_env = "gnu")]
    // SAFETY: no pointer goes in or out, and the allocator locks what it changes. Where it fails, all stays as it was.
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, LARGE_BYTES);
    }
}

/// Gives back what is free now, in pieces of any size.
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

/// CPU time of all threads so far, user and system, in steps of a hundredth of a second.
pub fn cpu_seconds() -> f64 {
    // After the name, which may hold anything but ends at the last parenthesis: utime and stime are fields 12 and 13.
    // The kernel reports them in hundredths of a second on all its platforms.
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
