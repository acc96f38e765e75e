//! An allocator that counts the bytes that are allocated now, and the maximum so far. A test binary that measures
//! memory uses it as its global allocator:
//!
//! ```ignore
//! #[global_allocator]
//! static ALLOCATOR: Counting = Counting;
//! ```

#![expect(unsafe_code, reason = "an allocator that counts what it hands on")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicIsize, Ordering};

/// The number of bytes that are allocated now.
pub(crate) static LIVE: AtomicIsize = AtomicIsize::new(0);

/// The maximum number of bytes that were allocated at once, since a test set this number.
pub(crate) static PEAK: AtomicIsize = AtomicIsize::new(0);

/// See the head of this file.
pub(crate) struct Counting;

// SAFETY: passes every call unchanged to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let before = LIVE.fetch_add(layout.size().cast_signed(), Ordering::Relaxed);
        PEAK.fetch_max(before + layout.size().cast_signed(), Ordering::Relaxed);
        // SAFETY: the caller upholds the contract.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size().cast_signed(), Ordering::Relaxed);
        // SAFETY: the caller upholds the contract.
        unsafe { System.dealloc(place, layout) }
    }
}
