//! The service `Links` of one server as a graph. Each question is one call of the generated client, and answers are put
//! together only as the protocol says.
//!
//! Reads the answers of a server over the network. Lists of links are requested whole, or page by page if a limit is
//! set. The service does not give records of in-links and URLs by key prefix: these questions return an error. Whole
//! pages are made from captures and lifespans, which together contain all facts about a page.

use std::collections::BTreeMap;
use std::future::Future;
use std::ops::{ControlFlow, Range};
use std::sync::Arc;

use tokio::runtime::Runtime;
use tonic::transport::Channel;
use tonic::{Response, Status};
use webstrata_layers::{
    AsOf, Backlink, Began, CaptureTime, Change, ChangedLinks, Cut, Direction, Error, InLinks, Lifespan, LinkingPage,
    Links, Page, Precision, RangeLength, Sample, Sampling, Spans, Spelled, Stay, TIMES, Uid, Window, push_status,
};
use webstrata_serve::clerk::Refused;
use webstrata_serve::protocol::proto::links_client::LinksClient;
use webstrata_serve::protocol::proto::{
    self, GetBacklinksRequest, GetCapturesRequest, GetChangedLinksRequest, GetFirstLinksRequest, GetLifespansRequest,
    GetLinkCountRequest, GetLinksRequest, ListUidsRequest, Match, SampleLinksRequest, StatsRequest, StatsResponse,
    TopologyRequest, TopologyResponse, UidToUrlRequest, UrlToUidRequest, get_backlinks_request,
};
use webstrata_serve::protocol::values::{direction_to, window_to};

use crate::suite::Asked;

/// The service `Links` of a server.
pub struct Raw {
    runtime: Runtime,
    client: LinksClient<Channel>,
    topology: TopologyResponse,
    /// The epoch that questions are about.
    pub epoch: u64,
    /// The maximum number of links in one answer; 0 means all.
    pub limit: u32,
}

impl Raw {
    /// Connects to the server at an address (host:port), and asks about its current epoch.
    ///
    /// # Panics
    /// If no server answers there.
    pub fn connect(address: &str) -> Self {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().expect("a runtime");
        let client = runtime.block_on(LinksClient::connect(format!("http://{address}"))).expect("a server");
        let mut client = client.max_decoding_message_size(usize::MAX);
        let topology =
            runtime.block_on(client.topology(TopologyRequest { after: 0 })).expect("a topology").into_inner();
        Self { runtime, client, epoch: topology.current, topology, limit: 0 }
    }

    /// Makes one call of any kind, and returns the answer of the server.
    ///
    /// # Errors
    /// The error of the call.
    pub fn call<T, F>(&self, call: impl FnOnce(LinksClient<Channel>) -> F) -> Result<T, Status>
    where
        F: Future<Output = Result<Response<T>, Status>>,
    {
        self.runtime.block_on(call(self.client.clone())).map(Response::into_inner)
    }

    /// Like [`Raw::call`], with an error of layers.
    fn ask<T, F>(&self, call: impl FnOnce(LinksClient<Channel>) -> F) -> Result<T, Error>
    where
        F: Future<Output = Result<Response<T>, Status>>,
    {
        self.call(call).map_err(|status| Error::Elsewhere(Box::new(Refused(status))))
    }

    /// The topology at the time of the connection.
    pub fn topology(&self) -> &TopologyResponse {
        &self.topology
    }

    /// The counts of the epoch.
    ///
    /// # Errors
    /// The error of the call.
    pub fn stats(&self) -> Result<StatsResponse, Status> {
        let request = StatsRequest { epoch: self.epoch };
        self.call(|mut client| async move { client.stats(request).await })
    }

    /// All UIDs of a listing.
    ///
    /// # Errors
    /// The error of the call or of its stream.
    pub fn list(&self, request: ListUidsRequest) -> Result<Vec<Uid>, Status> {
        let mut client = self.client.clone();
        self.runtime.block_on(async move {
            let mut stream = client.list_uids(request).await?.into_inner();
            let mut uids = Vec::new();
            while let Some(answer) = stream.message().await? {
                uids.extend(answer.uids.into_iter().map(Uid));
            }
            Ok(uids)
        })
    }

    /// A sample of `count` links of a UID: random or consistent, with a seed or without.
    ///
    /// # Errors
    /// The error of the call.
    ///
    /// # Panics
    /// If the answer does not fit the question.
    pub fn sample(
        &self,
        uid: Uid,
        direction: Direction,
        window: Window,
        count: usize,
        (random, seed): (bool, Option<u64>),
    ) -> Result<Vec<Uid>, Error> {
        let request = SampleLinksRequest {
            epoch: self.epoch,
            uids: vec![uid.0],
            direction: direction_to(direction),
            window: Some(window_to(window)),
            samples: u32::try_from(count).unwrap_or(u32::MAX),
            random,
            seed,
        };
        let answer = self.ask(|mut client| async move { client.sample_links(request).await })?;
        assert_eq!(answer.counts.iter().map(|&count| count as usize).collect::<Vec<_>>(), [answer.links.len()]);
        Ok(Uid::of_numbers(answer.links))
    }

    /// The links of many UIDs, each list whole.
    ///
    /// # Errors
    /// The error of the first call that fails.
    ///
    /// # Panics
    /// If an answer does not fit its question.
    pub fn lists(&self, uids: &[Uid], direction: Direction, window: Window) -> Result<Vec<Vec<Uid>>, Status> {
        let mut lists = vec![Vec::new(); uids.len()];
        let mut page_token = String::new();
        loop {
            let request = GetLinksRequest {
                epoch: self.epoch,
                uids: Uid::numbers(uids).to_vec(),
                direction: direction_to(direction),
                window: Some(window_to(window)),
                limit: self.limit,
                page_token,
            };
            let answer = self.call(|mut client| async move { client.get_links(request).await })?;
            assert_eq!((answer.epoch, answer.counts.len()), (self.epoch, uids.len()));
            assert!(self.limit == 0 || answer.links.len() <= self.limit as usize, "more than the limit");
            let mut links = answer.links.into_iter().map(Uid);
            for (list, &count) in lists.iter_mut().zip(&answer.counts) {
                list.extend(links.by_ref().take(count as usize));
            }
            assert!(links.next().is_none(), "links of no list");
            if answer.next_page_token.is_empty() {
                return Ok(lists);
            }
            assert!(self.limit > 0, "pages that nobody asked for");
            page_token = answer.next_page_token;
        }
    }
}

fn missing<T>(what: &str) -> Result<T, Error> {
    Err(Error::Elsewhere(format!("the service gives no {what}").into()))
}

impl Links for Raw {
    fn epoch(&self) -> u64 {
        self.epoch
    }

    fn urls(&self) -> u64 {
        self.topology.epochs.iter().find(|epoch| epoch.epoch == self.epoch).map_or(0, |epoch| epoch.urls)
    }

    fn uid(&self, url: &str) -> Result<Option<Uid>, Error> {
        let request = UrlToUidRequest { epoch: self.epoch, urls: vec![url.to_owned()] };
        let answer = self.ask(|mut client| async move { client.url_to_uid(request).await })?;
        assert_eq!(answer.uids_plus_one.len(), 1);
        Ok(answer.uids_plus_one[0].checked_sub(1).map(Uid))
    }

    fn url(&self, uid: Uid) -> Result<String, Error> {
        let request = UidToUrlRequest { epoch: self.epoch, uids: vec![uid.0] };
        let mut answer = self.ask(|mut client| async move { client.uid_to_url(request).await })?;
        assert_eq!(answer.urls.len(), 1);
        Ok(answer.urls.remove(0))
    }

    fn page(&self, uid: Uid) -> Result<Option<Arc<Page>>, Error> {
        let (captures, spans) = (self.captures(uid)?, self.lifespans(uid)?);
        if captures.is_empty() {
            return Ok(None);
        }
        let mut page = Page { uid, ..Page::default() };
        page.timestamps = captures.iter().map(|capture| capture.time).collect();
        page.blank = (0..).zip(&captures).filter(|(_, capture)| capture.is_blank()).map(|(at, _)| at).collect();
        for (at, capture) in (0..).zip(&captures) {
            push_status(&mut page.statuses, at, capture.status);
        }
        // A lifespan goes on in a cut capture without the link.
        let mut found_in = BTreeMap::new();
        for CaptureTime { time, .. } in captures.iter().filter(|capture| capture.status.is_cut()) {
            found_in.insert(*time, self.out_links(uid, Window::Seen { from: *time, to: *time })?);
        }
        for own in spans.chunk_by(|one, other| one.link == other.link) {
            let link = u32::try_from(page.links.len()).expect("few links");
            page.links.push(own[0].link);
            // A link counts as present until a capture that is not blank says otherwise.
            let mut before = true;
            for (capture, at) in captures.iter().zip(0..).filter(|(capture, _)| !capture.is_blank()) {
                let is = match found_in.get(&capture.time) {
                    Some(found) => found.contains(&own[0].link),
                    None => own.iter().any(|span| span.first <= capture.time && capture.time <= span.last),
                };
                if is != before {
                    page.changes.push(Change { link, capture: at });
                    before = is;
                }
            }
        }
        Ok(Some(Arc::new(page)))
    }

    fn in_record(&self, _: Uid) -> Result<Option<Arc<InLinks>>, Error> {
        missing("records of in-links")
    }

    fn in_range(&self) -> RangeLength {
        let epoch = self.topology.epochs.iter().find(|epoch| epoch.epoch == self.epoch);
        match epoch.map_or(0, |epoch| epoch.in_range) {
            0 => RangeLength::Month,
            1 => RangeLength::Year,
            days => RangeLength::Days(u32::try_from(days - 2).expect("a length")),
        }
    }

    fn captures_into(&self, uid: Uid, captures: &mut Vec<CaptureTime>) -> Result<(), Error> {
        let request = GetCapturesRequest { epoch: self.epoch, uids: vec![uid.0] };
        let answer = self.ask(|mut client| async move { client.get_captures(request).await })?;
        assert_eq!(answer.counts.iter().map(|&count| count as usize).collect::<Vec<_>>(), [answer.times.len()]);
        let capture = |(at, &time): (u32, &i64)| {
            let code = answer.statuses.get(at as usize).map_or(200, |&code| u16::try_from(code).expect("a code"));
            let cut = answer.cut.iter().position(|&cut| cut == at).map(|place| answer.reasons[place] - 1);
            let cut = cut.map(|reason| Cut::ALL[usize::try_from(reason).expect("a reason")]);
            let status = match cut {
                Some(reason) => webstrata_layers::Status::cut(code, reason),
                None => webstrata_layers::Status::new(code),
            };
            CaptureTime { time, known: !answer.unknown.contains(&at), status: status.expect("a status") }
        };
        *captures = (0..).zip(&answer.times).map(capture).collect();
        Ok(())
    }

    fn spellings(&self, page: &Spelled) -> Result<Vec<Uid>, Error> {
        let request = ListUidsRequest {
            epoch: self.epoch,
            url: page.url().to_owned(),
            r#match: Match::Surt.into(),
            ..ListUidsRequest::default()
        };
        self.list(request).map_err(|status| Error::Elsewhere(Box::new(Refused(status))))
    }

    fn with_prefix(&self, _: &[u8]) -> Result<Vec<Range<Uid>>, Error> {
        missing("prefixes of keys")
    }

    fn uids(
        &self,
        uids: Range<Uid>,
        (from, to): (i64, i64),
        visit: &mut dyn FnMut(Uid) -> ControlFlow<()>,
    ) -> Result<(), Error> {
        if from > to {
            return Ok(());
        }
        // An open end is left out of the request. `from` is always set: without both ends, the answer would also have
        // URLs that were never captured.
        let request = ListUidsRequest {
            epoch: self.epoch,
            from: Some(from.max(*TIMES.start())),
            to: (to < i64::MAX).then_some(to),
            first_uid: uids.start.0,
            ..ListUidsRequest::default()
        };
        let found = self.list(request).map_err(|status| Error::Elsewhere(Box::new(Refused(status))))?;
        let _ = found.into_iter().take_while(|uid| *uid < uids.end).try_for_each(visit);
        Ok(())
    }

    fn out_links(&self, uid: Uid, window: Window) -> Result<Vec<Uid>, Error> {
        self.links(uid, Direction::Out, window)
    }

    fn in_links(&self, uid: Uid, window: Window, precision: Precision) -> Result<Vec<Uid>, Error> {
        self.links(uid, Direction::In(precision), window)
    }

    fn links(&self, uid: Uid, direction: Direction, window: Window) -> Result<Vec<Uid>, Error> {
        let lists =
            self.lists(&[uid], direction, window).map_err(|status| Error::Elsewhere(Box::new(Refused(status))))?;
        Ok(lists.concat())
    }

    fn degree(&self, uid: Uid, direction: Direction, window: Window) -> Result<usize, Error> {
        let request = GetLinkCountRequest {
            epoch: self.epoch,
            uids: vec![uid.0],
            direction: direction_to(direction),
            window: Some(window_to(window)),
        };
        let answer = self.ask(|mut client| async move { client.get_link_count(request).await })?;
        assert_eq!(answer.counts.len(), 1);
        Ok(usize::try_from(answer.counts[0]).expect("a count"))
    }

    fn sample_into(
        &self,
        uid: Uid,
        direction: Direction,
        window: Window,
        sample: Sample,
        links: &mut Vec<Uid>,
    ) -> Result<(), Error> {
        let random = sample.sampling == Sampling::Random;
        *links = self.sample(uid, direction, window, sample.count, (random, Some(sample.seed)))?;
        Ok(())
    }

    fn spans_into(&self, uid: Uid, asked: Spans, spans: &mut Vec<Lifespan>) -> Result<(), Error> {
        if asked == Spans::Runs {
            spans.clear();
            self.page(uid)?.into_iter().for_each(|page| asked.of_page(&page, spans));
            return Ok(());
        }
        let request = GetLifespansRequest { epoch: self.epoch, uids: vec![uid.0] };
        let answer = self.ask(|mut client| async move { client.get_lifespans(request).await })?;
        let lengths = [answer.links.len(), answer.firsts.len(), answer.lasts.len()];
        assert_eq!(lengths, [answer.counts.iter().sum::<u32>() as usize; 3]);
        let times = answer.firsts.iter().zip(&answer.lasts);
        let span = |(&link, (&first, &last))| Lifespan { link: Uid(link), first, last };
        *spans = answer.links.iter().zip(times).map(span).collect();
        Ok(())
    }
}

impl Asked for Raw {
    fn unknown(&self, uid: Uid, direction: Direction, window: Window) -> Result<Vec<Uid>, Error> {
        let request = GetLinksRequest {
            epoch: self.epoch,
            uids: vec![uid.0],
            direction: direction_to(direction),
            window: Some(window_to(window)),
            limit: self.limit,
            ..GetLinksRequest::default()
        };
        let answer = self.ask(|mut client| async move { client.get_links(request).await })?;
        let count = answer.unknown_counts.iter().sum::<u32>() as usize;
        assert!(answer.unknown.len() == count || (self.limit > 0 && answer.unknown.len() < count));
        Ok(Uid::of_numbers(answer.unknown))
    }

    fn last_known(&self, uid: Uid, as_of: AsOf) -> Result<Vec<Uid>, Error> {
        let request = GetLinksRequest {
            epoch: self.epoch,
            uids: vec![uid.0],
            window: Some(window_to(Window::AsOf(as_of))),
            limit: self.limit,
            ..GetLinksRequest::default()
        };
        let answer = self.ask(|mut client| async move { client.get_links(request).await })?;
        assert_eq!(answer.last_known.len(), answer.last_known_counts.iter().sum::<u32>() as usize);
        Ok(Uid::of_numbers(answer.last_known))
    }

    fn changed(&self, uid: Uid, is_inward: bool, dates: [AsOf; 2]) -> Result<ChangedLinks, Error> {
        let direction = if is_inward { Direction::In(Precision::Exact) } else { Direction::Out };
        let [from, to] = dates.map(|date| Some(window_to(Window::AsOf(date))));
        let request = GetChangedLinksRequest {
            epoch: self.epoch,
            uids: vec![uid.0],
            direction: direction_to(direction),
            from,
            to,
        };
        let answer = self.ask(|mut client| async move { client.get_changed_links(request).await })?;
        let counts = [&answer.gained_counts, &answer.lost_counts, &answer.unknown_counts];
        let lists = [answer.gained.len(), answer.lost.len(), answer.unknown.len()];
        assert_eq!(counts.map(|counts| counts.iter().sum::<u32>() as usize), lists);
        let [gained, lost, unknown] = [answer.gained, answer.lost, answer.unknown].map(Uid::of_numbers);
        Ok(ChangedLinks { gained, lost, unknown })
    }

    fn first(&self, uid: Uid) -> Result<Vec<(i64, Uid)>, Error> {
        let request = GetFirstLinksRequest { epoch: self.epoch, uids: vec![uid.0], limit: 0 };
        let answer = self.ask(|mut client| async move { client.get_first_links(request).await })?;
        assert_eq!(answer.counts.iter().sum::<u32>() as usize, answer.pages.len());
        Ok(answer.firsts.into_iter().zip(Uid::of_numbers(answer.pages)).collect())
    }

    fn backlinks(&self, target: &[Range<Uid>]) -> Result<Vec<LinkingPage>, Error> {
        let [uids] = target else { return missing("several targets") };
        let (url, match_) = (self.url(uids.start)?, Match::Exact.into());
        let request = GetBacklinksRequest {
            epoch: self.epoch,
            url,
            r#match: match_,
            internal: true,
            limit: u32::MAX,
            order: get_backlinks_request::Order::Key.into(),
            ..GetBacklinksRequest::default()
        };
        let answer = self.ask(|mut client| async move { client.get_backlinks(request).await })?;
        assert_eq!(answer.pages, answer.rows.len() as u64);
        let stay = |stay: &proto::Stay| Stay {
            first: stay.first,
            last: stay.last,
            until: stay.until,
            began: match stay.began() {
                proto::Began::Found => Began::Found,
                proto::Began::New => Began::New,
                proto::Began::Returned => Began::Returned,
            },
        };
        let row = |row: proto::Referrer| {
            let stays = row.stays.iter().map(stay).collect();
            let unknown = row.unknown.iter().map(|own| (own.first, own.last.unwrap_or(i64::MAX))).collect();
            (Uid(row.page_uid), Backlink { stays, unknown, targets: row.targets })
        };
        Ok(answer.rows.into_iter().map(row).collect())
    }
}
