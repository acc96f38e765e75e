//! The pages of a mapped file, with a check that they can be read before they are read.
//!
//! If the disk refuses a page, or the file has become shorter, reading the map ends the process (SIGBUS). On Linux, the
//! system can be asked to read pages first, and reports failure (`MADV_POPULATE_READ`, from 5.14 on). On other systems
//! there is no such check. A page that the system drops later is read again without a check, so readers repeat the
//! check from time to time. Cost: a system call.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::sync::Arc;

use memmap2::Mmap;

/// A mapped file. Clones share the map.
#[derive(Clone)]
pub(crate) struct Pages(Arc<Mmap>);

impl Pages {
    /// Maps a file.
    pub(crate) fn map(file: &File) -> io::Result<Self> {
        #[expect(unsafe_code, reason = "maps a file; images are renamed into place and never written again")]
        // SAFETY: nobody changes the file while it is mapped: writers make new files, and a removed file stays mapped.
        let map = unsafe { Mmap::map(file) }?;
        Ok(Self(Arc::new(map)))
    }

    /// Whether these bytes can be read, if the system can tell.
    #[cfg(target_os = "linux")]
    pub(crate) fn can_be_read(&self, bytes: Range<usize>) -> bool {
        /// Errors after which a read would end the process: from the file (EFAULT), or from broken memory (EHWPOISON).
        const REFUSED: [i32; 2] = [14, 133];
        let asked = self.0.advise_range(memmap2::Advice::PopulateRead, bytes.start, bytes.len());
        !asked.is_err_and(|error| error.raw_os_error().is_some_and(|number| REFUSED.contains(&number)))
    }

    /// Whether these bytes can be read, if the system can tell.
    #[cfg(not(target_os = "linux"))]
    pub(crate) fn can_be_read(&self, _: Range<usize>) -> bool {
        true
    }
}

impl AsRef<[u8]> for Pages {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn pages_that_are_gone_are_known_before_they_are_read() {
        let file = tempfile::tempfile().unwrap();
        file.set_len(1 << 16).unwrap();
        let pages = Pages::map(&file).unwrap();
        assert!(pages.can_be_read(0..1 << 16) && pages.can_be_read(40_000..40_001));
        file.set_len(1 << 15).unwrap();
        assert!(pages.can_be_read(0..1 << 15) && !pages.can_be_read(40_000..40_001));
    }
}
