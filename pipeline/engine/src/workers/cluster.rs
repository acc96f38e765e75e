//! The processes of a job, and the connections between them.
//!
//! A hosts file has one `host:port` a line. Process K listens at the address of line K (from 0) and connects to the
//! processes with lower numbers. Each side of a connection sends its number and the identity of its job, so a process
//! that was started with other inputs or options gets an error at once. Then timely's protocol takes over.
//!
//! Timely panics or waits forever if a connection ends too early. A [`Peer`] therefore stands between timely and the
//! connection: the [`Peer`] tells the [`Job`] which process is gone, and holds timely's thread until this process ends.
//! If a host vanishes without closing its connections, keep-alive packets notice that within about ten seconds.

use crate::Error;
use crate::job::Job;
use crate::{progress, wire};
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream, ToSocketAddrs};
use std::path::Path;
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};
use timely::communication::allocator::zero_copy::stream::Stream;

/// A cluster of processes, and the place of this process in the cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cluster {
    /// The address of each process, as `host:port`.
    pub hosts: Vec<String>,
    /// The number of this process.
    pub process: usize,
    /// How long to wait for the other processes at the start.
    pub wait: Duration,
}

/// The default time to wait for the other processes.
pub const CLUSTER_WAIT: Duration = Duration::from_secs(60);
/// After another process has ended in good order, how long this process may still work with data from that process.
const LAST_WORK_MAX: Duration = Duration::from_secs(30);
const RETRY: Duration = Duration::from_millis(50);
const GREETING_MAX: Duration = Duration::from_secs(5);
const MAGIC: [u8; 8] = *b"wstrata1";
const ID_BYTES: usize = 32;

impl Cluster {
    /// Reads a hosts file: one `host:port` a line. Empty lines and lines that begin with `#` are ignored.
    ///
    /// # Errors
    /// The file cannot be read, a line is not a `host:port`, an address occurs twice, or the process has no line.
    pub fn from_file(path: &Path, process: usize) -> Result<Cluster, Error> {
        let bad = |message: String| Error::Hosts { path: path.to_owned(), message };
        let text = std::fs::read_to_string(path).map_err(|error| bad(error.to_string()))?;
        let mut hosts: Vec<String> = Vec::new();
        for (number, line) in (1..).zip(text.lines()).map(|(number, line)| (number, line.trim())) {
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let port = line.rsplit_once(':').filter(|(host, _)| !host.is_empty()).map(|(_, port)| port.parse::<u16>());
            if !matches!(port, Some(Ok(_))) {
                return Err(bad(format!("line {number} is no host:port: {line}")));
            }
            if hosts.iter().any(|host| host == line) {
                return Err(bad(format!("line {number} stands there twice: {line}")));
            }
            hosts.push(line.to_owned());
        }
        if process >= hosts.len() {
            return Err(bad(format!("names {} processes, from 0; there is no process {process}", hosts.len())));
        }
        Ok(Cluster { hosts, process, wait: CLUSTER_WAIT })
    }
}

/// Connects this process with all other processes of the job `id` (32 bytes). Returns one entry for each process; the
/// entry of this process is `None`.
pub(crate) fn connect(cluster: &Cluster, id: &str, job: &Job) -> Result<Vec<Option<Peer>>, Error> {
    let listener = |source| Error::Listen { host: cluster.hosts[cluster.process].clone(), source };
    let socket = TcpListener::bind(&cluster.hosts[cluster.process]).map_err(listener)?;
    socket.set_nonblocking(true).map_err(listener)?;
    let started = Instant::now();
    let mut peers: Vec<Option<Peer>> = cluster.hosts.iter().map(|_| None).collect();
    let waiting = |peers: &[Option<Peer>]| (0..peers.len()).find(|&n| n != cluster.process && peers[n].is_none());
    let (greeted, greetings) = mpsc::channel();
    while let Some(first) = waiting(&peers) {
        job.go_on().or(Err(Error::Cancelled))?;
        // This process dials processes with lower numbers one by one; processes with higher numbers connect in any
        // order.
        let last = if first < cluster.process { first + 1 } else { peers.len() };
        let missing = (first..last).filter(|&number| number != cluster.process && peers[number].is_none());
        let missing = missing.map(|process| progress::Missing { process, host: cluster.hosts[process].clone() });
        job.progress().wait_for(missing.collect(), started + cluster.wait);
        if started.elapsed() > cluster.wait {
            let seconds = cluster.wait.as_secs();
            return Err(Error::NoProcess { process: first, host: cluster.hosts[first].clone(), seconds });
        }
        let mut idle = true;
        if first < cluster.process {
            if let Some(stream) = dial(&cluster.hosts[first]) {
                peers[first] = greet(stream, cluster, id, Some(first), job)?.map(|(_, peer)| peer);
                idle = peers[first].is_none();
            }
        } else if let Ok((stream, _)) = socket.accept() {
            idle = false;
            // The greeting has a separate thread, so that a silent stranger does not keep other processes out.
            let (cluster, id, job, greeted) = (cluster.clone(), id.to_owned(), job.clone(), greeted.clone());
            std::thread::spawn(move || greeted.send(greet(stream, &cluster, &id, None, &job)));
        }
        for greeting in greetings.try_iter() {
            idle = false;
            if let Some((number, peer)) = greeting? {
                peers[number] = Some(peer);
            }
        }
        if idle {
            std::thread::sleep(RETRY);
        }
    }
    job.progress().wait_for(Vec::new(), started);
    Ok(peers)
}

fn dial(host: &str) -> Option<TcpStream> {
    host.to_socket_addrs().ok()?.find_map(|address| TcpStream::connect_timeout(&address, GREETING_MAX).ok())
}

/// Exchanges greetings. Returns `None` if the other side is not a process of the cluster; the expected process may
/// still come.
fn greet(
    stream: TcpStream,
    cluster: &Cluster,
    id: &str,
    expected: Option<usize>,
    job: &Job,
) -> Result<Option<(usize, Peer)>, Error> {
    let Ok((number, processes, their_id)) = exchange(&stream, cluster, id, expected.is_some()) else { return Ok(None) };
    let is_known = expected.is_none_or(|expected| number == expected) && number < cluster.hosts.len();
    if !is_known || processes != cluster.hosts.len() || their_id != id.as_bytes() {
        let host = cluster.hosts.get(number).cloned().unwrap_or_else(|| "unknown host".to_owned());
        return Err(Error::OtherJob { process: number, host });
    }
    let host = cluster.hosts[number].clone();
    let connection = Arc::new(Connection { stream, process: number, host, job: job.clone() });
    Ok(Some((number, Peer { connection, zeros: 0 })))
}

/// Exchanges greetings over a connection and returns the other side's number, its number of processes and its job. The
/// side that dialled sends first and last, so that neither side keeps a connection that the other side has given up.
fn exchange(stream: &TcpStream, cluster: &Cluster, id: &str, dialled: bool) -> io::Result<(usize, usize, Vec<u8>)> {
    stream.set_nonblocking(false)?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(GREETING_MAX))?;
    let keep_alive = socket2::TcpKeepalive::new().with_time(Duration::from_secs(5)).with_interval(RETRY * 20);
    socket2::SockRef::from(stream).set_tcp_keepalive(&keep_alive.with_retries(4))?;
    let mut stream = stream;
    let numbers = [cluster.process as u64, cluster.hosts.len() as u64].map(u64::to_be_bytes);
    let greeting = [&MAGIC[..], numbers.as_flattened(), id.as_bytes()].concat();
    let mut theirs = [0; MAGIC.len() + 16 + ID_BYTES];
    if dialled {
        stream.write_all(&greeting)?;
        stream.read_exact(&mut theirs)?;
        stream.write_all(&[1])?;
    } else {
        stream.read_exact(&mut theirs)?;
        stream.write_all(&greeting)?;
        stream.read_exact(&mut [0])?;
    }
    stream.set_read_timeout(None)?;
    let mut rest = &theirs[..];
    if wire::take_array(&mut rest) != MAGIC {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let mut number = || usize::try_from(u64::from_be_bytes(wire::take_array(&mut rest))).unwrap_or(usize::MAX);
    Ok((number(), number(), rest.to_vec()))
}

/// The length of the header with which timely ends a connection; all bytes are zeros.
const FAREWELL_BYTES: usize = 48;

/// The connection to another process, as timely uses it.
pub(crate) struct Peer {
    connection: Arc<Connection>,
    /// The number of zero bytes at the end of the data read so far.
    zeros: usize,
}

struct Connection {
    stream: TcpStream,
    process: usize,
    host: String,
    job: Job,
}

impl Connection {
    /// Tells the job that the process is gone.
    fn gone(&self, cleanly: bool) {
        let error = Error::ProcessGone { process: self.process, host: self.host.clone() };
        self.job.gone(error, if cleanly { LAST_WORK_MAX } else { Duration::ZERO });
    }

    /// Tells the job that the process is gone, and holds the thread until this process has finished its work, or
    /// forever.
    fn gone_for_good(&self) {
        while !self.job.finished() {
            self.gone(false);
            std::thread::sleep(RETRY);
        }
    }
}

impl Read for Peer {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match (&self.connection.stream).read(buffer) {
            Ok(0) if self.zeros >= FAREWELL_BYTES => {
                self.connection.gone(true);
                Ok(0)
            }
            Ok(0) | Err(_) => {
                self.connection.gone_for_good();
                Ok(0)
            }
            Ok(bytes) => {
                let zeros = buffer[..bytes].iter().rev().take_while(|&&byte| byte == 0).count();
                self.zeros = if zeros == bytes { self.zeros + zeros } else { zeros };
                Ok(bytes)
            }
        }
    }
}

impl Write for Peer {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        // Timely sends its farewell however its workers ended. If this job failed, the other processes must not get the
        // farewell.
        if self.connection.job.failed() {
            return Ok(buffer.len());
        }
        (&self.connection.stream).write(buffer).or_else(|_| {
            self.connection.gone_for_good();
            Ok(buffer.len())
        })
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Stream for Peer {
    fn try_clone(&self) -> io::Result<Self> {
        Ok(Peer { connection: Arc::clone(&self.connection), zeros: 0 })
    }

    fn set_nonblocking(&self, nonblocking: bool) -> io::Result<()> {
        self.connection.stream.set_nonblocking(nonblocking)
    }

    fn shutdown(&self, how: Shutdown) -> io::Result<()> {
        // The other side may have closed already.
        let _ = self.connection.stream.shutdown(how);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Progress;
    use crate::scratch::Scratch;

    #[test]
    fn a_hosts_file_names_processes() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("hosts");
        std::fs::write(&path, "# two\none.example:4000\n\n  [::1]:4001\n").unwrap();
        assert_eq!(Cluster::from_file(&path, 1).unwrap().hosts, ["one.example:4000", "[::1]:4001"]);
        let error = |text: &str, process| {
            std::fs::write(&path, text).unwrap();
            Cluster::from_file(&path, process).unwrap_err().to_string()
        };
        assert!(error("one:4000\n", 1).contains("names 1 processes"));
        assert!(error("one:4000\ntwo\n", 0).contains("line 2 is no host:port: two"));
        assert!(error("one:4000\n\none:4000\n", 0).contains("line 3 stands there twice"));
        assert!(Cluster::from_file(&dir.path().join("none"), 0).is_err());
    }

    /// Returns addresses at which no process listens.
    fn two_hosts() -> Vec<String> {
        let listeners = [(); 2].map(|()| TcpListener::bind("127.0.0.1:0").unwrap());
        listeners.map(|listener| listener.local_addr().unwrap().to_string()).into()
    }

    #[test]
    fn a_process_that_does_not_come_is_named() {
        let cluster = Cluster { hosts: two_hosts(), process: 0, wait: Duration::from_millis(200) };
        let job = Job::new(1, 1 << 20, Scratch::temporary(&std::env::temp_dir()), Progress::default());
        let error = connect(&cluster, &"0".repeat(ID_BYTES), &job).err().unwrap();
        assert!(matches!(&error, Error::NoProcess { process: 1, host, .. } if *host == cluster.hosts[1]), "{error}");
    }

    #[test]
    fn strangers_that_are_silent_keep_no_process_out() {
        let hosts = two_hosts();
        let join = |process: usize| {
            let cluster = Cluster { hosts: hosts.clone(), process, wait: Duration::from_secs(60) };
            let job = Job::new(1, 1 << 20, Scratch::temporary(&std::env::temp_dir()), Progress::default());
            std::thread::spawn(move || connect(&cluster, &"0".repeat(ID_BYTES), &job).unwrap().len())
        };
        let (first, begun) = (join(0), Instant::now());
        let strangers: Vec<TcpStream> = std::iter::repeat_with(|| TcpStream::connect(&hosts[0]))
            .inspect(|stream| assert!(stream.is_ok() || begun.elapsed() < GREETING_MAX, "nobody listens"))
            .flatten()
            .take(20)
            .collect();
        assert_eq!(join(1).join().unwrap() + first.join().unwrap(), 4);
        assert!(begun.elapsed() < 2 * GREETING_MAX, "{:?}", begun.elapsed());
        drop(strangers);
    }

    #[test]
    fn a_process_that_fails_does_not_end_as_if_it_were_done() {
        let hosts = two_hosts();
        let job = || Job::new(1, 1 << 20, Scratch::temporary(&std::env::temp_dir()), Progress::default());
        let jobs = [job(), job()];
        let join = |process: usize| {
            let cluster = Cluster { hosts: hosts.clone(), process, wait: Duration::from_secs(10) };
            let job = jobs[process].clone();
            std::thread::spawn(move || connect(&cluster, &"0".repeat(ID_BYTES), &job).unwrap())
        };
        let [mut one, mut other] = [join(0), join(1)].map(|side| side.join().unwrap());
        let (mut one, mut other) = (one[1].take().unwrap(), other[0].take().unwrap());
        // Timely ends the connection in good order, however its workers ended.
        jobs[0].fail(Error::Cancelled);
        one.write_all(&[0; FAREWELL_BYTES]).unwrap();
        one.shutdown(Shutdown::Write).unwrap();
        std::thread::spawn(move || while other.read(&mut [0; 100]).is_ok_and(|bytes| bytes > 0) {});
        let end = Instant::now() + Duration::from_secs(5);
        while !jobs[1].failed() {
            assert!(Instant::now() < end, "nobody noticed");
            std::thread::sleep(RETRY);
        }
        assert!(matches!(jobs[1].take_error(), Some(Error::ProcessGone { process: 0, .. })));
    }
}
