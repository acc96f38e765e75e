//! Measures the cost of a server: the same questions to cells in the process, through a server and a clerk, and through
//! the same transport to SQLite and LMDB.
//!
//! ```text
//! cargo run --release --manifest-path serve/peers/Cargo.toml --target-dir target -- STORE [SECONDS]
//! ```
//!
//! STORE must have one row and its cells (`webstrata cells STORE`). Each question asks for all links of 1,000 random
//! pages. The databases answer with the same messages and have the best schema for the question. SQLite has a table
//! (uid, link) with both columns as primary key, without row ids. LMDB has the links of each page as 64-bit numbers.
//! Client and server share the machine. All links are counted, and the sums must agree.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use heed::types::{Bytes, U64};
use heed::{Database, EnvOpenOptions, byteorder::BigEndian};
use tokio::runtime::Handle;
use tokio_stream::wrappers::TcpListenerStream;
use tonic::{Request, Response, Status};
use webstrata_cells::Cells;
use webstrata_cells::image::Residence;
use webstrata_codecs::ENCODINGS;
use webstrata_layers::{Batch, Direction, Links, Location, Store, Uid, Window};
use webstrata_serve::clerk::{Clerk, ClerkOptions};
use webstrata_serve::cluster::ClusterOptions;
use webstrata_serve::dial::Dialer;
use webstrata_serve::protocol::gaps;
use webstrata_serve::protocol::proto::answer::Answer as AnswerKind;
use webstrata_serve::protocol::proto::cells_client::CellsClient;
use webstrata_serve::protocol::proto::cells_server::{Cells as Service, CellsServer};
use webstrata_serve::protocol::proto::links_client::LinksClient;
use webstrata_serve::protocol::proto::question::Question as QuestionKind;
use webstrata_serve::protocol::proto::{
    Answer, AskRequest, AskResponse, FetchRequest, FetchResponse, GossipRequest, GossipResponse, LinkLists, LinksOf,
    Question, UidToUrlRequest,
};
use webstrata_serve::server::{Server, ServerOptions};

const BATCH: usize = 1000;
/// The number of different batches, which are asked repeatedly.
const BATCHES: usize = 64;
/// The number of concurrent calls.
const AT_ONCE: usize = 4;

/// Answers batches of links from a database.
trait Peer: Send + Sync + 'static {
    fn links(&self, uids: &[u64]) -> anyhow::Result<LinkLists>;
}

struct Sqlite(std::sync::Mutex<Vec<rusqlite::Connection>>, std::path::PathBuf);

impl Peer for Sqlite {
    fn links(&self, uids: &[u64]) -> anyhow::Result<LinkLists> {
        let kept = self.0.lock().expect("no panic").pop();
        let connection = kept.map_or_else(|| rusqlite::Connection::open(&self.1), Ok)?;
        let (mut lists, mut bytes) = (LinkLists::default(), Vec::new());
        {
            let mut select = connection.prepare_cached("select link from links where uid = ?1 order by link")?;
            for &uid in uids {
                let mut links = Vec::new();
                let mut rows = select.query([i64::try_from(uid)?])?;
                while let Some(row) = rows.next()? {
                    links.push(u64::try_from(row.get::<_, i64>(0)?)?);
                }
                lists.counts.push(u32::try_from(links.len())?);
                gaps::put(&links, &mut bytes);
            }
        }
        self.0.lock().expect("no panic").push(connection);
        lists.links = bytes.into();
        Ok(lists)
    }
}

struct Lmdb(heed::Env, Database<U64<BigEndian>, Bytes>);

impl Peer for Lmdb {
    fn links(&self, uids: &[u64]) -> anyhow::Result<LinkLists> {
        let read = self.0.read_txn()?;
        let (mut lists, mut bytes, mut own) = (LinkLists::default(), Vec::new(), Vec::new());
        for uid in uids {
            let links = self.1.get(&read, uid)?.unwrap_or_default();
            own.clear();
            own.extend(links.chunks_exact(8).map(|link| u64::from_le_bytes(link.try_into().expect("8 bytes"))));
            lists.counts.push(u32::try_from(own.len())?);
            gaps::put(&own, &mut bytes);
        }
        lists.links = bytes.into();
        Ok(lists)
    }
}

/// A minimal service over a peer.
#[derive(Clone)]
struct Minimal(Arc<dyn Peer>);

#[tonic::async_trait]
impl Service for Minimal {
    async fn ask(&self, request: Request<AskRequest>) -> Result<Response<AskResponse>, Status> {
        let peer = self.0.clone();
        let answer = move || {
            let questions = request.into_inner().questions;
            let answers = questions.iter().map(|question| match &question.question {
                Some(QuestionKind::Links(links)) => {
                    let lists = peer.links(&links.uids).map_err(|error| Status::internal(error.to_string()))?;
                    Ok(Answer { answer: Some(AnswerKind::Links(lists)) })
                }
                _ => Err(Status::unimplemented("links alone")),
            });
            answers.collect::<Result<Vec<_>, Status>>()
        };
        let answers =
            tokio::task::spawn_blocking(answer).await.map_err(|_| Status::internal("the answer panicked"))??;
        Ok(Response::new(AskResponse { answers }))
    }

    type FetchStream = tokio_stream::Empty<Result<FetchResponse, Status>>;

    async fn fetch(&self, _: Request<FetchRequest>) -> Result<Response<Self::FetchStream>, Status> {
        Err(Status::unimplemented("links alone"))
    }

    async fn gossip(&self, _: Request<GossipRequest>) -> Result<Response<GossipResponse>, Status> {
        Err(Status::unimplemented("links alone"))
    }
}

/// UIDs, links and calls a second, and the median time of a call.
struct Rate {
    uids: f64,
    links: f64,
    median: Duration,
}

/// Asks batch after batch, `at_once` at a time, for `seconds`.
async fn rate<F>(
    seconds: f64,
    at_once: usize,
    ask: impl Fn(usize) -> F + Send + Sync + Clone + 'static,
) -> anyhow::Result<Rate>
where
    F: Future<Output = anyhow::Result<usize>> + Send,
{
    let (next, links) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let begin = Instant::now();
    let end = begin + Duration::from_secs_f64(seconds);
    let tasks = (0..at_once).map(|_| {
        let (ask, next, links) = (ask.clone(), next.clone(), links.clone());
        tokio::spawn(async move {
            let mut times = Vec::new();
            while Instant::now() < end {
                let batch = next.fetch_add(1, Ordering::Relaxed);
                let start = Instant::now();
                let count = ask(usize::try_from(batch)? % BATCHES).await?;
                times.push(start.elapsed());
                links.fetch_add(count as u64, Ordering::Relaxed);
            }
            anyhow::Ok(times)
        })
    });
    let mut times = Vec::new();
    for task in tasks.collect::<Vec<_>>() {
        times.extend(task.await??);
    }
    let elapsed = begin.elapsed().as_secs_f64();
    times.sort_unstable();
    let calls = times.len();
    Ok(Rate {
        uids: (calls * BATCH) as f64 / elapsed,
        links: links.load(Ordering::Relaxed) as f64 / elapsed,
        median: times[calls / 2],
    })
}

fn main() -> anyhow::Result<()> {
    // Servers and callers have separate threads, like separate processes.
    let servers = tokio::runtime::Runtime::new()?;
    tokio::runtime::Runtime::new()?.block_on(compare(servers.handle().clone()))
}

async fn compare(servers: Handle) -> anyhow::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let location = Location::parse(arguments.next().context("usage: webstrata-peers STORE [SECONDS]")?)?;
    let seconds: f64 = arguments.next().map_or(Ok(5.0), |text| text.parse())?;
    let store = Store::open(location.clone())?;
    let cells = Cells::open(&store, Residence::Memory, ENCODINGS)?.context("run first: webstrata cells STORE")?;
    let cells = Arc::new(cells);
    let directory = tempfile::tempdir()?;

    let mut seed = 7u64;
    let mut draw = || {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        seed >> 33
    };
    let mut pages = Vec::new();
    cells.uids(Uid::below(cells.urls()), (i64::MIN, i64::MAX), &mut |uid| {
        pages.push(uid);
        std::ops::ControlFlow::Continue(())
    })?;
    ensure!(!pages.is_empty(), "the store has no pages");
    let batches: Vec<Vec<Uid>> = (0..BATCHES)
        .map(|_| (0..BATCH).map(|_| pages[usize::try_from(draw()).expect("64 bits") % pages.len()]).collect())
        .collect();
    let batches = Arc::new(batches);

    eprintln!("{} pages; writing SQLite and LMDB", pages.len());
    let path = directory.path().join("sqlite");
    let mut sqlite = rusqlite::Connection::open(&path)?;
    sqlite.execute_batch(
        "pragma journal_mode = off; create table links \
        (uid integer, link integer, primary key (uid, link)) without rowid",
    )?;
    // The map is sparse; the file has the size of its data.
    let open = EnvOpenOptions::new().map_size(64 << 30).max_dbs(1).to_owned();
    let lmdb_path = directory.path().join("lmdb");
    std::fs::create_dir(&lmdb_path)?;
    #[expect(unsafe_code, reason = "nothing else opens the database")]
    // SAFETY: the directory is this process's own, and nobody changes its files.
    let env = unsafe { open.open(&lmdb_path)? };
    let mut write = env.write_txn()?;
    let lmdb: Database<U64<BigEndian>, Bytes> = env.create_database(&mut write, None)?;
    {
        let transaction = sqlite.transaction()?;
        {
            let mut insert = transaction.prepare("insert into links values (?1, ?2)")?;
            let mut links = Vec::new();
            for &uid in &pages {
                cells.links_into(uid, Direction::Out, Window::ALWAYS, &mut links)?;
                for &link in &links {
                    insert.execute([i64::try_from(uid.0)?, i64::try_from(link.0)?])?;
                }
                let bytes: Vec<u8> = links.iter().flat_map(|link| link.0.to_le_bytes()).collect();
                lmdb.put(&mut write, &uid.0, &bytes)?;
            }
        }
        transaction.commit()?;
    }
    write.commit()?;
    drop(sqlite);

    // In the process: one thread for each core, as in the server.
    let (own, asked) = (cells.clone(), batches.clone());
    let in_process = move |batch: usize| {
        let (own, asked) = (own.clone(), asked.clone());
        async move {
            let mut answers = Batch::default();
            answers.fill(&asked[batch], |&uid, links| own.links_into(uid, Direction::Out, Window::ALWAYS, links))?;
            tokio::task::yield_now().await;
            anyhow::Ok(answers.values().len())
        }
    };
    let expected: usize = {
        let mut sum = 0;
        for batch in 0..BATCHES {
            sum += in_process(batch).await?;
        }
        sum
    };

    let options =
        ServerOptions::new(ClusterOptions { replicas: 1, ..ClusterOptions::new(directory.path().join("data")) });
    let server = servers.spawn(Server::start(location, "127.0.0.1:0".parse()?, options)).await??;
    server.ready().await;
    let address = server.address().to_string();
    let clerk_options = ClerkOptions { hedge: Duration::from_secs(10), ..ClerkOptions::default() };
    let clerk = Clerk::connect(std::slice::from_ref(&address), Dialer::default(), clerk_options).await?;
    let pinned = clerk.at_last(None).await?;
    let null = LinksClient::connect(format!("http://{address}")).await?;
    let null = move |_| {
        let mut null = null.clone();
        async move {
            null.uid_to_url(UidToUrlRequest { epoch: 0, uids: Vec::new() }).await?;
            anyhow::Ok(0)
        }
    };
    let (pinned, asked) = (Arc::new(pinned), batches.clone());
    let through = move |batch: usize| {
        let (pinned, asked) = (pinned.clone(), asked.clone());
        async move { Ok(pinned.links(&asked[batch], Direction::Out, Window::ALWAYS).await?.values().len()) }
    };

    let peers: [(&str, Arc<dyn Peer>); 2] =
        [("SQLite", Arc::new(Sqlite(std::sync::Mutex::default(), path))), ("LMDB", Arc::new(Lmdb(env, lmdb)))];
    let mut clients = Vec::new();
    for (name, peer) in peers {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let service = CellsServer::new(Minimal(peer)).max_encoding_message_size(usize::MAX);
        servers.spawn(
            tonic::transport::Server::builder()
                .add_service(service)
                .serve_with_incoming(TcpListenerStream::new(listener)),
        );
        let client = CellsClient::connect(format!("http://{address}")).await?.max_decoding_message_size(usize::MAX);
        let asked = batches.clone();
        let ask = move |batch: usize| {
            let (mut client, uids) = (client.clone(), Uid::numbers(&asked[batch]).to_vec());
            async move {
                let links = LinksOf { uids, ..LinksOf::default() };
                let question = Question { cell: None, question: Some(QuestionKind::Links(links)) };
                let request = AskRequest { questions: vec![question], ..AskRequest::default() };
                let answer = client.ask(request).await?.into_inner();
                let links = answer.answers.into_iter().filter_map(|answer| match answer.answer {
                    Some(AnswerKind::Links(lists)) => gaps::take(&lists.links, &lists.counts).map(|links| links.len()),
                    _ => None,
                });
                anyhow::Ok(links.sum())
            }
        };
        clients.push((name, ask));
    }

    for (name, ask) in &clients {
        let mut sum = 0;
        for batch in 0..BATCHES {
            sum += ask(batch).await?;
        }
        ensure!(sum == expected, "{name} has {sum} links, the cells {expected}");
    }
    let mut sum = 0;
    for batch in 0..BATCHES {
        sum += through(batch).await?;
    }
    ensure!(sum == expected, "the server has {sum} links, the cells {expected}");

    println!("{:<28} {:>12} {:>14} {:>12}", "", "UIDs a s", "links a s", "call p50");
    let show = |name: &str, rate: &Rate| {
        println!("{name:<28} {:>12.0} {:>14.0} {:>9} us", rate.uids, rate.links, rate.median.as_micros());
    };
    let null_alone = rate(seconds, 1, null).await?;
    println!("{:<28} {:>12} {:>14} {:>9} us", "null call, one at a time", "", "", null_alone.median.as_micros());
    // Three interleaved rounds, because other programs may use the machine.
    let mut ratios = Vec::new();
    for _ in 0..3 {
        let own = rate(seconds, 2, in_process.clone()).await?;
        let served = rate(seconds, AT_ONCE, through.clone()).await?;
        show("cells in the process", &own);
        show("server, through a clerk", &served);
        for (name, ask) in &clients {
            show(&format!("{name} behind tonic"), &rate(seconds, AT_ONCE, ask.clone()).await?);
        }
        ratios.push(own.uids / served.uids);
    }
    ratios.sort_by(f64::total_cmp);
    println!(
        "in the process / through the server: {:.2} (median of 3: {:.2} to {:.2})",
        ratios[1], ratios[0], ratios[2]
    );
    Ok(())
}
