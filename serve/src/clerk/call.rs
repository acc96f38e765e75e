//! Sends questions to the servers that hold the cells: in parallel, with retries and hedging.
//!
//! Each question goes to the first server that holds its cell, and all questions to one server travel in one call. If a
//! call fails, its questions go to the next replica at once. If a call is slow, its questions also go to the next
//! replica, and the first answer counts. The servers of the newest map come first. Then come the servers of the pinned
//! map, because the newest map may not know the epoch yet. If all servers have failed, the clerk pauses and reads the
//! newest map again, until the deadline. Gossip detects a dead server after seconds, a failover takes milliseconds. All
//! calls of a clerk ask a failed server last for a while.
//!
//! If no other replica is left, the clerk checks whether a slow server is alive, by a call without questions. If no
//! replica of a cell is alive, the server that the clerk lives in makes the cell itself. A server that is cut off from
//! all others, or whose peers are stopped, therefore continues with the store that it reads.

use std::error::Error;
use std::time::Duration;

use futures_util::future::BoxFuture;
use futures_util::stream::{FuturesUnordered, StreamExt};
use tokio::time::{Instant, sleep_until, timeout_at};
use tonic::{Code, Request, Response, Status};

use super::{Authorized, Clerk, lock};
use crate::dial::first::first_of;
use crate::map::Map;
use crate::protocol::proto::answer::Answer as AnswerKind;
use crate::protocol::proto::links_client::LinksClient;
use crate::protocol::proto::question::Question as QuestionKind;
use crate::protocol::proto::{Answer, AskRequest, CellName, Question, Server};
use crate::protocol::status::{Reason, refuse};

/// The pause before the next attempt when every server has failed.
const PAUSE: Duration = Duration::from_millis(30);
/// The cost of a hedge in the allowance, and the largest allowance. Each batch adds 1: one hedge for ten batches.
const HEDGE: u32 = 10;
const ALLOWANCE_MAX: u32 = 500;
/// After this many hedge times a slow call is hedged even without allowance.
const LATE: u32 = 3;
/// After this time without an answer from any other server, this server makes a cell itself.
const ALONE: Duration = Duration::from_millis(200);
/// The time within which a server must answer a check of its presence.
const THERE: Duration = Duration::from_millis(80);

/// A question to a cell.
pub(crate) struct CellQuestion {
    pub(crate) cell: CellName,
    pub(crate) question: QuestionKind,
}

/// A call to one server.
struct Group {
    server: Server,
    /// The indexes of the questions.
    questions: Vec<usize>,
    begun: Instant,
    /// When to hedge the call; `None` after that.
    hedge_at: Option<Instant>,
    is_open: bool,
    /// The state of the check of the server's presence.
    presence: Presence,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Presence {
    Unasked,
    Asked,
    Silent,
}

/// The result of a call, with the index of its group.
type GroupAnswer = (usize, Result<Vec<Answer>, Status>);

/// The questions of one batch, and their answers so far.
struct Asking<'a> {
    clerk: &'a Clerk,
    pinned: &'a Map,
    questions: &'a [CellQuestion],
    answers: Vec<Option<AnswerKind>>,
    /// For each question, the addresses of servers that were asked since the last look at the map.
    tried: Vec<Vec<String>>,
    groups: Vec<Group>,
    open: FuturesUnordered<BoxFuture<'a, GroupAnswer>>,
    /// Calls that check the presence of servers, each with the index of its group.
    asked: FuturesUnordered<BoxFuture<'a, (usize, bool)>>,
    /// Questions for which no server is left to ask.
    stuck: Vec<usize>,
    begun: Instant,
    deadline: Instant,
    last: Option<Status>,
}

/// Whether the call failed in transport. A status that a server sent has no source.
fn is_of_transport(status: &Status) -> bool {
    status.source().is_some()
}

/// Whether another server may answer a call that failed with this status.
fn is_passing(status: &Status) -> bool {
    match status.code() {
        _ if is_of_transport(status) => true,
        Code::InvalidArgument
        | Code::FailedPrecondition
        | Code::OutOfRange
        | Code::Unauthenticated
        | Code::PermissionDenied => false,
        Code::ResourceExhausted => Reason::of(status) == Some(Reason::Overloaded),
        _ => true,
    }
}

impl Clerk {
    /// Asks the cells. Returns the answers in order. `pinned` is the map from which the questions were made.
    pub(crate) async fn ask(&self, pinned: &Map, questions: &[CellQuestion]) -> Result<Vec<AnswerKind>, Status> {
        let mut asking = Asking {
            clerk: self,
            pinned,
            questions,
            answers: questions.iter().map(|_| None).collect(),
            tried: vec![Vec::new(); questions.len()],
            groups: Vec::new(),
            open: FuturesUnordered::new(),
            asked: FuturesUnordered::new(),
            stuck: Vec::new(),
            begun: Instant::now(),
            deadline: Instant::now() + self.options.deadline,
            last: None,
        };
        {
            let mut allowance = lock(&self.shared.allowance);
            *allowance = (*allowance + 1).min(ALLOWANCE_MAX);
        }
        asking.send((0..questions.len()).collect());
        asking.need();
        asking.run().await
    }

    /// Asks the servers of the map until one answers. The next server is asked when the server before fails or is late.
    /// Servers that failed recently come last.
    pub(super) async fn anywhere<T, F>(&self, ask: impl Fn(LinksClient<Authorized>) -> F) -> Result<T, Status>
    where
        F: Future<Output = Result<Response<T>, Status>>,
    {
        let deadline = Instant::now() + self.options.deadline;
        let mut last = Status::unavailable("no server of the cluster is known");
        loop {
            let map = self.map();
            let mut servers: Vec<&Server> = map.servers.iter().collect();
            servers.sort_by_key(|server| self.is_suspect(&server.address));
            let ask = |server: &Server| {
                let (client, address) = (self.shared.links(&server.address), server.address.clone());
                let answer = client.map(&ask);
                async move {
                    let answer = match answer {
                        Ok(answer) => answer.await,
                        Err(status) => Err(status),
                    };
                    answer.map_err(|status| (address, status))
                }
            };
            let late = LATE * self.options.hedge;
            let is_final = |(_, status): &(String, Status)| !is_passing(status);
            match timeout_at(deadline, first_of(servers, late, ask, is_final)).await {
                Ok(Ok(answer)) => return Ok(answer.into_inner()),
                Ok(Err(failed)) => {
                    for (address, status) in failed {
                        if !is_passing(&status) {
                            return Err(status);
                        }
                        self.suspect(&address);
                        last = status;
                    }
                }
                Err(_) => return Err(Status::deadline_exceeded("no answer before the deadline")),
            }
            if Instant::now() + PAUSE >= deadline {
                return Err(last);
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// A request with the clerk's deadline.
    pub(super) fn timed<T>(&self, message: T) -> Request<T> {
        let mut request = Request::new(message);
        request.set_timeout(self.options.deadline);
        request
    }

    fn suspect(&self, address: &str) {
        self.suspect_as(address, false);
    }

    /// Suspects a server. `is_silent`: the server did not answer a check of its presence.
    fn suspect_as(&self, address: &str, is_silent: bool) {
        let now = Instant::now();
        let mut suspects = lock(&self.shared.suspects);
        suspects.retain(|_, (until, _)| now < *until);
        let suspect = suspects.entry(address.to_owned()).or_insert((now, false));
        *suspect = (now + self.options.suspect, suspect.1 || is_silent);
        drop(suspects);
        self.doubt(Some(address));
    }

    fn is_suspect(&self, address: &str) -> bool {
        lock(&self.shared.suspects).get(address).is_some_and(|&(until, _)| Instant::now() < until)
    }

    /// Whether a server recently failed a check of its presence.
    fn is_gone(&self, address: &str) -> bool {
        lock(&self.shared.suspects).get(address).is_some_and(|&(until, is_silent)| is_silent && Instant::now() < until)
    }

    /// Makes the watcher read the map from another server: always, or only if the map came from this address.
    fn doubt(&self, address: Option<&str>) {
        if let Some(watching) = &self.shared.watching {
            watching.doubt(address);
        }
    }

    /// Takes one hedge from the allowance, if the allowance has one.
    fn may_hedge(&self) -> bool {
        let mut allowance = lock(&self.shared.allowance);
        let may = *allowance >= HEDGE;
        *allowance -= if may { HEDGE } else { 0 };
        may
    }
}

impl Asking<'_> {
    async fn run(mut self) -> Result<Vec<AnswerKind>, Status> {
        while self.answers.iter().any(Option::is_none) {
            let now = Instant::now();
            let hedge = self.groups.iter().filter(|group| group.is_open).filter_map(|group| group.hedge_at).min();
            // Questions that wait for this server's own cells are checked as often as questions that wait for a new
            // map.
            let again = (!self.stuck.is_empty() || self.is_silent()).then(|| now + PAUSE);
            let wake = [hedge, again].into_iter().flatten().min().unwrap_or(self.deadline).min(self.deadline);
            tokio::select! {
                biased;
                Some((group, answer)) = self.open.next(), if !self.open.is_empty() => self.take(group, answer)?,
                Some((group, is_there)) = self.asked.next(), if !self.asked.is_empty() => self.hear(group, is_there),
                () = sleep_until(wake) => {
                    let now = Instant::now();
                    if now >= self.deadline {
                        return Err(self.late());
                    }
                    self.hedge(now);
                    if again.is_some_and(|again| again <= now) {
                        self.need();
                        let stuck = std::mem::take(&mut self.stuck);
                        stuck.iter().for_each(|&question| self.tried[question].clear());
                        self.send(stuck);
                    }
                }
            }
        }
        Ok(self.answers.into_iter().flatten().collect())
    }

    /// The error after the deadline.
    fn late(&self) -> Status {
        let Some(&question) = self.stuck.first() else {
            let silent: Vec<&str> =
                self.groups.iter().filter(|group| group.is_open).map(|group| group.server.name.as_str()).collect();
            return Status::deadline_exceeded(format!("no answer before the deadline from {}", silent.join(", ")));
        };
        let CellName { row, partition } = self.questions[question].cell;
        let last =
            self.last.as_ref().map_or_else(String::new, |last| format!(" (last server error: {})", last.message()));
        let cell = [("row", row.into()), ("partition", partition.into())];
        refuse(Reason::NotReady, format!("no server answers for cell {partition} of row {row}{last}"), &cell)
    }

    /// Sends each question to the next server that holds its cell.
    fn send(&mut self, questions: Vec<usize>) {
        let map = self.clerk.map();
        let mut groups: Vec<(Server, Vec<usize>)> = Vec::new();
        for question in questions {
            let Some(server) = self.next_server(&map, question) else {
                self.stuck.push(question);
                // The map may come from a server that is cut off from the others.
                self.clerk.doubt(None);
                continue;
            };
            self.tried[question].push(server.address.clone());
            match groups.iter_mut().find(|(known, _)| *known == server) {
                Some((_, questions)) => questions.push(question),
                None => groups.push((server, vec![question])),
            }
        }
        for (server, questions) in groups {
            self.call(server, questions);
        }
    }

    fn next_server(&self, map: &Map, question: usize) -> Option<Server> {
        let cell = self.questions[question].cell;
        let untried = |server: &&Server| !self.tried[question].contains(&server.address);
        // Takes the first server that did not fail recently, else the first server.
        let is_suspect = |server: &&Server| self.clerk.is_suspect(&server.address);
        let best = |map: &Map| map.holders(cell).filter(untried).min_by_key(is_suspect).cloned();
        best(map).or_else(|| best(self.pinned))
    }

    fn call(&mut self, server: Server, indexes: Vec<usize>) {
        let questions: Vec<Question> = indexes
            .iter()
            .map(|&index| Question {
                cell: Some(self.questions[index].cell),
                question: Some(self.questions[index].question.clone()),
            })
            .collect();
        let number = self.groups.len();
        let shared = &self.clerk.shared;
        let deadline = self.deadline;
        let local = shared.local.as_ref().filter(|(name, _)| *name == server.name);
        let local = local.map(|(_, cells)| cells.ask(questions.clone()));
        let answer: BoxFuture<'_, _> = if let Some(answer) = local {
            answer
        } else {
            let (client, store) = (shared.cells(&server.address), self.pinned.store.clone());
            Box::pin(async move {
                let mut client = client?;
                let mut request = Request::new(AskRequest { questions, store });
                request.set_timeout(deadline.saturating_duration_since(Instant::now()));
                let answer = timeout_at(deadline, client.ask(request)).await;
                let answer = answer.unwrap_or_else(|_| Err(Status::deadline_exceeded("deadline exceeded")));
                answer.map(|answer| answer.into_inner().answers)
            })
        };
        let begun = Instant::now();
        let hedge_at = Some(begun + self.clerk.options.hedge);
        // A call may have many batches. A server that was silent for one batch is not checked again for the next.
        let presence = if self.clerk.is_gone(&server.address) { Presence::Silent } else { Presence::Unasked };
        self.groups.push(Group { server, questions: indexes, begun, hedge_at, is_open: true, presence });
        self.open.push(Box::pin(async move { (number, answer.await) }));
    }

    fn take(&mut self, group: usize, answer: Result<Vec<Answer>, Status>) -> Result<(), Status> {
        self.groups[group].is_open = false;
        let questions = std::mem::take(&mut self.groups[group].questions);
        let answer = answer.and_then(|answers| {
            let is_complete = answers.len() == questions.len() && answers.iter().all(|answer| answer.answer.is_some());
            if is_complete { Ok(answers) } else { Err(Status::internal("the server sent too few or too many answers")) }
        });
        match answer {
            Ok(answers) => {
                for (question, answer) in questions.into_iter().zip(answers) {
                    if self.answers[question].is_none() {
                        self.answers[question] = answer.answer;
                    }
                }
                lock(&self.clerk.shared.suspects).remove(&self.groups[group].server.address);
                // An earlier call that was hedged and is still open counts as slow.
                let slow = self.groups[..group].iter().filter(|other| other.is_open && other.hedge_at.is_none());
                slow.for_each(|other| self.clerk.suspect(&other.server.address));
            }
            Err(status) if is_passing(&status) => {
                let server = self.groups[group].server.clone();
                if Reason::of(&status) != Some(Reason::CellNotHere) {
                    self.clerk.suspect(&server.address);
                }
                tracing::debug!(server = server.name, %status, "a server failed; asking the next replica");
                lock(&self.clerk.shared.counts).retries += 1;
                self.last = Some(status.clone());
                let is_asked_elsewhere = |question: &usize| {
                    self.groups.iter().any(|group| group.is_open && group.questions.contains(question))
                };
                let unanswered: Vec<usize> = questions
                    .into_iter()
                    .filter(|question| self.answers[*question].is_none() && !is_asked_elsewhere(question))
                    .collect();
                self.send(unanswered);
                // A server's internal error is permanent; an unavailable server may come back.
                let is_broken = matches!(status.code(), Code::DataLoss | Code::Internal | Code::Unimplemented);
                if !self.stuck.is_empty() && is_broken && !is_of_transport(&status) {
                    return Err(status);
                }
            }
            Err(status) => return Err(status),
        }
        Ok(())
    }

    /// Sends the questions of slow calls to further servers.
    fn hedge(&mut self, now: Instant) {
        let map = self.clerk.map();
        for number in 0..self.groups.len() {
            let group = &self.groups[number];
            if !group.is_open || group.hedge_at.is_none_or(|hedge_at| now < hedge_at) {
                continue;
            }
            let (patience, is_late) = (self.clerk.options.hedge, now >= group.begun + LATE * self.clerk.options.hedge);
            let questions: Vec<usize> =
                group.questions.iter().copied().filter(|&question| self.answers[question].is_none()).collect();
            let questions: Vec<usize> =
                questions.into_iter().filter(|&question| self.next_server(&map, question).is_some()).collect();
            match questions.is_empty() {
                // No other server is left. When the call is late, the presence of the server is checked.
                true if is_late => {
                    self.groups[number].hedge_at = None;
                    let is_slow = |group: &Group| group.is_open && now >= group.begun + patience;
                    let slow: Vec<usize> = (0..self.groups.len()).filter(|&at| is_slow(&self.groups[at])).collect();
                    slow.into_iter().for_each(|group| self.ask_presence(group));
                }
                false if is_late || self.clerk.may_hedge() => self.groups[number].hedge_at = None,
                _ => {
                    self.groups[number].hedge_at = Some(now + patience);
                    continue;
                }
            }
            if !questions.is_empty() {
                lock(&self.clerk.shared.counts).hedges += 1;
                self.send(questions);
            }
        }
    }
}

impl Asking<'_> {
    /// Checks the presence of the server of a slow call. A server does not check itself.
    fn ask_presence(&mut self, number: usize) {
        let (shared, group) = (&self.clerk.shared, &mut self.groups[number]);
        let Some((own, _)) = &shared.local else { return };
        if *own == group.server.name || group.presence != Presence::Unasked {
            return;
        }
        group.presence = Presence::Asked;
        let client = shared.cells(&group.server.address);
        let store = self.pinned.store.clone();
        self.asked.push(Box::pin(async move {
            let Ok(mut client) = client else { return (number, false) };
            let answer = client.ask(AskRequest { questions: Vec::new(), store });
            let answer = tokio::time::timeout(THERE, answer).await;
            // Any answer that comes from the server itself shows that it is there.
            (number, answer.is_ok_and(|answer| answer.err().is_none_or(|status| !is_of_transport(&status))))
        }));
    }

    fn hear(&mut self, number: usize, is_there: bool) {
        let group = &mut self.groups[number];
        if !is_there && group.is_open {
            group.presence = Presence::Silent;
            let address = group.server.address.clone();
            self.clerk.suspect_as(&address, true);
            // Questions of other calls to this server may have another replica.
            self.need();
        }
    }

    /// Whether a server of an open call is silent.
    fn is_silent(&self) -> bool {
        self.groups.iter().any(|group| group.is_open && group.presence == Presence::Silent)
    }

    /// Asks this server to make the cells of questions that no other server answers. Sends the questions to this server
    /// once it has the cells.
    fn need(&mut self) {
        let Some((own, cells)) = &self.clerk.shared.local else { return };
        if self.begun.elapsed() < ALONE && !self.is_silent() {
            return;
        }
        if self.last.as_ref().is_some_and(|status| Reason::of(status) == Some(Reason::Overloaded)) {
            return;
        }
        let map = self.clerk.map();
        let (mut here, mut elsewhere) = (Vec::new(), Vec::new());
        for question in (0..self.questions.len()).filter(|&question| self.answers[question].is_none()) {
            let mut open = self.groups.iter().filter(|group| group.is_open && group.questions.contains(&question));
            if open.any(|group| group.presence != Presence::Silent) {
                continue;
            }
            // Other holders may be behind the same network partition. This server therefore comes first, even before
            // servers that were not asked.
            let cell = self.questions[question].cell;
            if map.holders(cell).any(|server| server.name == *own) {
                here.push(question);
                continue;
            }
            match self.next_server(&map, question) {
                Some(server) if !self.clerk.is_gone(&server.address) => elsewhere.push(question),
                _ => cells.need(cell),
            }
        }
        self.stuck.retain(|question| !here.contains(question));
        elsewhere.retain(|question| !self.stuck.contains(question));
        if let (Some(index), false) = (map.server(own), here.is_empty()) {
            self.call(map.servers[index].clone(), here);
        }
        self.send(elsewhere);
    }
}

/// The error for an answer that does not match its question.
pub(crate) fn other_kind() -> Status {
    Status::internal("the server sent an answer of the wrong kind; compare the versions of client and server")
}
