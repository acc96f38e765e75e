//! Options from the environment and from a file mean the same as on the command line. The command line comes first.

#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use tempfile::TempDir;

/// An option with its values. A flag has no values.
type Named = (&'static str, &'static [&'static str]);

/// Commands with options of every kind.
const OPTIONS: [(&str, &[Named]); 6] = [
    (
        "serve",
        &[
            ("listen", &["127.0.0.1:7411"]),
            ("memory", &["64M"]),
            ("join", &["127.0.0.1:7412", "127.0.0.1:7413"]),
            ("embed", &["https://example.org", "https://example.com"]),
            ("drain", &["5"]),
        ],
    ),
    ("links", &[("at", &["-30d"]), ("max-age", &["1y"]), ("count", &[])]),
    ("backlinks", &[("period", &["year"]), ("internal", &[]), ("source", &["a.example"])]),
    ("build", &[("memory", &["256M"]), ("links", &["redirects", "embeds"]), ("strict", &[]), ("workers", &["2"])]),
    ("analyze", &[("period", &["year"]), ("damping", &["0.5"])]),
    ("update", &[("min-sources", &["3"]), ("spill", &["/tmp/a b, c"])]),
];

fn webstrata(dir: &Path, words: &[String], variables: &[(String, String)]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_webstrata"));
    command.current_dir(dir).args(words).envs(variables.iter().map(|(name, value)| (name, value)));
    command.output().unwrap()
}

/// The effective options that a command prints.
fn effective(dir: &Path, words: &[String], variables: &[(String, String)]) -> String {
    let output = webstrata(dir, words, variables);
    assert!(output.status.success(), "{words:?} {variables:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

fn words(line: &str) -> Vec<String> {
    line.split_whitespace().map(str::to_owned).collect()
}

/// The arguments behind the options of a command.
fn last(name: &str) -> &'static str {
    match name {
        "links" | "backlinks" => " http://a.example/",
        "build" => " --out store crawl.jsonl",
        "update" => " crawl.jsonl",
        "analyze" => " pagerank",
        _ => "",
    }
}

fn quoted(text: &str) -> String {
    format!("{text:?}")
}

#[test]
fn options_are_the_same_from_the_line_the_environment_and_a_file() {
    let dir = tempfile::tempdir().unwrap();
    for (name, options) in OPTIONS {
        let has_store = name != "build";
        let (mut line, mut variables) = (words(name), Vec::new());
        let mut file = if has_store { "store = \"store\"\n".to_owned() } else { String::new() };
        file += &format!("[{name}]\n");
        for (option, values) in options {
            line.extend(values.iter().map(|value| format!("--{option}={value}")));
            let variable = format!("WEBSTRATA_{name}_{option}").to_uppercase().replace('-', "_");
            match values {
                [] => {
                    line.push(format!("--{option}"));
                    variables.push((variable, "true".to_owned()));
                    file += &format!("{option} = true\n");
                }
                [value] => {
                    variables.push((variable, (*value).to_owned()));
                    file += &format!("{option} = {}\n", quoted(value));
                }
                many => {
                    variables.push((variable, many.join(",")));
                    file += &format!(
                        "{option} = [{}]\n",
                        many.iter().map(|text| quoted(text)).collect::<Vec<_>>().join(", ")
                    );
                }
            }
        }
        fs::write(dir.path().join("own.toml"), &file).unwrap();
        let print = |more: &str| words(&format!("{name}{} --print-config{more}", last(name)));
        let mut whole = line;
        whole.extend(has_store.then(|| "store".to_owned()));
        whole.extend(words(&format!("{} --print-config", last(name))));
        let expected = effective(dir.path(), &whole, &[]);
        if has_store {
            variables.push(("WEBSTRATA_STORE".to_owned(), "store".to_owned()));
        }
        assert_eq!(effective(dir.path(), &print(""), &variables), expected, "{name}: environment");
        assert_eq!(effective(dir.path(), &print(" --config own.toml"), &[]), expected, "{name}: file");
        let named = [("WEBSTRATA_CONFIG".to_owned(), "own.toml".to_owned())];
        assert_eq!(effective(dir.path(), &print(""), &named), expected, "{name}: file that the environment names");
        for (option, values) in options {
            assert!(expected.contains(&format!("{option} = ")), "{name} does not show {option}: {expected}");
            assert!(values.iter().all(|value| expected.contains(&quoted(value))), "{name}: {expected}");
        }
        // The printed options are a valid file of settings.
        fs::write(dir.path().join("again.toml"), &expected).unwrap();
        assert_eq!(effective(dir.path(), &print(" --config again.toml"), &[]), expected, "{name}: printed file");
    }
}

#[test]
fn the_line_comes_before_the_environment_and_that_before_the_file() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("own.toml"), "[serve]\nlisten = \"127.0.0.1:1\"\nmemory = \"1M\"\ndrain = 7\n").unwrap();
    let variables = [("WEBSTRATA_SERVE_LISTEN", "127.0.0.1:2"), ("WEBSTRATA_SERVE_MEMORY", "2M")];
    let variables = variables.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let line = words("--config own.toml serve store --listen 127.0.0.1:3 --print-config");
    let found = effective(dir.path(), &line, &variables);
    for part in ["listen = \"127.0.0.1:3\"", "memory = \"2M\"", "drain = \"7\""] {
        assert!(found.contains(part), "{found}");
    }
    // A flag that is false in the environment is not set, even if the file sets it.
    fs::write(dir.path().join("own.toml"), "[links]\ncount = true\n").unwrap();
    let denied = [("WEBSTRATA_LINKS_COUNT".to_owned(), "false".to_owned())];
    let line = words("links store a.example --config own.toml --print-config");
    assert!(effective(dir.path(), &line, &[]).contains("count"));
    assert!(!effective(dir.path(), &line, &denied).contains("count"));
}

fn built() -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    let line = r#"{"url":"http://a.example/","ts":"20060115120000","links":["http://b.example/"]}"#;
    fs::write(dir.path().join("crawl.jsonl"), format!("{line}\n")).unwrap();
    let output = webstrata(dir.path(), &words("build --out store crawl.jsonl"), &[]);
    assert!(output.status.success(), "{output:?}");
    dir
}

#[test]
fn commands_take_their_store_from_the_environment() {
    let dir = built();
    let store = [("WEBSTRATA_STORE".to_owned(), "store".to_owned())];
    let links = effective(dir.path(), &words("links http://a.example/"), &store);
    assert_eq!(links, "http://b.example/\n");
    assert!(effective(dir.path(), &words("info"), &store).contains("URLs"));
    let given = [("WEBSTRATA_STORE".to_owned(), "nowhere".to_owned())];
    assert_eq!(effective(dir.path(), &words("links --store store http://a.example/"), &given), links);
    let output = webstrata(dir.path(), &words("links http://a.example/ --server 127.0.0.1:1"), &store);
    assert!(String::from_utf8(output.stderr).unwrap().contains("127.0.0.1:1"), "servers come before a setting's store");
}

#[test]
fn a_variable_that_no_option_reads_is_named() {
    let dir = built();
    let wrong = [("WEBSTRATA_INFO_FROMAT".to_owned(), "json".to_owned())];
    let output = webstrata(dir.path(), &words("info store"), &wrong);
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{said}");
    assert_eq!(said, "note: WEBSTRATA_INFO_FROMAT is ignored: info has no such option\n");
    let others = [("WEBSTRATA_LINKS_AT".to_owned(), "2006".to_owned())];
    assert!(webstrata(dir.path(), &words("info store"), &others).stderr.is_empty());
}

#[cfg(unix)]
#[test]
fn a_variable_that_is_no_text_is_an_error() {
    use std::os::unix::ffi::OsStrExt;
    let dir = built();
    let mut command = Command::new(env!("CARGO_BIN_EXE_webstrata"));
    command.env("WEBSTRATA_INFO_FORMAT", std::ffi::OsStr::from_bytes(b"\xff"));
    let output = command.current_dir(dir.path()).args(["info", "store"]).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.code() == Some(2) && said.contains("WEBSTRATA_INFO_FORMAT is not UTF-8"), "{said}");
}

#[test]
fn wrong_settings_say_where_they_are() {
    let dir = built();
    for (file, line, said) in [
        ("[serve]\nlisen = 1\n", "info store", "serve has no option --lisen"),
        ("[sever]\nlisten = 1\n", "info store", "there is no command \"sever\""),
        ("listen = 1\n", "info store", "listen stands outside of the table of a command"),
        ("[serve\n", "info store", "own.toml"),
        ("[links]\ncount = 3\n", "links store a.example", "expected true or false"),
        ("[links]\nat = \"20xx\"\n", "links store a.example", "not a time: \"20xx\""),
    ] {
        fs::write(dir.path().join("own.toml"), file).unwrap();
        let output = webstrata(dir.path(), &words(&format!("{line} --config own.toml")), &[]);
        let error = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.code() == Some(2) && error.contains(said), "{file}: {error}");
    }
    let output = webstrata(dir.path(), &words("info store --config nowhere.toml"), &[]);
    assert!(String::from_utf8(output.stderr).unwrap().contains("nowhere.toml"), "a file that is not there is named");
}
