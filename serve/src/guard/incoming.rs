//! Incoming connections: at most so many at once, none of which waits for small packets or outlives its machine.
//!
//! A stream of TCP connections for [`tonic::transport::Server`]. Connections beyond the limit are closed at once and counted,
//! so that those who hold one are served; failures to accept, as when the system has no more files, are logged and do not
//! end the stream. All connections can be cut, at the end of a server. Memory: some hundred bytes a connection.

use std::collections::HashMap;
use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use futures_util::task::AtomicWaker;
use futures_util::{FutureExt, Stream};
use socket2::{SockRef, TcpKeepalive};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{Sleep, sleep};
use tonic::transport::server::{Connected, TcpConnectInfo};

/// Silence after which the system asks whether the other side is there, and then again at this pace.
const KEEPALIVE: (Duration, Duration) = (Duration::from_secs(60), Duration::from_secs(10));
/// Time for a connection to say what it is: without that it would take the place of one that is.
const GREETING: Duration = Duration::from_secs(10);
/// Bytes that say so: as many as HTTP/2 begins with, and no less than any request of HTTP/1.1 that names its host.
const GREETING_BYTES: usize = 24;
/// Time for connections to end after the system had no room for another.
const RECOVERY: Duration = Duration::from_millis(50);

/// The open connections of a server. Clones share them.
#[derive(Clone, Default)]
pub struct Connections(Arc<Shared>);

#[derive(Default)]
struct Shared {
    open: Mutex<Open>,
    refused: AtomicU64,
}

#[derive(Default)]
struct Open {
    next: u64,
    /// By their numbers.
    cuts: HashMap<u64, Arc<Cut>>,
    /// All are, from now on.
    cut: bool,
}

/// How a connection learns that it is cut.
#[derive(Default)]
struct Cut {
    cut: AtomicBool,
    reader: AtomicWaker,
}

impl Connections {
    /// How many there are.
    #[must_use]
    pub fn open(&self) -> usize {
        self.lock().cuts.len()
    }

    /// How many were closed at once since the start, because there were too many.
    #[must_use]
    pub fn refused(&self) -> u64 {
        self.0.refused.load(Ordering::Relaxed)
    }

    /// Ends all of them, with their calls, now and for ever.
    pub fn cut(&self) {
        let mut open = self.lock();
        open.cut = true;
        for cut in open.cuts.values() {
            cut.cut.store(true, Ordering::Release);
            cut.reader.wake();
        }
    }

    /// One more, where there may be one.
    fn enter(&self, most: usize) -> Option<Seat> {
        let mut open = self.lock();
        if open.cuts.len() >= most || open.cut {
            self.0.refused.fetch_add(1, Ordering::Relaxed);
            return None;
        }
        let number = open.next;
        open.next += 1;
        let cut = Arc::<Cut>::default();
        open.cuts.insert(number, Arc::clone(&cut));
        Some(Seat { number, cut, connections: self.clone() })
    }

    /// No code panics while it holds the lock, and what it guards is whole at any time.
    fn lock(&self) -> MutexGuard<'_, Open> {
        self.0.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A connection's membership among the open ones, until it is dropped.
struct Seat {
    number: u64,
    cut: Arc<Cut>,
    connections: Connections,
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.connections.lock().cuts.remove(&self.number);
    }
}

/// Accepts connections, as many as may be open. Never ends.
pub struct LimitedIncoming {
    listener: TcpListener,
    connections: Connections,
    most: usize,
    greeting: Duration,
    /// Until then nothing is accepted.
    recovery: Option<Pin<Box<Sleep>>>,
}

impl LimitedIncoming {
    /// At most so many connections to the listener's port.
    #[must_use]
    pub fn new(listener: TcpListener, most: usize) -> Self {
        Self { listener, connections: Connections::default(), most, greeting: GREETING, recovery: None }
    }

    /// The open connections.
    #[must_use]
    pub fn connections(&self) -> Connections {
        self.connections.clone()
    }
}

impl Stream for LimitedIncoming {
    type Item = io::Result<LimitedIo>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        loop {
            if let Some(recovery) = &mut self.recovery {
                ready!(recovery.poll_unpin(context));
                self.recovery = None;
            }
            match ready!(self.listener.poll_accept(context)) {
                Ok((stream, _)) => {
                    if let Some(seat) = self.connections.enter(self.most) {
                        // Without these a connection is slower, or stays when its machine is gone; it works.
                        let _ = stream.set_nodelay(true);
                        let keepalive = TcpKeepalive::new().with_time(KEEPALIVE.0).with_interval(KEEPALIVE.1);
                        let _ = SockRef::from(&stream).set_tcp_keepalive(&keepalive);
                        let greeting = Some((Box::pin(sleep(self.greeting)), GREETING_BYTES));
                        return Poll::Ready(Some(Ok(LimitedIo { stream, seat, greeting })));
                    }
                }
                Err(error) if is_of_connection(&error) => {}
                Err(error) => {
                    tracing::warn!(error = &error as &dyn std::error::Error, "a connection cannot be accepted");
                    self.recovery = Some(Box::pin(sleep(RECOVERY)));
                }
            }
        }
    }
}

/// Whether it was the connection that failed, and the next one may not.
fn is_of_connection(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset)
}

/// A connection, which counts until it is dropped.
pub struct LimitedIo {
    stream: TcpStream,
    seat: Seat,
    /// Until when its greeting must be here, and how many bytes are left of that.
    greeting: Option<(Pin<Box<Sleep>>, usize)>,
}

impl Connected for LimitedIo {
    type ConnectInfo = TcpConnectInfo;

    fn connect_info(&self) -> TcpConnectInfo {
        self.stream.connect_info()
    }
}

impl AsyncRead for LimitedIo {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, to: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        // Registered first, so that no cut is missed.
        self.seat.cut.reader.register(context.waker());
        if self.seat.cut.cut.load(Ordering::Acquire) {
            return Poll::Ready(Err(io::Error::new(io::ErrorKind::ConnectionAborted, "the server ends")));
        }
        let before = to.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(context, to);
        if let Some((end, left)) = &mut self.greeting {
            *left = left.saturating_sub(to.filled().len() - before);
            if *left == 0 {
                self.greeting = None;
            } else if read.is_pending() {
                ready!(end.poll_unpin(context));
                return Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "it does not say what it is")));
            }
        }
        read
    }
}

impl AsyncWrite for LimitedIo {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, from: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, from)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        from: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, from)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::guard::trial::{Tardy, client, http, router, slow, until};
    use std::net::SocketAddr;
    use std::time::Instant;
    use tokio::io::AsyncReadExt;
    use tonic::service::Routes;
    use tonic::transport::Server;

    async fn limited(most: usize) -> (SocketAddr, Connections, Tardy) {
        limited_for(most, GREETING).await
    }

    async fn limited_for(most: usize, greeting: Duration) -> (SocketAddr, Connections, Tardy) {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let mut incoming = LimitedIncoming::new(listener, most);
        incoming.greeting = greeting;
        let (connections, tardy) = (incoming.connections(), Tardy::default());
        let routes = Routes::from(router(&tardy));
        tokio::spawn(Server::builder().accept_http1(true).add_routes(routes).serve_with_incoming(incoming));
        (address, connections, tardy)
    }

    #[tokio::test]
    async fn connections_beyond_the_limit_are_closed_at_once() {
        let (address, connections, _) = limited(3).await;
        let mut one = client(address).await;
        one.ask(slow(0)).await.expect("an answer");
        let two = TcpStream::connect(address).await.expect("a connection");
        let three = TcpStream::connect(address).await.expect("a connection");
        until(async || connections.open() == 3).await;
        for refused in 1..=20 {
            let begun = Instant::now();
            let mut four = TcpStream::connect(address).await.expect("the system accepts it");
            assert!(matches!(four.read(&mut [0]).await, Ok(0) | Err(_)), "closed");
            assert!(begun.elapsed() < Duration::from_secs(1), "at once");
            assert_eq!((connections.open(), connections.refused()), (3, refused));
        }
        one.ask(slow(0)).await.expect("who holds a connection is served");
        drop((two, three));
        until(async || connections.open() == 1).await;
        assert!(http(address, "/v1/plain", "").await.ends_with("plain"), "there is room again");
    }

    #[tokio::test]
    async fn connections_that_say_nothing_end() {
        let greeting = Duration::from_millis(300);
        let (address, connections, _) = limited_for(3, greeting).await;
        let mut one = client(address).await;
        one.ask(slow(0)).await.expect("an answer");
        let begun = Instant::now();
        let mut silent = TcpStream::connect(address).await.expect("a connection");
        let mut half = TcpStream::connect(address).await.expect("a connection");
        tokio::io::AsyncWriteExt::write_all(&mut half, b"PRI * HTTP/2").await.expect("half a greeting");
        for stream in [&mut silent, &mut half] {
            assert!(matches!(stream.read(&mut [0]).await, Ok(0) | Err(_)), "closed");
        }
        assert!((greeting..20 * greeting).contains(&begun.elapsed()), "{:?}", begun.elapsed());
        until(async || connections.open() == 1).await;
        one.ask(slow(0)).await.expect("who said what it is stays");
    }

    #[tokio::test]
    async fn all_connections_can_be_cut() {
        let (address, connections, tardy) = limited(100).await;
        let mut calls = Vec::new();
        for _ in 0..5 {
            let mut client = client(address).await;
            calls.push(tokio::spawn(async move { client.ask(slow(60_000)).await }));
        }
        let running = async || tardy.running.load(Ordering::SeqCst);
        until(async || running().await == 5).await;
        connections.cut();
        for call in calls {
            call.await.expect("no panic").expect_err("it was cut");
        }
        until(async || running().await == 0 && connections.open() == 0).await;
        let mut late = TcpStream::connect(address).await.expect("the system accepts it");
        assert!(matches!(late.read(&mut [0]).await, Ok(0) | Err(_)), "for ever");
    }

    #[tokio::test]
    async fn connections_send_at_once_and_are_watched() {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let _client = TcpStream::connect(listener.local_addr().expect("an address")).await.expect("a connection");
        let mut incoming = LimitedIncoming::new(listener, 1);
        let io = futures_util::StreamExt::next(&mut incoming).await.expect("no end").expect("a connection");
        let socket = SockRef::from(&io.stream);
        assert!(socket.tcp_nodelay().expect("an option") && socket.keepalive().expect("an option"));
        assert_eq!(io.connect_info().remote_addr(), io.stream.peer_addr().ok());
    }
}
