//! How calls fail: gRPC statuses with a machine-readable reason. The head of `webstrata.proto` lists the reasons.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use tonic::{Code, Status};
use tonic_types::StatusExt;
use webstrata_layers::Error as LayersError;

use crate::protocol::refusal::{DOMAIN, refusal};
use webstrata_cells::Error;

/// Makes [`Reason`] of lines with a description, a name, and the gRPC code.
macro_rules! reasons {
    ($(#[doc = $about:literal] $reason:ident = $name:literal, $code:ident;)+) => {
        /// Why a call failed. Every gRPC client understands the code; clients of Webstrata also read the reason.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Reason {
            $(#[doc = $about] $reason),+
        }

        impl Reason {
            /// All reasons.
            pub const ALL: [Self; [$($name),+].len()] = [$(Self::$reason),+];

            /// The name of the reason in messages.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$reason => $name),+
                }
            }

            /// What the reason means, in one sentence.
            pub fn about(self) -> &'static str {
                let about = match self {
                    $(Self::$reason => $about),+
                };
                about.trim_start()
            }

            /// The gRPC code of the reason.
            pub fn code(self) -> Code {
                match self {
                    $(Self::$reason => Code::$code),+
                }
            }
        }
    };
}

reasons! {
    /// The request is invalid.
    BadRequest = "BAD_REQUEST", InvalidArgument;
    /// The epoch does not have the UID.
    UnknownUid = "UNKNOWN_UID", InvalidArgument;
    /// The epoch does not have the URL.
    NotInStore = "NOT_IN_STORE", NotFound;
    /// The HTTP path does not exist.
    NoSuchPath = "NO_SUCH_PATH", NotFound;
    /// The HTTP path does not allow the method.
    WrongMethod = "WRONG_METHOD", Unimplemented;
    /// The epoch is no longer served.
    EpochRetired = "EPOCH_RETIRED", FailedPrecondition;
    /// The epoch is not served yet.
    EpochUnknown = "EPOCH_UNKNOWN", FailedPrecondition;
    /// UIDs of the epoch cannot be translated.
    NoTranslation = "NO_TRANSLATION", FailedPrecondition;
    /// The server serves another store than the caller expects.
    OtherStore = "OTHER_STORE", FailedPrecondition;
    /// The request has too many items: ask for fewer, because a repeat fails again.
    BatchTooLarge = "BATCH_TOO_LARGE", OutOfRange;
    /// The answer would have too many values: ask for less, because a repeat fails again.
    AnswerTooLarge = "ANSWER_TOO_LARGE", OutOfRange;
    /// Too many calls run and wait, or other calls hold the memory: repeat later.
    Overloaded = "OVERLOADED", ResourceExhausted;
    /// The call has no valid bearer token.
    BadToken = "BAD_TOKEN", Unauthenticated;
    /// The call names a host that is not this server's.
    OtherHost = "OTHER_HOST", PermissionDenied;
    /// No epoch is ready, or no server answers for a cell: repeat later.
    NotReady = "NOT_READY", Unavailable;
    /// The server does not have the cell: repeat later.
    CellNotHere = "CELL_NOT_HERE", Unavailable;
    /// A cell, a layer or another file of the store is damaged.
    Damaged = "DAMAGED", DataLoss;
}

impl JsonSchema for Reason {
    fn schema_name() -> Cow<'static, str> {
        "Reason".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "string", "description": "Why a call failed.", "enum": Self::ALL.map(Self::name)})
    }
}

impl Reason {
    /// The reason in the status of a server; `None` for the status of a proxy or a transport.
    pub fn of(status: &Status) -> Option<Self> {
        let info = status.get_details_error_info().filter(|info| info.domain == DOMAIN)?;
        Self::ALL.into_iter().find(|reason| reason.name() == info.reason)
    }
}

/// Metadata of [`Reason::AnswerTooLarge`]: the bytes that the call held besides this answer.
pub(crate) const KEPT: &str = "kept";
const MOST: &str = "most";

/// Whether parts of the request may be answered, because the answer was too large. False if the call has used up its
/// memory by what it keeps: clients would ask for ever smaller parts, and none would fit.
pub fn fits_in_parts(status: &Status) -> bool {
    let Some(info) = status.get_details_error_info().filter(|_| Reason::of(status) == Some(Reason::AnswerTooLarge))
    else {
        return false;
    };
    let number = |name: &str| info.metadata.get(name).and_then(|value| value.parse::<u64>().ok());
    match (number(KEPT), number(MOST)) {
        (Some(kept), Some(most)) => kept < most / 2,
        _ => true,
    }
}

/// A status with this reason. The message is for people. The metadata (names and values) are for programs.
pub fn refuse(reason: Reason, message: impl Into<String>, metadata: &[(&str, u64)]) -> Status {
    let metadata: Vec<(&str, String)> = metadata.iter().map(|(name, value)| (*name, value.to_string())).collect();
    refusal(reason.code(), reason.name(), message, &metadata)
}

/// Converts an error of cells or layers to a status.
pub fn status_of(error: &LayersError) -> Status {
    match error {
        LayersError::UnknownUid { uid, epoch, urls } => {
            refuse(Reason::UnknownUid, error.to_string(), &[("uid", uid.0), ("epoch", *epoch), ("urls", *urls)])
        }
        LayersError::NoTranslation { from, .. } => {
            refuse(Reason::NoTranslation, error.to_string(), &[("epoch", *from)])
        }
        LayersError::Elsewhere(source) => match source.downcast_ref::<Error>() {
            Some(Error::NotHere { row, partition }) => not_here(*row, *partition),
            Some(Error::Damaged { .. }) => refuse(Reason::Damaged, source.to_string(), &[]),
            _ => Status::internal(source.to_string()),
        },
        error if error.is_damage() => refuse(Reason::Damaged, error.to_string(), &[]),
        _ => Status::internal(error.to_string()),
    }
}

/// CELL_NOT_HERE: the server does not hold the cell.
pub fn not_here(row: u32, partition: u32) -> Status {
    let cell = [("row", row.into()), ("partition", partition.into())];
    refuse(Reason::CellNotHere, format!("cell {partition} of row {row} is not on this server; ask a replica"), &cell)
}

/// CELL_NOT_HERE: the image of the cell has changed on the disk. The keeper drops the cell and makes it again.
pub fn damaged_here(row: u32, partition: u32) -> Status {
    let cell = [("row", row.into()), ("partition", partition.into())];
    let message = format!(
        "the image of cell {partition} of row {row} is damaged on this server, and is made anew; ask a replica"
    );
    refuse(Reason::CellNotHere, message, &cell)
}

/// OTHER_STORE: the caller expects another store than the server serves.
pub fn other_store(named: &str, served: &str) -> Status {
    let message = format!(
        "this server serves another store: {served}, not {named}. The store was rebuilt, or the address belongs \
         to another cluster: check the address and connect again"
    );
    let metadata = [("asked", named.to_owned()), ("served", served.to_owned())];
    refusal(Reason::OtherStore.code(), Reason::OtherStore.name(), message, &metadata)
}

/// BAD_REQUEST. The message begins with the name of the invalid field or parameter.
pub fn bad(message: impl Into<String>) -> Status {
    refuse(Reason::BadRequest, message, &[])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_come_back_from_statuses() {
        for reason in Reason::ALL {
            let status = refuse(reason, "why", &[("epoch", 7)]);
            assert_eq!((status.code(), Reason::of(&status)), (reason.code(), Some(reason)));
            let info = status.get_details_error_info().unwrap();
            assert_eq!(info.metadata.get("epoch").map(String::as_str), Some("7"));
        }
        assert_eq!(Reason::of(&Status::internal("other")), None);
    }
}
