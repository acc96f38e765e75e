//! Limits: how much a server does at once, and what it says beyond that.
//!
//! [`Limits`] are the numbers, [`Admission`] keeps those of calls, [`crate::guard::connections`] those of connections;
//! sizes of requests and answers are kept where they are read and made. Each [`Pool`] has places of its own, so that
//! calls that wait for peers cannot keep out those that they wait for. Of each, one caller ([`Origin`]) has a share at
//! most, whatever is free: so the others find places when it keeps its own busy. Who finds no place waits, callers side
//! by side and the calls of each in order; who waits too long, or finds no room to wait, is refused.
//!
//! A refusal costs about as much as a small answer, so a server that refuses all that is too much does nothing else.
//! Therefore more calls may wait than one caller sends over some connections ([`Limits::streams`] over each): it holds
//! the others back itself, as HTTP/2 has it, and as HTTP/1.1 does in any case. And who is refused in the pool `links`
//! hears so after a while alone, so that one who asks again at once does not ask often. Servers and clerks, in the
//! other pools, turn to a replica, and hear at once that they must.
//!
//! Promises: at most `calls` of a pool run and at most `queue` wait; a place is held until the answer's body has ended,
//! and given back when the caller goes away, or does not take its answer ([`crate::guard::limits::pace`]). Memory:
//! `calls` times `request_bytes` and `answer_bytes`, in the worst case, for each of the pools `links` and `ask`. Costs
//! of a call: four atomic operations, a lock, and an allocation for the body.

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
use crate::guard::methods::{Methods, Pool};
use crate::guard::refusal::{answer, is_grpc};
use crate::protocol::status::{Reason, refuse};

/// How many refusals may be on hold for each call that may wait; those beyond are said at once.
const HOLDS: usize = 4;

/// How much a server does at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Items of one request.
    pub batch: usize,
    /// Bytes of one answer, or of one message of a stream.
    pub answer_bytes: usize,
    /// Bytes of one request.
    pub request_bytes: usize,
    /// Calls that run at once, in each of the pools `links` and `ask`; a quarter of it are images on their way.
    pub calls: usize,
    /// Calls of a pool that wait for a place.
    pub queue: usize,
    /// How long they wait, if they want to wait that long.
    pub queue_wait: Duration,
    /// How long a request may be on its way, and an answer that is ready may wait for its caller.
    pub stall: Duration,
    /// Open connections; also calls that wait for something to happen.
    pub connections: usize,
    /// How long a connection may have no calls.
    pub idle: Duration,
    /// One caller has one in so many of the places, of the calls that wait and of the connections, at most.
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
    /// Limits for a machine of so many cores: 32 calls at once for 2, 1,024 for 64. A call keeps a core busy for a part
    /// of its time alone, since it waits for peers, for images on disk and for its caller.
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
            sharers: 2,
        }
    }

    /// What one caller may have of so many.
    #[must_use]
    pub fn share(&self, of: usize) -> usize {
        of.div_ceil(self.sharers.max(1))
    }

    /// Calls at once over one connection; who has more keeps them until others have ended. Some more than there are
    /// places, so that none is idle while the next call is on its way.
    #[must_use]
    pub fn streams(&self) -> u32 {
        u32::try_from(4 * self.calls).unwrap_or(u32::MAX).clamp(128, 1024)
    }

    /// What one call may ask for.
    #[must_use]
    pub fn bounds(&self) -> Bounds {
        Bounds { batch: self.batch, values: self.answer_bytes / size_of::<u64>() }
    }
}

/// What one call may ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// UIDs or URLs in a request.
    pub batch: usize,
    /// Links, times or other values of eight bytes in an answer, or in one message of a stream.
    pub values: usize,
}

impl Default for Bounds {
    /// No bounds, as for questions within a process.
    fn default() -> Self {
        Self { batch: usize::MAX, values: usize::MAX }
    }
}

impl Bounds {
    /// Whether a request may have so many items.
    ///
    /// # Errors
    /// `BATCH_TOO_LARGE`.
    pub fn admit(&self, given: usize) -> Result<(), Status> {
        if given <= self.batch {
            return Ok(());
        }
        let (given, most) = (given as u64, self.batch as u64);
        let message = format!("{given} items in one call (at most {most}); split the call");
        Err(refuse(Reason::BatchTooLarge, message, &[("given", given), ("most", most)]))
    }

    /// Whether an answer may have so many values.
    ///
    /// # Errors
    /// `ANSWER_TOO_LARGE`.
    pub fn admit_values(&self, given: usize) -> Result<(), Status> {
        if given <= self.values {
            return Ok(());
        }
        let most = self.values as u64;
        let message = format!("the answer has more than {most} values; ask for fewer UIDs, or set a limit");
        Err(refuse(Reason::AnswerTooLarge, message, &[("most", most)]))
    }
}

/// What a pool does at the moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Load {
    /// The pool.
    pub pool: Pool,
    /// Calls that have a place.
    pub running: usize,
    /// Calls that wait for one.
    pub waiting: usize,
    /// Calls refused since the start.
    pub refused: u64,
    /// Answers given up since the start, because nobody read them.
    pub given_up: u64,
}

/// Lets as many calls run as there are places. Clones share the places.
#[derive(Clone)]
pub struct Admission(Arc<[PoolPermits; Pool::COUNTED.len()]>);

struct PoolPermits {
    pool: Pool,
    calls: usize,
    queue: usize,
    wait_max: Duration,
    stall: Duration,
    /// What one caller may have of `calls` and of `queue`.
    share: (usize, usize),
    /// Of callers that have calls.
    shares: Mutex<HashMap<Origin, Weak<Share>>>,
    answers: Answers,
    run: Arc<Semaphore>,
    wait: Semaphore,
    /// Refusals that may be on hold.
    hold: Semaphore,
    refused: AtomicU64,
}

/// What one caller may still have.
struct Share {
    run: Arc<Semaphore>,
    wait: Semaphore,
}

/// A place of a call, among the extensions of its request. What goes on for a call after its caller may have gone away,
/// as work in a thread does, takes a clone along, so that it counts until it is done.
#[derive(Clone)]
pub struct Permit(#[expect(dead_code, reason = "held, not read")] Arc<Held>);

/// The place, and its part of the caller's share.
type Held = (OwnedSemaphorePermit, OwnedSemaphorePermit, Arc<Share>);

/// What a call holds until its answer has ended.
struct Holds {
    _connection: Option<Busy>,
    _place: Option<Permit>,
}

impl Attendant for Holds {}

impl Admission {
    /// Places by the limits.
    #[must_use]
    pub fn new(limits: &Limits) -> Self {
        // More would be refused by the semaphore, and is no limit.
        let bounded = |places: usize| places.min(Semaphore::MAX_PERMITS);
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

    /// Lets calls of the router's methods run when there is a place for them.
    pub fn around(&self, router: Router, methods: &Methods) -> Router {
        router.layer(from_fn_with_state((self.clone(), methods.clone()), admit))
    }

    /// What the pools do at the moment.
    #[must_use]
    pub fn loads(&self) -> [Load; Pool::COUNTED.len()] {
        self.0.each_ref().map(|places| Load {
            pool: places.pool,
            running: places.calls - places.run.available_permits(),
            waiting: places.queue - places.wait.available_permits(),
            refused: places.refused.load(Ordering::Relaxed),
            given_up: places.answers.given_up(),
        })
    }

    /// Gives up answers that nobody reads. To be called now and then.
    pub fn give_up(&self) {
        self.0.iter().for_each(|places| places.answers.give_up(places.stall));
    }

    fn places(&self, pool: Pool) -> Option<&PoolPermits> {
        self.0.iter().find(|places| places.pool == pool)
    }
}

impl PoolPermits {
    /// A place, at once or after a while; none where too many wait, or for too long.
    async fn enter(&self, origin: Origin) -> Option<Permit> {
        let share = self.share_of(origin);
        // Fair: a place that is given back goes to who waits, not to who comes by.
        if let Ok(own) = Arc::clone(&share.run).try_acquire_owned()
            && let Ok(place) = Arc::clone(&self.run).try_acquire_owned()
        {
            return Some(Permit(Arc::new((place, own, share))));
        }
        let waited = async {
            let (_of_all, _of_one) = (self.wait.try_acquire().ok()?, share.wait.try_acquire().ok()?);
            let place = async {
                let own = Arc::clone(&share.run).acquire_owned().await.ok()?;
                Some((Arc::clone(&self.run).acquire_owned().await.ok()?, own))
            };
            timeout(self.wait_max, place).await.ok().flatten()
        };
        let begun = Instant::now();
        let entered = waited.await;
        if entered.is_none() {
            if let Ok(_hold) = self.hold.try_acquire() {
                sleep_until(begun + self.wait_max).await;
            }
            self.refused.fetch_add(1, Ordering::Relaxed);
        }
        entered.map(|(place, own)| Permit(Arc::new((place, own, share))))
    }

    fn share_of(&self, origin: Origin) -> Arc<Share> {
        let mut shares = self.shares.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(share) = shares.get(&origin).and_then(Weak::upgrade) {
            return share;
        }
        // Those of callers that have gone go before the list grows.
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
        return attended(next.run(request).await, Holds { _connection: connection, _place: None });
    };
    let Some(place) = places.enter(Origin::of_call(request.extensions())).await else {
        let (calls, queue) = (places.calls, places.queue);
        let message = format!("too many calls: {calls} run, {queue} may wait for {:?}; retry later", places.wait_max);
        let status = refuse(Reason::Overloaded, message, &[]);
        return answer(status, is_grpc(request.headers()));
    };
    request.extensions_mut().insert(place.clone());
    let answered = next.run(timely(request, places.stall)).await;
    places.answers.watched(attended(answered, Holds { _connection: connection, _place: Some(place) }))
}

#[cfg(test)]
mod tests;
