//! The subcommands, one a file: parse, one call of a library, print.

pub(crate) mod analyze;
pub(crate) mod bench;
pub(crate) mod build;
pub(crate) mod captures;
pub(crate) mod cells;
pub(crate) mod check;
pub(crate) mod demo;
pub(crate) mod diff;
pub(crate) mod export;
pub(crate) mod fold;
pub(crate) mod gc;
pub(crate) mod generate;
pub(crate) mod info;
pub(crate) mod links;
pub(crate) mod log;
pub(crate) mod merge;
pub(crate) mod query;
pub(crate) mod remove;
pub(crate) mod removed;
pub(crate) mod serve;
pub(crate) mod sql;
pub(crate) mod timemap;
pub(crate) mod translate;
pub(crate) mod uids;
pub(crate) mod update;
pub(crate) mod watch;
