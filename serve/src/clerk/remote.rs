//! A cluster behind the trait [`Links`], for synchronous code.
//!
//! Each question is one call of a clerk. To ask many questions at once, wait ([`Remote::wait`]) for the batches of
//! [`Remote::pinned`].

use std::ops::{ControlFlow, Range};
use std::sync::Arc;

use tokio::runtime::Runtime;
use tonic::Status;
use webstrata_layers::{
    CaptureTime, Direction, Error, InLinks, Lifespan, Links, Page, Precision, Program, RangeLength, Sample, Spans,
    Spelled, Uid, Window,
};

use super::{Clerk, ClerkOptions, Pinned};
use crate::dial::Dialer;

/// The most URLs in one batch. This number of URLs always fits into one answer.
const URLS: usize = 4096;

/// One epoch of a cluster, with methods that block the calling thread.
///
/// ```
/// use webstrata_engine::{Progress, RunOptions};
/// use webstrata_layers::{Links, Location, Window};
/// use webstrata_pipeline::{BuildOptions, build};
/// use webstrata_serve::clerk::{ClerkOptions, Remote};
/// use webstrata_serve::cluster::ClusterOptions;
/// use webstrata_serve::dial::Dialer;
/// use webstrata_serve::server::{Server, ServerOptions};
///
/// let dir = tempfile::tempdir()?;
/// let (crawl, store) = (dir.path().join("crawl.jsonl"), dir.path().join("store"));
/// let capture = r#"{"url":"http://example.org/","ts":"20080601000000","links":["http://example.com/"]}"#;
/// std::fs::write(&crawl, capture)?;
/// build(&BuildOptions::new(RunOptions::new(&store), vec![crawl]), &Progress::default())?;
///
/// // A server at a free port, as `webstrata serve` starts it.
/// let runtime = tokio::runtime::Runtime::new()?;
/// let options = ServerOptions::new(ClusterOptions::new(dir.path().join("data")));
/// let server = Server::start(Location::from(&store), ([127, 0, 0, 1], 0).into(), options);
/// let server = runtime.block_on(server)?;
///
/// let remote = Remote::connect(&[server.address().to_string()], Dialer::default(), ClerkOptions::default())?;
/// let page = remote.uid("http://example.org/")?.expect("a URL of the store");
/// let links = remote.out_links(page, Window::ALWAYS)?;
/// assert_eq!(remote.urls_of(&links)?, ["http://example.com/"]);
/// drop(remote);
/// # let _inside = runtime.enter();
/// # drop(server);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Remote {
    pinned: Pinned,
    runtime: Runtime,
}

/// A status as an error of layers.
fn refused(status: Status) -> Error {
    Error::Elsewhere(Box::new(Refused(status)))
}

/// The error status of a cluster.
#[derive(Debug, thiserror::Error)]
#[error("{}", .0.message())]
pub struct Refused(pub Status);

impl Remote {
    /// Connects to the current epoch of the cluster that has servers at these addresses.
    ///
    /// # Errors
    /// No server answers, or no server is ready within the deadline.
    pub fn connect(addresses: &[String], dialer: Dialer, options: ClerkOptions) -> Result<Self, Error> {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let runtime = runtime.map_err(|error| Error::Elsewhere(Box::new(error)))?;
        let pinned = runtime.block_on(async { Clerk::connect(addresses, dialer, options).await?.at_last(None).await });
        Ok(Self { pinned: pinned.map_err(refused)?, runtime })
    }

    /// The pinned epoch, to ask many questions at once.
    pub fn pinned(&self) -> &Pinned {
        &self.pinned
    }

    /// Waits for an answer.
    pub fn wait<T>(&self, answer: impl Future<Output = T>) -> T {
        self.runtime.block_on(answer)
    }

    fn answer<T>(&self, answer: impl Future<Output = Result<T, Status>>) -> Result<T, Error> {
        self.wait(answer).map_err(refused)
    }
}

/// The one answer to one question.
fn only<T: Clone>(answers: &webstrata_layers::Batch<T>) -> Vec<T> {
    answers.iter().next().map(<[T]>::to_vec).unwrap_or_default()
}

impl Links for Remote {
    fn epoch(&self) -> u64 {
        self.pinned.epoch()
    }

    fn urls(&self) -> u64 {
        self.pinned.len()
    }

    fn uid(&self, url: &str) -> Result<Option<Uid>, Error> {
        Ok(self.answer(self.pinned.uids(&[url]))?.pop().flatten())
    }

    fn url(&self, uid: Uid) -> Result<String, Error> {
        Ok(self.answer(self.pinned.urls(&[uid]))?.pop().unwrap_or_default())
    }

    fn urls_of(&self, uids: &[Uid]) -> Result<Vec<String>, Error> {
        let mut urls = Vec::with_capacity(uids.len());
        for uids in uids.chunks(URLS) {
            urls.extend(self.answer(self.pinned.urls(uids))?);
        }
        Ok(urls)
    }

    fn page(&self, uid: Uid) -> Result<Option<Arc<Page>>, Error> {
        Ok(self.answer(self.pinned.pages(&[uid]))?.pop().flatten().map(Arc::new))
    }

    fn in_record(&self, uid: Uid) -> Result<Option<Arc<InLinks>>, Error> {
        Ok(self.answer(self.pinned.in_records(&[uid]))?.pop().flatten().map(Arc::new))
    }

    fn in_range(&self) -> RangeLength {
        self.pinned.graph().in_range
    }

    fn captures_into(&self, uid: Uid, captures: &mut Vec<CaptureTime>) -> Result<(), Error> {
        *captures = only(&self.answer(self.pinned.captures(&[uid]))?);
        Ok(())
    }

    fn with_prefix(&self, prefix: &[u8]) -> Result<Vec<Range<Uid>>, Error> {
        self.answer(self.pinned.with_prefix(prefix))
    }

    fn has_unknown(&self) -> bool {
        self.pinned.graph().has_unknown
    }

    fn drive(&self, program: &mut dyn Program) -> Result<(), Error> {
        self.answer(self.pinned.drive(program))
    }

    fn spellings(&self, page: &Spelled) -> Result<Vec<Uid>, Error> {
        self.answer(self.pinned.spellings(page.url()))
    }

    fn uids(
        &self,
        uids: Range<Uid>,
        interval: (i64, i64),
        visit: &mut dyn FnMut(Uid) -> ControlFlow<()>,
    ) -> Result<(), Error> {
        let mut rest = uids;
        while !rest.is_empty() {
            let (found, after) = self.answer(self.pinned.captured(rest, interval))?;
            rest = after;
            if found.into_iter().try_for_each(&mut *visit).is_break() {
                break;
            }
        }
        Ok(())
    }

    fn out_links(&self, uid: Uid, window: Window) -> Result<Vec<Uid>, Error> {
        self.links(uid, Direction::Out, window)
    }

    fn in_links(&self, uid: Uid, window: Window, precision: Precision) -> Result<Vec<Uid>, Error> {
        self.links(uid, Direction::In(precision), window)
    }

    fn links(&self, uid: Uid, direction: Direction, window: Window) -> Result<Vec<Uid>, Error> {
        self.answer(self.pinned.all_links(uid, direction, window))
    }

    fn degree(&self, uid: Uid, direction: Direction, window: Window) -> Result<usize, Error> {
        let degrees = self.answer(self.pinned.degrees(&[uid], direction, window))?;
        Ok(degrees.first().map_or(0, |&degree| usize::try_from(degree).unwrap_or(usize::MAX)))
    }

    fn sample_into(
        &self,
        uid: Uid,
        direction: Direction,
        window: Window,
        sample: Sample,
        links: &mut Vec<Uid>,
    ) -> Result<(), Error> {
        *links = only(&self.answer(self.pinned.samples(&[uid], direction, window, sample))?);
        Ok(())
    }

    fn has_link(&self, uid: Uid, link: Uid, window: Window) -> Result<bool, Error> {
        Ok(self.answer(self.pinned.has_links(&[(uid, link)], window))?.pop().unwrap_or(false))
    }

    fn spans_into(&self, uid: Uid, spans: Spans, found: &mut Vec<Lifespan>) -> Result<(), Error> {
        *found = only(&self.answer(self.pinned.spans(&[uid], spans))?);
        Ok(())
    }
}
