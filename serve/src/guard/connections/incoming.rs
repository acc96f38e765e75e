//! Incoming connections, with a limit on their number, without Nagle's delay, and with TCP keepalive.
//!
//! A stream of TCP connections for [`tonic::transport::Server`]. [`Connections`] decides whether a new connection is
//! accepted and which idle connection it replaces. A refused connection is closed at once. A failure to accept, for
//! example because the system is out of file descriptors, is logged and does not end the stream. A cut connection ends
//! whether it reads or writes.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use futures_util::{FutureExt, Stream};
use socket2::{SockRef, TcpKeepalive};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{Sleep, sleep};
use tonic::transport::server::Connected;

use crate::guard::connections::origin::{Link, Origin};
use crate::guard::connections::{ConnectionLimits, Connections, Seat};

/// TCP keepalive: the silence before the first probe, and the interval between probes.
const KEEPALIVE: (Duration, Duration) = (Duration::from_secs(60), Duration::from_secs(10));
/// Time for a connection to send its first bytes. A silent connection would take the place of a real caller.
const GREETING: Duration = Duration::from_secs(10);
/// The number of these bytes: the preface of HTTP/2. Every request of HTTP/1.1 with a host is at least as long.
const GREETING_BYTES: usize = 24;
/// The pause after the system could not accept a connection.
const RECOVERY: Duration = Duration::from_millis(50);

/// Accepts connections within the limits. The stream never ends.
pub struct LimitedIncoming {
    listener: TcpListener,
    connections: Connections,
    limits: ConnectionLimits,
    greeting: Duration,
    /// While set, no connection is accepted.
    recovery: Option<Pin<Box<Sleep>>>,
}

impl LimitedIncoming {
    /// Accepts connections of the listener within the limits.
    #[must_use]
    pub fn new(listener: TcpListener, limits: ConnectionLimits) -> Self {
        Self { listener, connections: Connections::default(), limits, greeting: GREETING, recovery: None }
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
                Ok((stream, remote)) => {
                    if let Some(seat) = self.connections.enter(Origin::of(remote.ip()), &self.limits) {
                        // Both options are best effort: a connection works without them.
                        let _ = stream.set_nodelay(true);
                        let keepalive = TcpKeepalive::new().with_time(KEEPALIVE.0).with_interval(KEEPALIVE.1);
                        let _ = SockRef::from(&stream).set_tcp_keepalive(&keepalive);
                        let greeting = Some((Box::pin(sleep(self.greeting)), GREETING_BYTES));
                        return Poll::Ready(Some(Ok(LimitedIo { stream, remote, seat, greeting })));
                    }
                }
                Err(error) if is_of_connection(&error) => {}
                Err(error) => {
                    tracing::warn!(error = &error as &dyn std::error::Error, "cannot accept a connection");
                    self.recovery = Some(Box::pin(sleep(RECOVERY)));
                }
            }
        }
    }
}

/// Whether only this connection failed, so that the next may be accepted at once.
fn is_of_connection(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset)
}

/// A connection, which counts as open until it is dropped.
pub struct LimitedIo {
    stream: TcpStream,
    remote: SocketAddr,
    seat: Seat,
    /// The deadline of the first bytes, and how many of them are missing.
    greeting: Option<(Pin<Box<Sleep>>, usize)>,
}

impl Connected for LimitedIo {
    type ConnectInfo = Link;

    fn connect_info(&self) -> Link {
        Link { remote: Some(self.remote), line: Arc::clone(&self.seat.line) }
    }
}

impl LimitedIo {
    /// Fails if the connection is cut. Reads and writes both check this, because either may never happen.
    fn go_on(&self, context: &Context<'_>) -> io::Result<()> {
        if self.seat.line.is_cut(context.waker()) {
            return Err(io::Error::new(io::ErrorKind::ConnectionAborted, "the server closed the connection"));
        }
        Ok(())
    }
}

impl AsyncRead for LimitedIo {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, to: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        self.go_on(context)?;
        let before = to.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(context, to);
        if let Some((end, bytes_left)) = &mut self.greeting {
            *bytes_left = bytes_left.saturating_sub(to.filled().len() - before);
            if *bytes_left == 0 {
                self.greeting = None;
            } else if read.is_pending() {
                ready!(end.poll_unpin(context));
                return Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "no request came in time")));
            }
        }
        read
    }
}

impl AsyncWrite for LimitedIo {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, from: &[u8]) -> Poll<io::Result<usize>> {
        self.go_on(context)?;
        Pin::new(&mut self.stream).poll_write(context, from)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        from: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.go_on(context)?;
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
    use crate::guard::limits::{Admission, Limits};
    use crate::guard::methods::Methods;
    use crate::guard::trial::{HELD, Tardy, client, http, router, slow, until};
    use std::sync::atomic::Ordering;
    use std::time::Instant;
    use tokio::io::AsyncReadExt;
    use tonic::service::Routes;
    use tonic::transport::Server;

    fn room(most: usize) -> ConnectionLimits {
        ConnectionLimits { most, of_one: most, idle: Duration::from_secs(60) }
    }

    async fn limited(most: usize) -> (SocketAddr, Connections, Tardy) {
        limited_for(most, GREETING).await
    }

    async fn limited_for(most: usize, greeting: Duration) -> (SocketAddr, Connections, Tardy) {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let mut incoming = LimitedIncoming::new(listener, room(most));
        incoming.greeting = greeting;
        let (connections, tardy) = (incoming.connections(), Tardy::default());
        let admission = Admission::new(&Limits::of_cores(1));
        let routes = Routes::from(admission.around(router(&tardy), &Methods::default()));
        tokio::spawn(Server::builder().accept_http1(true).add_routes(routes).serve_with_incoming(incoming));
        (address, connections, tardy)
    }

    #[tokio::test]
    async fn idle_connections_make_room_and_busy_ones_do_not() {
        let (address, connections, tardy) = limited(3).await;
        let mut busy = client(address).await;
        let call = tokio::spawn(async move { (busy.ask(slow(HELD)).await, busy) });
        until(async || tardy.running.load(Ordering::SeqCst) == 1).await;
        // Far more connections than the limit, which send the preface and nothing else.
        let mut idle = Vec::new();
        for _ in 0..20 {
            let mut stream = TcpStream::connect(address).await.expect("a connection");
            tokio::io::AsyncWriteExt::write_all(&mut stream, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
                .await
                .expect("a greeting");
            idle.push(stream);
        }
        assert!(http(address, "/v1/plain", "").await.ends_with("plain"), "who comes is served");
        until(async || connections.closed_idle() >= 19).await;
        for stream in &mut idle[..18] {
            let mut said = Vec::new();
            let begun = Instant::now();
            let _ = stream.read_to_end(&mut said).await;
            assert!(begun.elapsed() < Duration::from_secs(1), "closed at once");
        }
        assert_eq!(connections.refused(), 0);
        tardy.released.send_replace(true);
        let (answer, mut busy) = call.await.expect("no panic");
        answer.expect("a call that runs is not cut");
        busy.ask(slow(0)).await.expect("who made calls keeps the connection");
    }

    #[tokio::test]
    async fn connections_beyond_the_limit_are_closed_at_once_where_all_are_busy() {
        let (address, connections, tardy) = limited(3).await;
        let mut calls = Vec::new();
        for _ in 0..3 {
            let mut client = client(address).await;
            calls.push(tokio::spawn(async move { client.ask(slow(HELD)).await }));
        }
        until(async || tardy.running.load(Ordering::SeqCst) == 3).await;
        for refused in 1..=20 {
            let begun = Instant::now();
            let mut four = TcpStream::connect(address).await.expect("the system accepts it");
            assert!(matches!(four.read(&mut [0]).await, Ok(0) | Err(_)), "closed");
            assert!(begun.elapsed() < Duration::from_secs(1), "at once");
            assert_eq!((connections.open(), connections.refused()), (3, refused));
        }
        tardy.released.send_replace(true);
        for call in calls {
            call.await.expect("no panic").expect("who holds a connection is served");
        }
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
        let mut incoming = LimitedIncoming::new(listener, room(1));
        let io = futures_util::StreamExt::next(&mut incoming).await.expect("no end").expect("a connection");
        let socket = SockRef::from(&io.stream);
        assert!(socket.tcp_nodelay().expect("an option") && socket.keepalive().expect("an option"));
        assert_eq!(io.connect_info().remote, io.stream.peer_addr().ok());
    }
}
