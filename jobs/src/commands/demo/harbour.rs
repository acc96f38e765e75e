//! A made-up web around a harbour: ten pages of six hosts, crawled now and then from 2004 to 2013. Links come, go and
//! return, a site is redesigned, a museum closes, and for half a year nobody crawls.
//!
//! Months count from January 2004. Nothing is random: the crawl is always the same.

use serde_json::{Value, json};
use std::ops::Range;

/// The first month, and the month after the last.
type Months = (u32, u32);
/// A link, and the months in which it is there.
type Link = (&'static str, &'static [Months]);

/// A page: its URL, the months in which it is there, and its links. After these months it is gone.
struct Page {
    url: &'static str,
    there: Months,
    links: &'static [Link],
}

/// The page that the demo looks at.
pub(super) const FRONT: &str = "http://harbour-news.example/";
/// The month after the last one.
const END: u32 = 120;
/// Months in which nobody crawls.
const PAUSE: Range<u32> = 50..56;
/// All months.
const ALWAYS: &[Months] = &[(0, END)];

const PAGES: &[Page] = &[
    Page {
        url: FRONT,
        there: (0, END),
        links: &[
            ("http://harbour-news.example/tides/", ALWAYS),
            ("http://museum.example/lighthouse/", &[(2, 101)]),
            ("http://weather-by-the-sea.example/", &[(27, END)]),
            ("http://harbour-news.example/archive/", &[(48, END)]),
            ("http://harbour-news.example/ferries.html", &[(0, 66)]),
            ("http://harbour-news.example/travel/ferries/", &[(66, END)]),
            ("http://tide-tables.example/", &[(0, 61)]),
            (
                "http://sailing-club.example/regatta/",
                &[(16, 21), (28, 33), (40, 45), (64, 69), (76, 81), (88, 93), (100, 105)],
            ),
            ("http://new-bridge.example/plans/", &[(13, 35), (98, 117)]),
            ("http://lighthouse-friends.example/", &[(80, END)]),
            ("http://photos.example/harbour/", &[(41, 59)]),
            ("http://fish-market.example/prices.html", &[(0, 19)]),
        ],
    },
    Page {
        url: "http://harbour-news.example/tides/",
        there: (0, END),
        links: &[
            (FRONT, ALWAYS),
            ("http://tide-tables.example/", &[(0, 97)]),
            ("http://weather-by-the-sea.example/", &[(30, END)]),
        ],
    },
    Page {
        url: "http://harbour-news.example/travel/ferries/",
        there: (66, END),
        links: &[
            (FRONT, ALWAYS),
            ("http://sailing-club.example/", &[(70, END)]),
            ("http://new-bridge.example/plans/", &[(98, 117)]),
        ],
    },
    Page {
        url: "http://museum.example/",
        there: (0, 90),
        links: &[
            ("http://museum.example/lighthouse/", ALWAYS),
            (FRONT, &[(0, 44)]),
            ("http://photos.example/harbour/", &[(20, 90)]),
        ],
    },
    Page {
        url: "http://museum.example/lighthouse/",
        there: (2, 90),
        links: &[("http://museum.example/", ALWAYS), ("http://lighthouse-friends.example/", &[(60, 90)])],
    },
    Page {
        url: "http://sailing-club.example/",
        there: (0, END),
        links: &[
            ("http://sailing-club.example/regatta/", ALWAYS),
            (FRONT, &[(10, END)]),
            ("http://tide-tables.example/", &[(0, 80)]),
            ("http://weather-by-the-sea.example/", &[(25, END)]),
        ],
    },
    Page {
        url: "http://sailing-club.example/regatta/",
        there: (16, END),
        links: &[
            ("http://sailing-club.example/", ALWAYS),
            ("http://photos.example/harbour/", &[(41, 70)]),
            (FRONT, &[(40, 52), (90, END)]),
        ],
    },
    Page {
        url: "http://lighthouse-friends.example/",
        there: (58, END),
        links: &[
            ("http://museum.example/lighthouse/", &[(58, 101)]),
            (FRONT, &[(80, END)]),
            ("http://photos.example/harbour/", &[(62, 75)]),
        ],
    },
    Page {
        url: "http://weather-by-the-sea.example/",
        there: (20, END),
        links: &[("http://tide-tables.example/", &[(20, 55)]), (FRONT, &[(33, 60), (72, END)])],
    },
    Page {
        url: "http://fish-market.example/prices.html",
        there: (0, 30),
        links: &[(FRONT, &[(0, 25)]), ("http://tide-tables.example/", &[(0, 30)])],
    },
];

/// The captures, as lines of JSON.
pub(super) fn crawl() -> Vec<Value> {
    let mut lines = Vec::new();
    for (number, page) in (0u32..).zip(PAGES) {
        for month in page.there.0..END {
            // Some pages are captured in two of three months, others in three of four.
            let is_captured = (month * 7 + number * 5) % (3 + number % 2) != 0;
            if !is_captured || PAUSE.contains(&month) {
                continue;
            }
            let (day, hour) = (1 + (month * 11 + number * 3) % 27, (month * 5 + number) % 24);
            let time = format!("{}{:02}{day:02}{hour:02}3000", 2004 + month / 12, 1 + month % 12);
            let is_in = |(first, end): Months| (first..end).contains(&month);
            let is_there = |months: &&[Months]| months.iter().any(|&months| is_in(months));
            let links: Vec<&str> =
                page.links.iter().filter(|(_, months)| is_there(months)).map(|(link, _)| *link).collect();
            lines.push(match (is_in(page.there), month % 12) {
                (true, _) => json!({"url": page.url, "ts": time, "links": links}),
                (false, 1..3) => json!({"url": page.url, "ts": time, "status": 404, "links": []}),
                (false, _) => continue,
            });
        }
    }
    lines
}
