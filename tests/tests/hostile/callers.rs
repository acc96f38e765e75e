//! Callers that occupy what other callers need: connections, answers, places.

use super::*;

#[test]
fn slow_callers_and_floods_leave_room_for_others() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let stall = Duration::from_millis(300);
    let limits = Limits { calls: 4, queue: 16, stall, connections: 300, sharers: 1, ..Limits::of_cores(1) };
    let (_dir, layers, cluster) = served(Shape { limits, ..Shape::default() });
    let address = cluster.addresses()[0].clone();
    cluster.wait(async {
        let channel = channel(&address);
        is_right(&channel, &layers, 1).await;
        // More callers than places. They read nothing of their answers: their flow-control windows are empty.
        let (path, message) = ("/webstrata.v1.Links/Stats", frame(Kind::Data, 1, 1, &[0; 5]));
        let no_window = [0, 4, 0, 0, 0, 0];
        let mut readers = Vec::new();
        for _ in 0..6 {
            let mut stream = greeted(&address, &no_window).await.unwrap();
            stream.write_all(&[frame(Kind::Headers, 4, 1, &headers(path)), message.clone()].concat()).await.unwrap();
            readers.push(stream);
        }
        // More callers, which never end their requests.
        let mut writers = Vec::new();
        for _ in 0..6 {
            let mut stream = greeted(&address, &[]).await.unwrap();
            stream.write_all(&frame(Kind::Headers, 4, 1, &headers(path))).await.unwrap();
            stream.write_all(&frame(Kind::Data, 0, 1, &[0])).await.unwrap();
            writers.push(stream);
        }
        tokio::time::sleep(6 * stall).await;
        for uid in 0..20 {
            is_right(&channel, &layers, uid).await;
        }
        drop((readers, writers));
        // A flood of connections. A caller that has made calls keeps its connection, and most other connections are
        // closed.
        let target: SocketAddr = address.parse().unwrap();
        let mut flood = Vec::new();
        for _ in 0..1200 {
            flood.push(TcpStream::connect(target).await.unwrap());
        }
        for uid in 0..20 {
            is_right(&channel, &layers, uid).await;
        }
        let mut closed = 0;
        for stream in &mut flood {
            let end = tokio::time::timeout(Duration::from_millis(1), stream.read(&mut [0; 64])).await;
            closed += u32::from(matches!(end, Ok(Ok(0) | Err(_))));
        }
        assert!(closed >= 800, "only {closed} connections were closed");
        drop(flood);
        let again = self::channel(&address);
        let begun = Instant::now();
        while LinksClient::new(again.clone()).stats(proto::StatsRequest { epoch: 0 }).await.is_err() {
            assert!(begun.elapsed() < Duration::from_secs(5), "there is no room again");
        }
        for round in 0..20 {
            let _ = wire::rapid_resets(&address, path, 500).await;
            is_right(&channel, &layers, round).await;
        }
    });
    assert_eq!(PANICS.load(Ordering::SeqCst), 0, "a panic");
}

/// Connects from another loopback address of this machine.
async fn from(last: u8, to: SocketAddr) -> std::io::Result<TcpStream> {
    let socket = tokio::net::TcpSocket::new_v4()?;
    socket.bind(SocketAddr::from(([127, 0, 0, last], 0)))?;
    socket.connect(to).await
}

/// The answer to a GET over HTTP/1.1. Fails after a second.
async fn get(to: SocketAddr, path: &str) -> String {
    let asked = async {
        let mut stream = TcpStream::connect(to).await.unwrap();
        let request = format!("GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.map(|_| answer)
    };
    tokio::time::timeout(Duration::from_secs(1), asked).await.unwrap_or_else(|_| panic!("no {path}")).unwrap()
}

/// The value of a metric of a server, by name and labels.
fn figure(cluster: &Cluster, name: &str) -> u64 {
    let text = cluster.server(0).metrics().text();
    let value = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.parse().ok());
    value.unwrap_or_else(|| panic!("{name}: {text}"))
}

#[test]
fn idle_connections_lock_out_nobody() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let limits = Limits { connections: 200, idle: Duration::from_secs(3), ..Limits::of_cores(1) };
    let (_dir, layers, cluster) = served(Shape { limits, ..Shape::default() });
    let (address, admin) = (cluster.addresses()[0].clone(), cluster.server(0).admin().unwrap());
    let at: SocketAddr = address.parse().unwrap();
    cluster.wait(async {
        let known = channel(&address);
        is_right(&known, &layers, 1).await;
        // From three addresses: silent connections, connections that send only the preface, and connections with one
        // request.
        let mut idle = Vec::new();
        for round in 0..400_u64 {
            let mut stream = from([2, 3, 4][usize::try_from(round % 3).unwrap()], at).await.unwrap();
            match round % 4 {
                0 => {}
                1 => stream.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0").await.unwrap(),
                _ => stream.write_all(b"GET /livez HTTP/1.1\r\nhost: localhost\r\n\r\n").await.unwrap(),
            }
            idle.push(stream);
            if round % 40 == 0 {
                is_right(&known, &layers, round % layers.urls()).await;
                is_right(&channel(&address), &layers, 2).await;
                assert!(get(at, "/readyz").await.starts_with("HTTP/1.1 200"), "probes come in");
            }
        }
        // The last connections may still wait to be accepted.
        for _ in 0..100 {
            if figure(&cluster, "webstrata_connections_closed_idle_total") >= 200 {
                break;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        assert!(figure(&cluster, "webstrata_connections_open") <= 200);
        assert!(figure(&cluster, "webstrata_connections_closed_idle_total") >= 200);
        // Probes and operators also get in on the admin port, regardless of silent connections there.
        let silent = join_all((0..200).map(|_| from(2, admin))).await;
        for path in ["/livez", "/readyz", "/metrics"] {
            assert!(get(admin, path).await.starts_with("HTTP/1.1 200"), "{path}");
        }
        let health = tonic_health::pb::health_client::HealthClient::new(channel(&admin.to_string()))
            .check(tonic_health::pb::HealthCheckRequest::default())
            .await;
        assert_eq!(health.unwrap().into_inner().status, 1);
        drop(silent);
        // In the end, connections without calls are closed, and a connection with calls stays.
        let begun = Instant::now();
        while figure(&cluster, "webstrata_connections_open") > 10 {
            assert!(begun.elapsed() < Duration::from_secs(20), "they stay");
            is_right(&known, &layers, 3).await;
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        assert!(figure(&cluster, "webstrata_connections_closed_idle_total") >= 390);
        drop(idle);
    });
    assert_eq!(PANICS.load(Ordering::SeqCst), 0, "a panic");
}

#[test]
fn answers_that_nobody_reads_hold_no_places_of_others_and_are_given_up() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let stall = Duration::from_secs(2);
    let limits = Limits { calls: 8, queue: 64, stall, ..Limits::of_cores(1) };
    let (_dir, layers, cluster) = served(Shape { limits, ..Shape::default() });
    let address = cluster.addresses()[0].clone();
    let at: SocketAddr = address.parse().unwrap();
    cluster.wait(async {
        let path = "/webstrata.v1.Links/Stats";
        let call = [frame(Kind::Headers, 4, 1, &headers(path)), frame(Kind::Data, 1, 1, &[0; 5])].concat();
        let mut unread = Vec::new();
        for _ in 0..40 {
            let mut stream = from(2, at).await.unwrap();
            // The flow-control windows of these callers are empty.
            let hello = [&b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"[..], &frame(Kind::Settings, 0, 0, &[0, 4, 0, 0, 0, 0])];
            stream.write_all(&hello.concat()).await.unwrap();
            stream.write_all(&call).await.unwrap();
            unread.push(stream);
        }
        let running = || figure(&cluster, "webstrata_calls_running{pool=\"links\"}");
        let begun = Instant::now();
        while running() < 4 {
            assert!(begun.elapsed() < Duration::from_secs(5), "they have places");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        // All other callers are answered at once.
        let channel = channel(&address);
        while begun.elapsed() < stall {
            let asked = Instant::now();
            is_right(&channel, &layers, 1).await;
            assert!(get(at, "/v1/stats").await.starts_with("HTTP/1.1 200"));
            assert!(asked.elapsed() < Duration::from_millis(900), "{:?}", asked.elapsed());
            assert!(running() <= 5, "half of the places are others'");
        }
        while running() > 0 {
            assert!(begun.elapsed() < 5 * stall, "they keep their places");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        assert!(figure(&cluster, "webstrata_answers_given_up_total{pool=\"links\"}") >= 4);
        drop(unread);
    });
    assert_eq!(PANICS.load(Ordering::SeqCst), 0, "a panic");
}

#[test]
fn callers_are_held_back_rather_than_refused() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let limits = Limits { calls: 8, queue: 256, queue_wait: WITHIN, ..Limits::of_cores(1) };
    let (_dir, layers, cluster) = served(Shape { limits, ..Shape::default() });
    let address = cluster.addresses()[0].clone();
    cluster.wait(async {
        // Far more calls than may wait, over one connection: the client sends them little by little.
        let flooded = channel(&address);
        let calls = (0..3000).map(|_| {
            let mut client = LinksClient::new(flooded.clone());
            async move { client.uid_to_url(proto::UidToUrlRequest { epoch: 0, uids: vec![0; 50] }).await.map(drop) }
        });
        let (ends, waiting) = tokio::join!(join_all(calls), async {
            let mut most = 0;
            for _ in 0..50 {
                most = most.max(figure(&cluster, "webstrata_calls_waiting{pool=\"links\"}"));
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
            most
        });
        assert!(ends.iter().all(Result::is_ok), "{:?}", ends.iter().find(|end| end.is_err()));
        assert!(waiting <= 128, "{waiting}");
        assert_eq!(figure(&cluster, "webstrata_calls_refused_total{pool=\"links\"}"), 0);
        is_right(&flooded, &layers, 1).await;
    });
}

#[test]
fn answers_are_compressed_for_who_wants_that_and_questions_may_be() {
    use tonic::codec::CompressionEncoding::Gzip;
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let (_dir, layers, cluster) = served(Shape::default());
    let address = cluster.addresses()[0].clone();
    cluster.wait(async {
        let mut client = LinksClient::new(channel(&address)).send_compressed(Gzip).accept_compressed(Gzip);
        let every = Uid::each(Uid::below(layers.urls()));
        let uids = every.clone().map(u64::from).collect();
        let answer = client.get_links(proto::GetLinksRequest { uids, ..Default::default() }).await.unwrap();
        assert_eq!(answer.metadata().get("grpc-encoding").unwrap(), "gzip");
        let links: Vec<Uid> = every.flat_map(|uid| layers.out_links(uid, In::ALWAYS).unwrap()).collect();
        assert_eq!(Uid::of_numbers(answer.into_inner().links), links);
        let at: SocketAddr = address.parse().unwrap();
        for (accepted, expected) in [("gzip", true), ("identity", false)] {
            let mut stream = TcpStream::connect(at).await.unwrap();
            let request = format!(
                "GET /v1/openapi.json HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\naccept-encoding: \
                 {accepted}\r\n\r\n"
            );
            stream.write_all(request.as_bytes()).await.unwrap();
            let mut answer = Vec::new();
            stream.read_to_end(&mut answer).await.unwrap();
            let head = String::from_utf8_lossy(&answer).into_owned();
            assert_eq!(head.contains("content-encoding: gzip"), expected, "{head}");
            assert!(expected == (answer.len() < 20_000), "{} bytes", answer.len());
        }
    });
}
