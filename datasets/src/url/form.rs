//! How a reference depends on the URL of its page: its form.
//!
//! A payload that is stored under two URLs has links under each: its references, resolved against the URL. If the
//! references are not kept, the links under one URL and their forms are enough. [`Form::reference`] gives a reference
//! that resolves, under every URL, to the same link as the original reference.
//!
//! A form is found from the letters of the reference and of the `<base>` alone, by the rules of the WHATWG URL Standard
//! for http and https. A reference with longer rules has the form [`Form::OTHER`]: its link under another URL is
//! unknown.

use std::borrow::Cow;
use url::Url;

/// How a reference depends on the URL of its page.
///
/// ```
/// use webstrata_datasets::Form;
///
/// // A page at http://example.org/news/1 links to "../about". The payload is found again under another URL.
/// let form = Form::of("", "../about");
/// let reference = form.reference("http://example.org/news/1", "http://example.org/about").expect("a known form");
/// let other = url::Url::parse("http://mirror.example/news/1")?.join(&reference)?;
/// assert_eq!(other.as_str(), "http://mirror.example/about");
/// # Ok::<(), url::ParseError>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Form(u8);

impl Form {
    /// The reference takes nothing from the page: `http://example.org/x`.
    pub const ABSOLUTE: Form = Form(0);
    /// The reference takes the scheme: `//example.org/x`.
    pub const OF_SCHEME: Form = Form(1);
    /// The reference takes scheme and host: `/x`.
    pub const OF_HOST: Form = Form(2);
    /// The reference takes everything except the query: `?x`.
    pub const OF_PATH: Form = Form(3);
    /// The reference is the page: `#x`.
    pub const ITSELF: Form = Form(4);
    /// The reference depends on the page in another way.
    pub const OTHER: Form = Form(127);
    /// The reference takes the directory: `x`. The following codes go up from the directory: `../x`.
    const OF_DIRECTORY: u8 = 5;
    /// The most directories that a form goes up.
    const UPS_MAX: usize = 100;

    /// The form with this code, if there is one.
    pub fn of_code(code: u8) -> Option<Form> {
        let last = Self::OF_DIRECTORY as usize + Self::UPS_MAX;
        (usize::from(code) <= last || code == Self::OTHER.0).then_some(Form(code))
    }

    /// The code of the form, below 128.
    pub fn code(self) -> u8 {
        self.0
    }

    fn up(directories: usize) -> Form {
        let code = u8::try_from(directories).ok().filter(|_| directories <= Self::UPS_MAX);
        code.map_or(Form::OTHER, |code| Form(Self::OF_DIRECTORY + code))
    }

    /// The form of a reference of a page with this `<base>`; the `<base>` is empty if there is none.
    #[inline]
    pub fn of(base_href: &str, reference: &str) -> Form {
        if reference.starts_with("http://") || reference.starts_with("https://") {
            return Form::ABSOLUTE;
        }
        let (reference, base) = (clean(reference), clean(base_href));
        let reference = Head::of(&reference);
        match (Head::of(&base), reference) {
            (_, Head::Absolute) => Form::ABSOLUTE,
            // A `<base>` that is not a valid base has no effect, and then the form of the base says nothing.
            (Head::Absolute, _) if is_base(&base) => Form::ABSOLUTE,
            (Head::Absolute | Head::Other, _) | (_, Head::Other) => Form::OTHER,
            (_, Head::Scheme) => Form::OF_SCHEME,
            (Head::Scheme, _) if is_base(&base) => Form::OF_SCHEME,
            (Head::Scheme, _) => Form::OTHER,
            (_, Head::Host) | (Head::Host, _) => Form::OF_HOST,
            (Head::Path(base), Head::Path(path)) => {
                let (directory, last) = base.split_at(base.rfind(['/', '\\']).map_or(0, |slash| slash + 1));
                // Dots are a directory even without a slash after them.
                if dots(last) > 0 { ups(&format!("{base}/{path}")) } else { ups(&format!("{directory}{path}")) }
            }
            (Head::Path(base), Head::Query | Head::Empty) => ups(base),
            (Head::Empty | Head::Query, Head::Path(path)) => ups(path),
            (Head::Empty | Head::Query, Head::Query) | (Head::Query, Head::Empty) => Form::OF_PATH,
            (Head::Empty, Head::Empty) => Form::ITSELF,
        }
    }

    /// A reference of this form that resolves to `link` on the page `page`; `None` if no reference does. Both are
    /// canonical URLs.
    pub fn reference<'a>(self, page: &str, link: &'a str) -> Option<Cow<'a, str>> {
        match self {
            Form::ABSOLUTE => Some(link.into()),
            Form::OF_SCHEME => link.split_once(':').map(|(_, rest)| rest.into()),
            Form::OF_HOST => {
                let path = &link[path_of(link)?..];
                // Two slashes would begin a host.
                Some(if path.starts_with("//") { format!("/.{path}").into() } else { path.into() })
            }
            Form::OF_PATH => link.find('?').map(|at| link[at..].into()),
            Form::ITSELF => Some("".into()),
            Form::OTHER => None,
            Form(code) => {
                let ups = usize::from(code.checked_sub(Self::OF_DIRECTORY)?);
                let page = &page[path_of(page)?..];
                let page = &page[..page.find('?').unwrap_or(page.len())];
                let mut directory = &page[..=page.rfind('/')?];
                for _ in 0..ups {
                    let parent = directory[..directory.len() - 1].rfind('/');
                    directory = parent.map_or("/", |slash| &directory[..=slash]);
                }
                let rest = link[path_of(link)?..].strip_prefix(directory)?;
                Some(if ups == 0 { format!("./{rest}") } else { "../".repeat(ups) + rest }.into())
            }
        }
    }
}

/// The offset at which the path of a canonical URL begins.
fn path_of(url: &str) -> Option<usize> {
    let host = url.find("://")? + 3;
    Some(host + url[host..].find('/')?)
}

/// A text without the characters that the URL Standard removes first.
fn clean(text: &str) -> Cow<'_, str> {
    let text = text.trim_matches(|letter| letter <= ' ');
    if text.contains(['\t', '\n', '\r']) {
        return text.chars().filter(|letter| !['\t', '\n', '\r'].contains(letter)).collect::<String>().into();
    }
    text.into()
}

/// Whether a `<base>` has an effect, and leads to a web address.
fn is_base(base: &str) -> bool {
    let base = Url::parse("http://page.example/").and_then(|page| page.join(base));
    base.is_ok_and(|base| matches!(base.scheme(), "http" | "https"))
}

/// The beginning of a text without white space around it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Head<'a> {
    Absolute,
    Scheme,
    Host,
    Query,
    /// An empty text, or a fragment.
    Empty,
    /// The path.
    Path(&'a str),
    Other,
}

impl Head<'_> {
    fn of(text: &str) -> Head<'_> {
        let is_slash = |byte: Option<&u8>| byte.is_some_and(|&byte| byte == b'/' || byte == b'\\');
        let bytes = text.as_bytes();
        match bytes.first() {
            None | Some(b'#') => Head::Empty,
            Some(b'?') => Head::Query,
            first if is_slash(first) && is_slash(bytes.get(1)) => {
                // A port may be the default port of the scheme.
                let host = text.trim_start_matches(['/', '\\']);
                let host = &host[..host.find(['/', '\\', '?', '#']).unwrap_or(host.len())];
                if host.contains([':', '@']) { Head::Other } else { Head::Scheme }
            }
            first if is_slash(first) => Head::Host,
            _ => {
                let path = &text[..text.find(['?', '#']).unwrap_or(text.len())];
                match scheme(path) {
                    None => Head::Path(path),
                    Some(scheme) => {
                        let is_web = scheme.eq_ignore_ascii_case("http") || scheme.eq_ignore_ascii_case("https");
                        // Without both slashes, the reference may be relative to a page with the same scheme.
                        let is_absolute = is_web && text[scheme.len() + 1..].starts_with("//");
                        if is_absolute { Head::Absolute } else { Head::Other }
                    }
                }
            }
        }
    }
}

/// The scheme that a text begins with.
fn scheme(text: &str) -> Option<&str> {
    let scheme = &text[..text.find(':')?];
    let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte);
    (scheme.starts_with(|first: char| first.is_ascii_alphabetic()) && scheme.bytes().all(is_letter)).then_some(scheme)
}

/// The number of dots of a path segment that is one or two dots, each spelt `.` or `%2e`; 0 for any other segment.
fn dots(mut segment: &str) -> usize {
    let mut count = 0;
    while let Some(byte) = segment.bytes().next() {
        let is_spelt = segment.get(..3).is_some_and(|start| start.eq_ignore_ascii_case("%2e"));
        if byte != b'.' && !is_spelt {
            return 0;
        }
        segment = &segment[if is_spelt { 3 } else { 1 }..];
        count += 1;
    }
    if count > 2 { 0 } else { count }
}

/// The form of a path that does not begin with a slash.
fn ups(path: &str) -> Form {
    let (mut ups, mut depth) = (0, 0usize);
    let mut segments = path.split(['/', '\\']).peekable();
    while let Some(segment) = segments.next() {
        match dots(segment) {
            1 => {}
            2 if depth > 0 => depth -= 1,
            2 => ups += 1,
            _ => depth += usize::from(segments.peek().is_some()),
        }
    }
    Form::up(ups)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::url::reference::base_of;
    use proptest::prelude::*;
    use webstrata_url::canonical;

    #[test]
    fn forms_are_those_of_the_letters() {
        for (base, reference, form) in [
            ("", "http://a.example/", Form::ABSOLUTE),
            ("", " HTTPS://a.example/", Form::ABSOLUTE),
            ("http://b.example/x/", "y", Form::ABSOLUTE),
            ("", "//a.example/x", Form::OF_SCHEME),
            ("", "//a.example:80/x", Form::OTHER),
            ("", "/x", Form::OF_HOST),
            ("/", "x", Form::OF_HOST),
            ("", "?x", Form::OF_PATH),
            ("", "#x", Form::ITSELF),
            ("", "x/../y", Form::up(0)),
            ("", "../y", Form::up(1)),
            ("", "x/../../%2e%2E/y", Form::up(2)),
            ("../x/y", "../z", Form::up(1)),
            ("", "http:x", Form::OTHER),
            ("mailto:a", "x", Form::OTHER),
        ] {
            assert_eq!(Form::of(base, reference), form, "{base} {reference}");
            assert_eq!(Form::of_code(form.code()), Some(form));
        }
        assert_eq!(Form::of_code(120), None);
    }

    const PAGES: &str = "https?://([ab]\\.example|a:b@c\\.example:81)(/[ab]{0,2}){0,4}(\\?[ab/]{0,2})?";
    const BASES: &str = "|/|\\./|[ab.]{1,2}/[ab/.]{0,4}|//c\\.example/a/|http://c\\.example/|[ab/.?#:\\\\]{0,5}";
    const REFERENCES: &str = "[ab/.?#: \\\\%2eé\\t]{0,12}|(\\.\\./){0,4}[ab/]{0,3}|//[ab:8]{1,4}/a|/{0,3}[ab]{1,2}\
                              (\\?a)?|https?:/{0,3}[ab.]{1,2}";

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4096))]
        #[test]
        fn a_reference_comes_to_the_same_under_every_page(
            pages in prop::collection::vec(PAGES, 2),
            base in BASES,
            reference in REFERENCES,
        ) {
            let form = Form::of(&base, &reference);
            let [page, other] = [0, 1].map(|at| canonical(None, &pages[at]).unwrap());
            let base_of = |page: &str, base: &str| base_of(page, base).unwrap();
            let resolved = |page: &str, base: &str, text: &str| canonical(Some(&base_of(page, base)), text).ok();
            let Some(link) = resolved(&page, &base, &reference) else { return Ok(()) };
            if form == Form::OTHER {
                return Ok(());
            }
            let again = form.reference(&page, &link);
            let again = again.ok_or_else(|| TestCaseError::fail(format!("no reference: {form:?} {page} {link}")))?;
            prop_assert_eq!(Form::of("", &again), form, "{}", again);
            for page in [&page, &other] {
                prop_assert_eq!(resolved(page, "", &again), resolved(page, &base, &reference), "{} {:?}", again, form);
            }
        }
    }
}
