//! Pages that are all the same: pages of all kinds with a given size, and of any kind by a seed.

use std::rc::Rc;

use super::plain::Plain;
use webstrata_cells::bench::Random;

/// The links of each page.
#[derive(Clone, Copy, Debug)]
pub(super) enum To {
    Nothing,
    /// The page itself.
    Own,
    /// The URL after it.
    Next,
    /// One URL, by its place in the cell. It may be outside the cell.
    Hub(u64),
    /// This number of URLs, from the first of the cell on.
    First(u64),
}

/// The captures in which a page has its links.
#[derive(Clone, Copy, Debug)]
pub(super) enum When {
    Always,
    /// In every other capture.
    Alternate,
    /// In the first capture only.
    Early,
    /// In the last capture only.
    Late,
    /// In all captures, but the links of every third capture are unknown.
    Gaps,
    /// The links of no capture are known.
    Unknown,
}

/// Pages that are all the same.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shape {
    /// The UID of the cell's first URL, and the number of its URLs.
    pub(super) first: u64,
    pub(super) urls: usize,
    /// The distance in UIDs from one page to the next, and the number of pages. Pages begin at the first URL and may be
    /// outside the cell.
    pub(super) every: u64,
    pub(super) pages: u64,
    pub(super) captures: u64,
    /// The seconds from one capture to the next.
    pub(super) step: i64,
    /// The seconds from the first capture of a page to the first capture of the next page.
    pub(super) shift: i64,
    pub(super) to: To,
    pub(super) when: When,
}

impl Shape {
    const ONE: Self = Self {
        first: 0,
        urls: 1,
        every: 1,
        pages: 1,
        captures: 1,
        step: 86_400,
        shift: 0,
        to: To::Hub(0),
        when: When::Always,
    };

    pub(super) fn plain(&self) -> Plain {
        let none: Rc<[u64]> = Rc::from([]);
        let first: Rc<[u64]> = match self.to {
            To::First(count) => (self.first..self.first + count).collect(),
            To::Hub(place) => Rc::from([self.first + place]),
            _ => none.clone(),
        };
        let page = |number: u64| {
            let uid = self.first + number * self.every;
            let links = match self.to {
                To::Own => Rc::from([uid]),
                To::Next => Rc::from([uid + 1]),
                _ => first.clone(),
            };
            let capture = |at: u64| {
                let time = 1_000_000_000 + at.cast_signed() * self.step + number.cast_signed() * self.shift;
                let links = match self.when {
                    When::Always => Some(&links),
                    When::Alternate if at.is_multiple_of(2) => Some(&links),
                    When::Early if at == 0 => Some(&links),
                    When::Late if at + 1 == self.captures => Some(&links),
                    When::Gaps => (at % 3 != 1).then_some(&links),
                    When::Unknown => None,
                    _ => Some(&none),
                };
                (time, links.cloned())
            };
            (uid, (0..self.captures).map(capture).collect())
        };
        Plain::new(self.first, self.urls, (0..self.pages).map(page).collect())
    }

    /// Shapes of all kinds, each with `n` items of some kind.
    pub(super) fn of(n: u64) -> Vec<Self> {
        let urls = usize::try_from(n).unwrap();
        let one = Self::ONE;
        // Lists of all URLs on all pages take quadratic size.
        let all = n.min(if n > 100_000 { 2000 } else { 300 });
        vec![
            // Pages that link to one hub: the last URL, the first URL, or a URL of another cell.
            Self { urls: urls + 1, pages: n, to: To::Hub(n), ..one },
            Self { urls, pages: n, ..one },
            Self { urls, pages: n, to: To::Hub(3 * n + 9), ..one },
            // A hub in this cell, with sources elsewhere.
            Self { urls: 1, pages: n, ..one },
            // Pages without links; URLs without pages.
            Self { urls, pages: n, to: To::Nothing, ..one },
            Self { urls, pages: 0, ..one },
            Self { urls: 0, pages: 0, ..one },
            // Pages that link to themselves, and to the next.
            Self { urls, pages: n, to: To::Own, step: 1, ..one },
            Self { urls, pages: n, to: To::Next, captures: 2, when: When::Late, ..one },
            // One page with n links, and one with n captures.
            Self { urls: 3, to: To::First(n), ..one },
            Self { urls: 3, to: To::First(n), captures: 3, when: When::Early, ..one },
            Self { urls: 2, captures: n.max(1), step: 1, ..one },
            Self { urls: 2, captures: n.max(1), when: When::Alternate, ..one },
            Self { urls: 2, captures: n.max(1), when: When::Late, ..one },
            Self { urls: 2, captures: n.max(1), when: When::Unknown, step: 1, ..one },
            Self { urls: 2, captures: n.max(1), when: When::Gaps, step: 3600, ..one },
            // Equal sets of links in all captures of a few pages.
            Self { urls: 8, pages: 8, captures: n.clamp(1, 100_000), to: To::First(3), step: 600, ..one },
            // Every page links to every URL.
            Self { urls: usize::try_from(all).unwrap(), pages: all, to: To::First(all), first: 1 << 33, ..one },
        ]
    }

    /// A shape of any kind, with up to a few hundred captures or links.
    pub(super) fn random(random: &mut Random) -> Self {
        const SIZES: [u64; 17] = [0, 1, 2, 3, 7, 15, 16, 17, 33, 63, 64, 65, 127, 255, 256, 257, 301];
        let mut size = |most: u64| match random.below(3) {
            0 => random.below(most.min(5) + 1),
            1 => SIZES[usize::try_from(random.below(17)).unwrap()].min(most),
            _ => random.below(most + 1),
        };
        let pages = size(320);
        let captures = 1 + size(320 / (pages + 1));
        let links = size(1200 / (pages * captures + 1));
        let (urls, place) = (size(340), size(340));
        let mut one_of = |count: u64| random.below(count);
        Self {
            first: [0, 1, 1 << 20, 1 << 40][usize::try_from(one_of(4)).unwrap()],
            urls: usize::try_from(urls).unwrap(),
            every: [1, 1, 1, 2, 5, 40][usize::try_from(one_of(6)).unwrap()],
            pages,
            captures,
            step: [1, 60, 3600, 86_400, 864_000, 31_536_000][usize::try_from(one_of(6)).unwrap()],
            shift: [0, 0, 1, 86_400][usize::try_from(one_of(4)).unwrap()],
            to: match one_of(6) {
                0 => To::Nothing,
                1 => To::Own,
                2 => To::Next,
                3 => To::Hub(place),
                _ => To::First(links),
            },
            when: match one_of(8) {
                0 => When::Alternate,
                1 => When::Early,
                2 => When::Late,
                3 => When::Gaps,
                4 => When::Unknown,
                _ => When::Always,
            },
        }
    }
}
