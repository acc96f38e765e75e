//! Makes a map from the published pairs of servers: which server holds which cell, where each cell is placed, and which
//! epoch is current.
//!
//! The survey is a pure function of its input, so that tests need no cluster. Servers publish in gossip:
//!
//! ```text
//! current              7                      the epoch that the server calls current
//! epochs               5 01ab…,7 23cd…        the epochs that the server serves, with their digests
//! cells/3/9f0c…        0-4,7                  its cells of row 3, whose layers have this hash, by partition
//! removed              6                      the newest epoch that takes something out
//! leaving              1                      the server is shutting down
//! replicas             2                      the replicas that the server was started with
//! view                 4 9f0c… 2 0            how the server sees the cluster (see `agreement`)
//! seat                 1                      the server has its name (see `names`)
//! ```

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use webstrata_layers::{EpochId, RowEntry, Store, Uid};
use xxhash_rust::xxh3::Xxh3;

use super::members::{Member, Pairs};
use super::placement::{Load, place};
use crate::protocol::proto::{Cell, Epoch, Row, Server};
use webstrata_cells::image::label::range_number;
use webstrata_cells::image::label::{partitions, source_of};

/// The name of the pair for removals.
pub(super) const REMOVED: &str = "removed";

/// The pairs that all servers publish, by index in `servers`.
pub(super) struct Survey {
    pub(super) servers: Vec<Server>,
    /// Whether each server takes part in placement.
    stays: Vec<bool>,
    /// Whether each server is alive.
    lives: Vec<bool>,
    pairs: Vec<Pairs>,
}

/// The data of a row that the survey needs.
pub(super) struct Layout {
    pub(super) row: u32,
    key: String,
    end_uid: Uid,
    times: (i64, i64),
    /// Whether the row has a capture with a status of 400 or above, or removes something.
    has_failures: bool,
    removes: bool,
    /// Whether the row has a capture with unknown links.
    has_unknown: bool,
    cells: Vec<CellSummary>,
}

/// The data of a cell that the survey needs.
struct CellSummary {
    load: Load,
    /// The UIDs of the URLs of the cell, and of its records.
    urls: Range<Uid>,
    records: Range<Uid>,
    first_key: Vec<u8>,
}

/// The servers of a cell.
pub(super) struct Holders {
    /// Servers that hold the cell, in the order in which to ask them.
    pub(super) ready: Vec<usize>,
    /// Silent servers that held the cell: they may be dead, cut off, or busy.
    pub(super) silent: Vec<usize>,
    /// Servers that the cell is placed on, in order.
    pub(super) placed: Vec<usize>,
}

impl Holders {
    /// Whether all servers that the cell is placed on hold it.
    pub(super) fn is_settled(&self) -> bool {
        self.lacking().next().is_none()
    }

    /// The servers that the cell is placed on and that do not hold it.
    pub(super) fn lacking(&self) -> impl Iterator<Item = usize> {
        self.placed.iter().copied().filter(|server| !self.ready.contains(server))
    }
}

/// The rows of a store's epoch.
pub(super) fn layouts(store: &Store) -> Vec<Layout> {
    let mut rows: Vec<Layout> = store.manifest().rows.iter().map(Layout::of).collect();
    for (entry, partition) in partitions(store) {
        let index = entry.partitions.iter().position(|other| other.partition == partition.partition);
        let urls = partition.first_uid..partition.first_uid + partition.urls;
        let first_key = partition.first_key_bytes().unwrap_or_default();
        if let (Some(row), Some(index)) = (rows.iter_mut().find(|row| row.row == entry.row), index) {
            let records = entry.records(index);
            row.cells.push(CellSummary { load: Load::of(partition), urls, records, first_key });
        }
    }
    rows
}

impl Layout {
    fn of(entry: &RowEntry) -> Self {
        let mut hash = Xxh3::new();
        entry.partitions.iter().for_each(|partition| hash.update(&source_of(partition).to_le_bytes()));
        let times = entry.counts.first_time.zip(entry.counts.last_time).unwrap_or((i64::MAX, i64::MIN));
        let key = format!("cells/{}/{:016x}", entry.row, hash.digest());
        let removes = entry.removes;
        let has_failures = removes || entry.counts.failed_captures > 0;
        let has_unknown = entry.counts.has_unknown();
        let (row, end_uid) = (entry.row, entry.end_uid());
        Self { row, key, end_uid, times, has_failures, removes, has_unknown, cells: Vec::new() }
    }

    pub(super) fn partitions(&self) -> impl Iterator<Item = u32> {
        self.cells.iter().map(|cell| cell.load.partition)
    }
}

impl Survey {
    /// A survey of the live servers and of the servers that have just become silent. Names must be unique.
    pub(super) fn of(live: Vec<Member>, silent: Vec<Member>) -> Self {
        let live = live.into_iter().map(|member| (member, true));
        let mut all: Vec<(Member, bool)> = live.chain(silent.into_iter().map(|member| (member, false))).collect();
        all.sort_by(|(one, _), (other, _)| one.name.cmp(&other.name));
        let stays = all.iter().map(|(member, lives)| *lives && !member.pairs.contains_key("leaving")).collect();
        let lives = all.iter().map(|(_, lives)| *lives).collect();
        let server = |member: &Member| Server { name: member.name.clone(), address: member.address.to_string() };
        let servers = all.iter().map(|(member, _)| server(member)).collect();
        Self { servers, stays, lives, pairs: all.into_iter().map(|(member, _)| member.pairs).collect() }
    }

    /// The number of live servers.
    pub(super) fn live(&self) -> usize {
        self.lives.iter().filter(|&&lives| lives).count()
    }

    /// Each live server, with the pairs that it publishes.
    pub(super) fn live_servers(&self) -> impl Iterator<Item = (&Server, &Pairs)> {
        self.servers.iter().zip(&self.pairs).zip(&self.lives).filter(|(_, lives)| **lives).map(|(server, _)| server)
    }

    /// The pairs that all servers publish, including servers that have just become silent.
    pub(super) fn all_pairs(&self) -> impl Iterator<Item = &Pairs> {
        self.pairs.iter()
    }

    fn live_pairs(&self) -> impl Iterator<Item = &Pairs> {
        self.pairs.iter().zip(&self.lives).filter(|(_, lives)| **lives).map(|(pairs, _)| pairs)
    }

    /// The newest epoch that a live server calls current.
    pub(super) fn current(&self) -> u64 {
        self.live_pairs().filter_map(|pairs| pairs.get("current")?.parse().ok()).max().unwrap_or(0)
    }

    /// The newest epoch that takes something out, according to live servers.
    pub(super) fn removed_in(&self) -> u64 {
        self.live_pairs().filter_map(|pairs| pairs.get(REMOVED)?.parse().ok()).max().unwrap_or(0)
    }

    /// The epochs that live servers serve.
    pub(super) fn epochs(&self) -> BTreeSet<EpochId> {
        self.live_pairs().flat_map(epochs_of).collect()
    }

    /// The servers of each cell of a row, in order.
    pub(super) fn holders(&self, row: &Layout, replicas: usize) -> Vec<Holders> {
        let cells: Vec<Load> = row.cells.iter().map(|cell| cell.load).collect();
        let ready: Vec<BTreeSet<u32>> =
            self.pairs.iter().map(|pairs| pairs.get(&row.key).map(|text| set_of(text)).unwrap_or_default()).collect();
        let names: Vec<&str> = self.servers.iter().map(|server| server.name.as_str()).collect();
        let holders = |(partition, (ranked, belongs)): (u32, (Vec<usize>, usize))| {
            let placed = ranked[..belongs].to_vec();
            // Servers that stay come before servers that leave.
            let has = |server: &usize| ready[*server].contains(&partition);
            let (live, silent): (Vec<usize>, Vec<usize>) =
                ranked.into_iter().filter(has).partition(|&server| self.lives[server]);
            let (staying, leaving): (Vec<usize>, Vec<usize>) = live.into_iter().partition(|&server| self.stays[server]);
            Holders { ready: staying.into_iter().chain(leaving).collect(), silent, placed }
        };
        row.partitions().zip(place(row.row, &cells, &names, &self.stays, replicas)).map(holders).collect()
    }

    /// A row, as a message.
    pub(super) fn row(row: &Layout, holders: &[Holders]) -> Row {
        let narrow = |server: &usize| u32::try_from(*server).unwrap_or(u32::MAX);
        let cell = |(summary, holders): (&CellSummary, &Holders)| Cell {
            partition: summary.load.partition,
            first_uid: summary.urls.start.0,
            urls: summary.urls.end - summary.urls.start,
            first_record: summary.records.start.0,
            end_record: summary.records.end.0,
            first_key: summary.first_key.clone(),
            servers: holders.ready.iter().chain(&holders.silent).map(narrow).collect(),
        };
        Row {
            row: row.row,
            end_uid: row.end_uid.0,
            first_time: row.times.0,
            last_time: row.times.1,
            has_failures: row.has_failures,
            removes: row.removes,
            has_unknown: row.has_unknown,
            cells: row.cells.iter().zip(holders).map(cell).collect(),
        }
    }
}

/// An epoch, as a message.
pub(super) fn epoch_of(store: &Store) -> Epoch {
    let manifest = store.manifest();
    Epoch {
        epoch: manifest.epoch,
        urls: manifest.counts.urls,
        in_range: range_number(manifest.in_range),
        rows: manifest.rows.iter().map(|row| row.row).collect(),
        digest: store.id().digest.to_string(),
    }
}

/// The epochs that a server serves.
pub(super) fn epochs_of(pairs: &Pairs) -> impl Iterator<Item = EpochId> {
    pairs.get("epochs").into_iter().flat_map(|text| text.split(',')).filter_map(|epoch| epoch.parse().ok())
}

/// The pairs that this server publishes: its epochs, and its cells of these rows.
pub(super) fn pairs_of(current: u64, epochs: &[EpochId], rows: &[(&Layout, BTreeSet<u32>)], leaving: bool) -> Pairs {
    let list: Vec<String> = epochs.iter().map(EpochId::to_string).collect();
    let mut pairs =
        BTreeMap::from([("current".to_owned(), current.to_string()), ("epochs".to_owned(), list.join(","))]);
    for (row, cells) in rows.iter().filter(|(_, cells)| !cells.is_empty()) {
        pairs.insert(row.key.clone(), text_of(cells));
    }
    if leaving {
        pairs.insert("leaving".to_owned(), "1".to_owned());
    }
    pairs
}

/// Numbers as ranges: `0-4,7`.
fn text_of(numbers: &BTreeSet<u32>) -> String {
    let mut ranges: Vec<(u32, u32)> = Vec::new();
    for &number in numbers {
        match ranges.last_mut() {
            Some((_, last)) if last.checked_add(1) == Some(number) => *last = number,
            _ => ranges.push((number, number)),
        }
    }
    let text = |&(first, last): &(u32, u32)| if first == last { first.to_string() } else { format!("{first}-{last}") };
    ranges.iter().map(text).collect::<Vec<_>>().join(",")
}

/// Parses ranges of numbers. Invalid ranges are skipped.
fn set_of(text: &str) -> BTreeSet<u32> {
    let range = |text: &str| {
        let (first, last) = text.split_once('-').unwrap_or((text, text));
        let range = first.parse::<u32>().ok()?..=last.parse::<u32>().ok()?;
        // No row has more partitions: a longer range is not from a Webstrata server.
        (range.end().checked_sub(*range.start())? < 1 << 24).then_some(range)
    };
    text.split(',').filter_map(range).flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use webstrata_layers::Digest;

    #[test]
    fn who_is_silent_is_asked_last_and_has_no_cells_to_get() {
        let row = Layout {
            row: 3,
            key: "cells/3/of-these-layers".to_owned(),
            end_uid: Uid(10),
            times: (0, 1),
            has_failures: false,
            removes: false,
            has_unknown: false,
            cells: (0..20)
                .map(|partition| CellSummary {
                    load: Load { partition, weight: 1 },
                    urls: Uid(0)..Uid(1),
                    records: Uid(0)..Uid(1),
                    first_key: Vec::new(),
                })
                .collect(),
        };
        let member = |number: usize, leaving: bool| Member {
            name: format!("server-{number}"),
            address: ([127, 0, 0, 1], 7400).into(),
            pairs: pairs_of(
                number as u64,
                &[EpochId { epoch: 1, digest: Digest::of(b"") }],
                &[(&row, (0..20).collect())],
                leaving,
            ),
        };
        let live = vec![member(2, false), member(0, true), member(3, false)];
        let survey = Survey::of(live, vec![member(1, false)]);
        assert_eq!((survey.live(), survey.current()), (3, 3), "who is silent has no say");
        let names: Vec<&str> = survey.servers.iter().map(|server| server.name.as_str()).collect();
        assert_eq!(names, ["server-0", "server-1", "server-2", "server-3"]);
        for cell in survey.holders(&row, 3) {
            let mut placed = cell.placed.clone();
            placed.sort_unstable();
            assert_eq!(placed, [2, 3]);
            assert_eq!((&cell.ready[..2], cell.ready[2]), (&cell.placed[..], 0), "who leaves comes after who stays");
            assert_eq!(cell.silent, [1]);
            assert!(cell.is_settled());
        }
        let travels = Survey::row(&row, &survey.holders(&row, 3));
        assert!(travels.cells.iter().all(|cell| cell.servers[2..] == [0, 1]), "{travels:?}");
    }

    proptest! {
        #[test]
        fn sets_come_back(numbers in proptest::collection::btree_set(any::<u32>(), 0..40), dense in 0u32..60) {
            let numbers: BTreeSet<u32> = numbers.into_iter().chain(5..5 + dense).collect();
            prop_assert_eq!(set_of(&text_of(&numbers)), numbers);
        }

        #[test]
        fn any_text_is_a_set(text in "[0-9,-]{0,30}") {
            set_of(&text);
        }
    }
}
