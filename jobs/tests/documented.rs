//! Tables of the documents name what the program has: columns of exports and views, fields of questions, metrics. The
//! commands in indented blocks, which show no output, run for a reader who has a store and crawl files.

#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

mod book;
mod commands;
mod servers;

use book::{book, documents, workspace};
use commands::{command, run, succeeds};
use servers::Server;
use std::collections::BTreeSet;
use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

/// Commands in indented blocks that one machine without a network cannot run: they need a bucket or other processes.
const NOT_HERE: [&str; 6] =
    ["s3://", "https://host", "https://data.commoncrawl.org", "--hosts", "webstrata serve", "webgraph"];

/// The part of a document below a title, up to the next title.
fn below<'a>(text: &'a str, title: &str) -> &'a str {
    let start = text.find(&format!("{title}\n")).unwrap_or_else(|| panic!("no {title}")) + title.len();
    let end = text[start..].find("\n## ").map_or(text.len(), |end| start + end);
    &text[start..end]
}

/// The first cells of the rows of the table with this head, in the order of the document.
fn first_cells<'a>(text: &'a str, head: &str) -> Vec<&'a str> {
    let rows = text.lines().skip_while(|line| *line != head).skip(2).take_while(|line| line.starts_with('|'));
    let cells: Vec<&str> = rows.map(|row| row.split(" | ").next().unwrap().trim_start_matches("| ")).collect();
    assert!(!cells.is_empty(), "no table {head}");
    cells
}

/// The texts between back-ticks.
fn names(text: &str) -> Vec<String> {
    text.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

/// A directory with `store`, built from the examples of the repository.
fn built() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let examples = workspace().join("docs/example");
    for name in ["crawl-2006.jsonl", "crawl-2008.jsonl"] {
        fs::copy(examples.join(name), dir.path().join(name)).unwrap();
    }
    succeeds(dir.path(), "build --out {}/store {}/crawl-2006.jsonl");
    succeeds(dir.path(), "update {}/store {}/crawl-2008.jsonl");
    dir
}

#[test]
fn columns_of_exports_are_those_of_the_documents() {
    let dir = built();
    let text = book();
    let head = "| column | type | meaning |";
    for what in ["edges", "events", "nodes", "hosts"] {
        let shown = names(&first_cells(below(&text, &format!("## {what}")), head).join(" "));
        let csv = succeeds(dir.path(), &format!("export {{}}/store --what {what} --format csv --out -"));
        let columns: Vec<&str> = csv.lines().next().unwrap().split(',').collect();
        assert_eq!(shown, columns, "{what}");
    }
    let at = text.find("webstrata fold STORE --unit domain").unwrap();
    let shown = names(&first_cells(&text[at..], "| column | meaning |").join(" "));
    let csv = succeeds(dir.path(), "fold {}/store --out -");
    assert_eq!(shown, csv.lines().next().unwrap().split(',').collect::<Vec<_>>(), "fold");
}

#[test]
fn columns_of_analyses_are_those_of_the_book() {
    let dir = built();
    let (text, mut checked) = (book(), 0);
    for table in text.split("| analysis | columns of `--out` | what it computes |\n").skip(1) {
        for row in table.lines().skip(1).take_while(|line| line.starts_with('|')) {
            let mut cells = row.split(" | ").map(names);
            let (analysis, columns) = (cells.next().unwrap(), cells.next().unwrap());
            // `growth` has a row for each period, and the table has a note instead of columns.
            if columns.is_empty() {
                continue;
            }
            let csv = succeeds(dir.path(), &format!("analyze {{}}/store {} --out -", analysis[0]));
            let shown = ["uid", "url"].map(str::to_owned).into_iter().chain(columns).collect::<Vec<_>>().join(",");
            assert_eq!(csv.lines().next().unwrap(), shown, "{analysis:?}");
            checked += 1;
        }
    }
    assert!(checked > 10, "{checked} analyses");
}

/// The columns of a view, from the last SELECT of its statement.
fn columns_of(views: &str, view: &str) -> Vec<String> {
    let begin = format!(" VIEW {view} AS\n");
    let start = views.find(&begin).unwrap_or_else(|| panic!("no view {view}")) + begin.len() - 1;
    let end = views[start..].find(";\n").map_or(views.len(), |end| start + end);
    // A union has the columns of its first part.
    let whole = views[start..end].find("\nUNION ALL\n").map_or(end, |union| start + union);
    let select = views[start..whole].rfind("\nSELECT ").unwrap() + start + "\nSELECT ".len();
    let (mut depth, mut columns, mut column) = (0, Vec::new(), String::new());
    let mut letters = views[select..end].char_indices();
    for (at, letter) in letters.by_ref() {
        depth += i32::from(letter == '(') - i32::from(letter == ')');
        if depth == 0 && views[select + at..].trim_start().starts_with("FROM ") {
            break;
        }
        if depth == 0 && letter == ',' {
            columns.push(std::mem::take(&mut column));
        } else {
            column.push(letter);
        }
    }
    columns.push(column);
    let name = |column: &String| column.split_whitespace().last().unwrap().rsplit('.').next().unwrap().to_owned();
    columns.iter().map(name).collect()
}

#[test]
fn columns_of_views_are_those_of_the_documents() {
    let dir = built();
    let text = book();
    let rows: Vec<&str> = text
        .lines()
        .skip_while(|line| *line != "| view | columns |")
        .skip(2)
        .take_while(|l| l.starts_with('|'))
        .collect();
    assert!(rows.len() > 4);
    for dialect in ["duckdb", "spark"] {
        let views = succeeds(dir.path(), &format!("sql {{}}/store --dialect {dialect}"));
        for row in &rows {
            let (view, columns) = row.trim_start_matches("| ").split_once(" | ").unwrap();
            // Text in brackets or after a colon is about a column.
            let mut text = columns.split(':').next().unwrap().to_owned();
            while let (Some(open), Some(close)) = (text.find('('), text.find(')')) {
                text.replace_range(open..=close, "");
            }
            let view = view.trim_matches('`');
            assert_eq!(columns_of(&views, view), names(&text), "{dialect}: {view}");
        }
    }
}

#[test]
fn fields_of_questions_are_those_of_the_book() {
    let dir = built();
    let mut asking = command(dir.path(), "query {}/store");
    let mut asking = asking.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    asking.stdin.take().unwrap().write_all(b"{\"nothing\": 1}\n").unwrap();
    let answer = String::from_utf8(asking.wait_with_output().unwrap().stdout).unwrap();
    let (_, expected) = answer.split_once("expected one of ").unwrap();
    let known: BTreeSet<String> = names(expected).into_iter().collect();
    let shown: BTreeSet<String> = names(&first_cells(&book(), "| field | values |").join(" ")).into_iter().collect();
    assert_eq!(shown, known);
    let help = succeeds(dir.path(), "query --help");
    let missing: Vec<&String> = known.iter().filter(|field| !help.contains(&format!("\"{field}\""))).collect();
    assert!(missing.is_empty(), "help of query: {missing:?}");
}

#[test]
fn metrics_that_the_book_names_exist() {
    let dir = built();
    let mut serve = command(dir.path(), "serve {}/store --listen 127.0.0.1:0 --data {}/cells");
    let server = Server::start(&mut serve, dir.path().join("server.log"));
    server.until(200);
    let (_, of_server) = server.get("/metrics").unwrap();
    let of_jobs = fs::read_to_string(workspace().join("jobs/src/running/metrics.rs")).unwrap();
    let book = book();
    let is_of_name = |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '_';
    let named = book.match_indices("`webstrata_").map(|(at, _)| {
        let text = &book[at + 1..];
        &text[..text.find(|letter| !is_of_name(letter)).unwrap_or(text.len())]
    });
    let named: BTreeSet<&str> = named.collect();
    assert!(named.len() >= 3, "{named:?}");
    // A single server does not show metrics without a value (certificates).
    let registered = fs::read_to_string(workspace().join("serve/src/guard/metrics.rs")).unwrap();
    let is_known = |name: &&&str| {
        let counted = name.trim_end_matches("_total");
        let bare = counted.trim_start_matches("webstrata_").trim_end_matches("_seconds").trim_end_matches("_bytes");
        of_server.contains(&format!("# TYPE {name} "))
            || of_server.contains(&format!("# TYPE {counted} "))
            || registered.contains(&format!("\"{bare}\""))
            || of_jobs.contains(**name)
    };
    let unknown: Vec<_> = named.iter().filter(|name| !is_known(name)).collect();
    assert!(unknown.is_empty(), "{unknown:?}");
}

fn is_command(line: &str) -> bool {
    line.starts_with("webstrata ") || line.contains("| webstrata ")
}

/// The commands in indented blocks of a document.
fn indented(text: &str) -> Vec<String> {
    let mut is_fenced = false;
    let mut found = Vec::new();
    for line in text.lines() {
        is_fenced ^= line.starts_with("```");
        if !is_fenced && let Some(command) = line.strip_prefix("    ").filter(|line| is_command(line)) {
            found.push(command.to_owned());
        }
    }
    found
}

#[test]
fn indented_commands_run_for_a_reader_with_a_store_and_a_crawl() {
    let dir = built();
    // The files of such a reader: crawl files in several forms, a store of some epochs, UIDs of an earlier epoch.
    fs::create_dir_all(dir.path().join("crawl")).unwrap();
    fs::create_dir_all(dir.path().join("more")).unwrap();
    let crawl = fs::read(dir.path().join("crawl-2006.jsonl")).unwrap();
    fs::write(dir.path().join("crawl/crawl-2006.jsonl"), &crawl).unwrap();
    succeeds(dir.path(), "generate irregular:occurrences=200 --out {}/more/a.warc.gz");
    for epoch in 3..=6 {
        fs::write(
            dir.path().join("new.jsonl"),
            format!("{{\"url\":\"http://e.example/{epoch}\",\"ts\":\"2009\",\"links\":[]}}\n"),
        )
        .unwrap();
        succeeds(dir.path(), "update {}/store {}/new.jsonl");
    }
    fs::write(dir.path().join("uids-of-epoch-6.txt"), "0\n1\n").unwrap();
    succeeds(dir.path(), "generate uk:occurrences=500,months=1 --as cc-graph --out {}/releases");
    fs::rename(dir.path().join("releases/2006-05"), dir.path().join("release")).unwrap();
    fs::create_dir(dir.path().join("crawl=CC-MAIN-2025-13")).unwrap();
    succeeds(dir.path(), "generate uk:occurrences=500 --out {}/crawl=CC-MAIN-2025-13/a.parquet");
    let zipped = "gzip -c crawl-2006.jsonl > captures.jsonl.gz; mkdir -p scratch";
    assert!(Command::new("sh").args(["-c", zipped]).current_dir(dir.path()).status().unwrap().success());
    let program = Path::new(env!("CARGO_BIN_EXE_webstrata")).parent().unwrap().to_owned();
    let others = std::env::var_os("PATH").unwrap_or_default();
    let path = std::env::join_paths([program].into_iter().chain(std::env::split_paths(&others))).unwrap();
    let (mut problems, mut ran) = (Vec::new(), 0);
    for page in documents() {
        for shown in indented(&page.text) {
            if NOT_HERE.iter().any(|what| shown.contains(what)) {
                continue;
            }
            let is_built = shown.contains("build --out STORE");
            let store = if is_built { "built" } else { "store" };
            let line = shown.replace("STORE", store).replace("/scratch", "scratch");
            let line = if is_built { line.replace("webstrata build", "webstrata build --replace") } else { line };
            // Large crawls take too long here.
            let line = line.replace("occurrences=4000000", "occurrences=4000");
            let mut shell = Command::new("sh");
            shell.args(["-c", &line]).current_dir(dir.path()).env("PATH", &path).env("TMPDIR", dir.path());
            let output = shell.stdin(Stdio::null()).output().unwrap();
            ran += 1;
            if !output.status.success() {
                problems.push(format!(
                    "{}: {shown}\n    {}",
                    page.name,
                    String::from_utf8_lossy(&output.stderr).trim()
                ));
            }
        }
    }
    assert!(problems.is_empty() && ran > 20, "{ran} commands\n{}", problems.join("\n"));
    // The commands leave the store sound.
    assert!(run(dir.path(), "check {}/store").status.success());
}
