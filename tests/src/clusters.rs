//! Clusters for tests: servers of one store in this process, on ports of the loopback, that gossip and settle in
//! fractions of a second.
//!
//! Reads a store directory; keeps images of cells in temporary directories, one a server, which live as long as the
//! cluster. A cluster has a runtime of its own, so that code that does not wait by itself, as
//! [`webstrata_serve::clerk::Remote`], can ask it from a test's thread. Promises: [`Cluster::start`] returns when every
//! server knows of every other, and all cells of the newest epoch are where they belong.

use std::collections::BTreeMap;
use std::future::Future;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use tempfile::TempDir;
use tokio::runtime::Runtime;
use webstrata_cells::image::label::partitions;
use webstrata_layers::{Location, Store};
use webstrata_serve::clerk::{ClerkOptions, Remote};
use webstrata_serve::cluster::ClusterOptions;
use webstrata_serve::cluster::placement::{Load, place};
use webstrata_serve::dial::Dialer;
use webstrata_serve::guard::drain::End;
use webstrata_serve::guard::limits::Limits;
use webstrata_serve::map::{Map, RowMap};
use webstrata_serve::server::{Server, ServerOptions};

/// A cluster comes together, settles and changes its epoch within this time, or the test fails.
const PATIENCE: Duration = Duration::from_secs(60);

/// How a cluster is made.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// Servers.
    pub servers: usize,
    /// Servers that have each cell.
    pub replicas: usize,
    /// How much each does at once.
    pub limits: Limits,
    /// How long an epoch is answered after the next one is current.
    pub grace: Duration,
    /// Bytes of cells in memory; the others are mapped.
    pub memory: u64,
}

impl Default for Shape {
    fn default() -> Self {
        Self { servers: 1, replicas: 2, limits: Limits::of_cores(2), grace: Duration::from_secs(5), memory: 4 << 30 }
    }
}

/// Servers of one store. Those that were killed or ended leave their place empty.
pub struct Cluster {
    servers: Vec<Option<Server>>,
    data: Vec<TempDir>,
    store: PathBuf,
    shape: Shape,
    // Ends after the servers.
    runtime: Runtime,
}

impl Cluster {
    /// Servers that are ready.
    ///
    /// # Panics
    /// Where they do not become so.
    pub fn start(store: &Path, shape: Shape) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
        let runtime = runtime.expect("a runtime");
        let mut cluster = Self { servers: Vec::new(), data: Vec::new(), store: store.into(), shape, runtime };
        (0..shape.servers).for_each(|_| _ = cluster.add());
        cluster.ready();
        cluster
    }

    /// One more server, which may not be ready yet. Gives its place.
    ///
    /// # Panics
    /// Where it does not start.
    pub fn add(&mut self) -> usize {
        let data = tempfile::tempdir().expect("a directory");
        let options = self.options(data.path());
        let location = Location::from(self.store.as_path());
        let listen = SocketAddr::from(([127, 0, 0, 1], 0));
        let server = self.wait(Server::start(location, listen, options)).expect("a server");
        self.servers.push(Some(server));
        self.data.push(data);
        self.servers.len() - 1
    }

    fn options(&self, data: &Path) -> ServerOptions {
        let Shape { replicas, limits, grace, memory, .. } = self.shape;
        let millis = Duration::from_millis;
        ServerOptions {
            limits,
            linger: millis(100),
            patience: Duration::from_secs(10),
            admin: Some(SocketAddr::from(([127, 0, 0, 1], 0))),
            ..ServerOptions::new(ClusterOptions {
                join: self.addresses(),
                replicas,
                memory,
                watch: millis(100),
                grace,
                settle: millis(200),
                gossip: millis(50),
                ..ClusterOptions::new(data)
            })
        }
    }

    /// Returns when the living servers know of one another, and all cells of the store's newest epoch are where they
    /// belong.
    ///
    /// # Panics
    /// Where that does not come to be.
    pub fn ready(&self) {
        let store = Store::open(self.store.as_path()).expect("a store");
        let newest = store.manifest().epoch;
        let alive = self.servers.iter().flatten().count();
        let mut rows = BTreeMap::<u32, Vec<Load>>::new();
        partitions(&store).for_each(|(row, partition)| rows.entry(row.row).or_default().push(Load::of(partition)));
        // As many servers may have a cell before it is where it belongs.
        let belong = |map: &Map, row: &RowMap| {
            let names: Vec<&str> = map.servers.iter().map(|server| server.name.as_str()).collect();
            let cells = rows.get(&row.row).map_or(&[][..], |cells| cells);
            let placed = place(row.row, cells, &names, &vec![true; names.len()], self.shape.replicas);
            row.cells.iter().map(|cell| &cell.servers[..]).eq(placed.iter().map(|(order, copies)| &order[..*copies]))
        };
        let settled = |map: &Map| {
            let mut rows = map.epochs.get(&newest).into_iter().flat_map(|graph| &graph.rows);
            map.current == newest && map.servers.len() == alive && rows.all(|row| belong(map, row))
        };
        self.until("all cells are where they belong", || {
            self.servers.iter().flatten().all(|server| settled(&server.shared().clerk.map()))
        });
    }

    /// Waits for something.
    ///
    /// # Panics
    /// Where it does not come.
    pub fn until(&self, what: &str, mut is: impl FnMut() -> bool) {
        let begun = Instant::now();
        while !is() {
            assert!(begun.elapsed() < PATIENCE, "it does not come to be that {what}: {:?}", self.maps());
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// The current epoch, the number of servers and of cells with their holders, as each server sees them; for
    /// messages.
    fn maps(&self) -> Vec<String> {
        let told = |server: &Server| {
            let map = server.shared().clerk.map();
            let rows =
                map.rows.values().map(|row| (row.row, row.cells.iter().map(|cell| cell.servers.clone()).collect()));
            let rows: Vec<(u32, Vec<Vec<usize>>)> = rows.collect();
            format!("{}: epoch {}, {} servers, cells {rows:?}", server.address(), map.current, map.servers.len())
        };
        self.servers.iter().flatten().map(told).collect()
    }

    /// The directory of a server's images.
    pub fn data(&self, at: usize) -> &Path {
        self.data[at].path()
    }

    /// Addresses of the living servers, host:port.
    pub fn addresses(&self) -> Vec<String> {
        self.servers.iter().flatten().map(|server| server.address().to_string()).collect()
    }

    /// A server.
    ///
    /// # Panics
    /// One that was killed or ended.
    pub fn server(&self, at: usize) -> &Server {
        self.servers[at].as_ref().expect("a living server")
    }

    /// Runs something that waits, on the threads of the servers.
    pub fn wait<T>(&self, what: impl Future<Output = T>) -> T {
        self.runtime.block_on(what)
    }

    /// A clerk that knows all servers.
    ///
    /// # Panics
    /// Where none answers.
    pub fn clerk(&self) -> Remote {
        Remote::connect(&self.addresses(), Dialer::default(), ClerkOptions::default()).expect("a clerk")
    }

    /// Drops a server, as if its process were killed: its connections end, nobody is told.
    pub fn kill(&mut self, at: usize) {
        let _inside = self.runtime.enter();
        self.servers[at] = None;
    }

    /// Lets a server end when others have its cells.
    ///
    /// # Panics
    /// Where it does not.
    pub fn end(&mut self, at: usize) -> End {
        let server = self.servers[at].take().expect("a living server");
        self.runtime.block_on(server.end()).expect("an end")
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        let _inside = self.runtime.enter();
        self.servers.clear();
    }
}
