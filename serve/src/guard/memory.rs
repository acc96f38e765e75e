//! The memory of calls. The server has a [`Budget`], and each call is charged against it.
//!
//! The memory that a call needs depends on its question: a page may have three links, a URL ten million. A [`Charge`]
//! belongs to one call. Its first [`FREE`] bytes are free, so that small calls cost nothing here. Further bytes are
//! taken from the budget, and all of them are given back when the charge is dropped. Code that fetches or makes
//! something large charges for it before, or as soon as the size is known. [`Charge::cover`] charges for memory that is
//! needed at the moment, [`Charge::keep`] for memory that stays until the call ends. If other calls hold the budget, a
//! charge waits for a while and is then refused with `OVERLOADED`: a retry may succeed. A call that needs more than the
//! limit of one call is refused at once with `ANSWER_TOO_LARGE`: a retry never succeeds.
//!
//! An answer is in memory until its caller has read it. `of_call` therefore keeps the charges of a call until its
//! answer has ended, and [`Charge::settle`] leaves of a charge the bytes of the answer alone.
//!
//! Promises: all calls together hold at most the budget, and [`FREE`] bytes each. Sizes are estimates of the memory
//! that this crate allocates, without the overhead of allocators. Cost of a call that stays below [`FREE`]: a lock.

use std::future::Future;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;
use tonic::Status;

use crate::protocol::status::{KEPT, Reason, refuse};

/// The number of bytes of one permit.
const UNIT: usize = 64 << 10;
/// The number of bytes that a call may hold without a charge to the budget.
pub const FREE: usize = 1 << 20;

tokio::task_local! {
    /// The charges of the current call.
    static CHARGES: Arc<Charges>;
}

/// The charges of one call. They are given back when this is dropped.
#[derive(Debug, Default)]
pub(crate) struct Charges(Mutex<Vec<Arc<Charge>>>);

/// Runs a call. Also returns its charges, to be kept until its answer has ended.
pub(crate) async fn of_call<F: Future>(call: F) -> (F::Output, Arc<Charges>) {
    let charges = Arc::<Charges>::default();
    (CHARGES.scope(charges.clone(), call).await, charges)
}

/// The memory that calls share. Clones of a budget share the same memory. The default has no bound, for questions
/// within a process.
///
/// ```
/// use std::time::Duration;
/// use webstrata_serve::guard::memory::{Budget, FREE};
///
/// # tokio::runtime::Runtime::new().expect("a runtime").block_on(async {
/// // 16 MiB for all calls, 8 MiB for one call, and no waiting.
/// let budget = Budget::new(16 << 20, 8 << 20, Duration::ZERO);
/// let call = budget.charge();
/// call.keep(4 << 20).await?;
/// assert!(budget.held_bytes() >= (4 << 20) - FREE);
/// assert!(call.keep(32 << 20).await.is_err());
/// drop(call);
/// assert_eq!(budget.held_bytes(), 0);
/// # Ok::<(), tonic::Status>(())
/// # }).expect("charges");
/// ```
#[derive(Clone, Debug, Default)]
pub struct Budget(Option<Arc<Pot>>);

#[derive(Debug)]
struct Pot {
    units: Arc<Semaphore>,
    units_max: usize,
    /// The most units that one call may hold.
    call_units_max: usize,
    wait: Duration,
    /// Whether a call took or gave back something since [`Budget::was_used`] was last asked.
    used: AtomicBool,
}

impl Budget {
    /// A budget of `bytes`, of which one call may hold at most `call_bytes`. If the budget is taken, a call waits at
    /// most `wait`.
    #[must_use]
    pub fn new(bytes: usize, call_bytes: usize, wait: Duration) -> Self {
        let most = Semaphore::MAX_PERMITS.min(u32::MAX as usize);
        let units_max = bytes.div_ceil(UNIT).clamp(1, most);
        let call_units_max = call_bytes.div_ceil(UNIT).clamp(1, units_max);
        let (units, used) = (Arc::new(Semaphore::new(units_max)), AtomicBool::new(false));
        Self(Some(Arc::new(Pot { units, units_max, call_units_max, wait, used })))
    }

    /// The charge of a new call, which holds no memory yet. Within [`of_call`], it lasts as long as the call.
    pub(crate) fn charge_of_call(&self) -> Arc<Charge> {
        let charge = Arc::new(self.charge());
        // Outside a call of a server, nobody waits for an answer.
        let _ = CHARGES.try_with(|charges| {
            charges.0.lock().unwrap_or_else(PoisonError::into_inner).push(charge.clone());
        });
        charge
    }

    /// The charge of a new call, which holds no memory yet.
    #[must_use]
    pub fn charge(&self) -> Charge {
        Charge { budget: self.clone(), held: Mutex::default() }
    }

    /// A charge of `bytes` at once, or of the whole budget if `bytes` is larger. Waits without a time limit. Only for
    /// work that waits for nothing else.
    pub(crate) async fn at_most(&self, bytes: usize) -> Charge {
        let charge = self.charge();
        if let (Some(pot), true) = (&self.0, bytes > FREE) {
            let units = bytes.div_ceil(UNIT).min(pot.units_max);
            // The semaphore is never closed.
            let permit = pot.units.clone().acquire_many_owned(u32::try_from(units).unwrap_or(u32::MAX)).await.ok();
            pot.used.store(true, Ordering::Relaxed);
            *charge.lock() = Held { permit, kept: bytes };
        }
        charge
    }

    /// The number of bytes that calls hold at the moment.
    #[must_use]
    pub fn held_bytes(&self) -> usize {
        self.0.as_ref().map_or(0, |pot| (pot.units_max - pot.units.available_permits()) * UNIT)
    }

    /// Whether a call took or gave back memory since the last call of this method.
    #[must_use]
    pub fn was_used(&self) -> bool {
        self.0.as_ref().is_some_and(|pot| pot.used.swap(false, Ordering::Relaxed))
    }
}

/// The memory that one call holds of a budget.
#[derive(Debug, Default)]
pub struct Charge {
    budget: Budget,
    held: Mutex<Held>,
}

#[derive(Debug, Default)]
struct Held {
    permit: Option<OwnedSemaphorePermit>,
    /// Bytes that stay until the call ends.
    kept: usize,
}

impl Charge {
    fn lock(&self) -> std::sync::MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Charges for `bytes`, in addition to the kept bytes. Successive charges reuse the same memory, so memory that is
    /// needed at different times is charged for once.
    ///
    /// # Errors
    /// `ANSWER_TOO_LARGE` if the call would hold more than one call may; `OVERLOADED` if other calls hold the budget.
    pub async fn cover(&self, bytes: usize) -> Result<(), Status> {
        let Some(pot) = &self.budget.0 else { return Ok(()) };
        let missing = {
            let held = self.lock();
            let units = held.kept.saturating_add(bytes).saturating_sub(FREE).div_ceil(UNIT);
            if units > pot.call_units_max {
                return Err(too_large(pot.call_units_max, held.kept));
            }
            units.saturating_sub(held.permit.as_ref().map_or(0, OwnedSemaphorePermit::num_permits))
        };
        if missing == 0 {
            return Ok(());
        }
        let more = pot.units.clone().acquire_many_owned(u32::try_from(missing).unwrap_or(u32::MAX));
        let Ok(Ok(more)) = timeout(pot.wait, more).await else {
            let most = (pot.units_max * UNIT) >> 20;
            let message =
                format!("other calls hold the {most} MiB of memory that this server has for answers; retry later");
            return Err(refuse(Reason::Overloaded, message, &[]));
        };
        pot.used.store(true, Ordering::Relaxed);
        let mut held = self.lock();
        match &mut held.permit {
            Some(permit) => permit.merge(more),
            none => *none = Some(more),
        }
        Ok(())
    }

    /// Charges for `to` bytes that stay until the call ends, instead of `from` bytes.
    ///
    /// # Errors
    /// See [`Charge::cover`].
    pub async fn change(&self, from: usize, to: usize) -> Result<(), Status> {
        {
            let mut held = self.lock();
            held.kept = held.kept.saturating_sub(from).saturating_add(to);
        }
        self.cover(0).await
    }

    /// Charges for `bytes` alone, which stay until the call ends, and gives back what the charge holds beyond.
    ///
    /// # Errors
    /// See [`Charge::cover`].
    pub async fn settle(&self, bytes: usize) -> Result<(), Status> {
        {
            let mut held = self.lock();
            held.kept = bytes;
            let units = bytes.saturating_sub(FREE).div_ceil(UNIT);
            if let (Some(pot), Some(permit)) = (&self.budget.0, &mut held.permit) {
                drop(permit.split(permit.num_permits().saturating_sub(units)));
                pot.used.store(true, Ordering::Relaxed);
            }
        }
        self.cover(0).await
    }

    /// Charges for `bytes` more, which stay until the call ends.
    ///
    /// # Errors
    /// See [`Charge::cover`].
    pub async fn keep(&self, bytes: usize) -> Result<(), Status> {
        self.lock().kept += bytes;
        self.cover(0).await
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        // The held memory is free from now on.
        if let (Some(pot), Some(permit)) = (&self.budget.0, self.lock().permit.take()) {
            drop(permit);
            pot.used.store(true, Ordering::Relaxed);
        }
    }
}

fn too_large(units_max: usize, kept: usize) -> Status {
    let most = units_max * UNIT + FREE;
    let message = format!(
        "the answer needs more than the {} MiB of memory that a call may have; ask about fewer URLs, a shorter \
         interval or with a limit",
        most >> 20
    );
    refuse(Reason::AnswerTooLarge, message, &[("most", most as u64), (KEPT, kept as u64)])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::status::fits_in_parts;

    const MIB: usize = 1 << 20;

    fn budget() -> Budget {
        Budget::new(8 * MIB, 6 * MIB, Duration::from_millis(20))
    }

    #[tokio::test]
    async fn a_charge_takes_what_is_needed_at_once_and_gives_it_back() {
        let budget = budget();
        let charge = budget.charge();
        charge.cover(FREE).await.unwrap();
        assert_eq!((budget.held_bytes(), budget.was_used()), (0, false));
        charge.cover(3 * MIB).await.unwrap();
        charge.cover(2 * MIB).await.unwrap();
        assert_eq!(budget.held_bytes(), 2 * MIB);
        charge.keep(2 * MIB).await.unwrap();
        charge.cover(3 * MIB).await.unwrap();
        assert_eq!(budget.held_bytes(), 4 * MIB);
        drop(charge);
        assert_eq!((budget.held_bytes(), budget.was_used(), budget.was_used()), (0, true, false));
    }

    #[tokio::test]
    async fn an_answer_is_charged_for_until_its_call_has_ended() {
        let budget = budget();
        let made = async {
            let charge = budget.charge_of_call();
            charge.keep(4 * MIB).await.unwrap();
            charge.cover(2 * MIB).await.unwrap();
            charge.settle(3 * MIB).await.unwrap();
        };
        let ((), charges) = of_call(made).await;
        assert_eq!(budget.held_bytes(), 2 * MIB);
        drop(charges);
        assert_eq!(budget.held_bytes(), 0);
        drop(budget.charge_of_call());
        let charge = budget.charge();
        charge.settle(5 * MIB).await.unwrap();
        charge.settle(0).await.unwrap();
        assert_eq!(budget.held_bytes(), 0);
    }

    #[tokio::test]
    async fn what_never_fits_is_refused_at_once_and_what_does_not_fit_now_after_a_wait() {
        let budget = budget();
        let (one, other) = (budget.charge(), budget.charge());
        one.cover(6 * MIB).await.unwrap();
        let refused = other.cover(8 * MIB).await.unwrap_err();
        assert_eq!(Reason::of(&refused), Some(Reason::AnswerTooLarge));
        assert!(fits_in_parts(&refused));
        let refused = other.cover(5 * MIB).await.unwrap_err();
        assert_eq!(Reason::of(&refused), Some(Reason::Overloaded));
        assert_eq!(budget.held_bytes(), 5 * MIB);
        let waiting = tokio::spawn({
            let budget = Budget(budget.0.clone());
            async move { budget.at_most(100 * MIB).await }
        });
        tokio::task::yield_now().await;
        drop(one);
        let whole = waiting.await.unwrap();
        assert_eq!(budget.held_bytes(), 8 * MIB);
        drop(whole);
        Budget::default().charge().cover(usize::MAX).await.unwrap();
    }

    #[tokio::test]
    async fn a_call_that_keeps_its_memory_is_not_asked_for_ever_smaller_parts() {
        let charge = budget().charge();
        charge.keep(5 * MIB).await.unwrap();
        let refused = charge.cover(3 * MIB).await.unwrap_err();
        assert_eq!((Reason::of(&refused), fits_in_parts(&refused)), (Some(Reason::AnswerTooLarge), false));
        let refused = charge.keep(3 * MIB).await.unwrap_err();
        assert!(!fits_in_parts(&refused));
    }
}
