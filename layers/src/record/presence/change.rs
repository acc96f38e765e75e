//! A change of presence, and the flaws of coded changes.

/// A place in the matrix where presence changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Change {
    /// Index of the link in the page's list of links.
    pub link: u32,
    /// Index of the capture in the page's list of timestamps.
    pub capture: u32,
}

/// A flaw of coded changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PresenceError {
    /// The bytes end inside a number, or a number is longer than 64 bits.
    #[error("the change list ends inside a number or overflows")]
    Broken,
    /// A change is outside the matrix, or a link has changes in both halves.
    #[error("a change at place {place} for {links} links and {captures} captures")]
    Outside {
        /// The place found.
        place: u64,
        /// The number of links of the page.
        links: usize,
        /// The number of captures of the page.
        captures: usize,
    },
}
