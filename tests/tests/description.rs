//! The description of the HTTP service: every example of a parameter is valid, alone and with its limits and times, and
//! every answer has the fields that are described, and is the example.
//!
//! `WEBSTRATA_REGENERATE=1 cargo test -p webstrata-tests --test description` writes the examples.

use axum::body::Body;
use axum::http::{StatusCode, header};
use serde_json::{Value, json};
use std::path::Path;
use webstrata_analysis::overview;
use webstrata_engine::{Progress, RunOptions};
use webstrata_tests::served::{Served, encoded};

/// The example of a parameter, as part of a query string.
fn as_query(name: &str, example: &Value) -> String {
    let text = |value: &Value| encoded(&value.as_str().map_or_else(|| value.to_string(), str::to_owned));
    match example.as_array() {
        Some(values) => values.iter().map(|value| format!("&{name}={}", text(value))).collect(),
        None => format!("&{name}={}", text(example)),
    }
}

/// The parameters that are times, unless they are numbers of epochs.
const TIMES: [&str; 6] = ["from", "to", "at", "from_ts", "to_ts", "closest"];

#[tokio::test(flavor = "multi_thread")]
async fn the_description_has_examples_that_are_answered_so() {
    let (dir, served) = Served::example().await;
    assert_eq!(served.get("/v1/overview").await["overview"], Value::Null);
    let run = RunOptions::new(dir.path().join("store"));
    let found = tokio::task::spawn_blocking(move || overview(&run, &Progress::default()).unwrap().write(&run.store));
    found.await.unwrap().unwrap();
    let document = served.get("/v1/openapi.json").await;
    // The answers, by path and type.
    let mut examples = json!({});
    let resolved = |value: &Value| match value["$ref"].as_str() {
        Some(place) => document.pointer(&place[1..]).unwrap().clone(),
        None => value.clone(),
    };
    for (path, operations) in document["paths"].as_object().unwrap() {
        let (method, operation) = operations.as_object().unwrap().iter().next().unwrap();
        let parameters: Vec<Value> = operation["parameters"].as_array().into_iter().flatten().map(resolved).collect();
        let (mut path_now, mut required, mut optional) = (path.clone(), String::new(), vec![String::new()]);
        let mut headers = Vec::new();
        for parameter in &parameters {
            let (name, example) = (parameter["name"].as_str().unwrap(), &parameter["example"]);
            if example.is_null() {
                assert!(["resume_key", "resumeKey"].contains(&name), "{path}: {name} has no example");
            } else if parameter["in"] == "header" {
                headers.push((name.to_owned(), example.as_str().unwrap().to_owned()));
            } else if parameter["in"] == "path" {
                let text = example.as_str().map_or_else(|| example.to_string(), str::to_owned);
                path_now = path_now.replace(&format!("{{{name}}}"), &text);
            } else if parameter["required"] == json!(true) {
                required.push_str(&as_query(name, example));
            } else {
                let with = parameter["x-with"].as_object().into_iter().flatten();
                let with: String = with.map(|(name, value)| as_query(name, value)).collect();
                optional.push(with.clone() + &as_query(name, example));
                // In every call, a limit of 0 means all, and times are written as on the command line.
                if name == "limit" {
                    assert!(parameter["schema"]["minimum"].as_i64().unwrap() <= 0, "{path}");
                    optional.push(with + &as_query(name, &json!(0)));
                } else if parameter["schema"]["type"] == "string" && TIMES.contains(&name) {
                    for written in ["2006/01/31", "Jan 2006", "2006-01-01T00:00+0200", "yesterday", "30d ago"] {
                        optional.push(with.clone() + &as_query(name, &json!(written)));
                    }
                }
            }
        }
        let question = operation.pointer("/requestBody/content/application~1x-ndjson/example");
        let question = question.and_then(Value::as_str).unwrap_or_default();
        for optional in optional {
            let full = format!("{path_now}?{required}{optional}").replace("?&", "?");
            let full = full.trim_end_matches('?');
            let headers: Vec<(&str, &str)> = headers.iter().map(|(name, value)| (&**name, &**value)).collect();
            let body = Body::from(question.to_owned());
            let (status, found, body) = served.whole(&method.to_uppercase(), full, &headers, body).await;
            let described = &operation["responses"][status.as_str()];
            assert!(status.as_u16() < 400 && described.is_object(), "{full}: {}", String::from_utf8_lossy(&body));
            if status == StatusCode::FOUND {
                assert!(found.contains_key(header::LOCATION), "{full}");
                continue;
            }
            let contents = described["content"].as_object().unwrap();
            let given = found[header::CONTENT_TYPE].to_str().unwrap().split(';').next().unwrap();
            let (kind, content) = contents.iter().find(|(kind, _)| *kind == given).expect("a type that is described");
            let body = match kind.as_str() {
                "application/json" => serde_json::from_slice(&body).unwrap(),
                _ => json!(String::from_utf8(body.to_vec()).unwrap()),
            };
            if let Some(fields) = resolved(&content["schema"])["properties"].as_object().filter(|_| body.is_object()) {
                let unknown = body.as_object().unwrap().keys().find(|name| !fields.contains_key(*name));
                assert_eq!(unknown, None, "{full}: {body}");
                for name in resolved(&content["schema"])["required"].as_array().into_iter().flatten() {
                    let (value, field) = (&body[name.as_str().unwrap()], &fields[name.as_str().unwrap()]);
                    let is_null = |kind: &Value| kind == "null" || kind["type"] == "null";
                    let kinds = field["type"].as_array().or(field["anyOf"].as_array()).into_iter().flatten();
                    let allows_null = kinds.into_iter().any(is_null);
                    assert!(!value.is_null() || allows_null, "{full}: {name} in {body}");
                }
            }
            let is_text =
                ["/", "/v1", "/v1/barcode.svg", "/v1/openapi.json", "/explorer/{file}"].contains(&path.as_str());
            if !is_text && examples[path].get(kind).is_none() {
                examples[path][kind] = body.clone();
            }
            // Addresses and sizes may differ from the example.
            let varies = ["/v1/stats", "/v1/topology", "/v1/overview"].contains(&path.as_str());
            match content.get("example") {
                _ if regenerates() => {}
                Some(example) if optional.is_empty() && !varies => assert_eq!(example, &body, "{full}"),
                example => assert!(example.is_some() || is_text, "{full} has no example of an answer"),
            }
        }
    }
    if regenerates() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../serve/src/http/describe/examples.json");
        std::fs::write(path, serde_json::to_string_pretty(&examples).unwrap() + "\n").unwrap();
        panic!("the examples are written anew; build and test again without WEBSTRATA_REGENERATE");
    }
}

fn regenerates() -> bool {
    std::env::var_os("WEBSTRATA_REGENERATE").is_some_and(|asked| asked == "1")
}
