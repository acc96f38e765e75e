//! Messages between the workers of an analysis: bytes from all to all, and sums of a few numbers.
//!
//! Every worker calls the same functions in the same order. A message from a worker to itself is not copied, and a
//! single worker exchanges nothing. Memory: the messages sent and received.

use super::AnalysisContext;
use std::cell::RefCell;
use std::rc::Rc;
use webstrata_engine::{Error as JobError, Stopped, shuffle, wire};

/// The maximum number of bytes of a record.
const PIECE: usize = 60 << 10;

/// Sends `outgoing[k]` to worker `k`. Returns the bytes that each worker sent to this one, by worker.
pub(super) fn exchange(context: &mut AnalysisContext<'_>, mut outgoing: Vec<Vec<u8>>) -> Result<Vec<Vec<u8>>, Stopped> {
    let (index, peers) = (context.worker.index(), context.worker.peers());
    let my_bytes = std::mem::take(&mut outgoing[index]);
    let mut received: Vec<Vec<u8>> = vec![Vec::new(); peers];
    if peers > 1 {
        let messages = Rc::new(RefCell::new(received));
        let collect = Rc::clone(&messages);
        let (mut to, mut at) = (0, 0);
        shuffle(
            context.worker,
            context.job,
            context.stage,
            move |outbox| {
                while to < peers && at == outgoing[to].len() {
                    outgoing[to] = Vec::new();
                    (to, at) = (to + 1, 0);
                }
                let Some(bytes) = outgoing.get(to) else { return Ok(false) };
                let end = bytes.len().min(at + PIECE);
                let mut key = [0; 16];
                key[..8].copy_from_slice(&(index as u64).to_le_bytes());
                key[8..].copy_from_slice(&(at as u64).to_le_bytes());
                outbox.send(to, &key, &bytes[at..end]);
                at = end;
                Ok(true)
            },
            move |block| {
                let mut kept = Ok(());
                wire::for_each(&block, |mut key, bytes| {
                    let [from, at] = [0; 2].map(|_| u64::from_le_bytes(wire::take_array(&mut key)));
                    let mut all = collect.borrow_mut();
                    let message = usize::try_from(from).ok().and_then(|from| all.get_mut(from));
                    match message.filter(|message| message.len() as u64 == at) {
                        Some(message) => message.extend_from_slice(bytes),
                        None => kept = Err(JobError::Internal("pieces of a message came out of order")),
                    }
                });
                kept
            },
        )?;
        received = messages.take();
    }
    received[index] = my_bytes;
    Ok(received)
}

/// Sums each of the numbers over all workers. The sums are the same on every worker, because they are added in the
/// order of workers.
pub(super) fn sums<const N: usize>(context: &mut AnalysisContext<'_>, values: [f64; N]) -> Result<[f64; N], Stopped> {
    let peers = context.worker.peers();
    let received = exchange(context, vec![to_bytes(&values); peers])?;
    let mut sums = [0.0; N];
    for bytes in &received {
        let numbers: Vec<f64> = from_bytes(bytes);
        sums.iter_mut().zip(numbers).for_each(|(sum, number)| *sum += number);
    }
    Ok(sums)
}

/// A number that can be written as bytes.
pub(super) trait Number: Copy + Default + 'static {
    /// Appends the bytes of this number, the least significant byte first.
    fn put(self, out: &mut Vec<u8>);
    /// Takes the next number from the bytes.
    fn take(bytes: &mut &[u8]) -> Self;
    /// The number of bytes of one number.
    const BYTES: usize;
}

macro_rules! numbers {
    ($($number:ty),*) => {$(
        impl Number for $number {
            fn put(self, out: &mut Vec<u8>) {
                out.extend_from_slice(&self.to_le_bytes());
            }
            fn take(bytes: &mut &[u8]) -> Self {
                <$number>::from_le_bytes(wire::take_array(bytes))
            }
            const BYTES: usize = size_of::<$number>();
        }
    )*};
}

numbers!(f64, u64, i64, u32);

/// Writes numbers as bytes.
pub(super) fn to_bytes<T: Number>(numbers: &[T]) -> Vec<u8> {
    let mut out = Vec::with_capacity(numbers.len() * T::BYTES);
    numbers.iter().for_each(|number| number.put(&mut out));
    out
}

/// Reads bytes as numbers.
pub(super) fn from_bytes<T: Number>(mut bytes: &[u8]) -> Vec<T> {
    let mut numbers = Vec::with_capacity(bytes.len() / T::BYTES);
    while !bytes.is_empty() {
        numbers.push(T::take(&mut bytes));
    }
    numbers
}
