//! The servers that this process talks to, and the one runtime and the one set of connections for all of them.

use std::collections::BTreeMap;
use std::io::{self, ErrorKind};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use object_store::ObjectStore;
use object_store::aws::AmazonS3Builder;
use object_store::client::{ClientOptions, HttpClient, HttpConnector};
use object_store::http::HttpBuilder;
use object_store::path::Path as Key;
use tokio::runtime::{Builder, Runtime};

use crate::{Address, Failure};

/// The time after which a server that sends nothing is asked again.
const SILENCE: Duration = Duration::from_secs(30);
const CONNECT: Duration = Duration::from_secs(10);

/// The runtime of all requests of this process.
///
/// # Errors
/// The operating system refuses a thread.
pub fn runtime() -> io::Result<&'static Runtime> {
    static RUNTIME: OnceLock<Runtime> = OnceLock::new();
    if let Some(runtime) = RUNTIME.get() {
        return Ok(runtime);
    }
    let runtime = Builder::new_multi_thread().worker_threads(1).thread_name("remote").enable_all().build()?;
    Ok(RUNTIME.get_or_init(|| runtime))
}

/// A bucket on the server that the environment configures. This call sends no request.
///
/// # Errors
/// The environment does not configure a server.
pub fn bucket(name: &str) -> io::Result<Arc<dyn ObjectStore>> {
    static BUCKETS: Mutex<BTreeMap<String, Arc<dyn ObjectStore>>> = Mutex::new(BTreeMap::new());
    let mut buckets = BUCKETS.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(bucket) = buckets.get(name) {
        return Ok(Arc::clone(bucket));
    }
    let builder = AmazonS3Builder::from_env().with_bucket_name(name).with_http_connector(Connections);
    let bucket: Arc<dyn ObjectStore> = Arc::new(builder.build().map_err(io::Error::from)?);
    buckets.insert(name.to_owned(), Arc::clone(&bucket));
    Ok(bucket)
}

/// The server of an address, and the key of the file there.
pub(crate) fn server_of(address: &Address) -> io::Result<(Arc<dyn ObjectStore>, Key)> {
    let invalid = |why: String| Failure::error(ErrorKind::InvalidInput, why);
    if let Some((name, key)) = address.bucket_and_key() {
        if name.is_empty() {
            return Err(invalid("it names no bucket (s3://bucket/key)".to_owned()));
        }
        let key = Key::parse(key)
            .map_err(|_| invalid("its key has empty names, \".\", \"..\" or control characters".to_owned()))?;
        return Ok((bucket(name)?, key));
    }
    // The whole address is the base, so that its text reaches the server unchanged.
    let options = ClientOptions::new().with_allow_http(true);
    let server = HttpBuilder::new().with_url(address.full()).with_client_options(options);
    let server = server.with_http_connector(Connections).build();
    let server = server.map_err(|error| invalid(address.without_secrets(&error.to_string())))?;
    Ok((Arc::new(server), Key::ROOT))
}

/// The connections of the process, which all servers share.
#[derive(Debug)]
struct Connections;

impl HttpConnector for Connections {
    fn connect(&self, _: &ClientOptions) -> Result<HttpClient, object_store::Error> {
        static CLIENT: OnceLock<HttpClient> = OnceLock::new();
        if let Some(client) = CLIENT.get() {
            return Ok(client.clone());
        }
        // Fails if the program has chosen a provider already.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let client = reqwest::Client::builder()
            .user_agent(concat!("webstrata/", env!("CARGO_PKG_VERSION")))
            .connect_timeout(CONNECT)
            .read_timeout(SILENCE)
            .build()
            .map_err(|error| object_store::Error::Generic { store: "HTTP", source: Box::new(error) })?;
        Ok(CLIENT.get_or_init(|| HttpClient::new(client)).clone())
    }
}
