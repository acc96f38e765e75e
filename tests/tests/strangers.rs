//! Callers other than the clients of Webstrata: caches, pages of other sites, proxies, and Memento clients.

use axum::body::Body;
use axum::http::{StatusCode, header};
use serde_json::{Value, json};
use webstrata_serve::guard::security::{Security, SecurityOptions};
use webstrata_serve::http::options::Origin;
use webstrata_tests::served::Served;

#[tokio::test(flavor = "multi_thread")]
async fn pages_of_other_sites_read_answers_where_they_may() {
    let tokens = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(tokens.path(), "a-token-of-sixteen-letters\n").unwrap();
    let site = "https://tools.example";
    let (_dir, served) = Served::example_with(|options| {
        let files = SecurityOptions { tokens: Some(tokens.path().to_owned()), ..SecurityOptions::default() };
        options.security = Security::open(&files).unwrap();
        options.http.origins = vec![Origin::parse(site).unwrap()];
    })
    .await;
    let ask = async |method: &str, fields: &str| {
        let path = "/v1/links?url=a.example";
        let request = format!("{method} {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n{fields}\r\n");
        served.port(request).await.to_lowercase()
    };
    let wanted = "access-control-request-method: GET\r\naccess-control-request-headers: authorization\r\n";
    let allows = format!("access-control-allow-origin: {site}\r\n");
    let answer = ask("OPTIONS", &format!("origin: {site}\r\n{wanted}")).await;
    assert!(answer.starts_with("http/1.1 200 ") && answer.contains(&allows), "{answer}");
    assert!(answer.contains("access-control-allow-headers: authorization,"), "{answer}");
    let token = "authorization: Bearer a-token-of-sixteen-letters\r\n";
    let answer = ask("GET", &format!("origin: {site}\r\n{token}")).await;
    assert!(answer.starts_with("http/1.1 200 ") && answer.contains(&allows), "{answer}");
    assert!(answer.contains("cache-control: private, max-age=60\r\n") && answer.contains("authorization"), "{answer}");
    let answer = ask("GET", &format!("origin: {site}\r\n")).await;
    assert!(answer.starts_with("http/1.1 401 ") && answer.contains(&allows), "{answer}");
    let answer = ask("GET", &format!("origin: https://other.example\r\n{token}")).await;
    assert!(answer.starts_with("http/1.1 200 ") && !answer.contains("access-control-allow-origin"), "{answer}");
    let (_other_dir, closed) = Served::example().await;
    let request = format!("GET /v1/epochs HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\norigin: {site}\r\n\r\n");
    let answer = closed.port(request).await;
    assert!(answer.starts_with("HTTP/1.1 200 ") && !answer.contains("access-control"), "{answer}");
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_of_an_epoch_are_kept_by_callers() {
    let (_dir, served) = Served::example().await;
    let ask = async |path: &str, tag: &str| served.whole("GET", path, &[("if-none-match", tag)], Body::empty()).await;
    let (kept, again, never) = (("max-age=60", true), ("no-cache", false), ("no-store", false));
    for (path, (age, has_tag)) in [
        ("/v1/links?url=a.example", kept),
        ("/v1/links?url=a.example&epoch=1", kept),
        ("/v1/captures?url=a.example", kept),
        ("/v1/links?url=a.example&sample=1", kept),
        ("/v1/links?url=a.example&at=2010&max_age=5y", kept),
        // An answer that depends on the clock has no tag, even with an epoch.
        ("/v1/links?url=a.example&at=now&max_age=8s", again),
        ("/v1/links?url=a.example&at=%6eow&max_age=8s&epoch=1", again),
        ("/v1/links?url=a.example&from=2005&to=now", again),
        ("/v1/links?url=a.example&sample=1&random=true", never),
        ("/timemap/link/a.example", kept),
        ("/cdx?url=a.example", kept),
        ("/timegate/a.example", again),
        ("/v1/stats", again),
        ("/v1/topology", again),
        ("/v1/links?url=nowhere.example", never),
        ("/v1/links?url=a.example&epoch=2", never),
    ] {
        let (status, headers, body) = ask(path, "\"other\"").await;
        let given = headers.get(header::CACHE_CONTROL).map(|value| value.to_str().unwrap());
        assert_eq!((given, headers.contains_key(header::ETAG)), (Some(age), has_tag), "{path} {status}");
        // `If-None-Match: *` gives 304 if the answer has a tag. Other answers, such as answers that depend on the
        // clock, are sent again; an answer with `no-store` may differ.
        let (any, _, body_of_any) = ask(path, "*").await;
        let expected = if has_tag { (StatusCode::NOT_MODIFIED, 0) } else { (status, body.len()) };
        assert!((any, body_of_any.len()) == expected || age == "no-store" && any == status, "{path}");
        let Some(tag) = headers.get(header::ETAG).map(|tag| tag.to_str().unwrap()) else { continue };
        assert!(!body.is_empty());
        for known in [tag.to_owned(), format!("\"x\", {tag}"), tag.trim_start_matches("W/").to_owned()] {
            let (status, again, body) = ask(path, &known).await;
            assert_eq!((status, body.len()), (StatusCode::NOT_MODIFIED, 0), "{path}");
            assert_eq!(
                (&again[header::ETAG], &again[header::CACHE_CONTROL]),
                (&headers[header::ETAG], &headers[header::CACHE_CONTROL])
            );
            let varies = |headers: &axum::http::HeaderMap| -> Vec<_> {
                headers.get_all(header::VARY).into_iter().cloned().collect()
            };
            assert!(varies(&headers).iter().all(|field| varies(&again).contains(field)), "{path}");
        }
        let (status, other, _) =
            ask(&format!("{path}{}from=2005", if path.contains('?') { "&" } else { "?" }), tag).await;
        assert_eq!(status != StatusCode::NOT_MODIFIED, other.get(header::ETAG) != Some(&headers[header::ETAG]));
        assert_ne!(status, StatusCode::NOT_MODIFIED, "{path}");
    }
    let next = served.get("/v1/captures?url=a.example&limit=1").await["resume_key"].as_str().unwrap().to_owned();
    let (_, headers, _) = ask(&format!("/v1/captures?url=a.example&limit=1&resume_key={next}"), "").await;
    assert_eq!(headers[header::CACHE_CONTROL], kept.0);
    for (accepted, encoding) in [("gzip", Some("gzip")), ("zstd", Some("zstd")), ("identity", None)] {
        let (_, headers, _) =
            served.whole("GET", "/v1/openapi.json", &[("accept-encoding", accepted)], Body::empty()).await;
        let given = headers.get(header::CONTENT_ENCODING).map(|value| value.to_str().unwrap());
        assert_eq!(given, encoding);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_timegate_leads_to_the_nearest_capture() {
    let (_dir, served) = Served::example().await;
    let at = async |date: &str| {
        let headers = [("accept-datetime", date)];
        let (status, headers, _) = served.whole("GET", "/timegate/a.example", &headers, Body::empty()).await;
        let location = headers.get(header::LOCATION).map(|value| value.to_str().unwrap().to_owned());
        (status.as_u16(), location.unwrap_or_default())
    };
    let [may, june] = ["20060501000000", "20060601000000"]
        .map(|time| format!("https://web.archive.org/web/{time}/http://a.example/"));
    for (date, expected) in [
        ("Sat, 01 Jan 2000 00:00:00 GMT", &may),
        ("Tue, 16 May 2006 12:00:00 GMT", &may),
        ("Tue, 16 May 2006 12:00:01 GMT", &june),
        ("Wed, 01 Jan 2020 00:00:00 GMT", &june),
    ] {
        assert_eq!(at(date).await, (302, expected.clone()), "{date}");
    }
    for date in ["2006", "Mon, 16 May 2006 12:00:00 GMT", ""] {
        assert_eq!(at(date).await.0, 400, "{date}");
    }
    let (status, headers, _) = served.whole("HEAD", "/timegate/http://a.example/", &[], Body::empty()).await;
    assert_eq!((status.as_u16(), headers[header::LOCATION].to_str().unwrap()), (302, june.as_str()));
    let varies: Vec<&str> = headers.get_all(header::VARY).iter().map(|value| value.to_str().unwrap()).collect();
    assert_eq!(varies, ["accept-datetime", "x-forwarded-host, x-forwarded-prefix, x-forwarded-proto"]);
    let links = headers[header::LINK].to_str().unwrap();
    assert!(links.starts_with("<http://a.example/>; rel=\"original\", "), "{links}");
    for path in
        ["/timegate/http://b.example/", "/timemap/link/http://b.example/", "/timemap/json/http://nowhere.example/"]
    {
        assert_eq!(served.refused(path).await.0, 404, "{path}");
    }
    assert_eq!(served.refused("/timegate/").await.0, 404);
    // Proxies may merge two slashes, and careful clients may encode the URL.
    for url in ["http:/a.example/", "http://a.example", "HTTP://A.EXAMPLE/", "http%3A%2F%2Fa.example%2F"] {
        let (status, ..) = served.whole("GET", &format!("/timegate/{url}"), &[], Body::empty()).await;
        assert_eq!(status.as_u16(), 302, "{url}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn absolute_urls_lead_to_where_the_caller_asked() {
    let asked: &[(&str, &str)] =
        &[("x-forwarded-proto", "https"), ("x-forwarded-host", "b.example"), ("x-forwarded-prefix", "/w/")];
    let ask = async |served: &Served, path: &str, fields: &[(&str, &str)]| {
        let (status, headers, body) = served.whole("GET", path, fields, Body::empty()).await;
        assert!(status.as_u16() < 400, "{path}");
        let links = headers.get(header::LINK).map(|value| value.to_str().unwrap().to_owned());
        let varies = headers.get_all(header::VARY).iter().any(|value| value.as_bytes().starts_with(b"x-forwarded"));
        assert!(varies, "{path}");
        let tag = headers.get(header::ETAG).cloned();
        (links.unwrap_or_default() + std::str::from_utf8(&body).unwrap(), tag)
    };
    let (_dir, served) = Served::example().await;
    for path in ["/timemap/link/a.example", "/timemap/json/a.example", "/timegate/a.example", "/v1/openapi.json"] {
        let (own, own_tag) = ask(&served, path, &[]).await;
        let (proxied, proxied_tag) = ask(&served, path, asked).await;
        assert!(own.contains("http://localhost:7400") && !own.contains("b.example/w"), "{path}: {own}");
        if path == "/v1/openapi.json" {
            // The examples in the description do not depend on the server.
            let [mut own, mut proxied] = [&own, &proxied].map(|text| serde_json::from_str::<Value>(text).unwrap());
            let servers = |document: &mut Value| document["servers"].take();
            assert_eq!(servers(&mut own), json!([{"url": "http://localhost:7400"}]));
            assert_eq!(servers(&mut proxied), json!([{"url": "https://b.example/w"}]));
            assert_eq!(own, proxied);
        } else {
            assert!(proxied == own.replace("http://localhost:7400", "https://b.example/w"), "{path}");
        }
        assert!(own_tag.is_none() || own_tag != proxied_tag, "{path}: a cache would take one for the other");
    }
    let (_other_dir, named) =
        Served::example_with(|options| options.http.public_url = Some("https://c.example/x".to_owned())).await;
    let (text, _) = ask(&named, "/timemap/link/a.example", asked).await;
    assert!(text.contains("<https://c.example/x/timegate/http://a.example/>"), "{text}");
    assert!(!text.contains("b.example/w"), "{text}");
}
