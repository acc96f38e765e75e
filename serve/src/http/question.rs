//! The question of a caller: `params` parses parameters strictly, `address` finds URLs as people write them, `matching`
//! finds the URLs that match one, `resume` says where the next page of an answer begins, and `home` where the caller
//! reaches the server.

pub(super) mod address;
pub(super) mod home;
pub(super) mod matching;
pub(super) mod params;
pub(super) mod resume;
