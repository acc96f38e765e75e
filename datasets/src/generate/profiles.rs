//! What the profiles of a generated crawl differ in, and how many links a page has on average.
//!
//! Numbers are measured on the crawls that a profile imitates. All chances are out of ten thousand.

use super::{GenerateOptions, Profile};

/// Of ten thousand a month: pages born, for each that was there at first; pages that die; captures that are missed.
pub(super) const BIRTHS: u64 = 80;
pub(super) const DEATHS: u64 = 40;
pub(super) const MISSED: u64 = 110;
/// Most captures of a page of an irregular crawl.
pub(super) const IRREGULAR_CAPTURES_MAX: u64 = 50;

/// What differs between the profiles. All chances are out of ten thousand.
pub(super) struct Constants {
    /// Links of a menu: of the host, of the directory.
    pub(super) host_menu: u64,
    pub(super) directory_menu: u64,
    /// Links of a page besides, at least; two numbers below `body_spread` are added.
    pub(super) body_min: u64,
    pub(super) body_spread: u64,
    /// Pages that have more, and how many more at most.
    pub(super) long: u64,
    pub(super) long_more: u64,
    /// Pages that copy; links that these copy; copies that share the fate of the original.
    pub(super) copying: u64,
    pub(super) copied: u64,
    pub(super) shared: u64,
    /// Links of the second or third class, of the third; how many of a class live on for another month.
    pub(super) higher_classes: [u64; 2],
    pub(super) survival: [u64; 3],
    /// Links outside the menus that leave the host; of the others, those to pages that are surely crawled.
    pub(super) outside: u64,
    pub(super) to_crawled: u64,
    /// Links of a capture on average, in thousandths: what the rest comes to, measured on 20 million.
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

/// Link occurrences of a page on average, in thousandths.
pub(super) fn page_occurrences_thousandths(options: GenerateOptions) -> u64 {
    let links = options.profile.constants().links_thousandths;
    let captures_millionths = if options.profile == Profile::Irregular {
        let weights = irregular_weights();
        let captures: u64 = (1..).zip(&weights).map(|(captures, weight)| captures * weight).sum();
        captures * 1_000_000 / weights.iter().sum::<u64>()
    } else {
        // Of a million pages that began `month` months before the end: those alive, and their captures all together.
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

/// How often a page of an irregular crawl has 1, 2, 3 captures: in proportion to their power of -2.25.
pub(super) fn irregular_weights() -> Vec<u64> {
    let power = |captures: u128| (10u128.pow(32) / captures.pow(9)).isqrt().isqrt();
    (1..=u128::from(IRREGULAR_CAPTURES_MAX)).map(|captures| u64::try_from(power(captures)).unwrap_or(0)).collect()
}
