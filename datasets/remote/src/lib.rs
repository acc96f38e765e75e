//! Files on other machines: objects in S3 buckets, and files of HTTP servers.
//!
//! ```text
//! s3://bucket/crawls/a.warc.gz        an object; the usual AWS_ variables of the environment configure the server
//! https://host/crawls/a.warc.gz       a file of a server, also with a signature in the query
//! ```
//!
//! An [`Object`] is read by ranges, a [`Reader`] has several ranges in flight. Crawl files and stores use the same
//! servers, connections and retries ([`bucket`], [`fetch`]).
//!
//! Requests that fail are repeated: after answers 429 and 5xx, broken connections, bodies that are too short, silent
//! servers, and answers with another range than the one that was asked for. A repeated request asks for the same
//! range. An object that changes while it is read is an error. A request that fails for good is a [`Failure`], which is
//! never taken for damage of a file ([`is_failure`]).
//!
//! Secrets: the query and the user of an HTTP address never occur in names, messages or provenance ([`Address`]).
//!
//! Memory: at most 10 MiB for each reader, and 1 MiB for each object that is read at single places. Requests
//! run on one small runtime of the process, and callers wait. Asynchronous code must call from threads that may block.
//!
//! Only with the feature `client`. Without it, every request is refused, and the message says how to build the program.

mod address;
mod failure;
#[cfg(feature = "client")]
mod listing;
#[cfg(feature = "client")]
mod object;
#[cfg(feature = "client")]
mod patience;
#[cfg(feature = "client")]
mod reader;
#[cfg(feature = "client")]
mod servers;
#[cfg(not(feature = "client"))]
mod without;

pub use address::Address;
pub use failure::{Failure, again, is_failure};
#[cfg(feature = "client")]
pub use listing::list;
#[cfg(feature = "client")]
pub use object::{Object, open_all};
#[cfg(feature = "client")]
pub use patience::fetch;
#[cfg(feature = "client")]
pub use reader::Reader;
#[cfg(feature = "client")]
pub use servers::{bucket, runtime};
#[cfg(not(feature = "client"))]
pub use without::{Object, Reader, list, open_all};
