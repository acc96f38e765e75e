//! Tests of security against real servers, with certificates made on the spot.

use std::error::Error;
use std::fs;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use tempfile::TempDir;
use tonic::Code;
use tonic_types::StatusExt;

use super::*;
use crate::guard::trial::{Tardy, http, router, serve, slow};
use crate::protocol::proto::cells_client::CellsClient;

/// A directory with a CA and a certificate that it signed: `ca.pem`, `cert.pem`, `key.pem`.
fn signed(name: &str) -> TempDir {
    let dir = tempfile::tempdir().expect("a directory");
    let mut params = CertificateParams::new(vec![]).expect("no names");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().expect("a key")).expect("a signer");
    let key = KeyPair::generate().expect("a key");
    let params = CertificateParams::new(vec![name.to_owned()]).expect("a name");
    let cert = params.signed_by(&key, &issuer).expect("a certificate");
    let write = |name: &str, text: String| fs::write(dir.path().join(name), text).expect("a file");
    write("ca.pem", issuer.pem());
    write("cert.pem", cert.pem());
    write("key.pem", key.serialize_pem());
    dir
}

fn options(dir: &TempDir) -> SecurityOptions {
    let path = |name| Some(dir.path().join(name));
    SecurityOptions { cert: path("cert.pem"), key: path("key.pem"), server_ca: path("ca.pem"), ..Default::default() }
}

async fn call(address: std::net::SocketAddr, tls: Option<ClientTls>) -> Result<(), Box<dyn Error>> {
    let dialer = crate::dial::Dialer::default().secured(tls, Tokens::default());
    CellsClient::new(dialer.dial(&address.to_string())?).ask(slow(0)).await?;
    Ok(())
}

#[tokio::test]
async fn servers_and_callers_know_one_another() {
    let (known, stranger) = (signed("peer.example"), signed("peer.example"));
    let mutual = SecurityOptions { client_ca: options(&known).server_ca, ..options(&known) };
    let security = Security::open(&mutual).expect("sound files");
    let address = serve(router(&Tardy::default()), security.server_tls()).await;

    call(address, security.client_tls("peer.example")).await.expect("a peer is known");
    assert!(call(address, security.client_tls("other.example")).await.is_err(), "not of this name");
    assert!(call(address, None).await.is_err(), "not in plain text");
    let trusting = SecurityOptions { cert: None, key: None, ..options(&known) };
    let nobody = Security::open(&trusting).expect("a clerk has no certificate");
    assert!(nobody.server_tls().is_none());
    assert!(call(address, nobody.client_tls("peer.example")).await.is_err(), "callers show a certificate");
    let other = Security::open(&options(&stranger)).expect("sound files");
    assert!(call(address, other.client_tls("peer.example")).await.is_err(), "the signer is another");
    let half = SecurityOptions { server_ca: options(&known).server_ca, ..options(&stranger) };
    let half = Security::open(&half).expect("sound files");
    let half = half.client_tls("peer.example").expect("TLS");
    assert!(call(address, Some(half.clone())).await.is_err(), "the caller is a stranger");
    let failures = half.trust().failures();
    let why = "it does not accept the certificate of this side";
    assert!(failures.len() == 1 && failures[0].1.starts_with(why), "{failures:?}");

    // Without a signer of callers, everybody may call.
    let security = Security::open(&options(&known)).expect("sound files");
    let address = serve(router(&Tardy::default()), security.server_tls()).await;
    call(address, nobody.client_tls("peer.example")).await.expect("no certificate is wanted");
}

#[test]
fn what_cannot_serve_is_refused_with_its_file() {
    let (one, other) = (signed("peer.example"), signed("peer.example"));
    let said = |options: SecurityOptions| {
        let error = Security::open(&options).err().expect("an error");
        std::iter::successors(Some(&error as &dyn Error), |error| (*error).source())
            .map(ToString::to_string)
            .collect::<Vec<_>>()
            .join(": ")
    };
    let sound = || options(&one);
    let lacking = said(SecurityOptions { key: None, ..sound() });
    assert_eq!(lacking, "--tls-cert needs --tls-key (the private key of the certificate)");
    assert!(said(SecurityOptions { cert: None, ..sound() }).starts_with("--tls-key needs --tls-cert"));
    let alone = SecurityOptions { client_ca: sound().server_ca, ..Default::default() };
    assert!(said(alone).starts_with("--tls-client-ca needs --tls-cert and --tls-key"));

    let swapped = said(SecurityOptions { cert: sound().key, ..sound() });
    assert!(swapped.contains("key.pem holds no CERTIFICATE in PEM"), "{swapped}");
    let mixed = said(SecurityOptions { key: options(&other).key, ..sound() });
    assert!(mixed.contains("the key must belong to the first certificate") && mixed.contains("key.pem"), "{mixed}");
    let missing = said(SecurityOptions { server_ca: Some(one.path().join("none.pem")), ..sound() });
    assert!(missing.contains("none.pem: No such file"), "{missing}");
    let damaged = one.path().join("damaged.pem");
    fs::write(&damaged, "-----BEGIN CERTIFICATE-----\n!\n-----END CERTIFICATE-----\n").expect("a file");
    for options in [
        SecurityOptions { server_ca: Some(damaged.clone()), ..sound() },
        SecurityOptions { client_ca: Some(damaged.clone()), ..sound() },
        SecurityOptions { cert: Some(damaged.clone()), ..sound() },
    ] {
        let text = said(options);
        assert!(text.contains("damaged.pem"), "{text}");
    }
    fs::write(&damaged, vec![b'#'; 2 << 20]).expect("a file");
    let text = said(SecurityOptions { server_ca: Some(damaged), ..sound() });
    assert!(text.contains("longer than 1 MiB"), "{text}");
}

#[test]
fn certificates_are_valid_today_or_refused_with_their_dates() {
    let dir = signed("peer.example");
    let (path, key) = (dir.path().join("cert.pem"), KeyPair::generate().expect("a key"));
    let mut params = CertificateParams::new(vec!["peer.example".to_owned()]).expect("a name");
    params.not_before = rcgen::date_time_ymd(2020, 1, 1);
    params.not_after = rcgen::date_time_ymd(2021, 1, 1);
    fs::write(&path, params.self_signed(&key).expect("a certificate").pem()).expect("a file");
    fs::write(dir.path().join("key.pem"), key.serialize_pem()).expect("a file");
    let error = Security::open(&options(&dir)).err().expect("an error").to_string();
    assert!(
        error.contains("cert.pem: the certificate is valid from 2020-01-01T00:00:00Z to 2021-01-01T00:00:00Z"),
        "{error}"
    );
    let pem = fs::read_to_string(&path).expect("a file");
    let at = |seconds| is_valid(&path, &pem, UNIX_EPOCH + Duration::from_secs(seconds));
    at(1_577_836_799).expect_err("a second before");
    at(1_577_836_800).expect("the first second");
    at(1_609_459_200).expect("the last second");
    at(1_609_459_201).expect_err("a second behind");
}

#[tokio::test]
async fn certificates_and_tokens_are_read_again_when_that_is_asked_for() {
    let (dir, other) = (signed("peer.example"), signed("peer.example"));
    fs::write(dir.path().join("tokens"), "first\n").expect("a file");
    let options = SecurityOptions { tokens: Some(dir.path().join("tokens")), ..options(&dir) };
    let security = Security::open(&options).expect("sound files");
    let address = serve(router(&Tardy::default()), security.server_tls()).await;
    let old = security.client_tls("peer.example");
    call(address, old.clone()).await.expect("a peer is known");
    let kept = dir.path().join("kept.pem");
    fs::copy(dir.path().join("ca.pem"), &kept).expect("a file");
    for name in ["ca.pem", "cert.pem"] {
        fs::copy(other.path().join(name), dir.path().join(name)).expect("a file");
    }
    fs::write(dir.path().join("tokens"), "second\n").expect("a file");
    security.reload(&options).expect_err("the key is still that of the old certificate");
    call(address, old.clone()).await.expect("all is as it was");
    assert_eq!(security.tokens().header().expect("a header").as_bytes(), b"Bearer first");
    fs::copy(other.path().join("key.pem"), dir.path().join("key.pem")).expect("a file");
    let stale = Security::open(&SecurityOptions { cert: None, key: None, ..options.clone() }).expect("sound files");
    let elsewhere = Security::open(&SecurityOptions { server_ca: Some(kept), ..options.clone() }).expect("sound files");
    security.reload(&options).expect("sound files");
    call(address, old).await.expect("calls use the files that were read again");
    call(address, stale.client_tls("peer.example")).await.expect("a peer is known");
    let refused = elsewhere.client_tls("peer.example").expect("TLS");
    assert!(call(address, Some(refused.clone())).await.is_err(), "another certificate is shown");
    let failures = refused.trust().failures();
    let why = "its certificate is not accepted here";
    assert!(failures.len() == 1 && failures[0].0 == address.to_string() && failures[0].1.contains(why), "{failures:?}");
    assert_eq!(security.tokens().header().expect("a header").as_bytes(), b"Bearer second");
}

#[test]
fn token_files_are_read_line_by_line() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("tokens");
    let of = |text: &str| {
        fs::write(&path, text).expect("a file");
        known(&path)
    };
    let two = of("# rotated in May\n\n  new-one==  \r\nold.one~/+_\n").expect("sound");
    assert_eq!(two.tokens, ["new-one==", "old.one~/+_"]);
    assert_eq!(two.header.as_bytes(), b"Bearer new-one==");
    assert_eq!(format!("{:?}", two.header), "Sensitive");
    assert!(two.has(b"old.one~/+_") && two.has(b"new-one=="));
    for other in [&b"new-one="[..], b"new-one===", b"old.one~/+-", b"", b"# rotated in May"] {
        assert!(!two.has(other));
    }
    for (text, line) in [("a\nb c\n", 2), ("=\n", 1), ("a=b", 1), ("#\n\né\n", 3), ("a\0", 1)] {
        assert!(matches!(of(text), Err(SecurityError::Token { line: at, .. }) if at == line), "{text:?}");
    }
    for text in ["", "# nothing\n\n"] {
        assert!(matches!(of(text), Err(SecurityError::NoToken { .. })));
    }
}

#[test]
#[cfg(unix)]
fn secrets_that_others_can_read_are_seen() {
    for (mode, open) in [(0o600, false), (0o640, false), (0o644, true), (0o604, true), (0o711, false)] {
        assert_eq!(is_open(mode), open, "{mode:o}");
    }
}

#[tokio::test]
async fn calls_need_a_token_but_health_checks_do_not() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("tokens");
    fs::write(&path, "first\nsecond\n").expect("a file");
    let file = TokenFile { age_max: Duration::ZERO, ..TokenFile::open(&path).expect("a token") };
    let tokens = Tokens(Some(Arc::new(file)));
    let address = serve(tokens.around(router(&Tardy::default()), &Methods::default()), None).await;
    let channel = crate::dial::Dialer::default().dial(&address.to_string()).expect("an address");
    let ask = async |header: Option<&str>| {
        let mut request = slow(0);
        if let Some(header) = header {
            request.metadata_mut().insert("authorization", header.parse().expect("a header"));
        }
        CellsClient::new(channel.clone()).ask(request).await.map(drop)
    };
    for valid in ["Bearer first", "bearer second", "Bearer  second "] {
        ask(Some(valid)).await.expect("a valid token");
    }
    for (bad, message) in [
        (None, "needs a bearer token"),
        (Some("Basic first"), "needs a bearer token"),
        (Some("Bearer"), "needs a bearer token"),
        (Some("Bearer "), "does not know this bearer token"),
        (Some("Bearer firs"), "does not know this bearer token"),
        (Some("Bearer first,second"), "does not know this bearer token"),
    ] {
        let refused = ask(bad).await.expect_err("no token");
        assert_eq!(refused.code(), Code::Unauthenticated, "{bad:?}");
        assert!(refused.message().contains(message), "{refused}");
        let info = refused.get_details_error_info().expect("an ErrorInfo");
        assert_eq!((info.reason.as_str(), info.domain.as_str()), ("BAD_TOKEN", "webstrata"));
    }

    let refused = http(address, "/v1/plain", "").await;
    assert!(refused.starts_with("HTTP/1.1 401") && refused.contains("\"BAD_TOKEN\""), "{refused}");
    assert!(refused.contains("www-authenticate: Bearer"), "{refused}");
    assert!(http(address, "/v1/plain", "Authorization: Bearer first\r\n").await.ends_with("plain"));
    assert!(http(address, "/readyz", "").await.ends_with("ready"));
    assert!(http(address, "/nothing", "").await.starts_with("HTTP/1.1 401"), "what there is is not told");
    let mut health = tonic_health::pb::health_client::HealthClient::new(channel.clone());
    health.check(tonic_health::pb::HealthCheckRequest::default()).await.expect("open to everybody");

    // After a rotation, the new token is valid at once, and the old token is not. A damaged file changes nothing.
    fs::write(&path, "third\nsecond\n").expect("a file");
    ask(Some("Bearer third")).await.expect("the new token");
    ask(Some("Bearer first")).await.expect_err("the old token");
    assert_eq!(tokens.header().expect("a header").as_bytes(), b"Bearer third");
    for damaged in ["", "no token\n"] {
        fs::write(&path, damaged).expect("a file");
        ask(Some("Bearer third")).await.expect("what was known stays");
    }
    fs::remove_file(&path).expect("it was there");
    ask(Some("Bearer third")).await.expect("what was known stays");
}

#[test]
fn the_file_is_not_read_for_every_call() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("tokens");
    fs::write(&path, "first\n").expect("a file");
    let tokens = Tokens::open(&path).expect("a token");
    fs::write(&path, "second\n").expect("a file");
    assert_eq!(tokens.header().expect("a header").as_bytes(), b"Bearer first");
    assert!(Tokens::default().header().is_none());
}
