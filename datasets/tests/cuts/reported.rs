//! Records that other readers of WARC files were reported to misread, made anew: what each gives here.

use webstrata_datasets::{Content, Cut, Finding};

use crate::crawls::{Files, brotli, chunked, gzip, http, page, record, request};

const URL: &str = "http://a.example/";
const LINKS: usize = 60;

/// The only capture of a WARC file: why it is cut, and the number of its links.
fn one(fields: &[&str], http: &[u8]) -> (Option<Cut>, usize) {
    let (captures, _) = Files::new().read("a.warc", &record("response", URL, 0, fields, http));
    assert_eq!(captures.len(), 1);
    (captures[0].cut, captures[0].links.len())
}

#[test]
fn bodies_that_are_whole_in_spite_of_their_fields() {
    let page = page(LINKS);
    let coded = gzip(&page);
    let padded = chunked(&page).strip_suffix(b"0\r\n\r\n").unwrap().to_vec();
    let length = format!("Content-Length: {}", coded.len());
    let eight = [format!("{:08X}\r\n", page.len()).as_bytes(), &page, b"\r\n00000000\r\n\r\n"].concat();
    for (name, fields, body) in [
        ("no length", &[][..], page.clone()),
        ("zeros for the last chunk", &["Transfer-Encoding: chunked"], [&padded[..], b"00000000\r\n\r\n"].concat()),
        ("a line feed behind the last chunk", &["Transfer-Encoding: chunked"], [&chunked(&page)[..], b"\r"].concat()),
        ("eight capital digits", &["Transfer-Encoding: chunked"], eight),
        ("chunks joined, the field kept", &["Transfer-Encoding: chunked"], page.clone()),
        ("chunked twice", &["Transfer-Encoding: chunked", "Transfer-Encoding: chunked"], chunked(&page)),
        ("identity", &["Content-Encoding: identity"], page.clone()),
        ("none", &["Content-Encoding: none"], page.clone()),
        ("a charset", &["Content-Encoding: UTF-8"], page.clone()),
        ("decoded, fields kept", &["Content-Encoding: gzip", &*length], page.clone()),
        ("decoded from brotli", &["Content-Encoding: br"], page.clone()),
        ("chunked and coded", &["Transfer-Encoding: chunked", "Content-Encoding: br"], chunked(&brotli(&page))),
        ("zeros behind the coded bytes", &["Content-Encoding: gzip"], [&coded[..], &[0; 8]].concat()),
        ("a longer body than announced", &["Content-Length: 10"], page.clone()),
        ("a length that is no number", &["Content-Length: -1"], page.clone()),
    ] {
        assert_eq!(one(&[], &http(200, fields, &body)), (None, LINKS), "{name}");
    }
    for fields in [&["Content-Length: 0"][..], &["Content-Encoding: gzip", "Content-Length: 0"], &[]] {
        assert_eq!(one(&[], &http(200, fields, b"")), (None, 0));
    }
}

#[test]
fn bodies_that_are_cut_without_a_mark() {
    let page = page(LINKS);
    let (coded, part) = (gzip(&page), &page[..page.len() / 2]);
    let length = format!("Content-Length: {}", page.len());
    assert_eq!(one(&[], &http(200, &[&length], part)), (Some(Cut::Short), 30));
    assert_eq!(one(&["WARC-Truncated: time"], &http(200, &[&length], part)), (Some(Cut::Truncated), 30));
    // The answer from a cache of the browser, or to HEAD: a length and no body.
    assert_eq!(one(&[], &http(200, &[&length], b"")), (Some(Cut::Short), 0));
    // The connection ended inside the header.
    for header in
        [&b"HTTP/1.1 200 OK\r\nContent-Type: text/html"[..], b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n"]
    {
        assert_eq!(one(&[], header), (Some(Cut::Short), 0));
    }
    let (cut, links) =
        one(&["WARC-Truncated: disconnect"], &http(200, &["Content-Encoding: gzip"], &coded[..coded.len() / 2]));
    assert!(cut == Some(Cut::Truncated) && links < LINKS);
}

#[test]
fn lengths_of_records_that_are_a_little_wrong() {
    let (files, page) = (Files::new(), page(LINKS));
    let next = record("response", "http://b.example/", 1, &[], &http(200, &[], &page));
    let bare = http(200, &[], &page);
    let framed = http(200, &[&format!("Content-Length: {}", page.len())], &page);
    let chunks = http(200, &["Transfer-Encoding: chunked"], &chunked(&page));
    for (http, by, cut) in [
        (&bare, 1, None),
        (&bare, 4, None),
        (&bare, -2, None),
        // The record ends before its length, and nothing else says where the body ends.
        (&bare, 5, Some(Cut::Short)),
        (&bare, 300, Some(Cut::Short)),
        // The body shows its own end.
        (&framed, 300, None),
        (&chunks, 300, None),
    ] {
        let length = format!("Content-Length: {}", i64::try_from(http.len()).unwrap() + by);
        let first = record("response", URL, 0, &[&length], http);
        let (captures, _) = files.read("a.warc", &[&first[..], &next].concat());
        assert_eq!((captures.len(), captures[0].cut, captures[0].links.len()), (2, cut, LINKS), "{by}");
        assert_eq!((captures[1].cut, captures[1].links.len()), (None, LINKS), "{by}");
    }
}

#[test]
fn members_with_a_wrong_checksum() {
    let (files, page) = (Files::new(), page(LINKS));
    let records = [0, 1, 2].map(|day| record("response", URL, day, &[], &http(200, &[], &page)));
    let mut members = records.map(|record| gzip(&record));
    let at = members[1].len() - 6;
    members[1][at] ^= 1;
    let (captures, tally) = files.read("a.warc.gz", &members.concat());
    let cuts: Vec<_> = captures.iter().map(|capture| capture.cut).collect();
    assert_eq!(cuts, [None, Some(Cut::Damaged), None]);
    assert_eq!((captures[1].links.len(), tally.of(Finding::BadCompression)), (LINKS, 1));
    // The last member lacks only its checksum: the text is there.
    let whole = members[0].clone();
    let (captures, tally) = files.read("b.warc.gz", &whole[..whole.len() - 4]);
    assert_eq!((captures[0].cut, captures[0].links.len(), tally.of(Finding::Truncated)), (None, LINKS, 1));
}

#[test]
fn revisits_that_say_truncated_or_answer_a_post() {
    let files = Files::new();
    let fields = ["WARC-Truncated: length", "WARC-Record-ID: <urn:uuid:1>", "WARC-Profile: identical-payload-digest"];
    let revisit = record("revisit", URL, 0, &fields, &http(200, &["Content-Length: 900"], b""));
    let (captures, tally) = files.read("a.warc", &revisit);
    assert!(matches!(captures[0].content, Content::Revisit(_)) && captures[0].cut.is_none());
    assert_eq!((tally.of(Finding::CutCapture), tally.damaged()), (0, 0));
    let post = request(URL, 0, &["WARC-Concurrent-To: <urn:uuid:1>"], "POST");
    let (captures, tally) = files.read("a.warc", &[&revisit[..], &post].concat());
    assert_eq!((captures.len(), tally.of(Finding::OtherMethod)), (0, 1));
    let line =
        r#"example,a)/ 20200101000000 {"url":"http://a.example/","mime":"warc/revisit","method":"POST","length":"9"}"#;
    let (captures, tally) = files.read("a.cdxj", format!("{line}\n{line}\n").as_bytes());
    assert_eq!((captures.len(), tally.of(Finding::OtherMethod)), (0, 2));
}

#[test]
fn a_request_that_names_the_wrong_record() {
    // A writer names the record about the file instead of the response, in each request.
    let files = Files::new();
    let wrong = ["WARC-Record-ID: <urn:uuid:q>", "WARC-Concurrent-To: <urn:uuid:info>"];
    for (method, captures) in [("GET", 1), ("POST", 0)] {
        let response = record("response", URL, 0, &["WARC-Record-ID: <urn:uuid:r>"], &http(200, &[], b"<a href=/x>"));
        let (found, _) = files.read("a.warc", &[request(URL, 0, &wrong, method), response].concat());
        assert_eq!(found.len(), captures, "{method}");
    }
}

#[test]
fn a_request_far_away_is_not_found() {
    let files = Files::new();
    let response = record("response", URL, 0, &["WARC-Record-ID: <urn:uuid:r>"], &http(200, &[], b"<a href=/x>"));
    let between = record("response", "http://b.example/", 1, &[], &http(200, &[], &page(20_000)));
    let post = request(URL, 0, &["WARC-Concurrent-To: <urn:uuid:r>"], "POST");
    let (captures, tally) = files.read("a.warc", &[response, between, post].concat());
    assert_eq!((captures.len(), tally.of(Finding::OtherMethod)), (2, 0));
}

#[test]
fn a_part_of_a_page_and_the_whole_of_one() {
    let page = page(LINKS);
    let range = format!("Content-Range: bytes 0-{}/{}", page.len() - 1, page.len());
    assert_eq!(one(&[], &http(206, &[&range], &page)), (Some(Cut::Partial), LINKS));
}
