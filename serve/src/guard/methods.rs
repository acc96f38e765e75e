//! The methods of a server, by path. A method has a name for metrics and a pool that limits how many calls run.
//!
//! The list is fixed when a server starts, so callers cannot make the metrics grow: unknown paths count as `other`.
//! The list has the services of `proto/webstrata.proto`, health checks and metrics. A server adds its HTTP paths.

use std::collections::HashMap;
use std::sync::Arc;

/// The path of the metrics.
pub const METRICS: &str = "/metrics";
/// The path of the readiness check.
pub const READY: &str = "/readyz";
/// The path of the liveness check.
pub const LIVE: &str = "/livez";

/// The most segments in the path of a method that is a prefix.
const PREFIX_SEGMENTS: usize = 2;

/// Calls that share one limit. Pools are independent: a call may wait for calls of a later pool, never of an earlier
/// pool, so pools cannot deadlock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Pool {
    /// Neither limited nor queued: health, metrics, gossip.
    Free,
    /// Questions of clients, which may wait for calls of `Ask`.
    Links,
    /// Questions to single cells, which wait for no other call.
    Ask,
    /// Transfers of images.
    Fetch,
    /// Calls that wait for an event and cost nothing while they wait. They are not queued.
    Watch,
}

impl Pool {
    /// The pools with a limit.
    pub const COUNTED: [Self; 4] = [Self::Links, Self::Ask, Self::Fetch, Self::Watch];

    /// The name of the pool in metrics.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Free => "free",
            Self::Links => "links",
            Self::Ask => "ask",
            Self::Fetch => "fetch",
            Self::Watch => "watch",
        }
    }
}

/// A method.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Method {
    /// The name of the method in metrics.
    pub name: &'static str,
    /// The pool that limits the method.
    pub pool: Pool,
    /// Whether the method needs no token.
    pub open: bool,
    /// Whether calls may last as long as the server. A server that shuts down does not wait for them.
    pub lasts: bool,
    /// Whether the path goes on with any number of segments.
    pub is_prefix: bool,
}

impl Method {
    /// Any path that is not in the list.
    const OTHER: Self = Self::of("other", Pool::Links);

    /// A method that needs a token.
    #[must_use]
    pub const fn of(name: &'static str, pool: Pool) -> Self {
        Self { name, pool, open: false, lasts: matches!(pool, Pool::Watch), is_prefix: false }
    }

    /// A method without token and without limit.
    #[must_use]
    pub const fn open(name: &'static str) -> Self {
        Self { name, pool: Pool::Free, open: true, lasts: false, is_prefix: false }
    }
}

/// All methods, by path. Clones share them.
#[derive(Clone, Debug)]
pub struct Methods(Arc<HashMap<&'static str, Method>>);

impl Default for Methods {
    fn default() -> Self {
        let links = |path: &'static str| (path, Method::of(&path["/webstrata.v1.".len()..], Pool::Links));
        let plain = [
            "/webstrata.v1.Links/UrlToUid",
            "/webstrata.v1.Links/UidToUrl",
            "/webstrata.v1.Links/GetLinks",
            "/webstrata.v1.Links/GetLinkCount",
            "/webstrata.v1.Links/SampleLinks",
            "/webstrata.v1.Links/GetLifespans",
            "/webstrata.v1.Links/GetCaptures",
            "/webstrata.v1.Links/GetChangedLinks",
            "/webstrata.v1.Links/GetFirstLinks",
            "/webstrata.v1.Links/GetBacklinks",
            "/webstrata.v1.Links/GetNeighbourhood",
            "/webstrata.v1.Links/GetWays",
            "/webstrata.v1.Links/GetDeaths",
            "/webstrata.v1.Links/ListUids",
            "/webstrata.v1.Links/Stats",
            "/webstrata.v1.Links/TranslateUids",
            "/webstrata.v1.Links/Relinquish",
        ];
        let others = [
            ("/webstrata.v1.Links/Request", Method::of("Links/Request", Pool::Watch)),
            ("/webstrata.v1.Links/Topology", Method::of("Links/Topology", Pool::Watch)),
            ("/webstrata.v1.Cells/Ask", Method::of("Cells/Ask", Pool::Ask)),
            ("/webstrata.v1.Cells/Fetch", Method::of("Cells/Fetch", Pool::Fetch)),
            ("/webstrata.v1.Cells/Gossip", Method::of("Cells/Gossip", Pool::Free)),
            ("/grpc.health.v1.Health/Check", Method::open("Health/Check")),
            ("/grpc.health.v1.Health/List", Method::open("Health/List")),
            ("/grpc.health.v1.Health/Watch", Method { lasts: true, ..Method::open("Health/Watch") }),
            (READY, Method::open("ready")),
            (LIVE, Method::open("live")),
            (METRICS, Method::of("metrics", Pool::Free)),
        ];
        Self(Arc::new(plain.into_iter().map(links).chain(others).collect()))
    }
}

impl Methods {
    /// Adds an HTTP path for a method. A path that ends with `/` stands for all paths with one more segment, or for all
    /// paths below it if the method [is a prefix](Method::is_prefix). Paths with the same name are counted together.
    #[must_use]
    pub fn with(mut self, path: &'static str, method: Method) -> Self {
        Arc::make_mut(&mut self.0).insert(path, method);
        self
    }

    /// The method that a path calls.
    #[must_use]
    pub fn of(&self, path: &str) -> Method {
        let parent = || path.rfind('/').filter(|&slash| slash > 0).and_then(|slash| self.0.get(&path[..=slash]));
        let above = |end: usize| self.0.get(&path[..=end]).filter(|method| method.is_prefix);
        let prefix = || path.match_indices('/').take(PREFIX_SEGMENTS + 1).find_map(|(end, _)| above(end));
        self.0.get(path).or_else(parent).or_else(prefix).copied().unwrap_or(Method::OTHER)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_method_of_the_protocol_is_known() {
        let methods = Methods::default();
        let proto = include_str!("../../proto/webstrata.proto");
        let mut service = "";
        let mut seen = 0;
        for line in proto.lines() {
            if let Some(rest) = line.strip_prefix("service ") {
                service = rest.trim_end_matches(" {");
            }
            if let Some(rest) = line.trim().strip_prefix("rpc ") {
                let name = rest.split('(').next().expect("a name");
                assert_eq!(methods.of(&format!("/webstrata.v1.{service}/{name}")).name, format!("{service}/{name}"));
                seen += 1;
            }
        }
        assert_eq!(methods.0.keys().filter(|path| path.starts_with("/webstrata.v1.")).count(), seen);
    }

    #[test]
    fn what_is_not_listed_is_other() {
        let deep = Method { is_prefix: true, ..Method::of("timegate", Pool::Links) };
        let own = Methods::default()
            .with("/timegate/", deep)
            .with("/", Method::of("page", Pool::Links))
            .with("/v1/links", Method::of("Links/GetLinks", Pool::Links))
            .with("/v1/uids/", Method::of("Links/UidToUrl", Pool::Links));
        assert_eq!(own.of("/v1/links").name, "Links/GetLinks");
        assert_eq!(own.of("/v1/uids/17").name, "Links/UidToUrl");
        for path in ["/timegate/a", "/timegate/http://a.example/b//c/", "/timegate/"] {
            assert_eq!(own.of(path).name, "timegate");
        }
        for path in [
            "/v1/link",
            "/v1/links/",
            "/v1/uids",
            "/v1/uids/17/18",
            "/v1",
            "/webstrata.v1.Links/Nothing",
            "",
            "/grpc.health.v1.Health/Check/",
        ] {
            assert_eq!(own.of(path), Method::OTHER);
            assert!(!own.of(path).open);
        }
    }
}
