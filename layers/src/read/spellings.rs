//! One page, many spellings: the URLs of a store that have the same urlkey, and their joint answers.
//!
//! The urlkey of CDX indexes ignores the scheme, `www.`, letter case, a slash at the end, the order of arguments and
//! session ids. So `http://example.org/` and `https://www.example.org/` are one page. No layer merges URLs, but a
//! question may ask all spellings of one page together ([`Spelled`]). Their captures together are the captures of the
//! page, in order of time. As of a time, the latest capture of any spelling that counts decides
//! ([`crate::questions::page::deciding`]).
//!
//! The order of URL keys ([`crate::record::key`]) differs from the order of urlkeys. All spellings are below the host
//! of the urlkey, with and without `www`. Below a host, they have the same path, except for case and escapes. A search
//! therefore goes through the keys of a host. If a key differs from the path, the search skips all keys that differ in
//! the same way ([`Spelled::search`]). URLs with an IPv6 address or with a comma in the host are found by their own
//! spelling only, because the urlkey does not tell their host.
//!
//! Cost: some look-ups of keys for each letter of the path and each host. With arguments, also the URLs that begin with
//! the same argument.

use crate::error::Error;
use crate::record::key::{domain_prefix, host_prefix, key_after, key_of};
use crate::record::uid::Uid;

/// The beginnings of arguments that name a session, which urlkeys ignore.
const SESSIONS: [&[u8]; 5] = [b"jsessionid", b"phpsessid", b"sid", b"aspsessionid", b"cfid"];

/// A page, named by any of its spellings.
#[derive(Clone, Debug)]
pub struct Spelled {
    url: String,
    urlkey: String,
    urlkey_of: fn(&str) -> String,
    /// The host without `www`; `None` if URL keys cannot have the host.
    host: Option<String>,
    /// The path in the urlkey.
    path: Vec<u8>,
    /// The arguments in the urlkey, without `?`; `None` if the urlkey has no `?`.
    arguments: Option<Vec<u8>>,
}

/// The URLs of a row or of a cell in the order of their keys, for a search.
pub trait KeyOrder {
    /// The UID of the first URL whose key is not below `key`; the UID after the last if there is none.
    ///
    /// # Errors
    /// Errors of the storage.
    fn seek(&self, key: &[u8]) -> Result<Uid, Error>;

    /// The UID after the last URL.
    fn end(&self) -> Uid;

    /// Replaces the contents of `url` by the URL of a UID.
    ///
    /// # Errors
    /// Errors of the storage.
    fn url_into(&self, uid: Uid, url: &mut String) -> Result<(), Error>;
}

/// How a search continues at a key.
#[derive(Debug, PartialEq, Eq)]
enum Step {
    /// The URL of the key may be a spelling.
    Look,
    /// Skip ahead: keys with the same bytes before `at` can be spellings only if one of these bytes follows.
    Skip { at: usize, allowed: Vec<u8> },
}

impl Spelled {
    /// The page of a canonical URL. `urlkey_of` computes urlkeys.
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

    /// The URL that the page was named by.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The urlkey of the page.
    pub fn urlkey(&self) -> &str {
        &self.urlkey
    }

    /// Whether a URL is a spelling of the page.
    pub fn is_spelled(&self, url: &str) -> bool {
        (self.urlkey_of)(url) == self.urlkey
    }

    /// The prefixes of the keys of all spellings: the key of the URL itself, the keys of the host, and the keys of
    /// `www` with a number.
    pub fn prefixes(&self) -> Vec<Vec<u8>> {
        let own = [key_of(&self.url)];
        let of_host = self.host.iter().flat_map(|host| {
            let dotted = format!("{host}.");
            let www = |host: &str| domain_prefix(host).map(|prefix| [&prefix[..], b"www"].concat());
            [host_prefix(host), host_prefix(&dotted), www(host), www(&dotted)].into_iter().flatten()
        });
        own.into_iter().chain(of_host).collect()
    }

    /// Appends the spellings in one order of keys to `found`, in no order, some more than once.
    ///
    /// # Errors
    /// The first error of `order`.
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
                    // Another host: skip all keys below that host.
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

    /// The index at which the path of a key begins, if the host of the key is a host of the page. The key must begin
    /// with the prefix.
    fn path_of(&self, key: &[u8], prefix: &[u8]) -> Option<usize> {
        if prefix.ends_with(b")") || prefix.len() == key.len() {
            return Some(prefix.len().min(key.len()));
        }
        let digits = key[prefix.len()..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        let end = prefix.len() + digits;
        key[end..].starts_with(b",)").then_some(end + 2)
    }

    /// How a search continues at a key whose path begins at `start`.
    fn step(&self, key: &[u8], start: usize) -> Step {
        let (mut at, mut wanted) = (start, self.path.iter().copied().peekable());
        let letters = |letter: u8| [letter.to_ascii_uppercase(), letter.to_ascii_lowercase(), b'%'];
        loop {
            let Some(&byte) = key.get(at) else { return Step::Look };
            let is_after_slash = at > start && key[at - 1] == b'/';
            match (byte, wanted.peek()) {
                // The path of the key has ended; the scheme or the port follows.
                (0..0x21, _) | (b'%', _) => return Step::Look,
                (b'(', _) if is_after_slash => return Step::Look,
                (_, Some(&letter)) if byte.eq_ignore_ascii_case(&letter) => {
                    wanted.next();
                }
                // A redundant slash.
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

    /// The same for a key whose arguments begin at `start`.
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
            // The name of a session may occur inside another argument, or at its end.
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

/// Chooses the URL that a text without a scheme means: the only URL that was captured. Each URL is given with whether
/// it was captured. The same URL may be given several times.
pub fn only_captured<T: PartialEq>(urls: impl IntoIterator<Item = (T, bool)>) -> Option<T> {
    let mut captured = urls.into_iter().filter_map(|(url, is_captured)| is_captured.then_some(url));
    let first = captured.next();
    first.filter(|first| captured.all(|url| url == *first))
}
