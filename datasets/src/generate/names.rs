//! The URLs of a generated crawl: each URL is a pure function of the seed, a host and a number.
//!
//! The directories of a host form a tree. [`DIRECTORY_URLS`] consecutive numbers are one directory, and the first
//! number is the index page. All other pages of a directory look alike: articles, numbered pages, subdirectories, or
//! scripts with one or two parameters. A third of the URLs has a query.
//!
//! Names of hosts, directories and pages contain their number, as digits or as syllables, so that all URLs differ.

use super::random::Random;

/// The number of URLs of a directory.
pub(super) const DIRECTORY_URLS: u64 = 32;
/// The number of directories in a directory.
const BRANCHES: u64 = 6;

/// 64 syllables of two letters.
const SYLLABLES: &str = "babebiboca\
    cecicodadedidofafefifogagegigohahehihokakekikolalelilomamemimonaneninopapepiporareriro\
    sasesisotatetitovavevivowawewiwo";
const _: () = assert!(SYLLABLES.len() == 128);
const ENDINGS: [&str; 8] = ["n", "st", "ck", "ng", "r", "l", "t", "s"];
const SUBDOMAINS: [&str; 16] = [
    "www.", "www.", "www.", "www.", "www.", "www.", "www.", "www.", "www.", "www.", "www.", "", "", "news.", "forum.",
    "shop.",
];
const DOMAINS: [&str; 8] = [".co.uk/", ".co.uk/", ".co.uk/", ".org.uk/", ".org.uk/", ".ac.uk/", ".gov.uk/", ".me.uk/"];
const SCRIPTS: [&str; 4] = [".php?id=", ".asp?article=", ".cgi?cat=", ".aspx?page="];

/// A URL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Target {
    pub(super) host: u64,
    pub(super) number: u64,
}

/// Adds the text of a URL to `out`.
pub(super) fn write_url(seed: u64, Target { host, number }: Target, out: &mut String) {
    write_host(seed, host, out);
    let directory = number / DIRECTORY_URLS;
    write_directory(seed, host, directory, out);
    let index = number % DIRECTORY_URLS;
    if index == 0 {
        return;
    }
    let bits = Random::of(seed, &[3, host, number]).next();
    // The look of a directory, and a name that its pages share.
    let look = Random::of(seed, &[4, host, directory]).next();
    match look % 20 {
        0..=1 => {
            word(bits, out);
            syllable(index + BRANCHES, out); // no directory of the tree ends so
            out.push('/');
        }
        2..=6 => {
            word(look >> 8, out);
            write_number(number + 100, out);
            out.push_str(".htm");
        }
        7..=10 => {
            word(look >> 8, out);
            out.push_str(pick(&SCRIPTS, look >> 40));
            write_number(number, out);
        }
        11..=13 => {
            word(look >> 8, out);
            out.push_str(pick(&SCRIPTS, look >> 40));
            write_number(number / 4, out);
            out.push('&');
            word(look >> 16, out);
            out.push('=');
            write_number(number % 4, out);
        }
        _ => {
            word(bits, out);
            out.push('-');
            word(bits >> 32, out);
            syllable(index, out);
            out.push_str(".html");
        }
    }
}

fn write_host(seed: u64, host: u64, out: &mut String) {
    let bits = Random::of(seed, &[1, host]).next();
    out.push_str("http://");
    out.push_str(pick(&SUBDOMAINS, bits >> 32));
    for index in 0..4 {
        syllable(bits >> (6 * index), out);
    }
    let mut rest = host;
    while rest > 0 {
        syllable(rest, out);
        rest /= 64;
    }
    out.push_str(pick(&ENDINGS, bits >> 24));
    out.push_str(pick(&DOMAINS, bits >> 40));
}

/// Writes the path of a directory with a slash at the end; nothing for the root.
fn write_directory(seed: u64, host: u64, directory: u64, out: &mut String) {
    if directory == 0 {
        return;
    }
    write_directory(seed, host, (directory - 1) / BRANCHES, out);
    let bits = Random::of(seed, &[2, host, directory]).next();
    let branch = (directory - 1) % BRANCHES;
    if bits.is_multiple_of(4) {
        write_number(2000 + branch, out);
    } else {
        word(bits >> 8, out);
        syllable(branch, out);
    }
    out.push('/');
}

/// Writes two to four syllables and an ending.
fn word(bits: u64, out: &mut String) {
    for index in 0..2 + bits % 3 {
        syllable(bits >> (6 * index + 5), out);
    }
    out.push_str(pick(&ENDINGS, bits >> 2));
}

fn syllable(bits: u64, out: &mut String) {
    let start = usize::try_from(bits % 64).unwrap_or(0) * 2;
    out.push_str(&SYLLABLES[start..start + 2]);
}

fn pick<'a, const N: usize>(texts: &[&'a str; N], bits: u64) -> &'a str {
    texts[usize::try_from(bits % N as u64).unwrap_or(0)]
}

fn write_number(number: u64, out: &mut String) {
    let mut power = 1;
    while number / power >= 10 {
        power *= 10;
    }
    while power > 0 {
        let digit = u8::try_from(number / power % 10).unwrap_or(0);
        out.push(char::from(b'0' + digit));
        power /= 10;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use webstrata_url::canonical;

    #[test]
    fn every_url_is_another_and_canonical() {
        let mut texts = BTreeSet::new();
        for host in (0..70).chain([4096, 1 << 40]) {
            for number in 0..500 {
                let mut text = String::new();
                write_url(7, Target { host, number }, &mut text);
                assert_eq!(canonical(None, &text).as_deref(), Ok(text.as_str()));
                assert!(texts.insert(text), "{host} {number}");
            }
        }
        let mean = texts.iter().map(String::len).sum::<usize>() / texts.len();
        let queries = texts.iter().filter(|text| text.contains('?')).count() * 100 / texts.len();
        assert!((52..68).contains(&mean) && (28..42).contains(&queries), "{mean} bytes, {queries} % queries");
    }
}
