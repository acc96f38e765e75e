//! Compares urlkeys with other programs: the Python package, indexes of real archives, and the tests of the Java
//! programs.

#[cfg(test)]
#[path = "../../tests/src/shared.rs"]
mod shared;

use serde_json::Value;
use webstrata_datasets::surt;

/// The rows of a file of vectors.
#[cfg(test)]
fn vectors(name: &str) -> Vec<Value> {
    let text = std::fs::read_to_string(shared::shared("data/vectors").join(name)).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Compares `surt` with the field `answer` of the rows, and the rows that differ with the known differences.
#[cfg(test)]
fn compare(rows: &[Value], url: &str, answer: &str, known: &[(&str, &str, &str)]) {
    let differences: Vec<(&str, &str)> = rows
        .iter()
        .filter_map(|row| Some((row[url].as_str()?, row[answer].as_str()?)))
        .filter(|(url, answer)| surt(url) != *answer)
        .collect();
    let known: Vec<(&str, &str)> = known.iter().map(|(url, answer, _reason)| (*url, *answer)).collect();
    assert!(!rows.is_empty() && differences == known, "{differences:#?}");
}

#[test]
#[ignore = "needs the shared test data: WEBSTRATA_SHARED=DIR cargo test --test surt_vectors -- --ignored"]
fn answers_of_the_python_package() {
    let known = [("http://09/", "9,0,0,0)/", "the system's resolver reads a bad octal number as 9.0.0.0")];
    compare(&vectors("surt_golden_python031.jsonl"), "url", "surt", &known);
}

#[test]
#[ignore = "needs the shared test data: WEBSTRATA_SHARED=DIR cargo test --test surt_vectors -- --ignored"]
fn keys_of_real_indexes() {
    const TEST_FILE: &str = "the test file gives another URL on purpose";
    const POST: &str = "the key of a POST request has the body's arguments, which the URL has not";
    const OWN: &str = "the writer of the index had its own rule for metadata:";
    let known = [
        ("http://example.com/", "com,example,test,arc)/", TEST_FILE),
        ("http://example.com/", "com,example,test,gz,arc)/", TEST_FILE),
        ("http://httpbin.org/post", "org,httpbin)/post?__wb_method=post&a=1&b=[]&c=3", POST),
        ("http://httpbin.org/post?foo=bar", "org,httpbin)/post?__wb_method=post&data=^&foo=bar", POST),
        ("http://httpbin.org/post", "org,httpbin)/post?__wb_method=post&foo=bar&test=abc", POST),
        (
            "metadata://gnu.org/software/wget/warc/MANIFEST.txt",
            "metadata)/gnu.org/software/wget/warc/manifest.txt",
            OWN,
        ),
        (
            "metadata://gnu.org/software/wget/warc/wget_arguments.txt",
            "metadata)/gnu.org/software/wget/warc/wget_arguments.txt",
            OWN,
        ),
        ("metadata://gnu.org/software/wget/warc/wget.log", "metadata)/gnu.org/software/wget/warc/wget.log", OWN),
    ];
    compare(&vectors("cdx_real_pairs.jsonl"), "url", "urlkey", &known);
}

#[test]
#[ignore = "needs the shared test data: WEBSTRATA_SHARED=DIR cargo test --test surt_vectors -- --ignored"]
fn vectors_of_other_programs() {
    const JAVA_DNS: &str = "the Java program takes what follows dns: for a host; the Python one does not";
    let known = [
        ("dns:alexa.com", "com,alexa)", JAVA_DNS),
        ("dns:archive.org", "org,archive)", JAVA_DNS),
        ("", "", "jwarc leaves nothing where the others write -"),
        (
            "http://example.org/a/././b/../c/../../../../..",
            "org,example)/",
            "jwarc stops at the root, the others keep ..",
        ),
    ];
    let mut rows = vectors("url_canon.jsonl");
    let suites = ["java-wayback-urlkey", "jwarc-URIs", "py-surt", "urlcanon-surt.json"];
    rows.retain(|row| {
        row["func"] == "surt"
            && row["opts"].as_object().is_some_and(|options| options.is_empty())
            && row["suite"].as_str().is_some_and(|suite| suites.contains(&suite))
    });
    compare(&rows, "input", "expected", &known);
}
