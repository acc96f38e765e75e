//! WACZ 0.1 to 1.2: a ZIP archive with crawl files, and a multi-WACZ: a ZIP archive with WACZ files.
//!
//! The names of the members show that a ZIP is a WACZ, and nothing else does:
//!
//! | member | use |
//! |---|---|
//! | `archive/*`, `warcs/*`, and all `*.warc`, `*.arc`, also with `.gz`, and `*.warc.zst` | each is an input |
//! | `*.wacz`, stored | its members are inputs, down to [`LEVELS_MAX`] archives in each other |
//! | `datapackage.json` | the SHA-256 and the length of each input; the names of WACZ files that this one requires |
//! | `datapackage-digest.json` | the SHA-256 of `datapackage.json` |
//!
//! The other members are not read. Indexes repeat the crawl files, and the store has no place for the titles in lists
//! of pages. Hidden members are passed over as hidden files are. The field `profile` decides nothing, because each
//! writer has another value.
//!
//! Damage inside of crawl files is counted by their readers. The package counts damage of the archive: it is cut off
//! ([`crate::files::zip`]), the description is broken or has another digest, listed files are missing, members overlap,
//! and crawl files cannot be read. No digest is compared for members that are not read, nor for a WACZ in a WACZ as a
//! whole.
//!
//! Memory: the directory and the description. Time: the directory and the description; members are found, not read.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};

use memchr::memmem;
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::files::source::Source;
use crate::files::zip::{Archive, Member, Section, Unread};
use crate::{Capture, CaptureReader, Error, Finding, Tally};

/// The number of archives in each other that are read.
const LEVELS_MAX: usize = 3;
/// The most bytes of a description.
const DESCRIPTION_BYTES_MAX: u64 = 64 << 20;
/// The bytes at the beginning of a broken archive in which names of members are looked for.
const HEAD_BYTES: usize = 64 << 10;
/// The description of a ZIP that is not read.
const NO_CRAWL_FILES: &str = "ZIP";
const DESCRIPTION: &str = "datapackage.json";
const DESCRIPTION_DIGEST: &str = "datapackage-digest.json";

/// The crawl files of a WACZ, and the damage of the archive.
#[derive(Debug, Default)]
pub(crate) struct Package {
    /// The crawl files, sorted by name.
    pub(crate) members: Vec<Member>,
    pub(crate) flaws: Vec<Flaw>,
    /// Whether the ZIP holds crawl files, or seems to.
    pub(crate) is_wacz: bool,
    /// The names of the WACZ files that hold originals of revisits of this one.
    pub(crate) requires: BTreeSet<String>,
}

/// Damage of an archive.
#[derive(Debug)]
pub(crate) struct Flaw {
    finding: Finding,
    /// The name of the member; empty for the archive.
    name: String,
    detail: String,
}

impl Package {
    /// Looks into a ZIP. One without crawl files has itself as the only flaw.
    pub(crate) fn open(source: Source) -> io::Result<Package> {
        let section = Section::new(source);
        let mut package = Package::default();
        package.is_wacz = match Archive::open(&section) {
            Ok(archive) => package.add(&archive, "", 1)?,
            Err(Unread::NotWhole(detail)) => {
                package.flaw(Finding::Truncated, String::new(), detail);
                is_crawl_head(&section.head(HEAD_BYTES)?)
            }
            Err(Unread::Io(error)) => return Err(error),
        };
        if !package.is_wacz {
            package = Package::default();
            package.flaw(Finding::OtherFile, String::new(), NO_CRAWL_FILES);
        }
        package.members.sort_unstable();
        Ok(package)
    }

    /// Adds an archive, at this level. Returns whether it is a WACZ.
    fn add(&mut self, archive: &Archive, prefix: &str, level: usize) -> io::Result<bool> {
        let mut description = Description::default();
        description.read(archive, prefix)?;
        let is_wanted = |name: &str| is_crawl_file(name) || is_wacz(name);
        if !archive.names().chain(description.resources.keys().map(String::as_str)).any(is_wanted) {
            return Ok(false);
        }
        for name in archive.replaced.iter().filter(|name| is_wanted(name)) {
            self.flaw(Finding::UnreadFile, format!("{prefix}{name}"), "another member has the same name, and is read");
        }
        let mut members = Vec::new();
        for name in archive.names().filter(|name| is_wanted(name)) {
            match archive.member(name)? {
                Ok(member) => members.push(member),
                Err((finding, detail)) => self.flaw(finding, format!("{prefix}{name}"), detail),
            }
        }
        members.sort_unstable_by_key(|member| (member.offset, member.stored_bytes));
        let mut end = 0;
        for mut member in members {
            let name = format!("{prefix}{}", member.name);
            if member.offset < end && member.stored_bytes > 0 {
                self.flaw(Finding::BadHeader, name, "the member overlaps another member");
                continue;
            }
            end = end.max(member.offset + member.stored_bytes);
            member.sha256 = description.expected(&member, prefix);
            if is_wacz(&member.name) {
                self.add_inner(archive, &member, name, level)?;
            } else {
                self.members.push(Member { name, ..member });
            }
        }
        self.flaws.append(&mut description.flaws);
        self.requires.append(&mut description.requires);
        Ok(true)
    }

    /// Adds a WACZ that is a member of a WACZ.
    fn add_inner(&mut self, archive: &Archive, member: &Member, name: String, level: usize) -> io::Result<()> {
        if member.is_deflated {
            self.flaw(Finding::UnreadFile, name, "a WACZ in a WACZ is read only if it is stored, not deflated");
            return Ok(());
        }
        if level == LEVELS_MAX {
            let detail = format!("more than {LEVELS_MAX} WACZ files are in each other");
            self.flaw(Finding::UnreadFile, name, detail);
            return Ok(());
        }
        match Archive::open(&archive.section().of(member)) {
            Ok(inner) => {
                if !self.add(&inner, &format!("{name}!"), level + 1)? {
                    self.flaw(Finding::OtherFile, name, NO_CRAWL_FILES);
                }
            }
            Err(Unread::NotWhole(detail)) => self.flaw(Finding::Truncated, name, detail),
            Err(Unread::Io(error)) => return Err(error),
        }
        Ok(())
    }

    fn flaw(&mut self, finding: Finding, name: String, detail: impl Into<String>) {
        self.flaws.push(Flaw { finding, name, detail: detail.into() });
    }

    /// A reader without captures, which tells what the archive itself says: its damage, and the archives that it
    /// requires.
    pub(crate) fn into_reader(self, path: &Path) -> Box<dyn CaptureReader> {
        Box::new(Whole { path: path.to_owned(), package: self })
    }
}

/// The content of `datapackage.json`.
#[derive(Debug, Default)]
struct Description {
    /// The SHA-256 and the length of members by name.
    resources: BTreeMap<String, (Option<[u8; 32]>, Option<u64>)>,
    requires: BTreeSet<String>,
    flaws: Vec<Flaw>,
}

impl Description {
    /// Reads the description of an archive, if there is one.
    fn read(&mut self, archive: &Archive, prefix: &str) -> io::Result<()> {
        let Some(text) = self.text(archive, prefix, DESCRIPTION)? else { return Ok(()) };
        if let Some(digest) = self.text(archive, prefix, DESCRIPTION_DIGEST)?
            && let Some(digest) = self.json(prefix, DESCRIPTION_DIGEST, &digest)
        {
            let expected = digest["hash"].as_str().and_then(sha256);
            if expected.is_some_and(|expected| expected != <[u8; 32]>::from(Sha256::digest(&text))) {
                let detail = format!("the SHA-256 is not the one in {DESCRIPTION_DIGEST}");
                self.flaw(Finding::WrongDigest, format!("{prefix}{DESCRIPTION}"), detail);
            }
        }
        let Some(json) = self.json(prefix, DESCRIPTION, &text) else { return Ok(()) };
        for resource in json["resources"].as_array().into_iter().flatten() {
            let Some(path) = resource["path"].as_str() else { continue };
            let path = path.strip_prefix("./").unwrap_or(path);
            let expected = (resource["hash"].as_str().and_then(sha256), resource["bytes"].as_u64());
            self.resources.insert(path.to_owned(), expected);
            if archive.has(path) {
                continue;
            }
            let name = format!("{prefix}{path}");
            if is_wacz(path) || path.contains("://") && is_crawl_file(path) {
                self.flaw(Finding::UnreadFile, name, format!("{DESCRIPTION} lists the file, which lies elsewhere"));
            } else if !path.contains("://") {
                self.flaw(Finding::MissingFile, name, format!("{DESCRIPTION} lists the file, and the ZIP lacks it"));
            }
        }
        let requires = json["relation"]["requires"].as_array().into_iter().flatten();
        self.requires =
            requires.filter_map(|it| it["filename"].as_str()).map(|name| last_part(name).to_owned()).collect();
        Ok(())
    }

    /// The bytes of a member; `None` if the member is absent or damaged.
    fn text(&mut self, archive: &Archive, prefix: &str, name: &str) -> io::Result<Option<Vec<u8>>> {
        if !archive.has(name) {
            return Ok(None);
        }
        Ok(match archive.read(name, DESCRIPTION_BYTES_MAX)? {
            Ok(text) => Some(text),
            Err((finding, detail)) => {
                self.flaw(finding, format!("{prefix}{name}"), detail);
                None
            }
        })
    }

    fn json(&mut self, prefix: &str, name: &str, text: &[u8]) -> Option<Value> {
        let json = serde_json::from_slice(text);
        json.map_err(|error| self.flaw(Finding::BadJson, format!("{prefix}{name}"), error.to_string())).ok()
    }

    /// The SHA-256 that a member must have. Counts a wrong length, which makes the SHA-256 wrong, too.
    fn expected(&mut self, member: &Member, prefix: &str) -> Option<[u8; 32]> {
        let &(sha256, bytes) = self.resources.get(&member.name)?;
        let is_other = bytes.is_some_and(|bytes| bytes != member.bytes);
        if is_other {
            let detail = format!("the length is {}, and {} in {DESCRIPTION}", member.bytes, bytes.unwrap_or(0));
            self.flaw(Finding::WrongDigest, format!("{prefix}{}", member.name), detail);
        }
        sha256.filter(|_| !is_other)
    }

    fn flaw(&mut self, finding: Finding, name: String, detail: String) {
        self.flaws.push(Flaw { finding, name, detail });
    }
}

/// The digest in a text `sha256:HEX`; `None` for another algorithm.
fn sha256(text: &str) -> Option<[u8; 32]> {
    let hex = text.strip_prefix("sha256:")?;
    let mut digest = [0; 32];
    if hex.len() != 64 || !hex.is_ascii() {
        return None;
    }
    for (byte, at) in digest.iter_mut().zip((0..).step_by(2)) {
        *byte = u8::from_str_radix(&hex[at..at + 2], 16).ok()?;
    }
    Some(digest)
}

/// The name of a file without its folders.
fn last_part(name: &str) -> &str {
    name.rsplit('/').next().unwrap_or(name)
}

/// Whether a name has one of these endings, in any case.
fn ends_with(name: &str, endings: &[&str]) -> bool {
    let name = name.to_ascii_lowercase();
    endings.iter().any(|ending| name.ends_with(ending))
}

fn is_wacz(name: &str) -> bool {
    ends_with(name, &[".wacz"]) && !is_hidden(name)
}

/// Whether a member is a crawl file by its name.
fn is_crawl_file(name: &str) -> bool {
    const ENDS: [&str; 5] = [".warc", ".warc.gz", ".warc.zst", ".arc", ".arc.gz"];
    let is_inside = name.starts_with("archive/") || name.starts_with("warcs/");
    !name.ends_with('/') && !is_hidden(name) && !is_wacz(name) && (is_inside || ends_with(name, &ENDS))
}

fn is_hidden(name: &str) -> bool {
    name.split('/').any(|part| part.starts_with('.'))
}

/// Whether a ZIP that cannot be read may be a WACZ, by the names in its first bytes.
fn is_crawl_head(head: &[u8]) -> bool {
    let names = ["archive/", "warcs/", "pages/pages.jsonl", DESCRIPTION, ".warc", ".wacz"];
    names.iter().any(|name| memmem::find(head, name.as_bytes()).is_some())
}

/// The reader of the whole of an archive.
struct Whole {
    path: PathBuf,
    package: Package,
}

impl CaptureReader for Whole {
    fn read(&mut self, capture: &mut Capture, tally: &mut Tally) -> Result<bool, Error> {
        capture.clear();
        for container in std::mem::take(&mut self.package.requires) {
            tally.refer_to(&container);
        }
        for Flaw { finding, name, detail } in self.package.flaws.drain(..) {
            let mut path = self.path.clone().into_os_string();
            if !name.is_empty() {
                path.push("!");
                path.push(name);
            }
            tally.damage(finding, Path::new(&path), 0, detail);
        }
        Ok(false)
    }
}

/// The archives that are not among the inputs, of those that hold originals of revisits ([`Tally::containers`]).
/// Without them, these revisits have unknown links. `inputs` are names of inputs ([`name`](crate::Input::name)). Names
/// are compared without their folders.
///
/// ```
/// use webstrata_datasets::missing_containers;
///
/// let inputs = ["crawls/one.wacz!archive/data.warc.gz", "all.wacz!two.wacz!archive/data.warc.gz", "crawls/a.warc.gz"];
/// let missing = missing_containers(["one.wacz", "file://two.wacz", "three.wacz", "a.warc.gz"], inputs);
/// assert_eq!(missing.into_iter().collect::<Vec<_>>(), ["three.wacz"]);
/// ```
pub fn missing_containers<'a>(
    referred: impl IntoIterator<Item = &'a str>,
    inputs: impl IntoIterator<Item = &'a str>,
) -> BTreeSet<String> {
    let present: BTreeSet<&str> = inputs.into_iter().flat_map(|name| name.split('!')).map(last_part).collect();
    let referred = referred.into_iter().map(last_part);
    referred.filter(|name| !present.contains(name)).map(str::to_owned).collect()
}
