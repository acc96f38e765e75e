//! Opens the store of a question, and finds the UID of a URL as a person writes it.

pub(crate) mod matching;

use crate::args::{Usage, location};
use anyhow::{Context, anyhow, bail};
use clap::Args;
use serde::Serialize;
use std::io::{self, Write};
use std::path::PathBuf;
use webstrata_cells::Cells;
use webstrata_cells::image::Residence;
use webstrata_codecs::ENCODINGS;
use webstrata_layers::record::key::{domain_prefix, host_prefix, url_prefix};
use webstrata_layers::{
    Direction, LastKnown, Links, Location, Reader, Spelled, Store, Uid, Unknown, Window, answer_of, in_order,
    only_captured,
};
use webstrata_serve::clerk::{ClerkOptions, Remote};
use webstrata_serve::dial::Dialer;
use webstrata_serve::guard::security::{Security, SecurityOptions};
use webstrata_url::{canonical, is_name, meant, other_spellings};

/// Default memory for decoded pages of the Parquet layers. One question needs little memory.
pub(crate) const READ_MEMORY: usize = 256 << 20;

/// Opens a store for questions: its cells if the store has cells, else its layers with `memory` bytes of decoded
/// blocks.
pub(crate) fn open(store: impl Into<Location>, memory: usize) -> anyhow::Result<Box<dyn Links + Send + Sync>> {
    let store = Store::open(store)?;
    Ok(match Cells::open(&store, Residence::Mapped, ENCODINGS)? {
        Some(cells) => Box::new(cells),
        None => Box::new(Reader::new(store, memory)),
    })
}

/// How servers are called.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct CallerArgs {
    /// CA certificate that signs the certificates of the servers (PEM)
    #[arg(long, value_name = "FILE")]
    pub(crate) tls_ca: Option<PathBuf>,
    /// Host name in the certificates of the servers
    #[arg(long, value_name = "NAME", default_value = "localhost")]
    pub(crate) tls_name: String,
    /// File of bearer tokens, one per line: clients send the first, servers accept all
    #[arg(long, value_name = "FILE")]
    pub(crate) tokens: Option<PathBuf>,
}

/// What questions are asked of, and how it is reached.
#[derive(Args, Clone, Debug)]
pub(crate) struct SourceArgs {
    /// Store: a directory, or s3://bucket/prefix
    #[arg(value_parser = location(), required = true)]
    pub(crate) store: Option<Location>,
    /// Ask the server at this HOST:PORT, not a store; repeat for more servers. There is no STORE then
    #[arg(long, value_name = "ADDR")]
    pub(crate) server: Vec<String>,
    #[command(flatten)]
    pub(crate) caller: CallerArgs,
}

impl SourceArgs {
    /// Opens the cells or layers of the store (`memory` is for layers), or connects to the servers.
    pub(crate) fn open(&self, memory: usize) -> anyhow::Result<Box<dyn Links + Send + Sync>> {
        match (&self.store, self.servers()?) {
            (_, Some(servers)) => Ok(Box::new(servers)),
            (Some(store), None) => open(store, memory),
            (None, None) => bail!("name a STORE or give --server"),
        }
    }

    /// Connects to the servers; `None` if a store is given.
    pub(crate) fn servers(&self) -> anyhow::Result<Option<Remote>> {
        if self.store.is_some() {
            return Ok(None);
        }
        let options = SecurityOptions {
            server_ca: self.caller.tls_ca.clone(),
            tokens: self.caller.tokens.clone(),
            ..SecurityOptions::default()
        };
        let security = Security::open(&options)?;
        let tls = security.client_tls(&self.caller.tls_name);
        let dialer = Dialer::default().secured(tls, security.tokens());
        Ok(Some(Remote::connect(&self.server, dialer, ClerkOptions::default())?))
    }
}

/// A part of a store: the URLs of a host, of a domain, of a path.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct PartArgs {
    /// Only URLs of this host
    #[arg(long, value_name = "HOST", group = "part")]
    pub(crate) host: Option<String>,
    /// Only URLs of this host and its subdomains
    #[arg(long, value_name = "HOST", group = "part")]
    pub(crate) domain: Option<String>,
    /// Only URLs that start with this URL, with any scheme, port and user info
    #[arg(long, value_name = "URL", group = "part")]
    pub(crate) prefix: Option<String>,
}

impl PartArgs {
    /// The beginning of the keys of the selected URLs; `None` for all URLs.
    pub(crate) fn prefix(&self) -> anyhow::Result<Option<Vec<u8>>> {
        let of_host = |text: &str, prefix: fn(&str) -> Option<Vec<u8>>| {
            host(text).and_then(|host| prefix(&host)).ok_or_else(|| not_a_host(text))
        };
        Ok(match (&self.host, &self.domain, &self.prefix) {
            (Some(host), ..) => Some(of_host(host, host_prefix)?),
            (_, Some(host), _) => Some(of_host(host, domain_prefix)?),
            (.., Some(url)) => {
                let url = canonical(None, url).map_err(|_| not_a_prefix(url))?;
                Some(url_prefix(&url))
            }
            _ => None,
        })
    }
}

/// The spellings of a page in the store, with their URLs.
///
/// # Errors
/// The text is not a URL, or none of its spellings is in the store ([`NotInStore`]).
pub(crate) fn find_page(links: &dyn Links, text: &str) -> anyhow::Result<(Vec<Uid>, Vec<String>)> {
    let meant = meant(text).map_err(|error| anyhow!("invalid URL {text:?}: {error}"))?;
    let page = Spelled::new(&meant[0], webstrata_url::surt);
    let spellings = links.spellings(&page)?;
    if spellings.is_empty() {
        let urlkey = page.urlkey();
        let text =
            format!("no spelling of {} is in the store, neither as a page nor as the target of a link", meant[0]);
        return Err(anyhow!(NotInStore(format!("{text} ({urlkey})"))));
    }
    let urls = links.urls_of(&spellings)?;
    Ok((spellings, urls))
}

/// The number of other spellings of the page of a URL in the store.
pub(crate) fn count_others(links: &dyn Links, found: &FoundUrl) -> anyhow::Result<usize> {
    let spellings = links.spellings(&Spelled::new(&found.url, webstrata_url::surt))?;
    Ok(spellings.iter().filter(|uid| **uid != found.uid).count())
}

/// Notes how many other spellings the store has, if it has any.
pub(crate) fn note_others(others: usize) {
    match others {
        0 => {}
        1 => note("the store has 1 more spelling of this page; --match surt asks both"),
        _ => note(&format!("the store has {others} more spellings of this page; --match surt asks all")),
    }
}

/// A URL that is in the store.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct FoundUrl {
    pub(crate) uid: Uid,
    /// The URL as the store spells it.
    pub(crate) url: String,
}

/// The error for a URL that is not in the store.
#[derive(Debug)]
pub(crate) struct NotInStore(String);

impl std::fmt::Display for NotInStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for NotInStore {}

/// The error for a URL without a scheme of which the store has captures under http and under https.
#[derive(Debug)]
pub(crate) struct Ambiguous(String);

impl std::fmt::Display for Ambiguous {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} is in the store under http and under https; write the scheme, or --match surt", self.0)
    }
}

impl std::error::Error for Ambiguous {}

/// Finds a URL in the store. The URL is made canonical and loses its fragment. For a URL without a scheme, http and
/// https are tried, and `www.`. If several of these URLs are in the store, the captured URL is taken.
///
/// # Errors
/// The URL is not in the store ([`NotInStore`], which names the same URL with another scheme, or with or without
/// `www.`, if the store has that URL); the text is not a URL; or the text has no scheme and several of these URLs were
/// captured ([`Ambiguous`]).
pub(crate) fn find(links: &dyn Links, text: &str) -> anyhow::Result<FoundUrl> {
    let bare = text.trim();
    let candidates = meant(text).map_err(|error| anyhow!("invalid URL {text:?}: {error}"))?;
    let mut found = present(links, &candidates)?;
    match found.len() {
        0 => {}
        1 => return Ok(found.remove(0)),
        _ => match captured(links, found)? {
            Some(captured) => return Ok(captured),
            None => return Err(anyhow!(Ambiguous(bare.to_owned()))),
        },
    }
    let near = present(links, &other_spellings(&candidates))?;
    let named = near.first().map(|near| near.url.clone());
    if candidates.len() > 1
        && let Some(captured) = captured(links, near)?
    {
        return Ok(captured);
    }
    let shown = if candidates.len() == 1 { candidates[0].as_str() } else { bare };
    let message = match named {
        Some(near) => format!("{shown} is not in the store, but {near} is"),
        None => format!("{shown} is not in the store, neither as a page nor as the target of a link"),
    };
    let hint = if is_name(bare) { format!("; `uids --host {bare}` lists the URLs of a host") } else { String::new() };
    Err(anyhow!(NotInStore(message + &hint)))
}

fn captured(links: &dyn Links, found: Vec<FoundUrl>) -> anyhow::Result<Option<FoundUrl>> {
    let with_captures =
        found.into_iter().map(|url| links.captures(url.uid).map(|captures| (url, !captures.is_empty())));
    Ok(only_captured(with_captures.collect::<Result<Vec<_>, _>>()?))
}

/// The error for a text that should be a host.
pub(crate) fn not_a_host(text: &str) -> Usage {
    Usage(format!("not the name of a host: {text:?} (expected as example.org)").into())
}

/// The error for a text that should be the beginning of a URL.
pub(crate) fn not_a_prefix(text: &str) -> Usage {
    Usage(format!("not a URL with its scheme: {text:?} (expected as http://example.org/news/)").into())
}

/// A host as URLs spell it; `None` if the text is not a host.
pub(crate) fn host(text: &str) -> Option<String> {
    let url = canonical(None, &format!("http://{text}/")).ok()?;
    let host = url.strip_prefix("http://")?.strip_suffix('/')?;
    host_prefix(host).map(|_| host.to_owned())
}

fn present(links: &dyn Links, urls: &[String]) -> anyhow::Result<Vec<FoundUrl>> {
    let mut found = Vec::new();
    for url in urls {
        if let Some(uid) = links.uid(url).with_context(|| format!("looking for {url}"))? {
            found.push(FoundUrl { uid, url: url.clone() });
        }
    }
    Ok(found)
}

/// The pages for which it is unknown in a window whether they link.
pub(crate) fn unknown(links: &dyn Links, uid: Uid, direction: Direction, window: Window) -> anyhow::Result<Vec<Uid>> {
    Ok(answer_of(links, Unknown::new(&[uid], direction, window))?.into_values())
}

/// The links that pages with unknown links may have as of a time ([`LastKnown`]), if out-links are asked for.
pub(crate) fn last_known(
    links: &dyn Links,
    unknown: &[Uid],
    direction: Direction,
    window: Window,
) -> anyhow::Result<Vec<Uid>> {
    let (Direction::Out, Window::AsOf(as_of)) = (direction, window) else { return Ok(Vec::new()) };
    Ok(in_order(answer_of(links, LastKnown::new(unknown, as_of))?.into_values()))
}

/// A remark for people, on standard error.
pub(crate) fn note(text: &str) {
    // A closed standard error is not a reason to fail.
    let _ = writeln!(io::stderr(), "note: {text}");
}

/// An answer with the number of other URLs in the store that are spellings of the same page.
#[derive(Serialize)]
pub(crate) struct WithSpellings<T> {
    #[serde(flatten)]
    pub(crate) answer: T,
    pub(crate) other_spellings: usize,
}

/// Prints an answer as a line of JSON.
pub(crate) fn print_json(answer: &impl Serialize, out: &mut dyn Write) -> anyhow::Result<()> {
    serde_json::to_writer(&mut *out, answer)?;
    out.write_all(b"\n")?;
    Ok(())
}
