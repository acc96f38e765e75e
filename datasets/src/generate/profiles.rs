//! The differences between the profiles of a generated crawl, and the average number of links of a page.
//!
//! Numbers are measured on the crawls that a profile imitates. All chances are out of ten thousand.

use super::{GenerateOptions, Profile};

/// Chances a month: births of pages (for each page of the first month), deaths of pages, missed captures.
pub(super) const BIRTHS: u64 = 80;
pub(super) const DEATHS: u64 = 40;
pub(super) const MISSED: u64 = 110;
/// The most captures of a page of an irregular crawl.
pub(super) const IRREGULAR_CAPTURES_MAX: u64 = 50;

/// The constants of a profile. All chances are out of ten thousand.
pub(super) struct Constants {
    /// The number of links in the menu of a host, and in the menu of a directory.
    pub(super) host_menu: u64,
    pub(super) directory_menu: u64,
    /// The smallest number of links of a page outside the menus. Two numbers below `body_spread` are added.
    pub(super) body_min: u64,
    pub(super) body_spread: u64,
    /// The chance that a page has more links, and the limit of their number.
    pub(super) long: u64,
    pub(super) long_more: u64,
    /// The chances that a page copies links, that such a page copies a link, and that a copy shares the fate of its
    /// original.
    pub(super) copying: u64,
    pub(super) copied: u64,
    pub(super) shared: u64,
    /// The chances that a link is of the second or third class, and of the third. For each class, the chance that a
    /// link lives on for another month.
    pub(super) higher_classes: [u64; 2],
    pub(super) survival: [u64; 3],
    /// The chance that a link outside the menus leaves the host, and the chance that another link leads to a page that
    /// is surely crawled.
    pub(super) outside: u64,
    pub(super) to_crawled: u64,
    /// The average number of links of a capture in thousandths. It follows from the other constants, and was measured
    /// on 20 million.
    pub(super) links_thousandths: u64,
}

const UK: Constants = Constants {
    host_menu: 6,
    directory_menu: 6,
    body_min: 10,
    body_spread: 17,
    long: 600,
    long_more: 50,
    copying: 9_500,
    copied: 9_750,
    shared: 9_000,
    higher_classes: [1_900, 400],
    survival: [9_980, 9_700, 8_400],
    outside: 1_650,
    to_crawled: 3_000,
    links_thousandths: 39_450,
};

const HARD: Constants = Constants {
    host_menu: 6,
    directory_menu: 6,
    body_min: 4,
    body_spread: 16,
    long: 1_300,
    long_more: 110,
    copying: 5_900,
    copied: 8_000,
    shared: 6_500,
    higher_classes: [2_350, 520],
    survival: [9_900, 9_200, 6_500],
    outside: 1_450,
    to_crawled: 7_000,
    links_thousandths: 38_000,
};

impl Profile {
    pub(super) fn constants(self) -> &'static Constants {
        match self {
            Profile::Uk => &UK,
            Profile::Hard | Profile::Irregular => &HARD,
        }
    }
}

/// The average number of link occurrences of a page, in thousandths.
pub(super) fn page_occurrences_thousandths(options: GenerateOptions) -> u64 {
    let links = options.profile.constants().links_thousandths;
    let captures_millionths = if options.profile == Profile::Irregular {
        let weights = irregular_weights();
        let captures: u64 = (1..).zip(&weights).map(|(captures, weight)| captures * weight).sum();
        captures * 1_000_000 / weights.iter().sum::<u64>()
    } else {
        // For a million pages that began `month` months before the end: the pages alive, and the sum of their captures.
        let (mut alive, mut captures, mut sum, mut pages) = (1_000_000, 0, 0, 0);
        for month in (0..options.months).rev() {
            captures += if captures == 0 { alive } else { alive * (10_000 - MISSED) / 10_000 };
            alive -= alive * DEATHS / 10_000;
            let weight = if month == 0 { 10_000 } else { BIRTHS };
            sum += captures * weight;
            pages += weight;
        }
        sum / pages
    };
    links * captures_millionths / 1_000_000
}

/// The weights of 1, 2, 3 ... captures of a page in an irregular crawl: the numbers of captures to the power of -2.25.
pub(super) fn irregular_weights() -> Vec<u64> {
    let power = |captures: u128| (10u128.pow(32) / captures.pow(9)).isqrt().isqrt();
    (1..=u128::from(IRREGULAR_CAPTURES_MAX)).map(|captures| u64::try_from(power(captures)).unwrap_or(0)).collect()
}
