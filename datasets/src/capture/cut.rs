//! Cut captures: the body of a response was not read whole, and why.
//!
//! The links that were found in a cut body are there. Of every other link, it is unknown whether the page had it.

/// Why a body was not read whole. If several reasons hold, the least one counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Cut {
    /// The record says that it was truncated (`WARC-Truncated`), or the reader stopped at its own limit.
    Truncated,
    /// The record or the body has fewer bytes than announced.
    Short,
    /// Chunks or compressed bytes are broken, or end early.
    Damaged,
    /// The body has an encoding that cannot be undone.
    Encoding,
    /// Segments of the record are missing.
    Segments,
    /// The server sent a part of the page (status 206).
    Partial,
}

impl Cut {
    /// All reasons, from the least one on.
    pub const ALL: [Cut; 6] = [Cut::Truncated, Cut::Short, Cut::Damaged, Cut::Encoding, Cut::Segments, Cut::Partial];

    /// The name of the reason in inputs and reports.
    pub fn name(self) -> &'static str {
        match self {
            Cut::Truncated => "truncated",
            Cut::Short => "short",
            Cut::Damaged => "damaged",
            Cut::Encoding => "encoding",
            Cut::Segments => "segments",
            Cut::Partial => "partial",
        }
    }

    /// The reason that a text names, or an error message.
    pub(crate) fn of_text(name: &str) -> Result<Self, String> {
        let names = || Self::ALL.map(Cut::name).join(", ");
        Self::of_name(name).ok_or_else(|| format!("cut: {name:?} (expected one of {})", names()))
    }

    /// The reason with this name.
    pub fn of_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|cut| cut.name() == name)
    }
}
