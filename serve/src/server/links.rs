//! The service `Links`: checks each request, and lets the server's clerk answer.

use std::pin::Pin;

use prost::Message;
use tokio::sync::mpsc;
use tokio_stream::Stream;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Request, Response, Status};
use webstrata_layers::{Batch, Changed, Direction, First, Precision, Sampling, Uid, Unknown, Window, interval};

use super::{around, backlinks, deaths};
use crate::answering::last_known as last_known_of;
use crate::clerk::{Pinned, WAIT};
use crate::protocol::proto::links_server::Links;
use crate::protocol::proto::{self, Drawing, TopologyResponse};
use crate::protocol::resume::{Fingerprint, resumed, token};
use crate::protocol::status::{bad, fits_in_parts};
use crate::protocol::values::{cut_of, direction_of, match_of, sample_of, statuses_of, window_of};
use crate::shared::Shared;

/// UIDs in one message of a listing.
const LISTED: usize = 1 << 16;

/// Answers questions about the whole graph.
#[derive(Clone)]
pub struct LinksService {
    shared: Shared,
}

type AnswerKind<T> = Result<Response<T>, Status>;

impl LinksService {
    /// The service of a server.
    pub fn new(shared: Shared) -> Self {
        Self { shared }
    }

    /// Marks, on this server (`here`) or on all servers, whether an epoch should be in memory.
    async fn hold(&self, pinned: &Pinned, in_memory: bool, here: bool) -> Result<u32, Status> {
        let local = self.shared.cluster.hold(pinned, in_memory);
        if here {
            return local.await;
        }
        let others = self.shared.clerk.tell_others(pinned.epoch(), in_memory);
        tokio::join!(local, others).0
    }

    /// The limit on an answer also holds for the joined answers of several servers.
    fn values(&self, count: usize) -> Result<(), Status> {
        self.shared.bounds.admit_values(count)
    }

    async fn pinned(&self, epoch: u64, items: usize) -> Result<Pinned, Status> {
        self.shared.bounds.admit(items)?;
        self.shared.pinned(epoch).await
    }
}

/// The lengths of lists, as in messages.
fn counts<T>(lists: &Batch<T>) -> Vec<u32> {
    lists.iter().map(|list| u32::try_from(list.len()).unwrap_or(u32::MAX)).collect()
}

fn plus_one(uids: Vec<Option<Uid>>) -> Vec<u64> {
    uids.into_iter().map(|uid| uid.map_or(0, |uid| uid.0 + 1)).collect()
}

/// The hash of a request for links, which is the same for every page of the answer.
fn fingerprint(store: &str, request: &proto::GetLinksRequest) -> Fingerprint {
    let question = proto::GetLinksRequest {
        uids: request.uids.clone(),
        direction: request.direction,
        window: request.window,
        ..proto::GetLinksRequest::default()
    };
    Fingerprint::of(&question.encode_to_vec()).of_store(store)
}

/// The position at which a page of links begins: the epoch (0: the current epoch), the index of the list, and the first
/// link in the list.
fn start_of(store: &str, request: &proto::GetLinksRequest) -> Result<(u64, usize, Uid), Status> {
    if request.page_token.is_empty() {
        return Ok((request.epoch, 0, Uid(0)));
    }
    let (field, question) = ("page_token", fingerprint(store, request));
    let (epoch, [item, link, _]) = resumed(field, &request.page_token, question, request.epoch)?;
    Ok((epoch, usize::try_from(item).unwrap_or(usize::MAX), Uid(link)))
}

impl LinksService {
    /// Adds to an answer the pages for which it is unknown whether they link.
    async fn put_unknown(
        &self,
        answer: &mut proto::GetLinksResponse,
        pinned: &Pinned,
        request: &proto::GetLinksRequest,
        (direction, window): (Direction, Window),
        links: Option<&Batch<Uid>>,
    ) -> Result<(), Status> {
        let items: Vec<_> = Uid::slice(&request.uids).iter().map(|&uid| (uid, window)).collect();
        let unknown = pinned.answer(Unknown::in_windows(&items, direction, links)).await?;
        if !unknown.values().is_empty() {
            answer.unknown_counts = counts(&unknown);
            if direction == Direction::Out {
                let mut last_known = Batch::default();
                for unknown in unknown.iter() {
                    let known = pinned.links_of_any_length(unknown, direction, window).await?;
                    last_known.push(&last_known_of(pinned, unknown, known.values(), window).await?);
                }
                if !last_known.values().is_empty() {
                    answer.last_known_counts = counts(&last_known);
                    answer.last_known = Uid::into_numbers(last_known.into_values());
                }
            }
            answer.unknown = Uid::into_numbers(unknown.into_values());
        }
        Ok(())
    }

    /// For each UID, the number of pages for which it is unknown whether they link; empty if there are none.
    async fn unknown_counts(
        &self,
        pinned: &Pinned,
        uids: &[Uid],
        direction: Direction,
        window: Window,
    ) -> Result<Vec<u32>, Status> {
        let unknown = pinned.answer(Unknown::new(uids, direction, window)).await?;
        Ok(if unknown.values().is_empty() { Vec::new() } else { counts(&unknown) })
    }
}

#[tonic::async_trait]
impl Links for LinksService {
    async fn url_to_uid(&self, request: Request<proto::UrlToUidRequest>) -> AnswerKind<proto::UrlToUidResponse> {
        let request = request.into_inner();
        let pinned = self.pinned(request.epoch, request.urls.len()).await?;
        let uids_plus_one = plus_one(pinned.uids(&request.urls).await?);
        Ok(Response::new(proto::UrlToUidResponse { epoch: pinned.epoch(), uids_plus_one }))
    }

    async fn uid_to_url(&self, request: Request<proto::UidToUrlRequest>) -> AnswerKind<proto::UidToUrlResponse> {
        let request = request.into_inner();
        let pinned = self.pinned(request.epoch, request.uids.len()).await?;
        let urls = pinned.urls(Uid::slice(&request.uids)).await?;
        self.values(urls.iter().map(|url| 1 + url.len() / size_of::<u64>()).sum())?;
        Ok(Response::new(proto::UidToUrlResponse { epoch: pinned.epoch(), urls }))
    }

    async fn get_links(&self, request: Request<proto::GetLinksRequest>) -> AnswerKind<proto::GetLinksResponse> {
        let request = request.into_inner();
        let (epoch, item, first) = start_of(self.shared.cluster.store(), &request)?;
        let pinned = self.pinned(epoch, request.uids.len()).await?;
        let (direction, window) = (direction_of(request.direction)?, window_of(request.window.as_ref())?);
        let mut answer = proto::GetLinksResponse { epoch: pinned.epoch(), ..Default::default() };
        // UIDs beyond the limit are checked too.
        pinned.known(Uid::slice(&request.uids))?;
        if request.limit == 0 && request.page_token.is_empty() {
            let links = pinned.links(Uid::slice(&request.uids), direction, window).await?;
            self.put_unknown(&mut answer, &pinned, &request, (direction, window), Some(&links)).await?;
            self.values(links.values().len() + answer.unknown.len())?;
            answer.counts = counts(&links);
            answer.links = Uid::into_numbers(links.into_values());
            return Ok(Response::new(answer));
        }
        if request.page_token.is_empty() {
            self.put_unknown(&mut answer, &pinned, &request, (direction, window), None).await?;
            answer.unknown.truncate(self.shared.bounds.values);
            answer.last_known.truncate(self.shared.bounds.values);
        }
        let bounds = self.shared.bounds;
        let limit = usize::try_from(request.limit).ok().filter(|&limit| limit > 0).unwrap_or(usize::MAX);
        let limit = limit.min(bounds.values);
        answer.counts = vec![0; request.uids.len()];
        let question = fingerprint(self.shared.cluster.store(), &request);
        let token_at = |item: usize, link: Uid| token(pinned.epoch(), [item as u64, link.0, 0], question);
        // The clerk is asked in steps, so that few links beyond the limit are read.
        let uids = Uid::slice(&request.uids);
        let (mut item, mut first, mut step) = (item, first, 1);
        while item < request.uids.len() {
            let end = request.uids.len().min(item + step);
            let links = if first > Uid(0) {
                Err(None)
            } else {
                pinned.links(&uids[item..end], direction, window).await.map_err(Some)
            };
            let links = match links {
                Ok(links) => links,
                Err(Some(status)) if !fits_in_parts(&status) => return Err(status),
                // A step may have more links than an answer allows, even if the steps before had few.
                Err(Some(_)) if step > 1 => {
                    step = 1;
                    continue;
                }
                Err(_) => {
                    // One link beyond the limit shows that there is a next page.
                    let rest_max = (limit - answer.links.len()).clamp(1, (bounds.values / 2).max(1));
                    let (links, next) = pinned.links_from(uids[item], direction, window, first, rest_max).await?;
                    let count = links.len().min(limit - answer.links.len());
                    answer.links.extend_from_slice(Uid::numbers(&links[..count]));
                    answer.counts[item] += u32::try_from(count).unwrap_or(u32::MAX);
                    match links.get(count).copied().or(next) {
                        Some(next) if answer.links.len() >= limit => {
                            answer.next_page_token = token_at(item, next);
                            return Ok(Response::new(answer));
                        }
                        Some(next) => first = next,
                        None => (item, first) = (item + 1, Uid(0)),
                    }
                    continue;
                }
            };
            for list in links.iter() {
                let count = list.len().min(limit - answer.links.len());
                answer.links.extend_from_slice(Uid::numbers(&list[..count]));
                answer.counts[item] = u32::try_from(count).unwrap_or(u32::MAX);
                if let Some(next) = list.get(count) {
                    answer.next_page_token = token_at(item, *next);
                    return Ok(Response::new(answer));
                }
                item += 1;
            }
            step = (2 * step).min(1000);
        }
        Ok(Response::new(answer))
    }

    async fn get_link_count(
        &self,
        request: Request<proto::GetLinkCountRequest>,
    ) -> AnswerKind<proto::GetLinkCountResponse> {
        let request = request.into_inner();
        let pinned = self.pinned(request.epoch, request.uids.len()).await?;
        let (direction, window) = (direction_of(request.direction)?, window_of(request.window.as_ref())?);
        let uids = Uid::slice(&request.uids);
        let counts = pinned.degrees(uids, direction, window).await?;
        let unknown_counts = self.unknown_counts(&pinned, uids, direction, window).await?;
        Ok(Response::new(proto::GetLinkCountResponse { epoch: pinned.epoch(), counts, unknown_counts }))
    }

    async fn sample_links(
        &self,
        request: Request<proto::SampleLinksRequest>,
    ) -> AnswerKind<proto::SampleLinksResponse> {
        let request = request.into_inner();
        let pinned = self.pinned(request.epoch, request.uids.len()).await?;
        let (direction, window) = (direction_of(request.direction)?, window_of(request.window.as_ref())?);
        let sampling = if request.random { Sampling::Random } else { Sampling::Consistent };
        let seed = sampling.seed(request.seed);
        let sample = sample_of(&Drawing { samples: request.samples, random: request.random, seed });
        let samples = pinned.samples(Uid::slice(&request.uids), direction, window, sample).await?;
        self.values(samples.values().len())?;
        let unknown_counts = self.unknown_counts(&pinned, Uid::slice(&request.uids), direction, window).await?;
        Ok(Response::new(proto::SampleLinksResponse {
            epoch: pinned.epoch(),
            counts: counts(&samples),
            unknown_counts,
            links: Uid::into_numbers(samples.into_values()),
        }))
    }

    async fn get_lifespans(
        &self,
        request: Request<proto::GetLifespansRequest>,
    ) -> AnswerKind<proto::GetLifespansResponse> {
        let request = request.into_inner();
        let pinned = self.pinned(request.epoch, request.uids.len()).await?;
        let uids = Uid::slice(&request.uids);
        let lifespans = pinned.lifespans(uids).await?;
        let unknown = self.unknown_counts(&pinned, uids, Direction::Out, Window::ALWAYS).await?;
        self.values(3 * lifespans.values().len())?;
        Ok(Response::new(proto::GetLifespansResponse {
            epoch: pinned.epoch(),
            counts: counts(&lifespans),
            links: lifespans.values().iter().map(|lifespan| lifespan.link.0).collect(),
            firsts: lifespans.values().iter().map(|lifespan| lifespan.first).collect(),
            lasts: lifespans.values().iter().map(|lifespan| lifespan.last).collect(),
            unknown: (0..).zip(&unknown).filter(|(_, count)| **count > 0).map(|(index, _)| index).collect(),
        }))
    }

    async fn get_captures(
        &self,
        request: Request<proto::GetCapturesRequest>,
    ) -> AnswerKind<proto::GetCapturesResponse> {
        let request = request.into_inner();
        let pinned = self.pinned(request.epoch, request.uids.len()).await?;
        let captures = pinned.captures(Uid::slice(&request.uids)).await?;
        self.values(captures.values().len())?;
        let (cut, reasons) = cut_of(captures.values());
        let unknown = (0..).zip(captures.values()).filter(|(_, capture)| !capture.known).map(|(index, _)| index);
        Ok(Response::new(proto::GetCapturesResponse {
            epoch: pinned.epoch(),
            counts: counts(&captures),
            times: captures.values().iter().map(|capture| capture.time).collect(),
            unknown: unknown.collect(),
            statuses: statuses_of(captures.values()),
            cut,
            reasons,
        }))
    }

    async fn get_changed_links(
        &self,
        request: Request<proto::GetChangedLinksRequest>,
    ) -> AnswerKind<proto::GetChangedLinksResponse> {
        let request = request.into_inner();
        let pinned = self.pinned(request.epoch, request.uids.len()).await?;
        let is_inward = match direction_of(request.direction)? {
            Direction::Out => false,
            Direction::In(Precision::Exact) => true,
            Direction::In(Precision::Range) => return Err(bad("direction: out or in, exactly")),
        };
        let date = |name: &str, window: Option<&proto::Window>| match window_of(window)? {
            Window::AsOf(date) => Ok(date),
            Window::Seen { .. } => Err(bad(format!("{name}: needs as_of"))),
        };
        let dates = [date("from", request.from.as_ref())?, date("to", request.to.as_ref())?];
        if dates[0].time > dates[1].time {
            return Err(bad("from: later than to"));
        }
        pinned.known(Uid::slice(&request.uids))?;
        let mut answer = proto::GetChangedLinksResponse { epoch: pinned.epoch(), ..Default::default() };
        let question = Changed::new(Uid::slice(&request.uids), is_inward, dates);
        for changed in pinned.answer(question).await? {
            let count = |links: &[Uid]| u32::try_from(links.len()).unwrap_or(u32::MAX);
            answer.gained_counts.push(count(&changed.gained));
            answer.lost_counts.push(count(&changed.lost));
            answer.unknown_counts.push(count(&changed.unknown));
            answer.gained.extend_from_slice(Uid::numbers(&changed.gained));
            answer.lost.extend_from_slice(Uid::numbers(&changed.lost));
            answer.unknown.extend_from_slice(Uid::numbers(&changed.unknown));
            self.values(answer.gained.len() + answer.lost.len() + answer.unknown.len())?;
        }
        Ok(Response::new(answer))
    }

    async fn get_first_links(
        &self,
        request: Request<proto::GetFirstLinksRequest>,
    ) -> AnswerKind<proto::GetFirstLinksResponse> {
        let request = request.into_inner();
        let pinned = self.pinned(request.epoch, request.uids.len()).await?;
        pinned.known(Uid::slice(&request.uids))?;
        let limit = usize::try_from(request.limit).ok().filter(|&limit| limit > 0).unwrap_or(usize::MAX);
        let mut answer = proto::GetFirstLinksResponse { epoch: pinned.epoch(), ..Default::default() };
        for mut firsts in pinned.answer(First::new(Uid::slice(&request.uids))).await? {
            firsts.truncate(limit);
            answer.counts.push(u32::try_from(firsts.len()).unwrap_or(u32::MAX));
            answer.pages.extend(firsts.iter().map(|(_, page)| page.0));
            answer.firsts.extend(firsts.iter().map(|(first, _)| first));
            self.values(2 * answer.pages.len())?;
        }
        Ok(Response::new(answer))
    }

    async fn get_backlinks(
        &self,
        request: Request<proto::GetBacklinksRequest>,
    ) -> AnswerKind<proto::GetBacklinksResponse> {
        let request = request.into_inner();
        let pinned = self.pinned(request.epoch, 1).await?;
        let answer = backlinks::backlinks(&pinned, &request).await?;
        self.values(7 * answer.periods.len() + 16 * answer.rows.len())?;
        Ok(Response::new(answer))
    }

    async fn get_neighbourhood(
        &self,
        request: Request<proto::GetNeighbourhoodRequest>,
    ) -> AnswerKind<proto::GetNeighbourhoodResponse> {
        let request = request.into_inner();
        let pinned = self.pinned(request.epoch, 1).await?;
        let answer = around::neighbourhood(&pinned, &request).await?;
        self.values(4 * answer.sources.len() + 16 * answer.nodes.len())?;
        Ok(Response::new(answer))
    }

    async fn get_ways(&self, request: Request<proto::GetWaysRequest>) -> AnswerKind<proto::GetWaysResponse> {
        let request = request.into_inner();
        let pinned = self.pinned(request.epoch, 2).await?;
        let answer = around::ways(&pinned, &request).await?;
        self.values(answer.pages.len())?;
        Ok(Response::new(answer))
    }

    async fn get_deaths(&self, request: Request<proto::GetDeathsRequest>) -> AnswerKind<proto::GetDeathsResponse> {
        let request = request.into_inner();
        let pinned = self.pinned(request.epoch, 1).await?;
        let answer = deaths::deaths(&pinned, &request).await?;
        let named: usize = answer.rows.iter().map(|row| 1 + row.linkers.len()).sum();
        self.values(4 * answer.periods.len() + 16 * named)?;
        Ok(Response::new(answer))
    }

    type ListUidsStream = Pin<Box<dyn Stream<Item = Result<proto::ListUidsResponse, Status>> + Send>>;

    async fn list_uids(&self, request: Request<proto::ListUidsRequest>) -> AnswerKind<Self::ListUidsStream> {
        let request = request.into_inner();
        let pinned = self.pinned(request.epoch, 1).await?;
        let uid_intervals = uid_intervals_of(&pinned, &request).await?;
        let seconds = interval(request.from, request.to).map_err(|error| bad(error.to_string()))?;
        let interval = (request.from.is_some() || request.to.is_some()).then_some(seconds);
        let (sender, receiver) = mpsc::channel(2);
        tokio::spawn(async move {
            let listed = list(&pinned, uid_intervals, interval, &request, &sender);
            tokio::select! {
                listed = listed => if let Err(status) = listed {
                    // The send fails if the caller has gone away; nobody needs the error then.
                    let _ = sender.send(Err(status)).await;
                },
                () = sender.closed() => {}
            }
        });
        Ok(Response::new(Box::pin(ReceiverStream::new(receiver))))
    }

    async fn stats(&self, request: Request<proto::StatsRequest>) -> AnswerKind<proto::StatsResponse> {
        Ok(Response::new(self.shared.stats(request.into_inner().epoch).await?))
    }

    async fn translate_uids(
        &self,
        request: Request<proto::TranslateUidsRequest>,
    ) -> AnswerKind<proto::TranslateUidsResponse> {
        let request = request.into_inner();
        self.shared.bounds.admit(request.uids.len())?;
        let (from, to, uids) =
            self.shared.cluster.translate(request.from, request.to, Uid::of_numbers(request.uids)).await?;
        Ok(Response::new(proto::TranslateUidsResponse { from, to, uids_plus_one: plus_one(uids) }))
    }

    async fn request(&self, request: Request<proto::RequestRequest>) -> AnswerKind<proto::RequestResponse> {
        let proto::RequestRequest { epoch, here } = request.into_inner();
        let pinned = self.pinned(epoch, 1).await?;
        let cells = self.hold(&pinned, true, here).await?;
        Ok(Response::new(proto::RequestResponse { epoch: pinned.epoch(), cells }))
    }

    async fn relinquish(&self, request: Request<proto::RelinquishRequest>) -> AnswerKind<proto::RelinquishResponse> {
        let proto::RelinquishRequest { epoch, here } = request.into_inner();
        let pinned = self.pinned(epoch, 1).await?;
        self.hold(&pinned, false, here).await?;
        Ok(Response::new(proto::RelinquishResponse { epoch: pinned.epoch() }))
    }

    async fn topology(&self, request: Request<proto::TopologyRequest>) -> AnswerKind<proto::TopologyResponse> {
        let after = request.into_inner().after;
        let mut topology = self.shared.topology();
        let changed = topology.wait_for(|topology| topology.version != after);
        let answer = match tokio::time::timeout(WAIT, changed).await {
            Ok(Ok(topology)) => TopologyResponse::clone(&topology),
            Ok(Err(_)) => return Err(Status::unavailable("the server is shutting down")),
            Err(_) => TopologyResponse::clone(&self.shared.topology().borrow()),
        };
        Ok(Response::new(answer))
    }
}

/// The UIDs that a listing covers.
async fn uid_intervals_of(
    pinned: &Pinned,
    request: &proto::ListUidsRequest,
) -> Result<Vec<std::ops::Range<Uid>>, Status> {
    if request.url.is_empty() {
        return Ok(std::iter::once(Uid::below(pinned.len())).collect());
    }
    pinned.matching(match_of(request.r#match)?, &request.url, "url").await
}

/// Sends the UIDs of intervals (all, or those captured at some time), until the intervals end or the receiver is gone.
async fn list(
    pinned: &Pinned,
    uid_intervals: Vec<std::ops::Range<Uid>>,
    interval: Option<(i64, i64)>,
    request: &proto::ListUidsRequest,
    sender: &mpsc::Sender<Result<proto::ListUidsResponse, Status>>,
) -> Result<(), Status> {
    let mut allowed = if request.limit == 0 { u64::MAX } else { request.limit };
    for uids in uid_intervals {
        let mut rest = uids.start.max(Uid(request.first_uid))..uids.end;
        while !rest.is_empty() && allowed > 0 {
            let (mut uids, after) = match interval {
                Some(interval) => pinned.captured(rest, interval).await?,
                None => {
                    let end = rest.end.min(rest.start + LISTED as u64);
                    (Uid::each(rest.start..end).collect(), end..rest.end)
                }
            };
            rest = after;
            uids.truncate(usize::try_from(allowed).unwrap_or(usize::MAX));
            allowed -= uids.len() as u64;
            for uids in uids.chunks(LISTED) {
                let answer = proto::ListUidsResponse { epoch: pinned.epoch(), uids: Uid::numbers(uids).to_vec() };
                if sender.send(Ok(answer)).await.is_err() {
                    return Ok(());
                }
            }
        }
    }
    // An empty listing also names its epoch.
    let _ = sender.send(Ok(proto::ListUidsResponse { epoch: pinned.epoch(), uids: Vec::new() })).await;
    Ok(())
}
