//! `harmonic`: harmonic centrality of each URL: the sum of 1 / d over all URLs that lead to it, at a distance of d
//! links.
//!
//! The sets of URLs that reach a URL by at most d links are counted and not kept. Each URL has a HyperLogLog counter
//! (Flajolet et al. 2007) of 2^b registers of one byte. Counters are joined along links until none of them changes
//! (HyperBall, Boldi & Vigna 2013, as in cc-webgraph). The relative error of a count is 1.04 / sqrt(2^b). Counters that
//! did not change are not sent again.
//!
//! The hash of a URL is XXH3-64 of its text, so it is the same in every store. The highest b bits of the hash choose
//! the register. The other bits give the value of the register: their leading zeros plus one. Counts of at most 2.5
//! times the number of registers use linear counting if a register is empty.
//!
//! Passes over the links: at most the greatest distance plus one. Memory: 2^b bytes per URL and per mirror, and 16 per
//! URL.

use super::adjacency::low;
use super::exchange::{Number, exchange, sums};
use super::slice::Slice;
use super::{AnalysisContext, Fact, Found};
use crate::Error;
use webstrata_engine::Stopped;
use xxhash_rust::xxh3::xxh3_64;

/// The default of the number of registers, as a power of two.
pub const LOG2_REGISTERS: u32 = 8;

/// Returns the sums of 1 / d for this worker's URLs, from counters with 2^`bits` registers.
pub(super) fn harmonic(context: &mut AnalysisContext<'_>, slice: &Slice, bits: u32) -> Result<Found, Stopped> {
    let registers = 1usize << bits;
    let mut counters = vec![0u8; slice.graph.urls() * registers];
    let begun = each_url(context, |index, url| begin(&mut counters[index * registers..(index + 1) * registers], url));
    context.job.check(begun)?;
    let one = estimate(&counters[..registers.min(counters.len())]);
    let mut counts = vec![one; slice.graph.urls()];
    let mut sums_of = vec![0.0; slice.graph.urls()];
    let mut changed = vec![true; slice.graph.urls()];
    let mut distance = 0u32;
    loop {
        distance += 1;
        let reached = push(context, slice, &counters, &changed, registers)?;
        changed.fill(false);
        for (from, bytes) in reached.iter().enumerate() {
            for piece in bytes.chunks_exact(4 + registers) {
                let (mut mirror, counter) = piece.split_at(4);
                let index = slice.mirrors.requested[from][u32::take(&mut mirror) as usize] as usize;
                let reached_counter = &mut counters[index * registers..(index + 1) * registers];
                changed[index] |= raise(reached_counter, counter);
            }
        }
        let mut moved = 0.0;
        for (index, _) in changed.iter().enumerate().filter(|(_, changed)| **changed) {
            let count = estimate(&counters[index * registers..(index + 1) * registers]);
            sums_of[index] += (count - counts[index]) / f64::from(distance);
            counts[index] = count;
            moved += 1.0;
        }
        if sums(context, [moved])?[0] == 0.0 {
            break;
        }
    }
    let facts = vec![
        Fact::new("greatest distance", f64::from(distance - 1)),
        Fact::new("registers", registers as f64),
        Fact::new("relative error of a count", 1.04 / (registers as f64).sqrt()),
    ];
    Ok(Found::of_worker().with("harmonic", sums_of).with("reached_by", counts).and(facts))
}

/// Joins the counters of changed pages along their links, and sends each join to the owner of the mirror. Returns the
/// received bytes, by worker: for each mirror, its index among the mirrors of the sender at this worker, and the
/// counter.
fn push(
    context: &mut AnalysisContext<'_>,
    slice: &Slice,
    counters: &[u8],
    changed: &[bool],
    registers: usize,
) -> Result<Vec<Vec<u8>>, Stopped> {
    let mirrors = &*slice.mirrors;
    let mut joined = vec![0u8; mirrors.uids.len() * registers];
    let mut touched = vec![false; mirrors.uids.len()];
    for (at, &page) in slice.graph.pages.iter().enumerate().filter(|(_, page)| changed[**page as usize]) {
        let page = page as usize * registers;
        let counter = &counters[page..page + registers];
        for &link in slice.graph.links_of(at) {
            let link = link.index();
            raise(&mut joined[link * registers..(link + 1) * registers], counter);
            touched[link] = true;
        }
    }
    let outgoing = mirrors.cuts.windows(2).map(|cut| {
        let mut bytes = Vec::new();
        for mirror in (cut[0]..cut[1]).filter(|&mirror| touched[mirror]) {
            low((mirror - cut[0]) as u64).put(&mut bytes);
            bytes.extend_from_slice(&joined[mirror * registers..(mirror + 1) * registers]);
        }
        bytes
    });
    let outgoing = outgoing.collect();
    drop(joined);
    exchange(context, outgoing)
}

/// Fills an empty counter, of a power of two registers, with one URL.
pub(crate) fn begin(counter: &mut [u8], url: &str) {
    let bits = counter.len().trailing_zeros();
    let hash = xxh3_64(url.as_bytes());
    counter[usize::try_from(hash >> (64 - bits)).unwrap_or(0)] = rank(hash << bits, bits);
}

/// Raises each register to the register of another counter. Returns whether a register rose.
pub(crate) fn raise(counter: &mut [u8], other: &[u8]) -> bool {
    let mut rose = 0u8;
    for (register, &other) in counter.iter_mut().zip(other) {
        rose |= u8::from(other > *register);
        *register = (*register).max(other);
    }
    rose > 0
}

/// Returns the value of a register. `rest` has the bits of a hash below the highest `bits`, shifted to the top.
fn rank(rest: u64, bits: u32) -> u8 {
    u8::try_from(rest.leading_zeros().min(64 - bits) + 1).unwrap_or(u8::MAX)
}

/// Calls `visit` with each URL of this worker and its index among them.
fn each_url(context: &AnalysisContext<'_>, mut visit: impl FnMut(usize, &str)) -> Result<(), Error> {
    let uids = context.my_uids();
    for row in 0..context.store.rows() {
        let mut urls = context.store.row_urls(row, uids.clone(), false);
        while let Some((uid, url, _)) = urls.next_url()? {
            visit(usize::try_from(uid - uids.start).unwrap_or(usize::MAX), url);
        }
    }
    Ok(())
}

/// Returns an estimate of the number of distinct URLs that a counter has received.
pub(crate) fn estimate(counter: &[u8]) -> f64 {
    let registers = counter.len() as f64;
    let (mut sum, mut empty) = (0.0, 0u32);
    for &register in counter {
        sum += f64::from(-i32::from(register)).exp2();
        empty += u32::from(register == 0);
    }
    let alpha = match counter.len() {
        16 => 0.673,
        32 => 0.697,
        64 => 0.709,
        _ => 0.7213 / (1.0 + 1.079 / registers),
    };
    let raw = alpha * registers * registers / sum;
    if raw <= 2.5 * registers && empty > 0 { registers * (registers / f64::from(empty)).ln() } else { raw }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_within_their_error() {
        for bits in [6u32, 8, 10] {
            let registers = 1usize << bits;
            for count in [1u64, 10, 1000, 100_000] {
                let mut counter = vec![0; registers];
                for uid in 0..count {
                    let hash = xxh3_64(&uid.to_le_bytes());
                    let register = usize::try_from(hash >> (64 - bits)).unwrap();
                    counter[register] = counter[register].max(rank(hash << bits, bits));
                }
                let error = (estimate(&counter) / count as f64 - 1.0).abs();
                assert!(error < 4.0 * 1.04 / (registers as f64).sqrt(), "{bits} {count} {error}");
            }
        }
    }
}
