//! The documents show the real output of the program. The test runs every console block of the README and of each page
//! of the book, in the order of the page and in one directory, as a reader would. The options in the documents exist.
//!
//! A line that begins with `$ ` is a command. The lines below are its output, on either stream; `...` stands for any
//! lines. Seconds, times of commits and sizes of temporary files may differ.

#![expect(clippy::print_stdout, reason = "how much was run")]
#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

mod book;
mod commands;

use book::{Page, document, documents, pages, workspace};
use commands::succeeds;
use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::thread;
use webstrata_layers::TIME_FORMS;

/// The command that the test cannot run, because the command builds this program.
const LEFT_TO_THE_READER: [&str; 1] = ["cargo install --path jobs --locked"];
/// The address of the server in the documents. The test takes any free port.
const SERVED_AT: &str = "127.0.0.1:7400";

/// A command of a console block and the lines that the document shows below it.
struct Shown {
    line: usize,
    command: String,
    output: Vec<String>,
}

/// The commands of all console blocks of a document.
fn commands_of(text: &str) -> Vec<Shown> {
    let mut all: Vec<Shown> = Vec::new();
    let mut is_inside = false;
    for (number, line) in text.lines().enumerate() {
        if line.starts_with("```") {
            is_inside = line == "```console";
        } else if let Some(command) = line.strip_prefix("$ ").filter(|_| is_inside) {
            all.push(Shown { line: number + 1, command: command.to_owned(), output: Vec::new() });
        } else if is_inside
            && !line.starts_with("# ")
            && let Some(last) = all.last_mut()
        {
            last.output.push(line.to_owned());
        }
    }
    // Empty lines and comments between the commands of a block are not output.
    for shown in &mut all {
        while shown.output.last().is_some_and(String::is_empty) {
            shown.output.pop();
        }
    }
    all
}

/// A line without the parts that differ from run to run.
fn steady(line: &str) -> String {
    let mut words: Vec<String> = line.trim_end().split(' ').map(str::to_owned).collect();
    for at in 0..words.len() {
        let is_number = words[at].parse::<f64>().is_ok();
        let next = words.get(at + 1).map_or("", |word| word.trim_end_matches([',', ':', ';']));
        let is_spilt = next.ends_with("iB") && words.get(at + 2).is_some_and(|word| word == "written");
        if is_number && next == "s" {
            words[at] = "N".to_owned();
        } else if words[at].len() == 64 && words[at].bytes().all(|byte| byte.is_ascii_hexdigit()) {
            // The hash of a removal rule, with the store as salt.
            words[at] = "HASH".to_owned();
        } else if is_spilt {
            (words[at], words[at + 1]) = ("N".to_owned(), "B".to_owned());
        }
    }
    let line = words.join(" ");
    match line.split_once("\"seconds\":") {
        Some((before, after)) => {
            let rest = after.find([',', '}']).map_or("", |at| &after[at..]);
            format!("{before}\"seconds\":N{rest}")
        }
        None => line,
    }
}

/// Like [`steady`] for each line. The lines of `log` also lose their times.
fn steady_all(command: &str, lines: &[String]) -> Vec<String> {
    let is_log = command.starts_with("webstrata log ");
    let without_time =
        |word: &str| if word.ends_with('Z') && word.contains('T') { "T".into() } else { word.to_owned() };
    let steady = lines.iter().map(|line| steady(line));
    if is_log {
        steady.map(|line| line.split_whitespace().map(without_time).collect::<Vec<_>>().join(" ")).collect()
    } else {
        steady.collect()
    }
}

/// Whether the printed lines fit the lines in the document, where `...` stands for any lines.
fn fits(shown: &[String], printed: &[String]) -> bool {
    match shown.split_first() {
        None => printed.is_empty(),
        Some((dots, rest)) if dots == "..." => (0..=printed.len()).any(|at| fits(rest, &printed[at..])),
        Some((line, rest)) => printed.first() == Some(line) && fits(rest, &printed[1..]),
    }
}

/// A reader at a shell, who begins with only the examples of the repository.
struct Shell {
    directory: tempfile::TempDir,
    server: Option<Server>,
}

/// The server in another terminal.
struct Server {
    child: Child,
    address: String,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Shell {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let examples = directory.path().join("docs/example");
        fs::create_dir_all(&examples).unwrap();
        for entry in fs::read_dir(workspace().join("docs/example")).unwrap() {
            let path = entry.unwrap().path();
            fs::copy(&path, examples.join(path.file_name().unwrap())).unwrap();
        }
        Shell { directory, server: None }
    }

    fn run(&mut self, command: &str) -> String {
        if command.starts_with("webstrata serve ") {
            return self.serve(command);
        }
        let address = self.server.as_ref().map(|server| server.address.clone());
        let at_home = |text: &str, from: &str, to: &str| text.replace(from, to);
        let command = address.iter().fold(command.to_owned(), |command, address| at_home(&command, SERVED_AT, address));
        let printed = if command.starts_with("curl ") { self.ask(&command) } else { self.shell(&command) };
        address.iter().fold(printed, |printed, address| at_home(&printed, address, SERVED_AT))
    }

    fn path() -> std::ffi::OsString {
        let program = Path::new(env!("CARGO_BIN_EXE_webstrata")).parent().unwrap().to_owned();
        let others = std::env::var_os("PATH").unwrap_or_default();
        std::env::join_paths([program].into_iter().chain(std::env::split_paths(&others))).unwrap()
    }

    fn shell(&self, command: &str) -> String {
        let mut shell = Command::new("sh");
        shell.args(["-c", &format!("exec 2>&1; {command}")]).current_dir(self.directory.path());
        let output = shell.env("PATH", Self::path()).env("TMPDIR", self.directory.path()).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    }

    /// Starts the server. Returns its output until it is ready.
    fn serve(&mut self, command: &str) -> String {
        let mut program = Command::new(env!("CARGO_BIN_EXE_webstrata"));
        program.args(command.split(' ').skip(1)).args(["--listen", "127.0.0.1:0", "--data", "cells"]);
        let mut child = program.current_dir(self.directory.path()).stdout(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
        let mut printed = String::new();
        for line in lines.by_ref() {
            printed = printed + &line + "\n";
            if line.starts_with("ready: ") {
                break;
            }
        }
        // A server whose output nobody reads would end.
        thread::spawn(move || lines.for_each(drop));
        let address = printed.lines().find_map(|line| line.strip_prefix("listening on ")).map(str::to_owned);
        let address = address.unwrap_or_else(|| panic!("{command}: {printed}"));
        self.server = Some(Server { child, address: address.clone() });
        printed.replace(&address, SERVED_AT)
    }

    /// The output of `curl -s [--data-binary @FILE] ADDRESS/PATH [| COMMAND]`. The test does not need curl itself.
    fn ask(&self, command: &str) -> String {
        let (command, then) = command.split_once(" | ").unwrap_or((command, "cat"));
        let answer = self.directory.path().join(".answer");
        fs::write(&answer, self.answer(command)).unwrap();
        self.shell(&format!("{{ {then}; }} < .answer"))
    }

    fn answer(&self, command: &str) -> String {
        let words: Vec<_> = command.split(' ').map(|word| word.trim_matches('\'')).collect();
        let (address, path) = words.last().unwrap().split_once('/').unwrap();
        let body = match words[1..words.len() - 1] {
            ["-s"] => None,
            ["-s", "--data-binary", file] => {
                let file = file.strip_prefix('@').unwrap();
                Some(fs::read(self.directory.path().join(file)).unwrap())
            }
            _ => panic!("{command}: this test knows `curl -s` and `--data-binary @FILE`"),
        };
        let mut stream = TcpStream::connect(address).unwrap();
        let method = if body.is_some() { "POST" } else { "GET" };
        let body = body.unwrap_or_default();
        let head = format!(
            "{method} /{path} HTTP/1.0\r\nHost: {address}\r\nConnection: close\r\nContent-Length: {}\r\n\r\n",
            body.len()
        );
        stream.write_all(&[head.as_bytes(), &body].concat()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer.split_once("\r\n\r\n").unwrap().1.to_owned()
    }
}

/// Runs the commands of a page. Returns the number of commands and every difference, so that a page can be repaired in
/// one go.
fn check(page: &Page) -> (usize, Vec<String>) {
    let mut shell = Shell::new();
    let mut problems = Vec::new();
    let commands = commands_of(&page.text);
    for Shown { line, command, output } in &commands {
        if LEFT_TO_THE_READER.contains(&command.as_str()) {
            continue;
        }
        let printed = shell.run(command);
        let printed: Vec<_> = printed.lines().map(str::to_owned).collect();
        if !fits(&steady_all(command, output), &steady_all(command, &printed)) {
            let (name, shown, printed) = (&page.name, output.join("\n"), printed.join("\n"));
            problems.push(format!("{name}:{line}: $ {command}\n--- shown\n{shown}\n--- printed\n{printed}\n"));
        }
    }
    (commands.len(), problems)
}

#[test]
fn the_documents_show_what_the_program_prints() {
    let documents = documents();
    let (waiting, results) = (Mutex::new(documents.iter()), Mutex::new(Vec::new()));
    // Commands wait for disks and servers, so four pages run at a time.
    let next = || waiting.lock().unwrap().next();
    let work = || {
        while let Some(page) = next() {
            let result = check(page);
            results.lock().unwrap().push(result);
        }
    };
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(work);
        }
    });
    let results = results.into_inner().unwrap();
    assert_eq!(results.len(), documents.len(), "pages that were not run");
    let with_commands = results.iter().filter(|(commands, _)| *commands > 0).count();
    let commands: usize = results.iter().map(|(commands, _)| commands).sum();
    println!("{} pages, {with_commands} of them with {commands} commands", documents.len());
    assert!(with_commands >= 30 && commands >= 150, "{with_commands} pages with {commands} commands");
    let mut problems: Vec<String> = results.into_iter().flat_map(|(_, problems)| problems).collect();
    problems.sort();
    assert!(problems.is_empty(), "\n{}", problems.join("\n"));
}

#[test]
fn the_book_has_every_form_of_a_time() {
    let row = |(forms, meaning): &(&[&str], &str)| {
        let forms: Vec<String> = forms.iter().map(|form| format!("`{form}`")).collect();
        format!("| {} | {meaning} |", forms.join(", "))
    };
    let expected: Vec<String> = TIME_FORMS.iter().map(row).collect();
    assert_eq!(rows_below(&document("docs/book/basics.md"), "| written | names |"), expected);
}

/// The rows of the table with this head.
fn rows_below(text: &str, head: &str) -> Vec<String> {
    let below = text.lines().skip_while(|line| *line != head).skip(2);
    below.take_while(|line| line.starts_with('|')).map(str::to_owned).collect()
}

/// The options in a text: `--name`.
fn options_in(text: &str) -> BTreeSet<String> {
    let ends = |letter: char| !(letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '-');
    let after = text.match_indices("--").filter(|(at, _)| !text[..*at].ends_with(['-', '<', '|']));
    after
        .map(|(at, _)| text[at + 2..].split(ends).next().unwrap_or_default())
        .filter(|name| name.starts_with(|letter: char| letter.is_ascii_lowercase()))
        .map(|name| format!("--{}", name.trim_end_matches('-')))
        .collect()
}

/// The subcommands in the help of a command.
fn subcommands(dir: &Path, above: &str) -> Vec<String> {
    let help = succeeds(dir, format!("{above} --help").trim());
    let listed =
        help.lines().take_while(|line| !line.starts_with("Options:")).filter_map(|line| line.strip_prefix("  "));
    let names: Vec<_> = listed.filter_map(|line| line.split(' ').next()).filter(|name| !name.is_empty()).collect();
    names.iter().map(|name| format!("{above} {name}").trim().to_owned()).collect()
}

#[test]
fn options_that_the_documents_name_exist() {
    let dir = tempfile::tempdir().unwrap();
    let mut known = BTreeSet::new();
    let names = subcommands(dir.path(), "");
    assert!(names.len() > 20, "{names:?}");
    for name in names.iter().filter(|name| *name != "help") {
        known.extend(options_in(&succeeds(dir.path(), &format!("{name} --help"))));
    }
    for name in ["bench codecs", "bench cells"] {
        known.extend(options_in(&succeeds(dir.path(), &format!("{name} --help"))));
    }
    // The option that names the STORE instead of an argument; help shows it.
    known.insert("--store".to_owned());
    // The options of cargo, curl, docker, protoc and test scripts, which the documents run, too.
    let others = [
        "--workspace",
        "--locked",
        "--path",
        "--features",
        "--release",
        "--test",
        "--ignored",
        "--include-ignored",
        "--lib",
        "--bin",
        "--example",
        "--data-binary",
        "--data-urlencode",
        "--webstrata",
        "--time",
        "--answers",
        "--crawls",
        "--file",
        "--read-only",
        "--rm",
        "--tag",
        "--tmpfs",
        "--manifest-path",
        "--python",
        "--grpc",
    ];
    let mut problems = Vec::new();
    for page in documents() {
        for option in options_in(&page.text) {
            if !known.contains(&option) && !others.contains(&&*option) {
                problems.push(format!("{}: no command has {option}", page.name));
            }
        }
    }
    let named: BTreeSet<String> = pages().iter().flat_map(|page| options_in(&page.text)).collect();
    problems.extend(
        known
            .iter()
            .filter(|option| !named.contains(*option) && *option != "--help")
            .map(|option| format!("no page of the book names {option}")),
    );
    assert!(problems.is_empty(), "\n{}", problems.join("\n"));
}
