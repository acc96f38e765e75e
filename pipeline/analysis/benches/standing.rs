//! Standing results over twelve monthly updates: differential dataflow against recomputation, with time and memory of
//! each.
//!
//! `cargo bench --workspace --bench standing -- [--links N] [--each]` makes stores of about N links (1,500,000). Each
//! update replaces an exact share of the links (0.01 %, 0.1 %, 1 %, 8 %) by captures of the changed pages. One more
//! store replaces 1 % by captures of all pages, like a crawl that starts again each month. Rows are merged as
//! `webstrata update` merges them. The differential side is [`follow`] with one worker: it reads what an update wrote,
//! feeds the dataflow, waits for the dataflow, and names the changed rows. Recomputation reads the latest links of all
//! pages from the layers into an array, and counts, or joins with union-find. Each side runs in a separate process, so
//! that memory is measured separately. The figures are medians of twelve; `--each` prints all twelve.
#![expect(clippy::print_stdout, reason = "a benchmark prints its figures")]
#![expect(clippy::unwrap_used, reason = "a benchmark stops at the first surprise")]
#![expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "numbers of what is in memory")]

use fastrand::Rng;
use serde_json::{Value, json};
use std::fmt::Write;
use std::hint::black_box;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};
use webstrata_analysis::standing::{Changeset, Event, FollowOptions, Standing, Start, follow};
use webstrata_engine::{Error, Progress, RunOptions};
use webstrata_layers::{EpochId, Links, Page, Reader, Store, Uid, Window};
use webstrata_pipeline::{BuildOptions, MergeOptions, build, merge, scheduled};

const UPDATES: u64 = 12;
const LINKS_OF_PAGE: u64 = 10;

fn main() {
    let args: Vec<String> = std::env::args().skip(1).filter(|arg| arg != "--bench").collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    if let ["--child", how, what, store] = args[..] {
        let standing = if what == "degrees" { Standing::Degrees } else { Standing::Components };
        return if how == "differential" { differential(&standing, store) } else { recomputation(&standing, store) };
    }
    let at = args.iter().position(|arg| *arg == "--links");
    let links: u64 = at.map_or(1_500_000, |at| args[at + 1].parse().unwrap());
    let each = args.contains(&"--each");
    println!(
        "| churn, result | pairs -, + | rows | load s, MiB | read ms | dataflow ms | named ms | peak MiB | merge ms \
         | recompute: read ms | compute ms | peak MiB |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|---|---|");
    for (churn, recrawl) in [(0.0001, false), (0.001, false), (0.01, false), (0.08, false), (0.01, true)] {
        let dir = tempfile::tempdir().unwrap();
        let store = dir.path().join("store");
        let pairs = make(&store, links / LINKS_OF_PAGE, churn, recrawl);
        for what in ["degrees", "components"] {
            let (new, old) = (child("differential", what, &store), child("recompute", what, &store));
            let (load, updates) = new.split_first().unwrap();
            let merges: Vec<&Value> = updates.iter().filter(|own| own["merge"] == true).collect();
            let updates: Vec<&Value> = updates.iter().filter(|own| own["merge"] == false).collect();
            let old: Vec<&Value> = old.iter().collect();
            assert_eq!((updates.len() as u64, old.len() as u64), (UPDATES, UPDATES));
            let all = if recrawl { ", all pages" } else { "" };
            if each {
                println!("{what}, {churn}{all}: differential {}", series(&updates));
                println!("{what}, {churn}{all}: recompute {}", series(&old));
            }
            println!(
                "| {} %{all}, {what} | {pairs} | {} | {:.1}, {:.0} | {:.1} | {:.1} | {:.1} | {:.0} | {:.1} | {:.1} \
                 | {:.1} | {:.0} |",
                churn * 100.0,
                median(&updates, "rows"),
                load["all"].as_f64().unwrap() / 1000.0,
                load["peak"].as_f64().unwrap(),
                median(&updates, "read"),
                median(&updates, "dataflow"),
                median(&updates, "named"),
                most(&updates, "peak"),
                median(&merges, "all"),
                median(&old, "read"),
                median(&old, "compute"),
                most(&old, "peak"),
            );
        }
    }
}

/// Returns the total milliseconds and the peak MiB of each update.
fn series(of: &[&Value]) -> String {
    let texts = of.iter().map(|own| format!("{:.0} ({})", own["all"].as_f64().unwrap(), own["peak"]));
    texts.collect::<Vec<_>>().join(", ")
}

fn median(of: &[&Value], field: &str) -> f64 {
    let mut all: Vec<f64> = of.iter().map(|own| own[field].as_f64().unwrap()).collect();
    all.sort_by(f64::total_cmp);
    all.get(all.len() / 2).copied().unwrap_or(0.0)
}

fn most(of: &[&Value], field: &str) -> f64 {
    of.iter().map(|own| own[field].as_f64().unwrap()).fold(0.0, f64::max)
}

/// Measures in a separate process. Returns one value for each epoch.
fn child(how: &str, what: &str, store: &Path) -> Vec<Value> {
    let mut command = Command::new(std::env::current_exe().unwrap());
    let output = command.args(["--child", how, what]).arg(store).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Returns the maximum memory that this process has held, in MiB.
fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<u64>().ok()).unwrap_or(0) >> 10
}

fn differential(standing: &Standing, store: &str) {
    let options = FollowOptions {
        store: Path::new(store).into(),
        standing: standing.clone(),
        start: Start::At(1),
        until: None,
        once: true,
        whole: false,
        every: Duration::from_secs(1),
        workers: 1,
        memory_max: 16 << 30,
    };
    let merges = merges(store);
    let mut part = None;
    follow::<Error>(&options, &Progress::default(), |event| {
        match event {
            Event::Begin(begun) => part = Some(begun),
            Event::Rows(rows) => drop(black_box(rows)),
            Event::End { rows, seconds, .. } => {
                let Some(Changeset { id: EpochId { epoch, .. }, .. }) = part else { return Ok(()) };
                let [read, dataflow, all] = [seconds.read, seconds.dataflow, seconds.all].map(|own| own * 1000.0);
                let named = all - read - dataflow;
                println!(
                    "{}",
                    json!({"epoch": epoch, "merge": merges.contains(&epoch), "rows": rows, "read": read,
                        "dataflow": dataflow, "named": named, "all": all, "peak": peak()})
                );
            }
        }
        Ok(())
    })
    .unwrap();
}

/// Returns the epochs that merges made.
fn merges(store: &str) -> Vec<u64> {
    let store = Store::open(Path::new(store)).unwrap();
    let merged = store.manifest().history.iter().filter(|past| past.translation.is_some());
    merged.map(|past| past.epoch + 1).collect()
}

fn recomputation(standing: &Standing, store: &str) {
    let merges = merges(store);
    let last = Store::open(Path::new(store)).unwrap().manifest().epoch;
    for epoch in (2..=last).filter(|epoch| !merges.contains(epoch)) {
        let began = Instant::now();
        let reader = Reader::new(Store::open_epoch(Path::new(store), epoch).unwrap(), 64 << 20);
        let (urls, mut pairs, mut links) = (reader.urls() as usize, Vec::new(), Vec::new());
        let (mut pages, mut page) = (reader.pages(Uid::below(reader.urls())), Page::default());
        while pages.read(&mut page).unwrap() {
            let latest = *page.timestamps.last().unwrap();
            page.links_in(Window::Seen { from: latest, to: latest }, &mut links);
            pairs.extend(links.iter().map(|&link| (page.uid.0 as u32, link.0 as u32)));
        }
        let read = began.elapsed();
        if *standing == Standing::Degrees {
            black_box(degrees(&pairs, urls));
        } else {
            black_box(components(&pairs, urls));
        }
        let compute = began.elapsed() - read;
        let [read, compute] = [read, compute].map(|own| own.as_secs_f64() * 1000.0);
        println!(
            "{}",
            json!({"epoch": epoch, "read": read, "compute": compute, "all": read + compute, "peak": peak()})
        );
    }
}

fn degrees(pairs: &[(u32, u32)], urls: usize) -> Vec<(u32, u32)> {
    let mut degrees = vec![(0, 0); urls];
    for &(page, link) in pairs {
        degrees[page as usize].0 += 1;
        degrees[link as usize].1 += 1;
    }
    degrees
}

/// Returns the least number of the component of each URL.
fn components(pairs: &[(u32, u32)], urls: usize) -> Vec<u32> {
    let mut above: Vec<u32> = (0..urls as u32).collect();
    fn root(above: &mut [u32], mut of: u32) -> u32 {
        while above[of as usize] != of {
            above[of as usize] = above[above[of as usize] as usize];
            of = above[of as usize];
        }
        of
    }
    for &(page, link) in pairs {
        let (a, b) = (root(&mut above, page), root(&mut above, link));
        above[a.max(b) as usize] = a.min(b);
    }
    (0..urls as u32).map(|url| root(&mut above, url)).collect()
}

/// Draws a link of a page. Half of the URLs are never captured. Three in five links stay on the host, and the others
/// prefer few URLs.
fn draw(page: u64, pages: u64, random: &mut Rng) -> u64 {
    if random.u64(..5) < 3 {
        return page - page % 200 + random.u64(..200);
    }
    (random.f64().powi(3) * (2 * pages) as f64) as u64
}

fn url(n: u64, pages: u64) -> String {
    if n < pages {
        format!("http://h{}.example/p{n}.html", n / 200)
    } else {
        format!("http://x{}.example/{n}", n % 9973)
    }
}

/// Makes a store and its twelve updates. Returns the numbers of pairs that an update takes away and adds.
fn make(store: &Path, pages: u64, churn: f64, recrawl: bool) -> String {
    let mut random = Rng::with_seed(1);
    let mut links: Vec<Vec<u64>> =
        (0..pages).map(|page| (0..LINKS_OF_PAGE).map(|_| draw(page, pages, &mut random)).collect()).collect();
    let replaced = (churn * (pages * LINKS_OF_PAGE) as f64).round() as u64;
    let input = store.with_extension("jsonl");
    for month in 0..=UPDATES {
        let mut changed = vec![month == 0 || recrawl; links.len()];
        for _ in 0..if month == 0 { 0 } else { replaced } {
            let page = random.u64(..pages);
            let link = draw(page, pages, &mut random);
            links[page as usize][random.u64(..LINKS_OF_PAGE) as usize] = link;
            changed[page as usize] = true;
        }
        let mut text = String::new();
        let ts = format!("{}{:02}01000000", 2006 + month / 12, 1 + month % 12);
        for (page, own) in (0..).zip(&links).filter(|(page, _)| changed[*page as usize]) {
            let own: Vec<String> = own.iter().map(|&link| url(link, pages)).collect();
            writeln!(text, "{}", json!({"url": url(page, pages), "ts": ts, "links": own})).unwrap();
        }
        std::fs::write(&input, text).unwrap();
        let run = RunOptions { store: store.into(), workers: 2, memory_max: 1 << 30, spill: None, cluster: None };
        let options = BuildOptions { update: month > 0, ..BuildOptions::new(run.clone(), vec![input.clone()]) };
        build(&options, &Progress::default()).unwrap();
        let rows = scheduled(&Store::open(store).unwrap().manifest().rows);
        if rows > 1 {
            let options = MergeOptions { rows: Some(rows), ..MergeOptions::new(run) };
            merge(&options, &Progress::default()).unwrap();
        }
    }
    format!("{replaced}, {replaced}")
}
