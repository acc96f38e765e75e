//! What a caller asks: `params` parses parameters strictly, `address` finds URLs as people write them, and `resume`
//! says where the next page of an answer begins.

pub(super) mod address;
pub(super) mod params;
pub(super) mod resume;
