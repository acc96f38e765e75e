//! The question of a caller: `parameter` says what a parameter may be, and `parameters` has those of several paths.
//! `params` parses them strictly. `address` finds URLs as people write them, and `matching` the URLs that match one.
//! `resume` says where the next page of an answer begins, and `home` where the caller reaches the server.

pub(super) mod address;
pub(super) mod home;
pub(super) mod matching;
pub(super) mod parameter;
pub(super) mod parameters;
pub(super) mod params;
pub(super) mod resume;
