//! How calls fail: gRPC statuses with a machine-readable reason, as the head of `webstrata.proto` lists them.

use tonic::{Code, Status};
use tonic_types::StatusExt;
use webstrata_layers::Error as LayersError;

use crate::guard::refusal::{DOMAIN, refusal};
use webstrata_cells::Error;

/// Why a call failed: a code for every program, a reason for those that know this one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// What makes no sense.
    BadRequest,
    /// A UID that the epoch does not have.
    UnknownUid,
    /// A URL that the epoch does not have.
    NotInStore,
    /// A path that nothing is at.
    NoSuchPath,
    /// A path that is not asked by this method of HTTP.
    WrongMethod,
    /// An epoch that is no longer answered.
    EpochRetired,
    /// An epoch that is not there yet.
    EpochUnknown,
    /// UIDs of that epoch cannot be translated.
    NoTranslation,
    /// Another store is served than the caller knows.
    OtherStore,
    /// Too many items at once.
    BatchTooLarge,
    /// Too many links at once.
    AnswerTooLarge,
    /// Too many calls wait.
    Overloaded,
    /// Another bearer token is wanted.
    BadToken,
    /// No server has a cell that is needed.
    NotReady,
    /// The server does not have the cell.
    CellNotHere,
    /// A cell or a layer is damaged.
    Damaged,
}

impl Reason {
    /// All of them.
    pub const ALL: [Self; 16] = [
        Self::BadRequest,
        Self::UnknownUid,
        Self::NotInStore,
        Self::NoSuchPath,
        Self::WrongMethod,
        Self::EpochRetired,
        Self::EpochUnknown,
        Self::NoTranslation,
        Self::OtherStore,
        Self::BatchTooLarge,
        Self::AnswerTooLarge,
        Self::Overloaded,
        Self::BadToken,
        Self::NotReady,
        Self::CellNotHere,
        Self::Damaged,
    ];

    /// As it travels.
    pub fn name(self) -> &'static str {
        match self {
            Self::BadRequest => "BAD_REQUEST",
            Self::UnknownUid => "UNKNOWN_UID",
            Self::NotInStore => "NOT_IN_STORE",
            Self::NoSuchPath => "NO_SUCH_PATH",
            Self::WrongMethod => "WRONG_METHOD",
            Self::EpochRetired => "EPOCH_RETIRED",
            Self::EpochUnknown => "EPOCH_UNKNOWN",
            Self::NoTranslation => "NO_TRANSLATION",
            Self::OtherStore => "OTHER_STORE",
            Self::BatchTooLarge => "BATCH_TOO_LARGE",
            Self::AnswerTooLarge => "ANSWER_TOO_LARGE",
            Self::Overloaded => "OVERLOADED",
            Self::BadToken => "BAD_TOKEN",
            Self::NotReady => "NOT_READY",
            Self::CellNotHere => "CELL_NOT_HERE",
            Self::Damaged => "DAMAGED",
        }
    }

    /// Its gRPC code.
    pub fn code(self) -> Code {
        match self {
            Self::BadRequest | Self::UnknownUid => Code::InvalidArgument,
            Self::NotInStore | Self::NoSuchPath => Code::NotFound,
            Self::WrongMethod => Code::Unimplemented,
            Self::EpochRetired | Self::EpochUnknown | Self::NoTranslation | Self::OtherStore => {
                Code::FailedPrecondition
            }
            Self::BatchTooLarge | Self::AnswerTooLarge | Self::Overloaded => Code::ResourceExhausted,
            Self::BadToken => Code::Unauthenticated,
            Self::NotReady | Self::CellNotHere => Code::Unavailable,
            Self::Damaged => Code::DataLoss,
        }
    }

    /// The reason of a status that a server gave.
    pub fn of(status: &Status) -> Option<Self> {
        let info = status.get_details_error_info().filter(|info| info.domain == DOMAIN)?;
        Self::ALL.into_iter().find(|reason| reason.name() == info.reason)
    }
}

/// A status of this reason. Metadata are names and values for programs; the message is for people.
pub fn refuse(reason: Reason, message: impl Into<String>, metadata: &[(&str, u64)]) -> Status {
    let metadata: Vec<(&str, String)> = metadata.iter().map(|(name, value)| (*name, value.to_string())).collect();
    refusal(reason.code(), reason.name(), message, &metadata)
}

/// The status of an error of cells or layers.
pub fn status_of(error: &LayersError) -> Status {
    match error {
        LayersError::UnknownUid { uid, epoch, urls } => {
            refuse(Reason::UnknownUid, error.to_string(), &[("uid", *uid), ("epoch", *epoch), ("urls", *urls)])
        }
        LayersError::NoTranslation { from, .. } => {
            refuse(Reason::NoTranslation, error.to_string(), &[("epoch", *from)])
        }
        LayersError::Elsewhere(source) => match source.downcast_ref::<Error>() {
            Some(Error::NotHere { row, partition }) => not_here(*row, *partition),
            Some(Error::Damaged { .. }) => refuse(Reason::Damaged, source.to_string(), &[]),
            _ => Status::internal(source.to_string()),
        },
        LayersError::Damaged { .. } => refuse(Reason::Damaged, error.to_string(), &[]),
        _ => Status::internal(error.to_string()),
    }
}

/// The server has no such cell.
pub fn not_here(row: u32, partition: u32) -> Status {
    let cell = [("row", row.into()), ("partition", partition.into())];
    refuse(Reason::CellNotHere, format!("cell {partition} of row {row} is not on this server; ask a replica"), &cell)
}

/// The caller knows another store than the one that is served.
pub fn other_store(asked: &str, served: &str) -> Status {
    let message = format!(
        "this server serves another store: {served}, not {asked}. The store was rebuilt, or the address belongs \
         to another cluster: check the address and connect again"
    );
    let metadata = [("asked", asked.to_owned()), ("served", served.to_owned())];
    refusal(Reason::OtherStore.code(), Reason::OtherStore.name(), message, &metadata)
}

/// What makes no sense, and where.
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
