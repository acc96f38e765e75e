//! `webstrata links`: the links of a page, or the pages that link to a URL, at a time.
//!
//! Prints in the order of the store, which keeps URLs of one host together.

mod kind;

use self::kind::Kind;
use crate::args::units::{UnitArg, page_host_or_domain};
use crate::args::{AsOfArgs, Format, FormatArgs, Outcome, interval, limit, time_from, time_to};
use crate::ask::matching::{MatchArg, MatchArgs};
use crate::ask::{self, FoundUrl, SourceArgs};
use crate::bars::{self, Axis, Bar};
use crate::table::{Column, Table};
use clap::Args;
use std::cmp::Reverse;
use std::collections::HashSet;
use std::io::Write;
use webstrata_layers::answers::Time;
use webstrata_layers::answers::links::{
    self as answers, About, ChangedLink, DeadLinks, FirstLink, LinkLifespan, List, UnknownLinks,
};
use webstrata_layers::record::capture::{deciding, gone_after, is_unknown, telling};
use webstrata_layers::{
    AsOf, Backlinks, CaptureTime, Changed, Cut, DeadLinkSearch, Direction, First, Lifespan, LinkChange, Links, Match,
    PageLinks, Precision, Sample, Sampling, Scope, Stay, Uid, Way, Window, answer_of, counted, format_time,
};

const EXAMPLES: &str = "\
A time is written 2008, 2008-06, 2008-06-01, 2008-06-01T12:00:00 (UTC), 20080601,
June 2008, yesterday, now or 30d ago; the book lists all forms. A year, month
or day is a whole period: --from means its first second, --to and --at mean its
last. Both ends are included. Without a time, every capture counts.

Examples:
  webstrata links STORE http://example.org/ --from 2006 --to 2008-03
  webstrata links STORE http://example.org/ --in --at 2008-06-01
  webstrata links STORE http://example.org/ --at 2008 --max-age 1y
  webstrata links STORE http://example.org/ --match surt
  webstrata links STORE http://example.org/ --lifespans
  webstrata links STORE http://example.org/ --bars
  webstrata links STORE http://example.org/ --dead --at 2012
  webstrata links STORE http://example.org/ --changed 2008 2010
  webstrata links STORE example.org --in --first --unit domain --limit 10
  webstrata links STORE http://example.org/ --in --sample 100
  webstrata links --server 127.0.0.1:7400 http://example.org/";

/// Arguments of `links`.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct LinksArgs {
    #[command(flatten)]
    pub(crate) source: SourceArgs,
    /// URL to look up; without a scheme, http and https are tried
    pub(crate) url: String,
    #[command(flatten)]
    pub(crate) spelled: MatchArgs,
    /// Show the pages that link to the URL, not the links of the page
    #[arg(long = "in")]
    pub(crate) inward: bool,
    /// Links of captures at or after this time
    #[arg(long, value_name = "T", value_parser = time_from)]
    pub(crate) from: Option<i64>,
    /// Links of captures at or before this time
    #[arg(long, value_name = "T", value_parser = time_to)]
    pub(crate) to: Option<i64>,
    /// Links of the latest capture at or before this time
    #[arg(long, value_name = "T", value_parser = time_to)]
    pub(crate) at: Option<i64>,
    #[command(flatten)]
    pub(crate) as_of: AsOfArgs,
    /// Show when each link existed: the first and last capture of each run of captures with the
    /// link
    #[arg(long)]
    pub(crate) lifespans: bool,
    /// Draw when each link existed, one row per link; the links that existed longest come first
    #[arg(long)]
    pub(crate) bars: bool,
    /// Show links to pages that are gone, with the status and the time of the failure that ended the
    /// page: the first one since its last good capture
    #[arg(long)]
    pub(crate) dead: bool,
    /// Show links gained (+) and lost (-) from the first time to the second; with --in, pages that
    /// began or ceased to link to the URL
    #[arg(long, num_args = 2, value_names = ["T1", "T2"], value_parser = time_to)]
    pub(crate) changed: Option<Vec<i64>>,
    /// With --in: show who linked first: each page, oldest first, with the time of its first capture
    /// with the link
    #[arg(long)]
    pub(crate) first: bool,
    /// With --first: one line per page, or per host or domain (the first page of each)
    #[arg(long, value_name = "WHAT", value_parser = page_host_or_domain())]
    pub(crate) unit: Option<UnitArg>,
    /// With --first or --bars: print at most N lines, 0 for all
    #[arg(long, value_name = "N", value_parser = limit)]
    pub(crate) limit: Option<usize>,
    /// With --in: answer faster, to the precision of time ranges; the answer may have extra pages
    #[arg(long)]
    pub(crate) range_precision: bool,
    /// Print only the number of links
    #[arg(long)]
    pub(crate) count: bool,
    /// Show a sample of N links; pages with similar links give similar samples
    #[arg(long, value_name = "N")]
    pub(crate) sample: Option<usize>,
    /// Draw a new sample on each call, unless --seed is given
    #[arg(long)]
    pub(crate) random: bool,
    /// Seed of the sample: the same seed draws the same sample [default: 0 without --random]
    #[arg(long, value_name = "S")]
    pub(crate) seed: Option<u64>,
    #[command(flatten)]
    pub(crate) format: FormatArgs,
}

pub(crate) fn run(args: &LinksArgs, out: &mut dyn Write) -> anyhow::Result<Outcome> {
    let kind = Kind::of(args)?;
    let (from, to) = interval(args.from, args.to)?;
    args.as_of.need(args.at.is_some() || args.changed.is_some())?;
    let at = args.at.or((kind == Kind::Dead).then_some(i64::MAX));
    let window = at.map_or(Window::Seen { from, to }, |at| args.as_of.window(at));
    let links = args.source.open(ask::READ_MEMORY)?;
    let links = &*links;
    if args.spelled.matching == MatchArg::Surt {
        print_page(links, args, window, out)?;
        return Ok(Outcome::Done);
    }
    let found = &ask::find(links, &args.url)?;
    let is_empty = match kind {
        Kind::Links | Kind::Count | Kind::Sample => print_links(links, args, found, window, out)?,
        Kind::Lifespans => print_lifespans(links, args, found, out)?,
        Kind::Dead => {
            print_dead(links, args, found, window, out)?;
            false
        }
        Kind::Changed => {
            print_changed(links, args, found, out)?;
            return Ok(Outcome::Done);
        }
        Kind::Bars => {
            print_bars(links, args, found, out)?;
            return Ok(Outcome::Done);
        }
        Kind::First => {
            print_first(links, args, found, out)?;
            return Ok(Outcome::Done);
        }
    };
    if args.format.format == Format::Text {
        remarks(links, args, found, window, is_empty)?;
        ask::note_others(ask::count_others(links, found)?);
    }
    Ok(Outcome::Done)
}

/// Prints the links of all spellings of a page together.
fn print_page(links: &dyn Links, args: &LinksArgs, window: Window, out: &mut dyn Write) -> anyhow::Result<()> {
    let (spellings, urls) = ask::find_page(links, &args.url)?;
    let (uids, unknown) = answer_of(links, PageLinks::new(&spellings, direction(args), window))?;
    if args.format.format == Format::Json {
        let about = About { matching: Some(Match::Surt), spellings: Some(urls), ..about(links, args, window) };
        let list = match args.count {
            true => List::counted(uids.len() as u64, UnknownLinks::counted(args.way(), unknown.len())),
            false => list_of(links, args, (&uids, &unknown), window)?,
        };
        return ask::print_json(&answers::Links { about, list, items: None, resume_key: None }, out);
    }
    if args.count {
        writeln!(out, "{}", uids.len())?;
        return Ok(());
    }
    for url in links.urls_of(&uids)? {
        writeln!(out, "{url}")?;
    }
    if args.inward {
        return note_unknown(links, true, &unknown, uids.is_empty());
    }
    // Only the captures that decide, or those of the window, tell which links are unknown.
    let captures = unknown.iter().map(|&uid| links.captures(uid)).collect::<Result<Vec<_>, _>>()?.concat();
    note_unclear(links, &captures, (&unknown, &uids), window)?;
    if unknown.is_empty() { note_unknown(links, false, &[], uids.is_empty()) } else { Ok(()) }
}

/// Notes which captures of a page leave links unknown in a window, and which links it may have. `known` are its known
/// links.
fn note_unclear(
    links: &dyn Links,
    captures: &[CaptureTime],
    (unknown, known): (&[Uid], &[Uid]),
    window: Window,
) -> anyhow::Result<()> {
    let asked = match window {
        Window::AsOf(as_of) => deciding(captures, as_of).into_iter().collect(),
        Window::Seen { from, to } => {
            captures.iter().copied().filter(|capture| (from..=to).contains(&capture.time)).collect::<Vec<_>>()
        }
    };
    let unknown_captures = asked.iter().filter(|capture| !capture.known).count();
    let cut = asked.iter().filter(|capture| capture.known && !capture.is_whole()).count();
    match (window, unknown_captures, cut) {
        (_, 0, 0) => {}
        (Window::AsOf(_), 0, _) => {
            let reason = asked[0].status.reason().map_or("", Cut::name);
            let time = format_time(asked[0].time);
            ask::note(&format!("the capture of {time} is cut ({reason}): the page may have more links"));
        }
        (Window::AsOf(_), ..) => {
            ask::note(&format!("the links of the capture of {} are unknown", format_time(asked[0].time)));
        }
        (Window::Seen { .. }, ..) => {
            let count = |count: usize, what: &str| (count > 0).then(|| format!("{count} {what}"));
            let parts = [count(unknown_captures, "with unknown links"), count(cut, "cut")];
            let parts: Vec<String> = parts.into_iter().flatten().collect();
            let captures = counted(asked.len(), "capture");
            ask::note(&format!("of {captures} in this window, {}: the page may have more links", parts.join(", ")));
        }
    }
    let mut last_known = ask::last_known(links, unknown, Direction::Out, window)?;
    last_known.retain(|link| known.binary_search(link).is_err());
    if !last_known.is_empty() {
        let (urls, count) = (shown(links, &last_known)?, counted(last_known.len(), "link"));
        ask::note(&format!("unknown, and there when it was last known: {count}: {urls}"));
    }
    Ok(())
}

/// The first of some URLs, for a message.
fn shown(links: &dyn Links, uids: &[Uid]) -> anyhow::Result<String> {
    const SHOWN: usize = 3;
    let urls = links.urls_of(&uids[..uids.len().min(SHOWN)])?.join(", ");
    Ok(if uids.len() > SHOWN { format!("{urls} ...") } else { urls })
}

/// Notes the pages for which it is unknown whether they link, if there are any. Else, notes that no link was printed,
/// if that is the case.
fn note_unknown(links: &dyn Links, is_inward: bool, unknown: &[Uid], is_empty: bool) -> anyhow::Result<()> {
    let urls = shown(links, unknown)?;
    match (is_inward, unknown.len()) {
        (true, 0) if is_empty => ask::note("nothing links to it in the time asked for"),
        (false, 0) if is_empty => ask::note("it links to nothing in the time asked for"),
        (_, 0) | (false, _) => {}
        (true, 1) => ask::note(&format!("unknown whether it links then, as it did in other captures: {urls}")),
        (true, count) => {
            let pages = counted(count, "more page");
            ask::note(&format!("unknown of {pages} whether they link then, as they did before: {urls}"));
        }
    }
    Ok(())
}

impl LinksArgs {
    fn way(&self) -> Way {
        if self.inward { Way::In } else { Way::Out }
    }
}

fn direction(args: &LinksArgs) -> Direction {
    match (args.inward, args.range_precision) {
        (false, _) => Direction::Out,
        (true, false) => Direction::In(Precision::Exact),
        (true, true) => Direction::In(Precision::Range),
    }
}

/// Prints links, or their number. Returns whether there was no link to print.
fn print_links(
    links: &dyn Links,
    args: &LinksArgs,
    found: &FoundUrl,
    window: Window,
    out: &mut dyn Write,
) -> anyhow::Result<bool> {
    let direction = direction(args);
    if args.count {
        let count = links.degree(found.uid, direction, window)?;
        if args.format.format == Format::Json {
            let unknown = ask::unknown(links, found.uid, direction, window)?;
            let list = List::counted(count as u64, UnknownLinks::counted(args.way(), unknown.len()));
            let about = about_url(links, args, window, found);
            ask::print_json(&answers::Links { about, list, items: None, resume_key: None }, out)?;
        } else {
            writeln!(out, "{count}")?;
        }
        return Ok(false);
    }
    let mut uids = links.links(found.uid, direction, window)?;
    if let Some(count) = args.sample {
        let sampling = if args.random { Sampling::Random } else { Sampling::Consistent };
        Sample { count, sampling, seed: sampling.seed(args.seed) }.draw(found.uid, &mut uids);
    }
    if args.format.format == Format::Json {
        let unknown = ask::unknown(links, found.uid, direction, window)?;
        let list = list_of(links, args, (&uids, &unknown), window)?;
        let about = about_url(links, args, window, found);
        let answer = answers::Links { about, list, items: None, resume_key: None };
        let other_spellings = ask::count_others(links, found)?;
        ask::print_json(&ask::WithSpellings { answer, other_spellings }, out)?;
    } else {
        for url in links.urls_of(&uids)? {
            writeln!(out, "{url}")?;
        }
    }
    Ok(uids.is_empty())
}

/// Prints the links gained and lost, and notes for which pages this is unknown.
fn print_changed(links: &dyn Links, args: &LinksArgs, found: &FoundUrl, out: &mut dyn Write) -> anyhow::Result<()> {
    let Some(&[from, to]) = args.changed.as_deref() else { return Ok(()) };
    let dates = args.as_of.dates(from, to)?;
    let question = Changed::new(&[found.uid], args.inward, dates);
    let changed = answer_of(links, question)?.pop().unwrap_or_default();
    if args.format.format == Format::Json {
        let (uids, changes): (Vec<Uid>, Vec<LinkChange>) = changed.changes(args.inward).into_iter().unzip();
        let changes = links.urls_of(&uids)?.into_iter().zip(changes);
        let [from, to] = dates.map(|date| Time(date.time));
        let answer = answers::Changed {
            epoch: links.epoch(),
            url: found.url.clone(),
            uid: found.uid,
            direction: args.way(),
            from_date: from,
            to_date: to,
            unknown: (!args.inward && !changed.unknown.is_empty()).then_some(true),
            changes: changes.map(|(link, change)| ChangedLink { link, change }).collect(),
            resume_key: None,
        };
        return ask::print_json(&answer, out);
    }
    let [gained, lost] = [links.urls_of(&changed.gained)?, links.urls_of(&changed.lost)?];
    for (mark, urls) in [('+', gained), ('-', lost)] {
        for url in urls {
            writeln!(out, "{mark} {url}")?;
        }
    }
    match changed.unknown.len() {
        0 => {}
        _ if !args.inward => {
            ask::note("at one of the times links of the page are unknown: they are neither gained nor lost")
        }
        count => {
            let pages = counted(count, "more page");
            ask::note(&format!("of {pages} the links are unknown at one of the times: neither gained nor lost"));
        }
    }
    Ok(())
}

/// Draws when each link of a page was there, or when each page linked. The longest rows come first.
fn print_bars(links: &dyn Links, args: &LinksArgs, found: &FoundUrl, out: &mut dyn Write) -> anyhow::Result<()> {
    let captures = links.captures(found.uid)?;
    let mut rows: Vec<(Uid, Vec<Bar>)> = Vec::new();
    if args.inward {
        let one = found.uid..found.uid + 1;
        let bars = |stay: &Stay| Bar { first: stay.first, last: stay.last, gone: stay.until };
        let backlinks = answer_of(links, Backlinks::new(std::slice::from_ref(&one), &Scope::default()))?.into_iter();
        rows.extend(backlinks.map(|(page, backlink)| (page, backlink.stays.iter().map(bars).collect())));
    } else {
        let telling = telling(&captures);
        let gone = |last: i64| gone_after(&telling, last);
        for runs in links.lifespans(found.uid)?.chunk_by(|one, other| one.link == other.link) {
            let bar = |run: &Lifespan| Bar { first: run.first, last: run.last, gone: gone(run.last) };
            rows.push((runs[0].link, runs.iter().map(bar).collect()));
        }
    }
    let life = |(uid, bars): &(Uid, Vec<Bar>)| {
        (Reverse(bars.iter().map(|bar| bar.last - bar.first + 1).sum::<i64>()), bars[0].first, *uid)
    };
    rows.sort_by_key(life);
    let count = rows.len();
    rows.truncate(args.limit.unwrap_or_else(bars::rows_max));
    let ends = rows.iter().flat_map(|(_, bars)| bars.iter().flat_map(|bar| [bar.first, bar.gone.unwrap_or(bar.last)]));
    let times: Vec<i64> = ends.chain(captures.iter().map(|capture| capture.time)).collect();
    let (Some(&first), Some(&last)) = (times.iter().min(), times.iter().max()) else {
        ask::note("the page has no links, and no captures");
        return Ok(());
    };
    let urls = links.urls_of(&rows.iter().map(|(uid, _)| *uid).collect::<Vec<_>>())?;
    let names: Vec<&str> = urls.iter().map(|url| url.split_once("://").map_or(&**url, |(_, rest)| rest)).collect();
    let axis = Axis::of_terminal((first, last), names.iter().copied());
    writeln!(out, "{}", axis.head())?;
    for (name, (_, bars)) in names.iter().zip(&rows) {
        writeln!(out, "{}", axis.row(name, bars))?;
    }
    if !captures.is_empty() {
        writeln!(out, "{}", axis.captures("captures", &captures))?;
    }
    if rows.len() < count {
        let more = counted(count - rows.len(), "more row");
        ask::note(&format!("{more} of links that lived shorter; --limit 0 shows all"));
    }
    Ok(())
}

/// Prints the pages that linked first, oldest first.
fn print_first(links: &dyn Links, args: &LinksArgs, found: &FoundUrl, out: &mut dyn Write) -> anyhow::Result<()> {
    let firsts = answer_of(links, First::new(&[found.uid]))?.pop().unwrap_or_default();
    let pages = firsts.len();
    let mut firsts = firsts.into_iter();
    let (unit, fold) = args.unit.map_or(("", None), |unit| (unit.name(), unit.fold()));
    let group = fold.map(|_| Column::word(unit));
    let columns = std::iter::once(Column::word("first")).chain(group).chain([Column::rest("page")]);
    let mut table = Table::new(columns);
    let (mut list, mut seen) = (Vec::new(), HashSet::new());
    for _ in 0..args.limit.unwrap_or(usize::MAX) {
        // The first page of the next host or domain, or the next page.
        let next = firsts.by_ref().map(|(first, source)| {
            let url = links.url(source)?;
            let group = fold.map(|fold| fold.name_of(&url).into_owned());
            anyhow::Ok((first, url, group))
        });
        let is_new = |(.., group): &(_, _, Option<String>)| group.clone().is_none_or(|group| seen.insert(group));
        let Some((first, url, group)) = find_ok(next, is_new)? else { break };
        match (args.format.format, group) {
            (Format::Json, name) => list.push(FirstLink { first: Time(first), page: url, name }),
            (Format::Text, Some(group)) => table.row([format_time(first), group, url]),
            (Format::Text, None) => table.row([format_time(first), url]),
        }
    }
    table.print(out)?;
    if args.format.format == Format::Json {
        let (epoch, url, uid) = (links.epoch(), found.url.clone(), found.uid);
        ask::print_json(&answers::First { epoch, url, uid, pages, first: list, resume_key: None }, out)?;
    } else if table.is_empty() {
        note_unknown(links, args.inward, &[], true)?;
    }
    Ok(())
}

/// Returns the first item that is wanted, or the first error before this item.
fn find_ok<T>(
    items: impl Iterator<Item = anyhow::Result<T>>,
    mut is_wanted: impl FnMut(&T) -> bool,
) -> anyhow::Result<Option<T>> {
    for item in items {
        let item = item?;
        if is_wanted(&item) {
            return Ok(Some(item));
        }
    }
    Ok(None)
}

/// Prints the links to pages that are gone, each with the status and the time of the failure that ended the page. Says
/// how many links lead to URLs without a capture that decides.
fn print_dead(
    links: &dyn Links,
    args: &LinksArgs,
    found: &FoundUrl,
    window: Window,
    out: &mut dyn Write,
) -> anyhow::Result<()> {
    let Window::AsOf(as_of) = window else { return Ok(()) };
    let dead = answer_of(links, DeadLinkSearch::new(found.uid, as_of))?;
    let urls = links.urls_of(&dead.dead.iter().map(|dead| dead.link).collect::<Vec<_>>())?;
    if args.format.format == Format::Json {
        return ask::print_json(&DeadLinks::of(about_url(links, args, window, found), &dead, urls), out);
    }
    let mut table = Table::new([Column::word("status"), Column::word("since"), Column::rest("link")]);
    urls.into_iter().zip(&dead.dead).for_each(|(url, dead)| {
        table.row([dead.ended_by.status.code().to_string(), format_time(dead.ended_by.time), url]);
    });
    table.print(out)?;
    if table.is_empty() {
        ask::note("no link of the page is known to be dead at that time");
    }
    if dead.is_open {
        ask::note("the links of the page are unknown at that time, or some of them: there may be more dead links");
    }
    if dead.unknown > 0 {
        let (unknown, all) = (dead.unknown, counted(dead.links, "link"));
        ask::note(&format!("{unknown} of {all} without a capture of its URL at that time: unknown, not dead"));
    }
    Ok(())
}

/// Prints runs of captures with links. Returns whether there was no run to print.
fn print_lifespans(links: &dyn Links, args: &LinksArgs, found: &FoundUrl, out: &mut dyn Write) -> anyhow::Result<bool> {
    let mut lifespans = if args.inward {
        let mut lifespans = Vec::new();
        for source in links.in_links(found.uid, Window::Seen { from: i64::MIN, to: i64::MAX }, Precision::Exact)? {
            let to_url = links.lifespans(source)?.into_iter().filter(|lifespan| lifespan.link == found.uid);
            lifespans.extend(to_url.map(|lifespan| Lifespan { link: source, ..lifespan }));
        }
        lifespans
    } else {
        links.lifespans(found.uid)?
    };
    let (from, to) = interval(args.from, args.to)?;
    lifespans.retain(|lifespan| lifespan.first <= to && lifespan.last >= from);
    let mut table = Table::new([Column::word("first"), Column::word("last"), Column::rest("link")]);
    let mut list = Vec::new();
    let urls = links.urls_of(&lifespans.iter().map(|lifespan| lifespan.link).collect::<Vec<_>>())?;
    for (lifespan, url) in lifespans.into_iter().zip(urls) {
        if args.format.format == Format::Json {
            list.push(LinkLifespan::of(url, &lifespan));
        } else {
            table.row([format_time(lifespan.first), format_time(lifespan.last), url]);
        }
    }
    table.print(out)?;
    if args.format.format == Format::Json {
        let about = about_url(links, args, Window::Seen { from, to }, found);
        let unknown = ask::unknown(links, found.uid, direction(args), Window::Seen { from, to })?;
        let unknown = UnknownLinks::of(args.way(), links.urls_of(&unknown)?);
        ask::print_json(&answers::Lifespans { about, lifespans: list, unknown, resume_key: None }, out)?;
    }
    Ok(table.is_empty())
}

/// The question, for an answer in JSON.
fn about(links: &dyn Links, args: &LinksArgs, window: Window) -> About {
    About::of(links.epoch(), args.way(), window)
}

/// The same about one URL.
fn about_url(links: &dyn Links, args: &LinksArgs, window: Window, found: &FoundUrl) -> About {
    about(links, args, window).url(found.url.clone(), found.uid)
}

fn list_of(
    links: &dyn Links,
    args: &LinksArgs,
    (uids, unknown): (&[Uid], &[Uid]),
    window: Window,
) -> anyhow::Result<List> {
    let mut last_known = ask::last_known(links, unknown, direction(args), window)?;
    last_known.retain(|link| uids.binary_search(link).is_err());
    let list = List::of(links.urls_of(uids)?, UnknownLinks::of(args.way(), links.urls_of(unknown)?));
    Ok(list.with_last_known(links.urls_of(&last_known)?))
}

/// Notes why an answer about the links of a page may be empty.
fn remarks(
    links: &dyn Links,
    args: &LinksArgs,
    found: &FoundUrl,
    window: Window,
    is_empty: bool,
) -> anyhow::Result<()> {
    if args.inward {
        let unknown = ask::unknown(links, found.uid, direction(args), window)?;
        return note_unknown(links, true, &unknown, is_empty);
    }
    let captures = links.captures(found.uid)?;
    let is_in_window = |time: i64| match window {
        Window::Seen { from, to } => from <= time && time <= to,
        Window::AsOf(AsOf { time: at, since, .. }) => since <= time && time <= at,
    };
    let decides = match window {
        Window::AsOf(as_of) => deciding(&captures, as_of),
        Window::Seen { .. } => None,
    };
    if captures.is_empty() {
        ask::note(&format!("{} was never captured; use --in to see the pages that link to it", found.url));
    } else if !captures.iter().any(|capture| is_in_window(capture.time)) {
        let said = match captures.len() {
            1 => "one capture, and it is not in this window".to_owned(),
            count => format!("{}, none of them in this window", counted(count, "capture")),
        };
        ask::note(&format!("{} has {said}", found.url));
    } else if let Some(capture) = decides.filter(|capture| capture.status.is_failure()) {
        let (time, status) = (format_time(capture.time), capture.status);
        ask::note(&format!("the page is gone: its capture of {time} has the status {status}"));
    } else if is_unknown(&captures, window) {
        let known = links.links(found.uid, Direction::Out, window)?;
        return note_unclear(links, &captures, (&[found.uid], &known), window);
    } else {
        return note_unknown(links, false, &[], is_empty);
    }
    Ok(())
}
