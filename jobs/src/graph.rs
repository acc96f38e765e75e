//! A graph for another program: a store, or servers, with many questions in one call.
//!
//! Questions are URLs and UIDs in any order, and answers have the same order ([`Batch`]). A store answers one question
//! after the other. Servers get all questions of a call at once. Callers cut long lists, so that they can stop between
//! two calls.

use crate::Failed;
use crate::args::{AsOfArgs, FailuresArg, age, time_from, time_to};
use crate::ask::{self, CallerArgs, SourceArgs};
use anyhow::anyhow;
use clap::ValueEnum;
use std::ffi::OsStr;
use std::path::PathBuf;
use webstrata_layers::{
    Batch, CaptureTime, Direction, Error, LastKnown, Lifespan, Links, Location, Precision, Spans, Uid, Unknown, Window,
    answer_of,
};
use webstrata_serve::clerk::{Refused, Remote};
use webstrata_url::canonical;

/// A store or servers.
pub struct Graph(Asked);

enum Asked {
    Here(Box<dyn Links + Send + Sync>),
    Servers(Remote),
}

/// How servers are called.
#[derive(Clone, Debug, Default)]
pub struct Caller {
    /// The CA that signs the certificates of the servers (PEM).
    pub tls_ca: Option<PathBuf>,
    /// The host name in these certificates; `None` means localhost.
    pub tls_name: Option<String>,
    /// A file of bearer tokens. The first token is sent.
    pub tokens: Option<PathBuf>,
}

/// The times of a question, as a person writes them.
#[derive(Clone, Copy, Debug, Default)]
pub struct Times<'a> {
    /// Links of the latest capture at or before this time.
    pub at: Option<&'a str>,
    /// Links of captures from this time on.
    pub from: Option<&'a str>,
    /// Links of captures up to this time.
    pub to: Option<&'a str>,
    /// With `at`: a page counts only if its latest capture is not older.
    pub max_age: Option<&'a str>,
    /// With `at`: which failures end a page: end, ignore or all.
    pub failures: Option<&'a str>,
}

impl Times<'_> {
    /// The window of a question: without times, all captures.
    ///
    /// # Errors
    /// A text is not a time, or the times make no sense together.
    pub fn window(self) -> Result<Window, Failed> {
        let usage = |name: &'static str| move |error: String| Failed::Usage(format!("{name}: {error}"));
        let from = self.from.map(time_from).transpose().map_err(usage("start"))?;
        let to = self.to.map(time_to).transpose().map_err(usage("end"))?;
        let at = self.at.map(time_to).transpose().map_err(usage("at"))?;
        let max_age = self.max_age.map(age).transpose().map_err(usage("max_age"))?;
        let failures = self.failures.map(|text| FailuresArg::from_str(text, false));
        let failures = failures.transpose().map_err(usage("failures"))?;
        let as_of = AsOfArgs { max_age, failures };
        match at {
            Some(_) if from.or(to).is_some() => Err(Failed::Usage("at goes with neither start nor end".to_owned())),
            None if max_age.is_some() || failures.is_some() => {
                Err(Failed::Usage("max_age and failures need at".to_owned()))
            }
            Some(at) => Ok(as_of.window(at)),
            None => {
                let ends = webstrata_layers::interval(from, to);
                let (from, to) = ends.map_err(|_| Failed::Usage("start is later than end".to_owned()))?;
                Ok(Window::Seen { from, to })
            }
        }
    }
}

impl Graph {
    /// Opens a store at a path or in a bucket: its cells, or its layers with `memory` bytes of decoded blocks.
    ///
    /// # Errors
    /// The store is missing or damaged.
    pub fn open(store: &OsStr, memory: usize) -> Result<Self, Failed> {
        let location = Location::parse(store).map_err(anyhow::Error::from)?;
        Ok(Self(Asked::Here(ask::open(location, memory)?)))
    }

    /// Connects to servers, each as `HOST:PORT`. All questions are about the epoch that the servers have now.
    ///
    /// # Errors
    /// No server answers, or a file of certificates or tokens is invalid.
    pub fn connect(servers: Vec<String>, caller: Caller) -> Result<Self, Failed> {
        let Caller { tls_ca, tls_name, tokens } = caller;
        let tls_name = tls_name.unwrap_or_else(|| "localhost".to_owned());
        let source = SourceArgs { store: None, server: servers, caller: CallerArgs { tls_ca, tls_name, tokens } };
        let servers = source.servers()?.ok_or_else(|| anyhow!("no server is named"))?;
        Ok(Self(Asked::Servers(servers)))
    }

    fn links(&self) -> &(dyn Links + Send + Sync) {
        match &self.0 {
            Asked::Here(links) => &**links,
            Asked::Servers(remote) => remote,
        }
    }

    /// The epoch of the UIDs.
    pub fn epoch(&self) -> u64 {
        self.links().epoch()
    }

    /// The number of URLs. All UIDs are below this number.
    pub fn urls(&self) -> u64 {
        self.links().urls()
    }

    /// The URL that a person means, as the store spells it, and its UID.
    ///
    /// # Errors
    /// [`Failed::NotInStore`], or the text is not a URL.
    pub fn find(&self, text: &str) -> Result<(Uid, String), Failed> {
        let found = ask::find(self.links(), text)?;
        Ok((found.uid, found.url))
    }

    /// The UIDs of URLs with their schemes; `None` for a URL that is not in the store, and for a text that is not a
    /// URL.
    ///
    /// # Errors
    /// The store or the servers fail.
    pub fn uids_of(&self, urls: &[String]) -> Result<Vec<Option<Uid>>, Failed> {
        let urls: Vec<Option<String>> = urls.iter().map(|url| canonical(None, url).ok()).collect();
        let known: Vec<&str> = urls.iter().flatten().map(String::as_str).collect();
        let mut found = match &self.0 {
            Asked::Here(links) => {
                known.iter().map(|url| links.uid(url)).collect::<Result<Vec<_>, _>>().map_err(anyhow::Error::from)?
            }
            Asked::Servers(remote) => {
                remote.wait(remote.pinned().uids(&known)).map_err(|status| of_servers(&Refused(status)))?
            }
        }
        .into_iter();
        Ok(urls.iter().map(|url| url.as_ref().and_then(|_| found.next().flatten())).collect())
    }

    /// The URLs of UIDs.
    ///
    /// # Errors
    /// A UID is not below [`Graph::urls`]; the store or the servers fail.
    pub fn urls_of(&self, uids: &[Uid]) -> Result<Vec<String>, Failed> {
        Ok(self.links().urls_of(uids).map_err(anyhow::Error::from)?)
    }

    /// The links of pages, or the pages that link to URLs, each list rising.
    ///
    /// # Errors
    /// As [`Graph::urls_of`].
    pub fn links_of(
        &self,
        uids: &[Uid],
        is_inward: bool,
        is_exact: bool,
        window: Window,
    ) -> Result<Batch<Uid>, Failed> {
        let precision = if is_exact { Precision::Exact } else { Precision::Range };
        let direction = if is_inward { Direction::In(precision) } else { Direction::Out };
        let ask = |links: &(dyn Links + Send + Sync), uid: &Uid, found: &mut Vec<Uid>| {
            links.links_into(*uid, direction, window, found)
        };
        self.batch(uids, ask, |remote| remote.wait(remote.pinned().links(uids, direction, window)).map_err(Refused))
    }

    /// The pages for which it is unknown in a window whether they link: the page itself, or pages that linked to the
    /// URL at some time.
    ///
    /// # Errors
    /// As [`Graph::urls_of`].
    pub fn unknown_of(&self, uids: &[Uid], is_inward: bool, window: Window) -> Result<Batch<Uid>, Failed> {
        let direction = if is_inward { Direction::In(Precision::Exact) } else { Direction::Out };
        let ask = |links: &(dyn Links + Send + Sync), uid: &Uid, found: &mut Vec<Uid>| {
            *found = answer_of(links, Unknown::new(&[*uid], direction, window))?.into_values();
            Ok(())
        };
        let question = Unknown::new(uids, direction, window);
        self.batch(uids, ask, |remote| remote.wait(remote.pinned().answer(question)).map_err(Refused))
    }

    /// The links that pages may have as of a time, if their links are unknown then: those that they had when their
    /// links were last known. The lists are empty if the window is not as of a time.
    ///
    /// # Errors
    /// As [`Graph::urls_of`].
    pub fn last_known_of(&self, uids: &[Uid], window: Window) -> Result<Batch<Uid>, Failed> {
        let Window::AsOf(as_of) = window else {
            let mut none = Batch::default();
            uids.iter().for_each(|_| none.push(&[]));
            return Ok(none);
        };
        let ask = |links: &(dyn Links + Send + Sync), uid: &Uid, found: &mut Vec<Uid>| {
            *found = answer_of(links, LastKnown::new(&[*uid], as_of))?.into_values();
            Ok(())
        };
        let question = LastKnown::new(uids, as_of);
        self.batch(uids, ask, |remote| remote.wait(remote.pinned().answer(question)).map_err(Refused))
    }

    /// The captures of URLs, by time.
    ///
    /// # Errors
    /// As [`Graph::urls_of`].
    pub fn captures_of(&self, uids: &[Uid]) -> Result<Batch<CaptureTime>, Failed> {
        let ask = |links: &(dyn Links + Send + Sync), uid: &Uid, found: &mut Vec<_>| links.captures_into(*uid, found);
        self.batch(uids, ask, |remote| remote.wait(remote.pinned().captures(uids)).map_err(Refused))
    }

    /// The barcode of a page as an SVG picture of `width` pixels, with `limit` rows for the links that were there
    /// longest.
    ///
    /// # Errors
    /// As [`Graph::find`].
    pub fn barcode(&self, url: &str, limit: usize, width: u32) -> Result<String, Failed> {
        let (uid, url) = self.find(url)?;
        let drawn = webstrata_serve::http::picture_of(self.links(), uid, &url, limit, width);
        Ok(drawn.map_err(anyhow::Error::from)?)
    }

    /// When pages had their links: runs of captures, by link.
    ///
    /// # Errors
    /// As [`Graph::urls_of`].
    pub fn lifespans_of(&self, uids: &[Uid]) -> Result<Batch<Lifespan>, Failed> {
        let ask = |links: &(dyn Links + Send + Sync), uid: &Uid, found: &mut Vec<_>| {
            links.spans_into(*uid, Spans::Lifespans, found)
        };
        self.batch(uids, ask, |remote| remote.wait(remote.pinned().lifespans(uids)).map_err(Refused))
    }

    fn batch<T>(
        &self,
        uids: &[Uid],
        ask: impl Fn(&(dyn Links + Send + Sync), &Uid, &mut Vec<T>) -> Result<(), Error>,
        ask_servers: impl FnOnce(&Remote) -> Result<Batch<T>, Refused>,
    ) -> Result<Batch<T>, Failed> {
        match &self.0 {
            Asked::Here(links) => {
                let mut batch = Batch::default();
                batch.fill(uids, |uid, found| ask(&**links, uid, found)).map_err(anyhow::Error::from)?;
                Ok(batch)
            }
            Asked::Servers(remote) => ask_servers(remote).map_err(|refused| of_servers(&refused)),
        }
    }
}

/// An error of servers, with their message.
fn of_servers(refused: &Refused) -> Failed {
    Failed::Other(refused.to_string())
}
