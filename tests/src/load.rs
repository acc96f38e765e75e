//! Load on a cluster. Tasks ask one clerk all the time, each call about the epoch that is current when the call begins.
//! A thread compares every answer with the oracle of that epoch.

#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

use crate::crawls::Random;
use crate::oracle::When;
use crate::stores::window;
use crate::story::{Known, Story};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;
use tokio::runtime::Runtime;
use tokio::task::JoinHandle;
use tokio::time::Instant;
use webstrata_layers::{Batch, CaptureTime, Direction, Lifespan, Precision, Uid};
use webstrata_serve::clerk::{Clerk, Pinned};

/// The pause between two calls of a task, so that questions do not take the whole machine.
const PAUSE: Duration = Duration::from_millis(4);
/// The maximum number of UIDs or URLs in a call.
const BATCH: u64 = 30;

/// A question to the clerk.
#[derive(Debug)]
enum Question {
    Out(Vec<Uid>, When),
    In(Vec<Uid>, When),
    Captures(Vec<Uid>),
    Lifespans(Vec<Uid>),
    Urls(Vec<Uid>),
    Uids(Vec<String>),
}

/// The answer to a question.
enum Answer {
    Links(Batch<Uid>),
    Captures(Batch<CaptureTime>),
    Lifespans(Batch<Lifespan>),
    Urls(Vec<String>),
    Uids(Vec<Option<Uid>>),
}

/// A question with its answer, to be compared with the oracle.
pub struct Answered {
    known: Arc<Known>,
    question: Question,
    answer: Answer,
}

/// The outcome of calls.
#[derive(Default)]
pub struct Report {
    /// The number of calls, by kind of question.
    pub calls: BTreeMap<&'static str, u64>,
    /// The epochs that calls were about.
    pub epochs: BTreeSet<u64>,
    /// The start and the duration of each call.
    pub times: Vec<(Instant, Duration)>,
    /// The calls that failed, each with its error.
    pub failed: Vec<String>,
    /// The answers that differ from the oracle.
    pub wrong: Vec<String>,
}

/// Tasks that ask until [`Load::finish`] is called.
pub struct Load {
    stop: Arc<AtomicBool>,
    tasks: Vec<JoinHandle<Report>>,
    checking: thread::JoinHandle<Vec<String>>,
}

impl Question {
    fn draw(story: &Story, known: &Known, random: &mut Random) -> Question {
        let many = if random.once_in(2) { 1 } else { 1 + random.below(BATCH) };
        let any = |random: &mut Random| Uid(random.below(known.urls.len() as u64));
        let uids: Vec<Uid> = (0..many).map(|_| any(random)).collect();
        let when = random.when(&story.times);
        match random.below(6) {
            0 => Question::Out(uids, when),
            1 => Question::In(uids, when),
            2 => Question::Captures(uids),
            3 => Question::Lifespans(uids),
            4 => Question::Urls(uids),
            _ => Question::Uids((0..many).map(|_| random.pick(&story.urls).clone()).collect()),
        }
    }

    fn kind(&self) -> &'static str {
        match self {
            Question::Out(..) => "out-links",
            Question::In(..) => "in-links",
            Question::Captures(_) => "captures",
            Question::Lifespans(_) => "lifespans",
            Question::Urls(_) => "urls",
            Question::Uids(_) => "uids",
        }
    }

    async fn ask(&self, pinned: &Pinned) -> Result<Answer, String> {
        let window = |when: &When| window(*when);
        let exact = Direction::In(Precision::Exact);
        let answer = match self {
            Question::Out(uids, when) => pinned.links(uids, Direction::Out, window(when)).await.map(Answer::Links),
            Question::In(uids, when) => pinned.links(uids, exact, window(when)).await.map(Answer::Links),
            Question::Captures(uids) => pinned.captures(uids).await.map(Answer::Captures),
            Question::Lifespans(uids) => pinned.lifespans(uids).await.map(Answer::Lifespans),
            Question::Urls(uids) => pinned.urls(uids).await.map(Answer::Urls),
            Question::Uids(urls) => pinned.uids(urls).await.map(Answer::Uids),
        };
        answer.map_err(|status| format!("{:?}: {}", status.code(), status.message()))
    }
}

/// Compares two values. The error has both values as text.
fn same<T: std::fmt::Debug + PartialEq<U>, U: std::fmt::Debug>(what: &str, got: &T, want: &U) -> Result<(), String> {
    if got == want { Ok(()) } else { Err(format!("{what}: {got:?}, expected {want:?}")) }
}

impl Answered {
    /// The difference between the answer and the oracle, if there is one.
    pub fn wrong(&self, story: &Story) -> Option<String> {
        let wrong = self.compare(story).err()?;
        Some(format!("epoch {}, {:?}: {wrong}", self.known.epoch, self.question))
    }

    /// Compares the answer with the oracle. The error is the first difference.
    fn compare(&self, story: &Story) -> Result<(), String> {
        let (known, oracle) = (&*self.known, story.oracle(&self.known));
        let text = |uid: Uid| known.urls[usize::try_from(uid.0).unwrap()].as_str();
        let length = |got: usize, want: usize| same("so many answers", &got, &want);
        match (&self.question, &self.answer) {
            (Question::Out(uids, when) | Question::In(uids, when), Answer::Links(links)) => {
                length(links.len(), uids.len())?;
                for (&uid, list) in uids.iter().zip(links.iter()) {
                    same(text(uid), &list.is_sorted_by(|one, other| one < other), &true)?;
                    let got: BTreeSet<&str> = list.iter().map(|&uid| text(uid)).collect();
                    let is_out = matches!(self.question, Question::Out(..));
                    let want =
                        if is_out { oracle.out_links(text(uid), *when) } else { oracle.in_links(text(uid), *when) };
                    same(text(uid), &got, &want)?;
                }
            }
            (Question::Captures(uids), Answer::Captures(captures)) => {
                length(captures.len(), uids.len())?;
                for (&uid, list) in uids.iter().zip(captures.iter()) {
                    let got: Vec<(i64, bool)> = list.iter().map(|capture| (capture.time, capture.known)).collect();
                    same(text(uid), &got, &oracle.captures(text(uid)))?;
                }
            }
            (Question::Lifespans(uids), Answer::Lifespans(spans)) => {
                length(spans.len(), uids.len())?;
                for (&uid, list) in uids.iter().zip(spans.iter()) {
                    let got: BTreeSet<_> = list.iter().map(|span| (text(span.link), span.first, span.last)).collect();
                    same(text(uid), &got, &oracle.lifespans(text(uid)))?;
                }
            }
            (Question::Urls(uids), Answer::Urls(urls)) => {
                same("urls", urls, &uids.iter().map(|&uid| text(uid).to_owned()).collect::<Vec<_>>())?;
            }
            (Question::Uids(urls), Answer::Uids(uids)) => {
                same("uids", uids, &urls.iter().map(|url| known.uids.get(url).copied()).collect::<Vec<_>>())?;
            }
            _ => return Err("an answer to something else".into()),
        }
        Ok(())
    }
}

/// Asks random questions, with a pause between calls, until `stop` is set. `answered` receives each question with its
/// answer.
///
/// # Panics
/// If the clerk has no epoch, or an epoch that the store does not have.
pub async fn asks(
    clerk: Clerk,
    story: Arc<Story>,
    mut random: Random,
    pause: Duration,
    stop: Arc<AtomicBool>,
    mut answered: impl FnMut(Answered),
) -> Report {
    let mut report = Report::default();
    while !stop.load(SeqCst) {
        let pinned = clerk.at(None).unwrap();
        report.epochs.insert(pinned.epoch());
        let (own, epoch) = (story.clone(), pinned.epoch());
        let known = tokio::task::spawn_blocking(move || own.known(epoch)).await.unwrap();
        let question = Question::draw(&story, &known, &mut random);
        *report.calls.entry(question.kind()).or_default() += 1;
        let begun = Instant::now();
        let answer = question.ask(&pinned).await;
        report.times.push((begun, begun.elapsed()));
        match answer {
            Ok(answer) => answered(Answered { known, question, answer }),
            Err(error) => {
                report.failed.push(format!("{} of epoch {epoch} after {:?}: {error}", question.kind(), begun.elapsed()))
            }
        }
        tokio::time::sleep(pause).await;
    }
    report
}

impl Load {
    /// Starts `tasks` tasks, and the thread that compares their answers.
    pub fn start(runtime: &Runtime, clerk: &Clerk, story: &Arc<Story>, tasks: u64, seed: u64) -> Load {
        let stop = Arc::<AtomicBool>::default();
        let (sender, receiver) = mpsc::channel();
        let own = story.clone();
        let checking =
            thread::spawn(move || receiver.into_iter().filter_map(|answered: Answered| answered.wrong(&own)).collect());
        let start = |task| {
            let (random, sender) = (Random(seed.wrapping_mul(1000) + task), sender.clone());
            // The receiver ends only after all tasks have ended.
            let answered = move |answered| sender.send(answered).unwrap();
            runtime.spawn(asks(clerk.clone(), story.clone(), random, PAUSE, stop.clone(), answered))
        };
        Load { tasks: (0..tasks).map(start).collect(), stop, checking }
    }

    /// Ends the tasks, and returns the outcome of all calls.
    ///
    /// # Panics
    /// If a task panicked.
    pub fn finish(self, runtime: &Runtime) -> Report {
        self.stop.store(true, SeqCst);
        let mut all = Report::default();
        for task in self.tasks {
            all.add(runtime.block_on(task).unwrap());
        }
        all.wrong = self.checking.join().unwrap();
        all
    }
}

impl Report {
    /// Adds the outcome of other calls.
    pub fn add(&mut self, own: Report) {
        own.calls.iter().for_each(|(kind, calls)| *self.calls.entry(kind).or_default() += calls);
        self.epochs.extend(own.epochs);
        self.times.extend(own.times);
        self.failed.extend(own.failed);
        self.wrong.extend(own.wrong);
    }

    /// The p50, the p99 and the maximum of the durations of the calls that began at chosen times.
    pub fn latencies(&self, chosen: impl Fn(Instant) -> bool) -> [Duration; 3] {
        let mut times: Vec<Duration> = self.times.iter().filter(|(begun, _)| chosen(*begun)).map(|own| own.1).collect();
        times.sort_unstable();
        let at = |share: usize| times.get((times.len() * share / 100).min(times.len().saturating_sub(1))).copied();
        [50, 99, 100].map(|share| at(share).unwrap_or_default())
    }

    /// Checks the outcome of the calls.
    ///
    /// # Panics
    /// If a call failed, an answer is wrong, or a kind of question was never asked.
    pub fn assert_sound(&self) {
        let some = |all: &[String]| all.iter().take(10).cloned().collect::<Vec<_>>().join("\n");
        assert!(self.failed.is_empty(), "{} calls failed:\n{}", self.failed.len(), some(&self.failed));
        assert!(self.wrong.is_empty(), "{} answers are wrong:\n{}", self.wrong.len(), some(&self.wrong));
        assert!(self.calls.len() == 6, "{:?}", self.calls);
    }
}
