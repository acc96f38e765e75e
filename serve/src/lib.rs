//! Serving: servers that hold cells, and the clerk (the client library) that asks the right server.
//!
//! A server holds some cells of a store and tells the other servers which cells it holds. Every server answers every
//! question: its clerk asks the servers that hold the cells. Cells themselves are in the crate `webstrata-cells`.
//!
//! ```text
//! shelf of images --> [cluster: placement, keeper] --> [held] --> [server] <-- [clerk: map, dial] <-- questions
//!                                                                 [http]  --^
//! ```
//!
//! | module | contents |
//! |---|---|
//! | [`cluster`] | which servers are alive, which cells each server holds, and how a cell gets to a server |
//! | [`held`] | answers from the cells of one server |
//! | [`map`], [`clerk`], [`dial`] | which server holds which cell; asks these servers and joins their answers |
//! | [`shared`] | the state that gRPC and HTTP share |
//! | [`server`], [`http`] | the port, its gRPC services, and the same questions over HTTP |
//! | `explorer` | the page for browsers, which asks the same questions |
//! | [`memento`] | TimeMaps, and the capture that is nearest to a date (RFC 7089) |
//! | [`protocol`] | messages, the encoding of lists of links, errors, and resume tokens of paged answers |
//! | [`answering`] | answers to many question lines together |
//! | [`guard`] | the guards around every call: limits, deadlines, TLS, tokens, metrics, spans |
//!
//! ```
//! use webstrata_layers::{Direction, Location, Window};
//! use webstrata_serve::clerk::{Clerk, ClerkOptions};
//! use webstrata_serve::cluster::ClusterOptions;
//! use webstrata_serve::dial::Dialer;
//! use webstrata_serve::server::{Server, ServerOptions};
//! # use webstrata_engine::{Progress, RunOptions};
//! # use webstrata_pipeline::{BuildOptions, build};
//! # let dir = tempfile::tempdir()?;
//! # let (crawl, store) = (dir.path().join("crawl.jsonl"), dir.path().join("store"));
//! # let capture = r#"{"url": "http://example.org/", "ts": "2008", "links": ["http://example.com/"]}"#;
//! # std::fs::write(&crawl, capture)?;
//! # build(&BuildOptions::new(RunOptions::new(&store), vec![crawl]), &Progress::default())?;
//!
//! // `store` is a store in which http://example.org/ links to http://example.com/.
//! # tokio::runtime::Runtime::new()?.block_on(async {
//! let options = ServerOptions::new(ClusterOptions::new(dir.path().join("data")));
//! let server = Server::start(Location::from(&store), ([127, 0, 0, 1], 0).into(), options).await?;
//!
//! let addresses = [server.address().to_string()];
//! let clerk = Clerk::connect(&addresses, Dialer::default(), ClerkOptions::default()).await?;
//! // All calls of a pinned epoch get answers about the same graph. A call has many questions.
//! let graph = clerk.at_last(None).await?;
//! let found = graph.uids(&["http://example.org/", "http://example.net/"]).await?;
//! assert_eq!(found[1], None);
//! let links = graph.links(&[found[0].expect("a URL of the store")], Direction::Out, Window::ALWAYS).await?;
//! assert_eq!(graph.urls(links.get(0)).await?, ["http://example.com/"]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod answering;
pub mod clerk;
pub mod cluster;
pub mod dial;
mod explorer;
pub mod guard;
pub mod held;
pub mod http;
pub mod map;
pub mod memento;
pub mod protocol;
pub mod server;
pub mod shared;
