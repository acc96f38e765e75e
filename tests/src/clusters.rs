//! Clusters for tests: servers of one store in this process, on ports of the loopback, that gossip and settle within
//! fractions of a second.
//!
//! Reads a store directory. Keeps the images of each server in a temporary directory that lives as long as the cluster.
//! A cluster has its own runtime, so that blocking clients such as [`webstrata_serve::clerk::Remote`] can ask the
//! cluster from the thread of a test. Promises: [`Cluster::start`] returns when every server knows every other server,
//! and all cells of the newest epoch are on the servers that they belong to.

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

/// The time within which a cluster must form, settle or change its epoch. A test fails after this time.
const PATIENCE: Duration = Duration::from_secs(60);

/// The shape of a cluster.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// The number of servers.
    pub servers: usize,
    /// The number of servers that hold each cell.
    pub replicas: usize,
    /// The limits on the concurrent work of each server.
    pub limits: Limits,
    /// How long an epoch is answered after the next one is current.
    pub grace: Duration,
    /// The bytes of cells in memory. Further cells are mapped.
    pub memory: u64,
}

impl Default for Shape {
    fn default() -> Self {
        Self { servers: 1, replicas: 2, limits: Limits::of_cores(2), grace: Duration::from_secs(5), memory: 4 << 30 }
    }
}

/// The servers of one store. The place of a server that was killed or ended stays empty.
pub struct Cluster {
    servers: Vec<Option<Server>>,
    data: Vec<TempDir>,
    store: PathBuf,
    shape: Shape,
    // The fields drop in order, so the runtime ends after the servers.
    runtime: Runtime,
}

impl Cluster {
    /// Starts a cluster, and returns when its servers are ready.
    ///
    /// # Panics
    /// If the servers do not become ready.
    pub fn start(store: &Path, shape: Shape) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
        let runtime = runtime.expect("a runtime");
        let mut cluster = Self { servers: Vec::new(), data: Vec::new(), store: store.into(), shape, runtime };
        (0..shape.servers).for_each(|_| _ = cluster.add());
        cluster.ready();
        cluster
    }

    /// Adds a server, which may not be ready yet. Returns the place of the server.
    ///
    /// # Panics
    /// If the server does not start.
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

    /// Returns when the living servers know one another, and all cells of the store's newest epoch are where they
    /// belong.
    ///
    /// # Panics
    /// If this does not happen in time.
    pub fn ready(&self) {
        let store = Store::open(self.store.as_path()).expect("a store");
        let newest = store.manifest().epoch;
        let alive = self.servers.iter().flatten().count();
        let mut rows = BTreeMap::<u32, Vec<Load>>::new();
        partitions(&store).for_each(|(row, partition)| rows.entry(row.row).or_default().push(Load::of(partition)));
        // While cells move, more servers than `replicas` may hold a cell.
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

    /// Waits until `is` returns true.
    ///
    /// # Panics
    /// If `is` does not return true in time.
    pub fn until(&self, what: &str, mut is: impl FnMut() -> bool) {
        let begun = Instant::now();
        while !is() {
            assert!(begun.elapsed() < PATIENCE, "it does not come to be that {what}: {:?}", self.maps());
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// The view of each server, for messages: the current epoch, the number of servers, and the cells with their
    /// holders.
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

    /// The directory with the images of a server.
    pub fn data(&self, at: usize) -> &Path {
        self.data[at].path()
    }

    /// Addresses of the living servers, host:port.
    pub fn addresses(&self) -> Vec<String> {
        self.servers.iter().flatten().map(|server| server.address().to_string()).collect()
    }

    /// A living server, by its place.
    ///
    /// # Panics
    /// If the server was killed or ended.
    pub fn server(&self, at: usize) -> &Server {
        self.servers[at].as_ref().expect("a living server")
    }

    /// Runs a future to its end, on the threads of the servers.
    pub fn wait<T>(&self, what: impl Future<Output = T>) -> T {
        self.runtime.block_on(what)
    }

    /// A clerk that knows all servers.
    ///
    /// # Panics
    /// If no server answers.
    pub fn clerk(&self) -> Remote {
        Remote::connect(&self.addresses(), Dialer::default(), ClerkOptions::default()).expect("a clerk")
    }

    /// Drops a server, as if its process were killed: its connections end, and no other server is informed.
    pub fn kill(&mut self, at: usize) {
        let _inside = self.runtime.enter();
        self.servers[at] = None;
    }

    /// Drains a server: the server ends when other servers have its cells.
    ///
    /// # Panics
    /// If the server does not end.
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
