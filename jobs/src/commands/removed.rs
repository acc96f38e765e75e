//! `webstrata check --removed`, and the proof at the end of `webstrata remove`: looks for URLs in every file of a
//! store.
//!
//! The search is for a list of URLs, or for the URLs that rules of the store select by their hashes. It reads the URLs
//! of each row of each epoch that is there, of held links and of the cells, and the first keys in manifests. In
//! translations, watches, overviews and lists of inputs, it reads each word that may be a URL or a host. The other
//! layers have UIDs, which lead nowhere without these URLs. Rows and cells that no epoch names cannot be read, and are
//! problems.
//!
//! Rules for pages only, for links only, or for a period leave their URLs in the store. For these rules, the captures
//! and links of the current epoch are checked. Memory: the list; a row group.

use crate::args::{Format, Outcome};
use anyhow::{Context, anyhow};
use serde_json::{Value, json};
use std::collections::{BTreeSet, HashSet};
use std::io::{self, Read, Write};
use std::path::Path;
use webstrata_cells::disk::check::for_each_url;
use webstrata_codecs::ENCODINGS;
use webstrata_layers::beside::{for_each_small_file, of_no_row};
use webstrata_layers::counted;
use webstrata_layers::held::HeldFile;
use webstrata_layers::log::log;
use webstrata_layers::read::scan;
use webstrata_layers::record::key::{key, key_of};
use webstrata_layers::{
    Layer, Links, Location, Precision, Reader, Removal, RemovalRule, Removals, RowEntry, Selection, Store, TIMES, Uid,
    Window,
};
use webstrata_url::{canonical, meant, spelt};

/// The places and problems that are printed; JSON has all of them.
const PRINTED: usize = 20;
/// The memory for the blocks of the store, if captures and links are checked.
const BLOCKS: usize = 64 << 20;

/// A search: the URLs to look for, and the results.
#[derive(Default)]
pub(crate) struct Search {
    urls: BTreeSet<String>,
    /// The keys of these URLs.
    keys: HashSet<Vec<u8>>,
    /// The rules for URLs that must not be in the store at all.
    whole: Removals,
    /// The rules that leave a part of their URLs in the store.
    parts: Removals,
    rules: usize,
    /// The files of held links that were read.
    held: BTreeSet<String>,
    files: u64,
    /// The places that were found: file and URL.
    pub(crate) found: BTreeSet<(String, String)>,
    /// The files that could not be read.
    pub(crate) problems: BTreeSet<String>,
}

/// Looks for the URLs of a file, or for the URLs that the store has taken out by its rules.
pub(crate) fn run(
    store: &Location,
    list: Option<&Path>,
    format: Format,
    out: &mut dyn Write,
) -> anyhow::Result<Outcome> {
    let mut search = match list {
        Some(list) => Search::of_urls(read_urls(list)?),
        None => Search::of_store(&Store::open(store)?, |_| true),
    };
    search.run(store)?;
    match format {
        Format::Json => writeln!(out, "{}", search.as_json(store))?,
        Format::Text => search.print(store, out)?,
    }
    Ok(if search.is_clean() { Outcome::Done } else { Outcome::Failed })
}

/// The URLs of a file, one a line, in the bytes that crawl files have. Empty lines are passed over.
pub(crate) fn read_urls(path: &Path) -> anyhow::Result<Vec<Selection>> {
    let mut bytes = Vec::new();
    if path == Path::new("-") {
        io::stdin().lock().read_to_end(&mut bytes).context("reading standard input")?;
    } else {
        bytes = std::fs::read(path).with_context(|| format!("reading {}", path.display()))?;
    }
    let text = spelt(&bytes);
    let lines = (1..).zip(text.lines()).filter(|(_, line)| !line.trim().is_empty());
    let urls =
        lines.map(|(number, line)| urls_of(line).with_context(|| format!("line {number} of {}", path.display())));
    Ok(urls.collect::<anyhow::Result<Vec<_>>>()?.concat())
}

/// The URLs of the store that a text may mean.
pub(crate) fn urls_of(text: &str) -> anyhow::Result<Vec<Selection>> {
    let urls = meant(text).map_err(|error| anyhow!("invalid URL {text:?}: {error}"))?;
    Ok(urls.into_iter().map(Selection::Url).collect())
}

impl Search {
    fn of_urls(selections: Vec<Selection>) -> Self {
        let mut search = Search::default();
        for selection in selections {
            if let Selection::Url(url) = selection {
                search.keys.insert(key_of(&url));
                search.urls.insert(url);
            }
        }
        search
    }

    /// The search for some rules of a store.
    pub(crate) fn of_store(store: &Store, is_chosen: impl Fn(&RemovalRule) -> bool) -> Self {
        let root = store.root().to_string();
        let rules = store.manifest().provenance.removals.iter().filter(|rule| is_chosen(rule)).cloned();
        let (whole, parts): (Vec<_>, Vec<_>) = rules.partition(RemovalRule::is_whole);
        let rules = whole.len() + parts.len();
        Self { whole: Removals::new(&root, whole), parts: Removals::new(&root, parts), rules, ..Self::default() }
    }

    /// The search for rules that were just carried out.
    pub(crate) fn of_rules(store: &Store, rules: &[Removal]) -> Self {
        let root = store.root().to_string();
        let kept: Vec<RemovalRule> = rules.iter().filter_map(|rule| rule.kept(&root, false).ok()).collect();
        Self::of_store(store, |rule| kept.iter().any(|kept| kept.is_same(rule)))
    }

    pub(crate) fn is_clean(&self) -> bool {
        self.found.is_empty() && self.problems.is_empty()
    }

    /// Searches the whole store.
    pub(crate) fn run(&mut self, location: &Location) -> anyhow::Result<()> {
        let mut rows = BTreeSet::new();
        let newest = Store::open(location)?;
        for committed in log(location.clone())? {
            let epoch = committed?.id.epoch;
            let opened = if epoch == newest.id().epoch { newest.clone() } else { Store::inspect(location, epoch)? };
            for row in &opened.manifest().rows {
                self.first_keys(row, epoch);
                if rows.insert(row.row) {
                    self.row(&opened, row)?;
                }
            }
            self.held(&opened)?;
            let mut found = Vec::new();
            for_each_url(&opened, ENCODINGS, |path, url| {
                if self.is_wanted(url) {
                    found.push((path.display().to_string(), url.to_owned()));
                }
            })?;
            self.found.extend(found);
        }
        if !self.parts.is_empty() {
            self.captures_and_links(newest)?;
        }
        for path in of_no_row(location, &rows)? {
            let text = format!("{}: no epoch names it: run webstrata gc, then check again", path.display());
            self.problems.insert(text);
        }
        let (mut files, mut found) = (0, Vec::new());
        for_each_small_file(location, |path, bytes| {
            files += 1;
            found.extend(self.words(&String::from_utf8_lossy(bytes)).map(|word| (path.display().to_string(), word)));
        })?;
        self.files += files;
        self.found.extend(found);
        Ok(())
    }

    fn is_wanted(&self, url: &str) -> bool {
        self.urls.contains(url) || !self.whole.is_empty() && self.is_wanted_key(&key_of(url))
    }

    fn is_wanted_key(&self, url_key: &[u8]) -> bool {
        self.keys.contains(url_key) || !self.whole.of(url_key).is_empty()
    }

    fn first_keys(&mut self, row: &RowEntry, epoch: u64) {
        for partition in &row.partitions {
            let Some(first) = partition.first_key_bytes().filter(|key| !key.is_empty()) else { continue };
            if self.is_wanted_key(&first) {
                let text = String::from_utf8_lossy(&first);
                // Scheme and port are behind the text, as bytes that nobody reads.
                let shown = format!("key {}", text.split(char::is_control).next().unwrap_or_default());
                self.found.insert((format!("the manifest of epoch {epoch}"), shown));
            }
        }
    }

    fn row(&mut self, store: &Store, row: &RowEntry) -> anyhow::Result<()> {
        for partition in &row.partitions {
            self.files += 1;
            for url in scan::urls(store, partition) {
                let url = url?;
                if self.is_wanted(&url) {
                    let file = partition.file(Layer::Url).map(|file| file.path.clone());
                    self.found.insert((file.unwrap_or_default(), url));
                }
            }
        }
        Ok(())
    }

    /// Searches the files of held links.
    fn held(&mut self, store: &Store) -> anyhow::Result<()> {
        for entry in &store.manifest().provenance.held {
            if !self.held.insert(entry.path.clone()) {
                continue;
            }
            self.files += 1;
            let file = HeldFile::open(store.location(), entry)?;
            for group in 0..file.groups() {
                for held in file.read(group)? {
                    for url in [held.page, held.link].into_iter().filter(|url| self.is_wanted(url)).collect::<Vec<_>>()
                    {
                        self.found.insert((entry.path.clone(), url));
                    }
                }
            }
        }
        Ok(())
    }

    /// Looks for held links that rules have taken out, among the rules that leave a part of their URLs.
    fn held_parts(&mut self, reader: &Reader) -> anyhow::Result<()> {
        let store = reader.store();
        for entry in &store.manifest().provenance.held {
            let file = HeldFile::open(store.location(), entry)?;
            for group in 0..file.groups() {
                for held in file.read(group)? {
                    let (page_key, link_key) = (key_of(&held.page), key_of(&held.link));
                    let of_page = self.parts.of(&page_key).into_iter().filter(|rule| rule.of_pages());
                    let of_link = self.parts.of(&link_key).into_iter().filter(|rule| rule.of_targets());
                    let rules: Vec<&RemovalRule> = of_page.chain(of_link).collect();
                    if rules.is_empty() {
                        continue;
                    }
                    let uid = reader.uid(&held.page)?;
                    let captures = uid.map_or(Ok(Vec::new()), |uid| reader.captures(uid))?;
                    let mut times = captures.iter().map(|capture| capture.time).filter(|&time| held.is_at(time));
                    if times.any(|time| rules.iter().any(|rule| rule.covers(time))) {
                        self.found.insert((entry.path.clone(), format!("a link of {} to {}", held.page, held.link)));
                    }
                }
            }
        }
        Ok(())
    }

    /// Looks for captures and links that rules have taken out, among the rules that leave a part of their URLs.
    fn captures_and_links(&mut self, store: Store) -> anyhow::Result<()> {
        let epoch = format!("epoch {}", store.id().epoch);
        let reader = Reader::new(store, BLOCKS);
        self.held_parts(&reader)?;
        let mut url_key = Vec::new();
        for uid in Uid::each(Uid::below(reader.urls())) {
            let url = reader.url(uid)?;
            key(&url, &mut url_key);
            for rule in self.parts.of(&url_key) {
                let (from, to) = (rule.from.unwrap_or(*TIMES.start()), rule.to.unwrap_or(*TIMES.end()));
                if rule.of_pages() && reader.captures(uid)?.iter().any(|capture| rule.covers(capture.time)) {
                    self.found.insert((epoch.clone(), format!("a capture of {url}")));
                }
                let window = Window::Seen { from, to };
                if rule.of_targets() && !reader.in_links(uid, window, Precision::Exact)?.is_empty() {
                    self.found.insert((epoch.clone(), format!("a link to {url}")));
                }
            }
        }
        Ok(())
    }

    /// The words of a text that the search looks for: URLs, and hosts with a rule for every URL.
    fn words<'a>(&'a self, text: &'a str) -> impl Iterator<Item = String> + 'a {
        let listed = self.urls.iter().filter(move |url| text.contains(url.as_str())).cloned();
        let ends = |c: char| c.is_whitespace() || c.is_control() || "\"'<>\\,\u{fffd}".contains(c);
        let words = text.split(ends).filter(move |word| !self.whole.is_empty() && word.contains('.'));
        let found = words.filter(move |word| {
            let url = ["http://", "https://"].iter().filter_map(|scheme| word.find(scheme)).min().map(|at| &word[at..]);
            match url {
                Some(url) => canonical(None, url).is_ok_and(|url| self.is_wanted(&url)),
                None => !self.whole.of_host(word).is_empty(),
            }
        });
        listed.chain(found.map(str::to_owned))
    }

    pub(crate) fn as_json(&self, store: &Location) -> Value {
        let Search { urls, rules, files, found, problems, .. } = self;
        let found: Vec<_> = found.iter().map(|(file, url)| json!({"file": file, "url": url})).collect();
        json!({
            "store": store.to_string(), "urls": urls.len(), "rules": rules, "files": files, "found": found,
            "problems": problems,
        })
    }

    pub(crate) fn print(&self, store: &Location, out: &mut dyn Write) -> anyhow::Result<()> {
        let Search { urls, files, found, problems, rules, .. } = self;
        // Files of earlier epochs that a reader has open may hold removed URLs.
        let lines = found.iter().map(|(file, url)| format!("{file}: {url}")).chain(problems.iter().cloned());
        lines.take(PRINTED).try_for_each(|line| writeln!(out, "{line}"))?;
        let more = (found.len() + problems.len()).saturating_sub(PRINTED);
        if more > 0 {
            writeln!(out, "and {more} more; --format json lists all of them")?;
        }
        let (what, sought) = match (urls.len(), rules) {
            (0, &rules) => (format!("what {} removed", counted(rules, "rule")), counted(rules, "rule")),
            (1, _) => ("the URL".to_owned(), counted(1_u64, "URL")),
            (count, _) => (format!("any of the {}", counted(count, "URL")), counted(count, "URL")),
        };
        let files = counted(*files, "file");
        match found.len() + problems.len() {
            0 => writeln!(out, "{store}: no file contains {what} ({files})")?,
            found => writeln!(out, "{store}: {} ({sought}, {files})", counted(found, "problem"))?,
        }
        Ok(())
    }
}
