//! A server: cells of a store, two gRPC services, and the same questions over HTTP, all on one port.
//!
//! ```text
//! caller --> [guards] --> [links] questions of everybody --> clerk --+--> other servers
//!        \-> [http]  -----------------------------------------/      +--> [cells] cells held here
//! store --> [cluster: keeper] which cells to have --> cells --> map --> clerk
//! ```
//!
//! Map: `links` answers the service `Links` with the server's clerk; `cells` answers the service `Cells` from the cells
//! that the server holds; `run` starts and ends the server.

mod around;
mod backlinks;
mod cells;
mod deaths;
mod links;
mod run;

pub use cells::CellsService;
pub use links::LinksService;
pub use run::{Alone, Server, ServerError, ServerOptions};
