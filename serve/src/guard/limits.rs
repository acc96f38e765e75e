//! Limits: how many calls run and wait, and when calls are refused.
//!
//! [`Limits`] has the numbers. [`Admission`] enforces the limits on calls, [`crate::guard::connections`] the limits on
//! connections. Sizes of requests and answers are checked where they are read and made. Each [`Pool`] has separate
//! permits, so that calls that wait for peers cannot block the calls they wait for. One caller ([`Origin`]) has at most
//! a share of each limit, even if the rest is free, so that other callers find permits. A call without a permit waits.
//! The waiting calls of one caller are in order; callers wait side by side. A call is refused if the queue is full or
//! the wait is too long.
//!
//! A refusal costs about as much as a small answer, so a server that refuses every excess call would do nothing else.
//! Back-pressure avoids that: the queue is longer than what one caller can send over a few connections
//! ([`Limits::streams`] over each), because HTTP/2 and HTTP/1.1 make the caller hold back the rest. In the pool `links`
//! a refusal is delayed, so that a caller that retries at once does not retry often. In the other pools the callers are
//! servers and clerks: they are refused at once, because they turn to a replica.
//!
//! Promises: at most `calls` of a pool run and at most `queue` wait. A permit is held until the answer's body ends, the
//! caller goes away, or the caller reads too slowly (`crate::guard::limits::pace`). Memory in the worst case:
//! `memory` ([`crate::guard::memory`]), and `calls` times the sum of `request_bytes` and `answer_bytes`, for each of
//! the pools `links` and `ask`. Costs of a call: four atomic operations, a lock, and an allocation for the body.

mod pace;

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::thread::available_parallelism;
use std::time::Duration;

use axum::Router;
use axum::extract::{Request, State};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::Response;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, sleep_until, timeout};
use tonic::Status;

use crate::guard::attend::{Attendant, attended};
use crate::guard::connections::origin::{Link, Origin};
use crate::guard::connections::{Busy, ConnectionLimits};
use crate::guard::limits::pace::{Answers, timely};
use crate::guard::memory::{Budget, Charges, of_call};
use crate::guard::methods::{Methods, Pool};
use crate::protocol::refusal::{answer, is_grpc};
use crate::protocol::status::{Reason, refuse};

/// Refusals that may be delayed for each call that may wait. Further refusals are sent at once.
const HOLDS: usize = 4;

/// The limits of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Items of one request.
    pub batch: usize,
    /// Bytes of one answer, or of one message of a stream.
    pub answer_bytes: usize,
    /// Bytes of one request.
    pub request_bytes: usize,
    /// Concurrent calls in each of the pools `links` and `ask`; the pool `fetch` has a quarter of this number.
    pub calls: usize,
    /// Calls of a pool that wait for a permit.
    pub queue: usize,
    /// How long a call waits for a permit.
    pub queue_wait: Duration,
    /// How long a request may take to arrive, and how long an answer may wait for its caller.
    pub stall: Duration,
    /// Open connections; also concurrent calls of the pool `watch`.
    pub connections: usize,
    /// How long a connection may have no calls.
    pub idle: Duration,
    /// The bytes of memory that all calls may hold together. Half is for answers, and one call may have half of that.
    /// The other half is for the work in cells.
    pub memory: usize,
    /// One caller may have at most one `sharers`-th of the permits, of the waiting calls and of the connections.
    pub sharers: usize,
}

impl From<&Limits> for ConnectionLimits {
    fn from(limits: &Limits) -> Self {
        Self { most: limits.connections, of_one: limits.share(limits.connections), idle: limits.idle }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self::of_cores(available_parallelism().map_or(1, usize::from))
    }
}

impl Limits {
    /// Limits for a machine with this many cores: 32 concurrent calls for 2 cores, 1,024 for 64 cores. A call uses a
    /// core only part of the time, because it waits for peers, for images on disk and for its caller.
    #[must_use]
    pub fn of_cores(cores: usize) -> Self {
        let calls = 16 * cores.clamp(1, 256);
        Self {
            batch: 100_000,
            answer_bytes: 16 << 20,
            request_bytes: 16 << 20,
            calls,
            queue: 32 * calls,
            queue_wait: Duration::from_secs(1),
            stall: Duration::from_secs(30),
            connections: (32 * calls).clamp(1024, 1 << 14),
            idle: Duration::from_secs(300),
            memory: calls * (16 << 20),
            sharers: 2,
        }
    }

    /// The share of one caller in `of`.
    #[must_use]
    pub fn share(&self, of: usize) -> usize {
        of.div_ceil(self.sharers.max(1))
    }

    /// Concurrent calls over one connection; the caller holds back further calls. There are more streams than permits,
    /// so that no permit is idle while the next call travels.
    #[must_use]
    pub fn streams(&self) -> u32 {
        u32::try_from(4 * self.calls).unwrap_or(u32::MAX).clamp(128, 1024)
    }

    /// The memory for answers, and the memory for work in cells.
    #[must_use]
    pub fn budgets(&self) -> [Budget; 2] {
        let half = self.memory / 2;
        [half / 2, half].map(|of_call| Budget::new(half, of_call, self.queue_wait))
    }

    /// The bounds of one call.
    #[must_use]
    pub fn bounds(&self) -> Bounds {
        Bounds { batch: self.batch, values: self.answer_bytes / size_of::<u64>() }
    }
}

/// The bounds of one call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// UIDs or URLs in a request.
    pub batch: usize,
    /// Links, times or other values of eight bytes in an answer, or in one message of a stream.
    pub values: usize,
}

impl Default for Bounds {
    /// No bounds, for questions within a process.
    fn default() -> Self {
        Self { batch: usize::MAX, values: usize::MAX }
    }
}

impl Bounds {
    /// Checks the number of items in a request.
    ///
    /// # Errors
    /// `BATCH_TOO_LARGE`.
    pub fn admit(&self, count: usize) -> Result<(), Status> {
        if count <= self.batch {
            return Ok(());
        }
        let (count, most) = (count as u64, self.batch as u64);
        let message = format!("{count} items in one call (at most {most}); split the call");
        Err(refuse(Reason::BatchTooLarge, message, &[("given", count), ("most", most)]))
    }

    /// Checks the number of values in an answer.
    ///
    /// # Errors
    /// `ANSWER_TOO_LARGE`.
    pub fn admit_values(&self, count: usize) -> Result<(), Status> {
        if count <= self.values {
            return Ok(());
        }
        let most = self.values as u64;
        let message = format!("the answer has more than {most} values; ask for fewer UIDs, or set a limit");
        Err(refuse(Reason::AnswerTooLarge, message, &[("most", most)]))
    }
}

/// The load of a pool at the moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Load {
    /// The pool.
    pub pool: Pool,
    /// Calls that have a permit.
    pub running: usize,
    /// Calls that wait for a permit.
    pub waiting: usize,
    /// Calls refused since the start.
    pub refused: u64,
    /// Answers dropped since the start because the caller did not read them.
    pub given_up: u64,
}

/// Lets as many calls run as there are permits. Clones share the permits.
#[derive(Clone)]
pub struct Admission(Arc<[PoolPermits; Pool::COUNTED.len()]>);

struct PoolPermits {
    pool: Pool,
    calls: usize,
    queue: usize,
    wait_max: Duration,
    stall: Duration,
    /// The share of one caller in `calls` and in `queue`.
    share: (usize, usize),
    /// The shares of callers that have calls.
    shares: Mutex<HashMap<Origin, Weak<Share>>>,
    answers: Answers,
    run: Arc<Semaphore>,
    wait: Semaphore,
    /// Permits for delayed refusals.
    hold: Semaphore,
    refused: AtomicU64,
}

/// The permits that one caller has left.
struct Share {
    run: Arc<Semaphore>,
    wait: Semaphore,
}

/// The permit of a call, in the extensions of its request. Work that may outlive the caller, such as work in a thread,
/// keeps a clone, so that the work counts until it is done.
#[derive(Clone)]
pub struct Permit(#[expect(dead_code, reason = "held, not read")] Arc<PermitPair>);

/// The permit of the pool and the permit of the caller's share.
type PermitPair = (OwnedSemaphorePermit, OwnedSemaphorePermit, Arc<Share>);

/// The state that a call holds until its answer has ended.
struct Holds {
    _connection: Option<Busy>,
    _permit: Option<Permit>,
    _charges: Option<Arc<Charges>>,
}

impl Attendant for Holds {}

impl Admission {
    /// Permits according to the limits.
    #[must_use]
    pub fn new(limits: &Limits) -> Self {
        // The semaphore refuses larger numbers, which do not limit anything.
        let bounded = |permits: usize| permits.min(Semaphore::MAX_PERMITS);
        Self(Arc::new(Pool::COUNTED.map(|pool| {
            let (calls, queue) = match pool {
                Pool::Fetch => (limits.calls.div_ceil(4), limits.queue),
                Pool::Watch => (limits.connections, 0),
                Pool::Free | Pool::Links | Pool::Ask => (limits.calls, limits.queue),
            };
            let (calls, queue) = (bounded(calls), bounded(queue));
            PoolPermits {
                pool,
                calls,
                queue,
                wait_max: limits.queue_wait,
                stall: limits.stall,
                share: (limits.share(calls), limits.share(queue)),
                shares: Mutex::default(),
                answers: Answers::default(),
                run: Arc::new(Semaphore::new(calls)),
                wait: Semaphore::new(queue),
                hold: Semaphore::new(if pool == Pool::Links { bounded(queue.saturating_mul(HOLDS)) } else { 0 }),
                refused: AtomicU64::new(0),
            }
        })))
    }

    /// Lets a call of the router run when it gets a permit.
    pub fn around(&self, router: Router, methods: &Methods) -> Router {
        router.layer(from_fn_with_state((self.clone(), methods.clone()), admit))
    }

    /// The loads of the pools at the moment.
    #[must_use]
    pub fn loads(&self) -> [Load; Pool::COUNTED.len()] {
        self.0.each_ref().map(|permits| Load {
            pool: permits.pool,
            running: permits.calls - permits.run.available_permits(),
            waiting: permits.queue - permits.wait.available_permits(),
            refused: permits.refused.load(Ordering::Relaxed),
            given_up: permits.answers.given_up(),
        })
    }

    /// Drops answers that nobody reads. The server must call this periodically.
    pub fn give_up(&self) {
        self.0.iter().for_each(|permits| permits.answers.give_up(permits.stall));
    }

    fn places(&self, pool: Pool) -> Option<&PoolPermits> {
        self.0.iter().find(|permits| permits.pool == pool)
    }
}

impl PoolPermits {
    /// Waits for a permit; `None` if the queue is full or the wait was too long.
    async fn enter(&self, origin: Origin) -> Option<Permit> {
        let share = self.share_of(origin);
        // Fair: a returned permit goes to a waiting call, not to a new call.
        if let Ok(of_origin) = Arc::clone(&share.run).try_acquire_owned()
            && let Ok(of_pool) = Arc::clone(&self.run).try_acquire_owned()
        {
            return Some(Permit(Arc::new((of_pool, of_origin, share))));
        }
        let waiting = async {
            let (_of_all, _of_one) = (self.wait.try_acquire().ok()?, share.wait.try_acquire().ok()?);
            let both = async {
                let of_origin = Arc::clone(&share.run).acquire_owned().await.ok()?;
                Some((Arc::clone(&self.run).acquire_owned().await.ok()?, of_origin))
            };
            timeout(self.wait_max, both).await.ok().flatten()
        };
        let begun = Instant::now();
        let entered = waiting.await;
        if entered.is_none() {
            if let Ok(_hold) = self.hold.try_acquire() {
                sleep_until(begun + self.wait_max).await;
            }
            self.refused.fetch_add(1, Ordering::Relaxed);
        }
        entered.map(|(of_pool, of_origin)| Permit(Arc::new((of_pool, of_origin, share))))
    }

    fn share_of(&self, origin: Origin) -> Arc<Share> {
        let mut shares = self.shares.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(share) = shares.get(&origin).and_then(Weak::upgrade) {
            return share;
        }
        // The shares of callers without calls are removed before the map grows.
        if shares.len() == shares.capacity() {
            shares.retain(|_, share| share.strong_count() > 0);
        }
        let (calls, queue) = self.share;
        let share = Arc::new(Share { run: Arc::new(Semaphore::new(calls)), wait: Semaphore::new(queue) });
        shares.insert(origin, Arc::downgrade(&share));
        share
    }
}

async fn admit(State((admission, methods)): State<(Admission, Methods)>, mut request: Request, next: Next) -> Response {
    let connection = Link::of(request.extensions()).map(|link| link.line.busy());
    let pool = methods.of(request.uri().path()).pool;
    let Some(places) = admission.places(pool) else {
        return attended(next.run(request).await, Holds { _connection: connection, _permit: None, _charges: None });
    };
    let Some(permit) = places.enter(Origin::of_call(request.extensions())).await else {
        let (calls, queue) = (places.calls, places.queue);
        let message = format!("too many calls: {calls} run, {queue} may wait for {:?}; retry later", places.wait_max);
        let status = refuse(Reason::Overloaded, message, &[]);
        return answer(status, is_grpc(request.headers()));
    };
    request.extensions_mut().insert(permit.clone());
    let (answered, charges) = of_call(next.run(timely(request, places.stall))).await;
    let holds = Holds { _connection: connection, _permit: Some(permit), _charges: Some(charges) };
    places.answers.watched(attended(answered, holds))
}

#[cfg(test)]
mod tests;
