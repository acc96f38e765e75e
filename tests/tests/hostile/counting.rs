//! An allocator that counts: how much is allocated now, and how much was at most. A test binary that measures memory
//! makes it its own:
//!
//! ```ignore
//! #[global_allocator]
//! static ALLOCATOR: Counting = Counting;
//! ```

#![expect(unsafe_code, reason = "an allocator that counts what it hands on")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicIsize, Ordering};

/// Bytes that are allocated now.
pub(crate) static LIVE: AtomicIsize = AtomicIsize::new(0);

/// The most bytes that were allocated at once since a test set it.
pub(crate) static PEAK: AtomicIsize = AtomicIsize::new(0);

/// See the head of this file.
pub(crate) struct Counting;

// SAFETY: hands all on to the system's allocator as it is.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let before = LIVE.fetch_add(layout.size().cast_signed(), Ordering::Relaxed);
        PEAK.fetch_max(before + layout.size().cast_signed(), Ordering::Relaxed);
        // SAFETY: as the caller promises.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size().cast_signed(), Ordering::Relaxed);
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(place, layout) }
    }
}
