//! Options from the environment and from a file: words that are added to a command line.
//!
//! ```text
//! WEBSTRATA_SERVE_LISTEN=:7400      [serve]                --listen=:7400
//! WEBSTRATA_STORE=/data/store       listen = ":7400"       --store=/data/store
//! ```
//!
//! The command line comes first, then the environment, then the file that `--config` or `WEBSTRATA_CONFIG` names. The
//! file is TOML: a table for each command, keys with the names of options, and the key `store` outside of tables. A key
//! that no command has is an error. A variable of a command without this option only causes a note, because schedulers
//! set variables too. The value of a setting is checked like a word on the command line.

use crate::args::Usage;
use crate::ask;
use clap::parser::ValueSource;
use clap::{ArgAction, ArgMatches, Command};
use std::env::VarError;
use std::ffi::{OsStr, OsString};
use std::fmt::Write;
use std::path::Path;
use toml::{Table, Value};

/// The argument that names the store, and its setting.
pub(crate) const STORE: &str = "store";
const CONFIG: &str = "config";
/// Options about settings, which cannot be settings.
const OWN: [&str; 4] = ["help", "version", CONFIG, "print-config"];

/// The words of a command line with the words from settings, which follow the names of the command.
pub(crate) fn completed(command: &Command, mut words: Vec<OsString>) -> Result<Vec<OsString>, Usage> {
    let path = commands_in(command, &words);
    let file = match value_of(&words, CONFIG).or_else(|| std::env::var_os("WEBSTRATA_CONFIG")) {
        Some(path) => read(command, Path::new(&path))?,
        None => Table::new(),
    };
    let Some(&(at, _)) = path.last() else { return Ok(words) };
    let names: Vec<&str> = path.iter().map(|(_, command)| command.get_name()).collect();
    let asked = path.last().map_or(command, |(_, command)| command);
    let table = names.iter().try_fold(&file, |table, name| table.get(*name).and_then(Value::as_table));
    let (prefix, mut variables) = (format!("WEBSTRATA_{}_", variable(&names.join("_"))), Vec::new());
    let mut added = Vec::new();
    for arg in asked.get_arguments() {
        let is_store = arg.get_id() == STORE && arg.get_long().is_none();
        let Some(long) = arg.get_long().or(is_store.then_some(STORE)) else { continue };
        if OWN.contains(&long) {
            continue;
        }
        let variable = match is_store {
            true => "WEBSTRATA_STORE".to_owned(),
            false => format!("{prefix}{}", variable(long)),
        };
        variables.push(variable.clone());
        if is_given(&words, long, arg.get_short()) {
            continue;
        }
        let is_list = matches!(arg.get_action(), ArgAction::Append);
        let in_file = if is_store { file.get(long) } else { table.and_then(|table| table.get(long)) };
        let values = match (std::env::var(&variable), in_file) {
            (Ok(text), _) if is_list => text.split(',').map(str::to_owned).collect(),
            (Ok(text), _) => vec![text],
            (Err(VarError::NotUnicode(_)), _) => return Err(Usage(format!("{variable} is not UTF-8").into())),
            (Err(VarError::NotPresent), Some(value)) => texts(value),
            (Err(VarError::NotPresent), None) => continue,
        };
        if !arg.get_action().takes_values() {
            match values[..] {
                [ref text] if ["1", "true", "yes"].contains(&text.as_str()) => added.push(format!("--{long}")),
                [ref text] if ["", "0", "false", "no"].contains(&text.as_str()) => {}
                _ => return Err(Usage(format!("{long} of {}: expected true or false", names.join(" ")).into())),
            }
        } else if is_list || values.len() == 1 {
            added.extend(values.iter().map(|value| format!("--{long}={value}")));
        } else {
            added.push(format!("--{long}"));
            added.extend(values);
        }
    }
    for (name, _) in std::env::vars_os() {
        let name = name.to_string_lossy();
        if name.starts_with(&prefix)
            && asked.get_subcommands().next().is_none()
            && !variables.iter().any(|known| *known == name)
        {
            ask::note(&format!("{name} is ignored: {} has no such option", names.join(" ")));
        }
    }
    // If servers are asked, the store of a setting is not used.
    let has_server = |words: &[OsString]| is_given(words, "server", None);
    let added: Vec<OsString> = added.into_iter().map(OsString::from).collect();
    let is_of_servers = has_server(&words) || has_server(&added);
    let kept = added.into_iter().filter(|word| !is_of_servers || !word.to_string_lossy().starts_with("--store="));
    words.splice(at + 1..at + 1, kept.collect::<Vec<_>>());
    Ok(words)
}

/// The part of the name of a variable that comes from the name of an option or command.
fn variable(name: &str) -> String {
    name.to_uppercase().replace('-', "_")
}

/// Whether words name the store by an option, as settings do.
pub(crate) fn names_store(words: &[OsString]) -> bool {
    is_given(words, STORE, None)
}

/// The options of a command line and its settings together, as a file of settings. Defaults are comments.
pub(crate) fn effective(command: &Command, matches: &ArgMatches) -> String {
    let (mut names, mut command, mut matches) = (Vec::new(), command, matches);
    while let Some((name, inner)) = matches.subcommand() {
        let Some(found) = command.find_subcommand(name) else { break };
        names.push(name);
        (command, matches) = (found, inner);
    }
    let (mut outside, mut inside) = (String::new(), String::new());
    for arg in command.get_arguments() {
        let name = if arg.get_id() == STORE { STORE } else { arg.get_long().unwrap_or_default() };
        if name.is_empty() || OWN.contains(&name) || !matches!(matches.try_contains_id(arg.get_id().as_str()), Ok(true))
        {
            continue;
        }
        let raw: Vec<_> = matches.get_raw(arg.get_id().as_str()).into_iter().flatten().collect();
        let quoted: Vec<String> = raw.iter().map(|text| Value::from(&*text.to_string_lossy()).to_string()).collect();
        let value = match (&quoted[..], arg.get_action()) {
            (_, ArgAction::SetTrue) if !matches.get_flag(arg.get_id().as_str()) => continue,
            (_, ArgAction::SetTrue) => "true".to_owned(),
            (many, ArgAction::Append) => format!("[{}]", many.join(", ")),
            ([one], _) => one.clone(),
            (many, _) => format!("[{}]", many.join(", ")),
        };
        let part = if name == STORE { &mut outside } else { &mut inside };
        let is_default = matches.value_source(arg.get_id().as_str()) == Some(ValueSource::DefaultValue);
        // A default may exclude a given option, so it is a comment. Writing into a string cannot fail.
        let _ = writeln!(part, "{}{name} = {value}", if is_default { "# " } else { "" });
    }
    format!("{outside}\n[{}]\n{inside}", names.join("."))
}

/// The commands that words name, one inside the other, with the places of their names.
fn commands_in<'a>(command: &'a Command, words: &[OsString]) -> Vec<(usize, &'a Command)> {
    let (mut found, mut within) = (Vec::new(), command);
    for (at, word) in words.iter().enumerate().skip(1) {
        let is_value = words[at - 1] == OsStr::new("--config");
        if is_value || word.to_string_lossy().starts_with('-') {
            continue;
        }
        let Some(inner) = word.to_str().and_then(|name| within.find_subcommand(name)) else { break };
        found.push((at, inner));
        within = inner;
    }
    found
}

/// The words that may be options.
fn options(words: &[OsString]) -> impl Iterator<Item = &str> {
    words.iter().take_while(|word| *word != "--").filter_map(|word| word.to_str())
}

fn is_given(words: &[OsString], long: &str, short: Option<char>) -> bool {
    options(words).any(|word| {
        let is_long = word.strip_prefix("--").is_some_and(|word| word.split('=').next() == Some(long));
        is_long || short.is_some_and(|short| !word.starts_with("--") && word.starts_with(&format!("-{short}")))
    })
}

/// The value of an option.
fn value_of(words: &[OsString], long: &str) -> Option<OsString> {
    let mut options = options(words);
    while let Some(word) = options.next() {
        match word.strip_prefix("--").and_then(|word| word.strip_prefix(long)) {
            Some("") => return options.next().map(OsString::from),
            Some(value) if value.starts_with('=') => return Some(value[1..].into()),
            _ => {}
        }
    }
    None
}

/// Reads a file of settings. All keys must be options.
fn read(command: &Command, path: &Path) -> Result<Table, Usage> {
    let wrong = |error: &dyn std::fmt::Display| Usage(format!("--config {}: {error}", path.display()).into());
    let text = std::fs::read_to_string(path).map_err(|error| wrong(&error))?;
    let table: Table = text.parse().map_err(|error: toml::de::Error| wrong(&error.message()))?;
    for (key, value) in &table {
        match value {
            Value::Table(inner) => known(command, key, inner).map_err(|error| wrong(&error))?,
            _ if key == STORE => {}
            _ => return Err(wrong(&format!("{key} stands outside of the table of a command, as [serve]"))),
        }
    }
    Ok(table)
}

/// Whether a command has all options of its table.
fn known(command: &Command, name: &str, table: &Table) -> Result<(), String> {
    let command = command.find_subcommand(name).ok_or_else(|| format!("there is no command {name:?}"))?;
    for (key, value) in table {
        let is_option = |arg: &clap::Arg| arg.get_long() == Some(key) && !OWN.contains(&key.as_str());
        match value {
            Value::Table(inner) => known(command, key, inner)?,
            _ if command.get_arguments().any(is_option) => {}
            _ => return Err(format!("{name} has no option --{key}")),
        }
    }
    Ok(())
}

/// The words for a value.
fn texts(value: &Value) -> Vec<String> {
    match value {
        Value::String(text) => vec![text.clone()],
        Value::Array(values) => values.iter().flat_map(texts).collect(),
        other => vec![other.to_string()],
    }
}
