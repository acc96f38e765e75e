//! The service `Cells`: questions to the cells that this server has, images of them, messages of the membership.

use std::io::{self, Read};
use std::pin::Pin;
use std::sync::{Arc, Once};

use bytes::Bytes;
use futures_util::future::BoxFuture;
use tokio::sync::{Semaphore, mpsc};
use tokio_stream::Stream;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Request, Response, Status};

use crate::clerk::Own;
use crate::cluster::Cluster;
use crate::guard::limits::Bounds;
use crate::protocol::proto::cells_server::Cells;
use crate::protocol::proto::question::Question as QuestionKind;
use crate::protocol::proto::{
    Answer, AskRequest, AskResponse, FetchRequest, FetchResponse, GossipRequest, GossipResponse, Question,
};
use crate::protocol::status::{bad, not_here};
use crate::server::Alone;

/// Bytes of an image in one message.
const CHUNK: usize = 256 << 10;
/// Items that are answered where the call is; more are answered by a thread that may block.
const ITEMS_INLINE: usize = 64;

/// Answers for the cells of one server.
#[derive(Clone)]
pub struct CellsService {
    cluster: Arc<Cluster>,
    bounds: Bounds,
    /// Places of threads that answer. A thread goes on when the caller has gone, and its call counts no more.
    threads: Arc<Semaphore>,
    /// Why no other server may join this one, if none may.
    alone: Option<Alone>,
    /// Whether that was told.
    told: Arc<Once>,
}

impl CellsService {
    /// For the cells of a server, answered by so many threads at most.
    pub fn new(cluster: Arc<Cluster>, bounds: Bounds, threads: usize, alone: Option<Alone>) -> Self {
        let threads = Arc::new(Semaphore::new(threads.clamp(1, Semaphore::MAX_PERMITS)));
        Self { cluster, bounds, threads, alone, told: Arc::new(Once::new()) }
    }
}

/// How many items a question has.
fn items(question: &Question) -> usize {
    match &question.question {
        Some(QuestionKind::Find(find)) => find.keys.len(),
        Some(QuestionKind::Links(links)) => links.uids.len(),
        Some(
            QuestionKind::Urls(uids)
            | QuestionKind::Captures(uids)
            | QuestionKind::Lifespans(uids)
            | QuestionKind::Pages(uids)
            | QuestionKind::InRecords(uids),
        ) => uids.uids.len(),
        Some(QuestionKind::HasLinks(pairs)) => pairs.pages.len(),
        // A look at each page of a range, some of which take as long as an item. No cell has more.
        Some(QuestionKind::Listing(asked)) => {
            let pages = asked.end.saturating_sub(asked.first).min(1 << 24) / 32;
            ITEMS_INLINE + usize::try_from(pages).unwrap_or(0)
        }
        Some(QuestionKind::Prefix(_) | QuestionKind::Counts(_)) => 1,
        None => 0,
    }
}

/// Whether a question may take long for few items: hubs have many sources.
fn is_heavy(question: &Question) -> bool {
    matches!(&question.question, Some(QuestionKind::Links(links)) if links.direction != 0)
}

impl Own for CellsService {
    fn ask(&self, questions: Vec<Question>) -> BoxFuture<'static, Result<Vec<Answer>, Status>> {
        let (held, bounds, threads) = (self.cluster.held(), self.bounds, self.threads.clone());
        Box::pin(async move {
            let count: usize = questions.iter().map(items).sum();
            // Clerks put questions of one caller together, to which those about sources come.
            Bounds { batch: bounds.batch.saturating_mul(64), ..bounds }.admit(count)?;
            if count < ITEMS_INLINE && !questions.iter().any(is_heavy) {
                return held.ask(&questions);
            }
            let place = threads.acquire_owned().await.map_err(|_| Status::unavailable("the server stops"))?;
            let answered = tokio::task::spawn_blocking(move || {
                let _place = place;
                held.ask(&questions)
            });
            answered.await.map_err(|_| Status::internal("the server panicked on this question; see its log"))?
        })
    }
}

#[tonic::async_trait]
impl Cells for CellsService {
    async fn ask(&self, request: Request<AskRequest>) -> Result<Response<AskResponse>, Status> {
        let AskRequest { questions, store } = request.into_inner();
        self.cluster.admit(&store)?;
        let answers = Own::ask(self, questions).await?;
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
                // Who has gone does not hear of it.
                let _ = sender.blocking_send(Err(Status::internal(format!("{}: {error}", path.display()))));
            }
        });
        Ok(Response::new(Box::pin(ReceiverStream::new(receiver))))
    }

    async fn gossip(&self, request: Request<GossipRequest>) -> Result<Response<GossipResponse>, Status> {
        if let Some(alone) = self.alone {
            self.told.call_once(|| tracing::warn!("refused a server that wants to join: {}", alone.reason()));
            return Err(Status::failed_precondition(alone.reason()));
        }
        let GossipRequest { from, message, store } = request.into_inner();
        let from = from.parse().map_err(|_| bad(format!("from: not an address: {from} (expected IP:port)")))?;
        self.cluster.admit(&store).inspect_err(|_| self.cluster.refused(from, &store))?;
        self.cluster.gossip(from, &message).map_err(|error| bad(format!("message: {error}")))?;
        Ok(Response::new(GossipResponse {}))
    }
}

/// Sends a file in pieces until it ends or nobody listens.
fn send_file(path: &std::path::Path, sender: &mpsc::Sender<Result<FetchResponse, Status>>) -> io::Result<()> {
    let mut file = webstrata_layers::location::regular::open(path)?;
    loop {
        let mut chunk = Vec::with_capacity(CHUNK);
        Read::by_ref(&mut file).take(CHUNK as u64).read_to_end(&mut chunk)?;
        if chunk.is_empty() || sender.blocking_send(Ok(FetchResponse { bytes: Bytes::from(chunk) })).is_err() {
            return Ok(());
        }
    }
}
