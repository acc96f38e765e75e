//! `/v1/links`: links of a page, or pages that link to a URL, at a time; for one URL, or for all matching URLs.
//! `/v1/lifespans`: the first and the last capture of each link.
//!
//! The links of one URL are a list. The links of matching URLs are items, one for each URL that has links. The answer
//! also has what is unknown as of a time: that the links of a page are unknown, or, for in-links, the pages for which
//! it is unknown whether they link. Each of these counts as a value of the answer. For out-links, only pages with a
//! capture in the window are looked up. For in-links, all matching URLs are looked up, because a link target need not
//! have been captured.

use axum::extract::{RawQuery, State};
use axum::response::Response;
use tonic::Status;
use webstrata_layers::answers::links::{self as answers, About, Item, LinkLifespan, List, UnknownLinks};
use webstrata_layers::{
    AsOf, Batch, Direction, Lifespan, Match, PageLinks, Precision, Sample, Sampling, Uid, Unknown, Way, Window,
};

use super::answer::text::told;
use super::answer::walk::Walk;
use super::answer::{Answer, Value};
use super::describe::{Call, call};
use super::question::address::{find, spellings_of};
use super::question::matching::Matching;
use super::question::parameters::{
    AT, COUNT, DIRECTION, EPOCH, FAILURES, FROM, LIMIT, MATCH, MAX_AGE, PRECISION, RANDOM, RESUME_KEY, SAMPLE, SEED,
    TO, URL,
};
use super::question::params::Params;
use super::question::resume::Start;
use super::{Refused, pinned, resume_key};
use crate::answering::last_known;
use crate::clerk::{Pinned, UidInWindow};
use crate::protocol::status::{bad, fits_in_parts};
use crate::shared::Shared;

pub(super) const LINKS: Call = call::<answers::Links>(
    "links",
    "Links of a page, or pages that link to a URL, at a time.",
    &[
        URL, DIRECTION, PRECISION, FROM, TO, AT, MAX_AGE, FAILURES, COUNT, SAMPLE, RANDOM, SEED, LIMIT, RESUME_KEY,
        EPOCH, MATCH,
    ],
);
pub(super) const LIFESPANS: Call = call::<answers::Lifespans>(
    "lifespans",
    "Lifespans of the links of a page, or to a URL: the first and the last capture of each run that has the link.",
    &[URL, DIRECTION, FROM, TO, LIMIT, RESUME_KEY, EPOCH],
);

pub(super) mod changed;
pub(super) mod dead;
pub(super) mod first;

/// The number of sources per batch of questions for lifespans.
const SOURCES: usize = 1000;
/// The number of links of one URL that are held together. Reading each part of the list reads the whole list.
const STRETCH: usize = 1 << 16;
/// Bytes of memory for a link that is held, before its URL is known.
const LINK: usize = 112;

/// All links, their number, or a sample.
#[derive(Clone, Copy)]
enum AnswerForm {
    All,
    Count,
    Sample(Sample),
}

/// A question about links.
struct LinkQuestion {
    direction: Direction,
    window: Window,
    form: AnswerForm,
}

/// A link, or a page for which it is unknown whether it links. A page with unknown links may link to itself, and is
/// both.
#[derive(Clone, Copy)]
struct Link {
    uid: Uid,
    is_link: bool,
    is_unknown: bool,
}

/// The URL of a link or of such a page.
struct LinkShown {
    url: String,
    is_link: bool,
    is_unknown: bool,
}

impl Link {
    /// The links, and the pages for which it is unknown whether they link, in order. Both inputs rise. For in-links, a
    /// page in `links` may also be in `unknown`, because ranges may name it; it counts as unknown.
    fn all(way: Way, links: &[Uid], unknown: &[Uid]) -> Vec<Self> {
        let is_link = |uid: &Uid| way == Way::Out && links.binary_search(uid).is_ok();
        let known = links.iter().filter(|link| unknown.binary_search(link).is_err());
        let known = known.map(|&uid| Self { uid, is_link: true, is_unknown: false });
        let open = unknown.iter().map(|&uid| Self { uid, is_link: is_link(&uid), is_unknown: true });
        let mut all: Vec<Self> = known.chain(open).collect();
        all.sort_by_key(|link| link.uid);
        all
    }
}

impl Value for Link {
    type Shown = LinkShown;

    fn uid(self) -> Option<Uid> {
        Some(self.uid)
    }

    fn show(self, url: &str) -> Self::Shown {
        LinkShown { url: url.to_owned(), is_link: self.is_link, is_unknown: self.is_unknown }
    }
}

/// The number of links, and of pages for which it is unknown whether they link.
#[derive(Clone, Copy, Default)]
struct Count {
    links: u64,
    unknown: usize,
}

impl Value for Count {
    type Shown = Self;

    fn uid(self) -> Option<Uid> {
        None
    }

    fn show(self, _: &str) -> Self {
        self
    }
}

impl Value for Lifespan {
    type Shown = LinkLifespan;

    fn uid(self) -> Option<Uid> {
        Some(self.link)
    }

    fn show(self, url: &str) -> LinkLifespan {
        LinkLifespan::of(url.to_owned(), &self)
    }
}

impl LinkQuestion {
    /// A random sample without a seed gets a seed, which `start` keeps for the next page.
    fn of(params: &Params, start: &mut Start) -> Result<Self, Status> {
        let precision = params.word::<Precision>("precision")?;
        let direction = match (params.word::<Way>("direction")?, params.get("precision")?) {
            (Way::In, _) => Direction::In(precision),
            (Way::Out, None) => Direction::Out,
            (Way::Out, Some(_)) => return Err(bad("precision: needs direction=in")),
        };
        let count = params.flag("count")?;
        let sample = params.number("sample")?;
        let random = params.flag("random")?;
        let seed = params.number("seed")?;
        for (name, is_set) in [("random", random), ("seed", seed.is_some())] {
            if is_set && sample.is_none() {
                return Err(bad(format!("{name}: needs sample")));
            }
        }
        let form = match (count, sample) {
            (false, None) => AnswerForm::All,
            (true, None) => AnswerForm::Count,
            (true, Some(_)) => return Err(bad("count: cannot be combined with sample")),
            (false, Some(count)) => {
                let sampling = if random { Sampling::Random } else { Sampling::Consistent };
                let count = usize::try_from(count).unwrap_or(usize::MAX);
                let seed = sampling.seed(seed.or(start.seed));
                start.seed = random.then_some(seed);
                AnswerForm::Sample(Sample { count, sampling, seed })
            }
        };
        Ok(Self { direction, window: params.window()?, form })
    }

    /// The interval of the captures that may answer; `None` for in-links, because their targets may never have been
    /// captured.
    fn interval(&self) -> Option<(i64, i64)> {
        match (self.direction, self.window) {
            (Direction::In(_), _) => None,
            (Direction::Out, Window::Seen { from, to }) => Some((from, to)),
            (Direction::Out, Window::AsOf(AsOf { time, since, .. })) => Some((since, time)),
        }
    }

    async fn links(&self, pinned: &Pinned, uids: &[Uid]) -> Result<Batch<Link>, Status> {
        let found = match self.form {
            AnswerForm::Sample(sample) => pinned.samples(uids, self.direction, self.window, sample).await?,
            AnswerForm::All | AnswerForm::Count => {
                pinned.links_of_any_length(uids, self.direction, self.window).await?
            }
        };
        // A sample does not have all links.
        let whole = Some(&found).filter(|_| !matches!(self.form, AnswerForm::Sample(_)));
        let unknown = self.unknown(pinned, uids, whole).await?;
        let mut links = Batch::default();
        found
            .iter()
            .zip(unknown.iter())
            .for_each(|(found, unknown)| links.push(&Link::all(self.way(), found, unknown)));
        Ok(links)
    }

    /// Adds the links of one URL, each as a separate item, because one answer of the clerk may not hold all of them.
    async fn add_links(
        &self,
        pinned: &Pinned,
        uid: Uid,
        start: &Start,
        answer: &mut Answer<LinkShown>,
    ) -> Result<(), Status> {
        let mut next = Some(start.position.unwrap_or_default().uid);
        // For out-links, `with_last_known` says it in each part of the answer.
        let unknown = match self.way() {
            Way::Out => Vec::new(),
            Way::In => self.unknown(pinned, &[uid], None).await?.into_values(),
        };
        pinned.charge().keep(unknown.len() * LINK + answer.values_max().min(STRETCH) * LINK).await?;
        while let (Some(first), false) = (next, answer.is_full()) {
            let links_max = answer.values_max().min(STRETCH);
            let (links, after) = pinned.links_from(uid, self.direction, self.window, first, links_max).await?;
            let within = |uid: &&Uid| **uid >= first && after.is_none_or(|after| **uid < after);
            let unknown: Vec<Uid> = unknown.iter().filter(within).copied().collect();
            add_each(pinned, &Link::all(self.way(), &links, &unknown), answer).await?;
            if let (Some(after), false) = (after, answer.has_room()) {
                answer.stop_at(after);
            }
            next = after;
        }
        Ok(())
    }

    /// Adds the links of a page with these spellings: a list, a count, or a sample.
    async fn add_page(
        &self,
        pinned: &Pinned,
        spellings: &[Uid],
        start: &Start,
        answer: &mut Answer<LinkShown>,
    ) -> Result<List, Status> {
        let question = PageLinks::new(spellings, self.direction, self.window);
        let (mut links, mut unknown) = pinned.answer(question).await?;
        pinned.charge().keep((links.len() + unknown.len()) * LINK).await?;
        match self.form {
            AnswerForm::Count => {
                let unknown = UnknownLinks::counted(self.way(), unknown.len());
                return Ok(List::counted(links.len() as u64, unknown));
            }
            AnswerForm::Sample(sample) => sample.draw(spellings.first().copied().unwrap_or_default(), &mut links),
            AnswerForm::All => {}
        }
        let first = start.position.unwrap_or_default().uid;
        links.retain(|&link| link >= first);
        unknown.retain(|&page| page >= first);
        let unknown = if self.way() == Way::Out { &[] } else { &unknown[..] };
        add_each(pinned, &Link::all(self.way(), &links, unknown), answer).await?;
        Ok(self.list(std::mem::take(&mut answer.items).into_iter().flat_map(|item| item.values).collect()))
    }

    fn way(&self) -> Way {
        if self.direction == Direction::Out { Way::Out } else { Way::In }
    }

    fn list(&self, links: Vec<LinkShown>) -> List {
        let unknown = links.iter().filter(|link| link.is_unknown).map(|link| link.url.clone()).collect();
        let links = links.into_iter().filter(|link| link.is_link).map(|link| link.url);
        List::of(links.collect(), UnknownLinks::of(self.way(), unknown))
    }

    /// Says of the links of a page, given its spellings, whether there may be more, and which as of a time.
    async fn with_last_known(&self, pinned: &Pinned, list: List, pages: &[Uid]) -> Result<List, Status> {
        if self.way() == Way::In || !pinned.graph().has_unknown {
            return Ok(list);
        }
        let (known, unknown) = pinned.answer(PageLinks::new(pages, self.direction, self.window)).await?;
        let links = last_known(pinned, &unknown, &known, self.window).await?;
        let list = List { unknown: unknown.first().map(|_| UnknownLinks::Page(true)), ..list };
        Ok(list.with_last_known(pinned.urls(&links).await?))
    }

    async fn counts(&self, pinned: &Pinned, uids: &[Uid]) -> Result<Batch<Count>, Status> {
        let links = pinned.degrees(uids, self.direction, self.window).await?;
        let unknown = self.unknown(pinned, uids, None).await?;
        let mut counts = Batch::default();
        for (links, unknown) in links.into_iter().zip(unknown.iter()) {
            let count = Count { links, unknown: unknown.len() };
            counts.push(Some(count).filter(|_| links > 0 || !unknown.is_empty()).as_slice());
        }
        Ok(counts)
    }

    fn counted(&self, count: Option<&Count>) -> List {
        let Count { links, unknown } = count.copied().unwrap_or_default();
        List::counted(links, UnknownLinks::counted(self.way(), unknown))
    }

    /// For each UID, the pages for which it is unknown whether they link.
    async fn unknown(&self, pinned: &Pinned, uids: &[Uid], links: Option<&Batch<Uid>>) -> Result<Batch<Uid>, Status> {
        let items: Vec<UidInWindow> = uids.iter().map(|&uid| (uid, self.window)).collect();
        pinned.answer(Unknown::in_windows(&items, self.direction, links)).await
    }

    fn about(&self, pinned: &Pinned) -> About {
        About::of(pinned.epoch(), self.way(), self.window)
    }
}

/// `/v1/links`.
pub(super) async fn links(State(shared): State<Shared>, RawQuery(query): RawQuery) -> Result<Response, Refused> {
    let params = Params::of(query.as_deref(), LINKS.parameters)?;
    let mut start = Start::of(shared.cluster.store(), "/v1/links", &params)?;
    let question = LinkQuestion::of(&params, &mut start)?;
    let matched = params.word::<Match>("match")?;
    let url = params.required("url")?;
    let mut answer = Answer::of(&shared, &params, &start)?;
    let mut counts = Answer::of(&shared, &params, &start)?;
    let pinned = pinned(&shared, start.epoch).await?;
    let mut about = question.about(&pinned);
    let shown = |about, list, items, next_page| {
        told(&pinned, answers::Links { about, list, items, resume_key: resume_key(&start, &pinned, next_page) })
    };
    if matched == Match::Exact {
        let (url, uid) = find(&pinned, url).await?;
        let about = about.url(url, uid);
        if let AnswerForm::Count = question.form {
            let counts = question.counts(&pinned, &[uid]).await?;
            return shown(about, question.counted(counts.values().first()), None, None).await;
        }
        match question.form {
            AnswerForm::All => question.add_links(&pinned, uid, &start, &mut answer).await?,
            _ => answer.add(&pinned, &[uid], &question.links(&pinned, &[uid]).await?).await?,
        }
        let list = question.list(answer.items.into_iter().flat_map(|item| item.values).collect());
        let list = question.with_last_known(&pinned, list, &[uid]).await?;
        return shown(about, list, None, answer.next_page).await;
    }
    about.matching = Some(matched);
    if matched == Match::Surt {
        let spellings = spellings_of(&pinned, url).await?;
        about.spellings = Some(pinned.urls(&spellings).await?);
        let list = question.add_page(&pinned, &spellings, &start, &mut answer).await?;
        let list = question.with_last_known(&pinned, list, &spellings).await?;
        return shown(about, list, None, answer.next_page).await;
    }
    let Matching { uids, .. } = Matching::of(&pinned, matched, ("url", url)).await?;
    let mut walk = Walk::new(pinned.clone(), uids, question.interval(), start.first_uid());
    if let AnswerForm::Count = question.form {
        while let Some(uids) = walk.next(&mut counts).await? {
            counts.add(&pinned, &uids, &question.counts(&pinned, &uids).await?).await?;
        }
        let item = |item: super::answer::Item<Count>| Item {
            url: item.url,
            uid: item.uid,
            list: question.counted(item.values.first()),
        };
        let items = counts.items.into_iter().map(item).collect();
        return shown(about, List::default(), Some(items), counts.next_page).await;
    }
    while let Some(uids) = walk.next(&mut answer).await? {
        match question.links(&pinned, &uids).await {
            Ok(links) => {
                let held = links.values().len() * LINK;
                pinned.charge().keep(held).await?;
                answer.add(&pinned, &uids, &links).await?;
                pinned.charge().change(held, 0).await?;
            }
            Err(status) if fits_in_parts(&status) && walk.take_back(&uids) => {}
            Err(status) => return Err(status.into()),
        }
    }
    let item =
        |item: super::answer::Item<LinkShown>| Item { url: item.url, uid: item.uid, list: question.list(item.values) };
    let items = answer.items.into_iter().map(item).collect();
    shown(about, List::default(), Some(items), answer.next_page).await
}

/// Adds links to an answer, each as a separate value.
async fn add_each(pinned: &Pinned, links: &[Link], answer: &mut Answer<LinkShown>) -> Result<(), Status> {
    let (uids, mut each): (Vec<Uid>, _) = (links.iter().map(|link| link.uid).collect(), Batch::default());
    links.iter().for_each(|&link| each.push(&[link]));
    answer.add(pinned, &uids, &each).await
}

/// `/v1/lifespans`.
pub(super) async fn lifespans(State(shared): State<Shared>, RawQuery(query): RawQuery) -> Result<Response, Refused> {
    let params = Params::of(query.as_deref(), LIFESPANS.parameters)?;
    let inward = params.word::<Way>("direction")? == Way::In;
    let start = Start::of(shared.cluster.store(), "/v1/lifespans", &params)?;
    let (from, to) = params.interval()?.unwrap_or((i64::MIN, i64::MAX));
    let url = params.required("url")?;
    let mut answer = Answer::of(&shared, &params, &start)?;
    let question = LinkQuestion {
        direction: if inward { Direction::In(Precision::Exact) } else { Direction::Out },
        window: Window::Seen { from, to },
        form: AnswerForm::All,
    };
    let pinned = pinned(&shared, start.epoch).await?;
    let (url, uid) = find(&pinned, url).await?;
    let is_in_window = |lifespan: &Lifespan| lifespan.first <= to && lifespan.last >= from;
    if inward {
        // A source may have had the link before and after the interval without a capture inside: its lifespan counts.
        let mut next = Some(start.position.unwrap_or_default().uid);
        while let (Some(first), false) = (next, answer.is_full()) {
            let (sources, after) = pinned.links_from(uid, question.direction, Window::ALWAYS, first, STRETCH).await?;
            next = after;
            let (mut waiting, mut step) = (&sources[..], SOURCES);
            while !waiting.is_empty() && !answer.is_full() {
                let (sources, rest) = waiting.split_at(step.min(waiting.len()));
                let found = match pinned.lifespans(sources).await {
                    Err(status) if fits_in_parts(&status) && sources.len() > 1 => {
                        step = sources.len() / 2;
                        continue;
                    }
                    found => found?,
                };
                let mut lifespans = Batch::default();
                for (&source, found) in sources.iter().zip(found.iter()) {
                    let to_url = found.iter().filter(|lifespan| lifespan.link == uid && is_in_window(lifespan));
                    lifespans.push(&to_url.map(|lifespan| Lifespan { link: source, ..*lifespan }).collect::<Vec<_>>());
                }
                answer.add(&pinned, sources, &lifespans).await?;
                waiting = rest;
            }
        }
    } else {
        let found = pinned.lifespans(&[uid]).await?;
        let mut lifespans = Batch::default();
        lifespans.push(&found.values().iter().copied().filter(is_in_window).collect::<Vec<_>>());
        answer.add(&pinned, &[uid], &lifespans).await?;
    }
    let lifespans = answer.items.into_iter().flat_map(|item| item.values).collect();
    let resume_key = resume_key(&start, &pinned, answer.next_page);
    let unknown = question.unknown(&pinned, &[uid], None).await?.into_values();
    let unknown = UnknownLinks::of(question.way(), pinned.urls(&unknown).await?);
    let about = question.about(&pinned).url(url, uid);
    told(&pinned, answers::Lifespans { about, lifespans, unknown, resume_key }).await
}
