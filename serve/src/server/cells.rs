//! The service `Cells`: questions to the cells that this server holds, images of these cells, and gossip.

use std::io::{self, Read};
use std::pin::Pin;
use std::sync::{Arc, Once};

use bytes::Bytes;
use futures_util::future::BoxFuture;
use tokio::sync::{Semaphore, mpsc};
use tokio_stream::Stream;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Request, Response, Status};

use crate::clerk::LocalCells;
use crate::cluster::Cluster;
use crate::guard::limits::Bounds;
use crate::guard::memory::{Budget, FREE};
use crate::guard::panics::caught;
use crate::protocol::proto::cells_server::Cells;
use crate::protocol::proto::question::Question as QuestionKind;
use crate::protocol::proto::{
    Answer, AskRequest, AskResponse, CellName, FetchRequest, FetchResponse, GossipRequest, GossipResponse, Question,
};
use crate::protocol::status::{bad, not_here};
use crate::server::Alone;

/// Bytes of an image in one message.
const CHUNK: usize = 256 << 10;
/// A question with fewer items is answered on the thread of the call; larger questions use a thread that may block.
const ITEMS_INLINE: usize = 64;

/// Answers for the cells of one server.
#[derive(Clone)]
pub struct CellsService {
    cluster: Arc<Cluster>,
    bounds: Bounds,
    /// The memory for work in cells.
    work: Budget,
    /// Permits for threads that answer. A thread keeps its permit even if its caller goes away.
    threads: Arc<Semaphore>,
    /// Why no other server may join this server; `None` if other servers may join.
    alone: Option<Alone>,
    /// Whether a refused join has been logged.
    warned: Arc<Once>,
}

impl CellsService {
    /// The service for the cells of a server: with bounds for one call, memory for all, and at most this many threads
    /// that answer.
    pub fn new(cluster: Arc<Cluster>, (bounds, work): (Bounds, Budget), threads: usize, alone: Option<Alone>) -> Self {
        let threads = Arc::new(Semaphore::new(threads.clamp(1, Semaphore::MAX_PERMITS)));
        Self { cluster, bounds, work, threads, alone, warned: Arc::new(Once::new()) }
    }
}

/// The number of items of a question.
fn items(question: &Question) -> usize {
    match &question.question {
        Some(QuestionKind::Find(find)) => find.keys.len(),
        Some(QuestionKind::Links(links)) => links.uids.len(),
        Some(
            QuestionKind::Urls(uids)
            | QuestionKind::Captures(uids)
            | QuestionKind::Lifespans(uids)
            | QuestionKind::Runs(uids)
            | QuestionKind::Pages(uids)
            | QuestionKind::InRecords(uids)
            | QuestionKind::HostsOf(uids),
        ) => uids.uids.len(),
        Some(QuestionKind::Backlinks(backlinks)) => backlinks.pages.len(),
        Some(QuestionKind::HasLinks(pairs)) => pairs.pages.len(),
        // These look at each page of a range; 32 pages cost about one item.
        Some(QuestionKind::Listing(listing)) => items_of_range(listing.first, listing.end),
        Some(QuestionKind::Failing(uids)) => items_of_range(uids.first, uids.end),
        // A search for spellings looks at some keys for each letter of a path; the others may look at a whole cell.
        Some(
            QuestionKind::Spellings(_) | QuestionKind::Hosts(_) | QuestionKind::Busiest(_) | QuestionKind::Sources(_),
        ) => ITEMS_INLINE + 1,
        Some(QuestionKind::Prefix(_) | QuestionKind::Counts(_)) => 1,
        None => 0,
    }
}

/// The number of items of a question about each page of a range. No cell has more than 2^24 pages.
fn items_of_range(first: u64, end: u64) -> usize {
    let pages = end.saturating_sub(first).min(1 << 24) / 32;
    ITEMS_INLINE + usize::try_from(pages).unwrap_or(0)
}

/// Whether a question with few items may take long: a hub has many sources.
fn is_heavy(question: &Question) -> bool {
    matches!(&question.question, Some(QuestionKind::Links(links)) if links.direction != 0)
}

impl LocalCells for CellsService {
    fn ask(&self, questions: Vec<Question>) -> BoxFuture<'static, Result<Vec<Answer>, Status>> {
        let (held, bounds, threads) = (self.cluster.held(), self.bounds, self.threads.clone());
        let work = self.work.clone();
        Box::pin(async move {
            let count: usize = questions.iter().map(items).sum();
            // A clerk joins the questions of one caller and adds questions about sources, so the batch may be larger.
            Bounds { batch: bounds.batch.saturating_mul(64), ..bounds }.admit(count)?;
            // The questions are answered one after the other, in the same memory.
            let needed = questions.iter().map(|question| held.work_bytes(question)).max().unwrap_or(0);
            if count < ITEMS_INLINE && needed <= FREE && !questions.iter().any(is_heavy) {
                return held.ask(&questions);
            }
            let charge = work.at_most(needed).await;
            let permit = threads.acquire_owned().await.map_err(|_| Status::unavailable("the server stops"))?;
            let answered = tokio::task::spawn_blocking(move || {
                let _held = (permit, charge);
                caught(&"questions to cells", || held.ask(&questions))
            });
            answered.await.map_err(|_| Status::unavailable("the server stops"))??
        })
    }

    fn need(&self, cell: CellName) {
        self.cluster.need(cell);
    }
}

#[tonic::async_trait]
impl Cells for CellsService {
    async fn ask(&self, request: Request<AskRequest>) -> Result<Response<AskResponse>, Status> {
        let AskRequest { questions, store } = request.into_inner();
        self.cluster.admit(&store)?;
        let answers = LocalCells::ask(self, questions).await?;
        Ok(Response::new(AskResponse { answers }))
    }

    type FetchStream = Pin<Box<dyn Stream<Item = Result<FetchResponse, Status>> + Send>>;

    async fn fetch(&self, request: Request<FetchRequest>) -> Result<Response<Self::FetchStream>, Status> {
        let request = request.into_inner();
        let cell = request.cell.ok_or_else(|| bad("cell: missing; name a row and a partition"))?;
        let path = self.cluster.image(cell, request.source).ok_or_else(|| not_here(cell.row, cell.partition))?;
        let (sender, receiver) = mpsc::channel(4);
        tokio::task::spawn_blocking(move || {
            let sent = send_file(&path, &sender);
            if let Err(error) = sent {
                // The send fails if the caller has gone away; nobody needs the error then.
                let _ = sender.blocking_send(Err(Status::internal(format!("{}: {error}", path.display()))));
            }
        });
        Ok(Response::new(Box::pin(ReceiverStream::new(receiver))))
    }

    async fn gossip(&self, request: Request<GossipRequest>) -> Result<Response<GossipResponse>, Status> {
        if let Some(alone) = self.alone {
            self.warned.call_once(|| tracing::warn!("refused a server that wants to join: {}", alone.reason()));
            return Err(Status::failed_precondition(alone.reason()));
        }
        let GossipRequest { from, message, store } = request.into_inner();
        let from = from.parse().map_err(|_| bad(format!("from: not an address: {from} (expected IP:port)")))?;
        self.cluster.admit(&store).inspect_err(|_| self.cluster.refused(from, &store))?;
        self.cluster.gossip(from, &message).map_err(|error| bad(format!("message: {error}")))?;
        Ok(Response::new(GossipResponse {}))
    }
}

/// Sends a file in chunks, until the file ends or the receiver is gone.
fn send_file(path: &std::path::Path, sender: &mpsc::Sender<Result<FetchResponse, Status>>) -> io::Result<()> {
    let mut file = webstrata_layers::regular::open(path)?;
    loop {
        let mut chunk = Vec::with_capacity(CHUNK);
        Read::by_ref(&mut file).take(CHUNK as u64).read_to_end(&mut chunk)?;
        if chunk.is_empty() || sender.blocking_send(Ok(FetchResponse { bytes: Bytes::from(chunk) })).is_err() {
            return Ok(());
        }
    }
}
