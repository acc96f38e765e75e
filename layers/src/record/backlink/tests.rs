//! Compares stays and series with the answer at each second.

use super::united::United;
use super::*;
use crate::record::status::Status;
use proptest::prelude::*;

const END: i64 = 40;

/// The content of a test capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Says {
    Links,
    Nothing,
    Unknown,
    Gone,
    ServerFails,
}

/// Captures at different seconds, in order.
fn captures() -> impl Strategy<Value = Vec<(i64, Says)>> {
    let says = prop::sample::select(vec![
        Says::Links,
        Says::Links,
        Says::Nothing,
        Says::Unknown,
        Says::Gone,
        Says::ServerFails,
    ]);
    prop::collection::btree_map(0..END, says, 0..14).prop_map(|captures| captures.into_iter().collect())
}

fn backlink_of(captures: &[(i64, Says)]) -> Backlink {
    let status = |code| Status::new(code).unwrap();
    let times = captures.iter().map(|&(time, says)| CaptureTime {
        time,
        known: says != Says::Unknown,
        status: match says {
            Says::Gone => status(404),
            Says::ServerFails => status(503),
            _ => Status::OK,
        },
    });
    let linking = captures.iter().filter(|(_, says)| *says == Says::Links);
    let mut backlink = Backlink::default();
    let mut lifespans: Vec<(i64, i64)> = linking.map(|&(time, _)| (time, time)).rev().collect();
    backlink.set(times, &mut lifespans);
    backlink
}

/// Whether a page links at a second, by the latest capture that counts. A page that never links has no unknown seconds.
fn links_at(captures: &[(i64, Says)], time: i64) -> Linking {
    let mut before = captures.iter().rev().filter(|&&(at, says)| at <= time && says != Says::ServerFails);
    let ever = captures.iter().any(|(_, says)| *says == Says::Links);
    match before.next() {
        Some((_, Says::Unknown)) if ever => Linking::Unknown,
        Some((_, Says::Links)) => Linking::Yes,
        _ => Linking::No,
    }
}

proptest! {
    #[test]
    fn a_page_stands_as_its_captures_say(captures in captures()) {
        let backlink = backlink_of(&captures);
        for time in -1..=END {
            prop_assert_eq!(backlink.links_at(time), links_at(&captures, time), "at {}", time);
        }
        let said = |time: i64| captures.iter().find(|capture| capture.0 == time).map(|capture| capture.1);
        for (number, stay) in backlink.stays.iter().enumerate() {
            prop_assert_eq!((said(stay.first), said(stay.last)), (Some(Says::Links), Some(Says::Links)));
            let within = |time: i64| stay.first <= time && stay.until.is_none_or(|until| time < until);
            let last = captures.iter().rfind(|&&(time, says)| within(time) && says == Says::Links);
            prop_assert_eq!(last.map(|capture| capture.0), Some(stay.last));
            let tells = |says: Says| says != Says::Unknown && says != Says::ServerFails;
            let known_before = captures.iter().any(|&(time, says)| time < stay.first && tells(says));
            let began = if number > 0 { Began::Returned } else if known_before { Began::New } else { Began::Found };
            prop_assert_eq!(stay.began, began);
        }
    }

    #[test]
    fn pages_together_stand_while_one_of_them_does(pages in prop::collection::vec(captures(), 0..5)) {
        let backlinks: Vec<Backlink> = pages.iter().map(|captures| backlink_of(captures)).collect();
        let mut all = United::default();
        backlinks.iter().for_each(|backlink| all.add(backlink));
        let united = all.backlink();
        for time in -1..=END {
            let each: Vec<_> = backlinks.iter().map(|backlink| backlink.links_at(time)).collect();
            let expected = [Linking::Yes, Linking::Unknown].into_iter().find(|state| each.contains(state));
            prop_assert_eq!(united.links_at(time), expected.unwrap_or(Linking::No), "at {}", time);
        }
        prop_assert!(united.stays.windows(2).all(|two| two[0].until.is_some_and(|until| until < two[1].first)));
        prop_assert!(united.stays.iter().skip(1).all(|stay| stay.began == Began::Returned));
        let is_in_order = |stay: &Stay| stay.first <= stay.last && stay.until.is_none_or(|until| stay.last < until);
        prop_assert!(united.stays.iter().all(is_in_order));
        if let [one] = &backlinks[..] {
            prop_assert_eq!(&united, one);
        }
    }

    #[test]
    fn a_series_counts_what_stands_at_the_end_of_each_period(pages in prop::collection::vec(captures(), 0..6)) {
        const DAY: i64 = 24 * 60 * 60;
        // A second of the captures is a third of a day.
        let spread = |&(time, says): &(i64, Says)| (time * DAY / 3, says);
        let pages: Vec<Vec<(i64, Says)>> =
            pages.iter().map(|captures| captures.iter().map(spread).collect()).collect();
        let mut series = Series::new(RangeLength::Days(2));
        pages.iter().for_each(|captures| series.add(&backlink_of(captures)));
        let mut before = 0;
        for (start, period) in series.periods() {
            let end = RangeLength::Days(2).end(start);
            let count = |state| pages.iter().filter(|captures| links_at(captures, end) == state).count() as u64;
            prop_assert_eq!((period.standing, period.unknown), (count(Linking::Yes), count(Linking::Unknown)));
            let after = before + period.found + period.new + period.returned - period.lost;
            let is_in_stay = |stay: &Stay| stay.first <= end && stay.until.is_none_or(|until| end < until);
            let in_stays = pages.iter().filter(|captures| backlink_of(captures).stays.iter().any(is_in_stay)).count();
            prop_assert_eq!(in_stays as u64, after);
            before = after;
        }
        let events: usize = pages.iter().map(|captures| backlink_of(captures).stays.len()).sum();
        let began: u64 = series.periods().iter().map(|(_, period)| period.found + period.new + period.returned).sum();
        prop_assert_eq!(began, events as u64);
    }
}

#[test]
fn months_in_which_nothing_happens_are_in_a_series() {
    let day = 24 * 60 * 60;
    let backlink = backlink_of(&[(0, Says::Nothing), (day, Says::Links), (100 * day, Says::Nothing)]);
    let mut series = Series::new(RangeLength::Month);
    series.add(&backlink);
    let periods: Vec<Period> = series.periods().into_iter().map(|(_, period)| period).collect();
    let standing = Period { standing: 1, ..Period::default() };
    assert_eq!(periods, [Period { new: 1, ..standing }, standing, standing, Period { lost: 1, ..Period::default() }]);
    assert_eq!(Series::new(RangeLength::Year).periods(), []);
}
