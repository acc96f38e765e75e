//! One page, many spellings: the URLs of a store that have the same urlkey, and what they say together.
//!
//! The urlkey of CDX indexes forgets scheme, `www.`, letter case, a slash at the end, the order of arguments and
//! session ids, so that `http://example.org/` and `https://www.example.org/` are one page. No layer merges URLs; a
//! question may ask all spellings of one page together ([`Spelled`]). Their captures are those of one page, in order of
//! time. As of a time, the latest capture of any spelling that counts decides ([`deciding`]).
//!
//! The order of URLs ([`crate::record::key`]) is not that of urlkeys. Spellings lie below the host of the urlkey, with
//! and without `www`; below a host they share the letters of the path, but for case and escapes. So a search goes along
//! the keys of a host, and where a key departs from the path it goes on after all keys that depart alike
//! ([`Spelled::search`]). URLs with a user name, and hosts in brackets, are found by their own spelling only.
//!
//! Cost: some look-ups of keys for each letter of the path, times the hosts; with arguments, also the URLs that begin
//! with the same argument.

use crate::error::Error;
use crate::record::capture::{self, CaptureTime};
use crate::record::key::{domain_prefix, host_prefix, key_after, key_of};
use crate::record::time::AsOf;
use crate::record::uid::Uid;

/// With what an argument may begin that names a session; urlkeys forget it.
const SESSIONS: [&[u8]; 5] = [b"jsessionid", b"phpsessid", b"sid", b"aspsessionid", b"cfid"];

/// The page that a URL names, whatever its spelling.
#[derive(Clone, Debug)]
pub struct Spelled {
    url: String,
    urlkey: String,
    urlkey_of: fn(&str) -> String,
    /// The host without `www`; `None` where it is none that URL keys have.
    host: Option<String>,
    /// Path and arguments of the urlkey.
    path: Vec<u8>,
    arguments: Option<Vec<u8>>,
}

/// URLs in the order of their keys, as far as a search needs them: a row, a cell.
pub trait KeyOrder {
    /// The UID of the first URL whose key is not below this one; the UID after the last where there is none.
    ///
    /// # Errors
    /// What the storage refuses.
    fn seek(&self, key: &[u8]) -> Result<Uid, Error>;

    /// The UID after the last.
    fn end(&self) -> Uid;

    /// Puts the URL of a UID in the place of another text.
    ///
    /// # Errors
    /// What the storage refuses.
    fn url_into(&self, uid: Uid, url: &mut String) -> Result<(), Error>;
}

/// What a key says of the spellings at and after it.
#[derive(Debug, PartialEq, Eq)]
enum Step {
    /// Its URL may be a spelling.
    Look,
    /// Keys that are the same up to this byte are spellings only if one of these bytes follows.
    Skip { at: usize, allowed: Vec<u8> },
}

impl Spelled {
    /// The page that a canonical URL names; `urlkey_of` is the rule of the urlkey.
    pub fn new(url: &str, urlkey_of: fn(&str) -> String) -> Self {
        let urlkey = urlkey_of(url);
        let (authority, rest) = urlkey.split_once(')').unwrap_or_default();
        let labels = authority.split(':').next().unwrap_or_default();
        let host = labels.rsplit(',').collect::<Vec<_>>().join(".");
        let (path, arguments) = rest.split_once('?').map_or((rest, None), |(path, arguments)| (path, Some(arguments)));
        let (path, arguments) = (path.as_bytes().to_vec(), arguments.map(|text| text.as_bytes().to_vec()));
        let host = Some(host).filter(|host| !host.is_empty() && host_prefix(host).is_some());
        Self { url: url.to_owned(), urlkey, urlkey_of, host, path, arguments }
    }

    /// The URL that it was named by.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Its urlkey.
    pub fn urlkey(&self) -> &str {
        &self.urlkey
    }

    /// Whether a URL is a spelling of it.
    pub fn is_spelled(&self, url: &str) -> bool {
        (self.urlkey_of)(url) == self.urlkey
    }

    /// With what the keys of all its spellings begin, each: its own key, those of the host, of `www` and a number.
    pub fn prefixes(&self) -> Vec<Vec<u8>> {
        let own = [key_of(&self.url)];
        let of_host = self.host.iter().flat_map(|host| {
            let dotted = format!("{host}.");
            let www = |host: &str| domain_prefix(host).map(|prefix| [&prefix[..], b"www"].concat());
            [host_prefix(host), host_prefix(&dotted), www(host), www(&dotted)].into_iter().flatten()
        });
        own.into_iter().chain(of_host).collect()
    }

    /// Adds its spellings in one order of keys to `found`; in no order, some more than once.
    ///
    /// # Errors
    /// The first of `order`.
    pub fn search(&self, order: &impl KeyOrder, found: &mut Vec<Uid>) -> Result<(), Error> {
        let mut url = String::new();
        for prefix in self.prefixes() {
            let mut next = order.seek(&prefix)?;
            while next < order.end() {
                order.url_into(next, &mut url)?;
                let key = key_of(&url);
                if !key.starts_with(&prefix) {
                    break;
                }
                let after = match self.path_of(&key, &prefix).map(|path| self.step(&key, path)) {
                    Some(Step::Look) => {
                        if self.is_spelled(&url) {
                            found.push(next);
                        }
                        next += 1;
                        continue;
                    }
                    Some(Step::Skip { at, allowed }) => {
                        match allowed.into_iter().filter(|&byte| byte > key[at]).min() {
                            Some(byte) => Some([&key[..at], &[byte]].concat()),
                            None => key_after(&key[..at]),
                        }
                    }
                    // Another host, with all that lies below it.
                    None => {
                        let label = key[prefix.len()..].iter().take_while(|byte| **byte != b',').count();
                        key_after(&key[..key.len().min(prefix.len() + label + 1)])
                    }
                };
                let Some(after) = after else { break };
                next = order.seek(&after)?.max(next + 1);
            }
        }
        Ok(())
    }

    /// Where the path of a key begins, if its host is one of the page's; the key begins with one of the prefixes.
    fn path_of(&self, key: &[u8], prefix: &[u8]) -> Option<usize> {
        if prefix.ends_with(b")") || prefix.len() == key.len() {
            return Some(prefix.len().min(key.len()));
        }
        let digits = key[prefix.len()..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        let end = prefix.len() + digits;
        key[end..].starts_with(b",)").then_some(end + 2)
    }

    /// What a key says whose path begins at `start`.
    fn step(&self, key: &[u8], start: usize) -> Step {
        let (mut at, mut wanted) = (start, self.path.iter().copied().peekable());
        let letters = |letter: u8| [letter.to_ascii_uppercase(), letter.to_ascii_lowercase(), b'%'];
        loop {
            let Some(&byte) = key.get(at) else { return Step::Look };
            let is_after_slash = at > start && key[at - 1] == b'/';
            match (byte, wanted.peek()) {
                // The end of the path of a key: scheme or port.
                (0..0x21, _) | (b'%', _) => return Step::Look,
                (b'(', _) if is_after_slash => return Step::Look,
                (_, Some(&letter)) if byte.eq_ignore_ascii_case(&letter) => {
                    wanted.next();
                }
                // A slash more than there must be.
                (b'/', Some(_)) if is_after_slash => {}
                (b'/', None) => {}
                (b'?', None) => return self.step_of_arguments(key, at + 1),
                (_, Some(&letter)) => {
                    let mut allowed = letters(letter).to_vec();
                    if is_after_slash {
                        allowed.extend(b"/(");
                    }
                    return Step::Skip { at, allowed };
                }
                (_, None) => return Step::Skip { at, allowed: b"%(/?".to_vec() },
            }
            at += 1;
        }
    }

    /// The same of a key whose arguments begin at `start`.
    fn step_of_arguments(&self, key: &[u8], start: usize) -> Step {
        let own = self.arguments.as_deref().unwrap_or_default().split(|&byte| byte == b'&');
        let words: Vec<&[u8]> = own.filter(|word| !word.is_empty()).chain(SESSIONS).collect();
        let is_session = |word: &[u8]| SESSIONS.contains(&word);
        let letters = &key[start..];
        for (at, &byte) in letters.iter().enumerate() {
            if byte < 0x21 || matches!(byte, b'%' | b'&') {
                return Step::Look;
            }
            let begins = |word: &&&[u8]| word.len() >= at && word[..at].eq_ignore_ascii_case(&letters[..at]);
            // A session's name may stand inside another one, or at the end of an argument.
            let next_of = |word: &&[u8]| match word.get(at) {
                Some(&letter) => vec![letter],
                None if is_session(word) => (0x21..=0xff).collect(),
                None => SESSIONS.map(|session| session[0]).to_vec(),
            };
            let allowed: Vec<u8> = words.iter().filter(begins).flat_map(next_of).collect();
            let is_whole = words.iter().filter(begins).any(|word| word.len() <= at);
            let is_allowed = allowed.iter().any(|letter| letter.eq_ignore_ascii_case(&byte));
            if is_allowed && is_whole {
                return Step::Look;
            }
            if !is_allowed {
                let both = |letter: u8| [letter.to_ascii_uppercase(), letter.to_ascii_lowercase()];
                let allowed = allowed.into_iter().flat_map(both).chain(*b"%&").collect();
                return Step::Skip { at: start + at, allowed };
            }
        }
        Step::Look
    }
}

/// Of URLs that a text without a scheme may mean, each with whether it was captured, the one that is meant: the only
/// one that was captured. The same URL may be given several times.
pub fn only_captured<T: PartialEq>(urls: impl IntoIterator<Item = (T, bool)>) -> Option<T> {
    let mut captured = urls.into_iter().filter_map(|(url, is_captured)| is_captured.then_some(url));
    let first = captured.next();
    first.filter(|first| captured.all(|url| url == *first))
}

/// Puts what several orders gave in order, each once.
pub fn in_order(mut found: Vec<Uid>) -> Vec<Uid> {
    found.sort_unstable();
    found.dedup();
    found
}

/// The captures of one page from those of its spellings: in order of time, each with the number of its spelling.
pub fn captures_of_page<'a>(captures: impl IntoIterator<Item = &'a [CaptureTime]>) -> Vec<(CaptureTime, usize)> {
    let spellings = captures.into_iter().enumerate();
    let mut all: Vec<_> =
        spellings.flat_map(|(spelling, list)| list.iter().map(move |&capture| (capture, spelling))).collect();
    all.sort_by_key(|(capture, spelling)| (capture.time, *spelling));
    all
}

/// The spellings whose captures decide what is so as of a time, and whether their links are unknown: those with the
/// latest capture that counts. Of captures of one second, failures do not count beside others.
pub fn deciding<'a>(captures: impl IntoIterator<Item = &'a [CaptureTime]>, as_of: AsOf) -> (Vec<usize>, bool) {
    let of_each = captures.into_iter().enumerate();
    let decide: Vec<(usize, CaptureTime)> =
        of_each.filter_map(|(spelling, list)| Some((spelling, capture::deciding(list, as_of)?))).collect();
    let latest = decide.iter().map(|(_, capture)| capture.time).max();
    let is_latest = |(_, capture): &&(usize, CaptureTime)| Some(capture.time) == latest;
    let good = decide.iter().filter(is_latest).any(|(_, capture)| !capture.status.is_failure());
    let decide = decide.iter().filter(is_latest).filter(|(_, capture)| !good || !capture.status.is_failure());
    let unknown = good && decide.clone().all(|(_, capture)| !capture.known);
    (decide.map(|(spelling, _)| *spelling).collect(), unknown)
}
