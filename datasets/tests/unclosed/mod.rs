//! The links that the WATs of the real sites lack and the WARCs have, for tests of readers and of whole stores.

use std::collections::BTreeMap;

/// Pages, their links, and the number of captures in which a link is missing. All have one reason: the extractor of the
/// WATs loses an anchor that is not closed before the next one begins (`<a href=...>text<a>`).
const UNCLOSED: [(&str, &str, usize); 4] = [
    ("https://gcc.gnu.org/faq.html", "http://gcc.gnu.org/cgi-bin/fom", 1),
    ("https://openbsd-ru.github.io/faq/current.html", "https://man.openbsd.org/acme-client.1", 1),
    (
        "https://openbsd-ru.github.io/openssh/users.html",
        "https://www.cisco.com/c/en/us/obsolete/application-networking-services/\
         cisco-css-11500-series-content-services-switches.html",
        2,
    ),
    ("https://openbsd-ru.github.io/ru-community/articles.html", "https://habr.com/en/post/332694/", 12),
];

/// The number of captures that lack a link, by page and link.
pub(crate) fn unclosed() -> BTreeMap<(String, String), usize> {
    UNCLOSED.map(|(page, link, captures)| ((page.to_owned(), link.to_owned()), captures)).into()
}
