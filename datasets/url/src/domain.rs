//! Registrable domains: the domains that people and companies register, below a public suffix such as `com` or `co.uk`.
//!
//! Public suffixes come from the list of the crate `psl` ([`SUFFIX_LIST`]), which includes private suffixes.

use std::net::Ipv4Addr;

/// The crate and the version of the public suffix list that defines domains.
pub const SUFFIX_LIST: &str = "psl 2.1.247";

/// The registrable domain of a host; the host if it has none, for example an address or a single label.
///
/// ```
/// use webstrata_url::domain_of;
/// let hosts = ["www.example.co.uk", "127.0.0.1", "localhost"];
/// assert_eq!(hosts.map(domain_of), ["example.co.uk", "127.0.0.1", "localhost"]);
/// ```
pub fn domain_of(host: &str) -> &str {
    if is_address(host) { host } else { psl::domain_str(host).unwrap_or(host) }
}

/// Whether a host is an IPv4 or IPv6 address.
fn is_address(host: &str) -> bool {
    host.starts_with('[') || host.parse::<Ipv4Addr>().is_ok()
}

/// The name of a host with its labels in the other order, as web graphs write it. An address stays as it is. The
/// reverse of the reverse is the name.
///
/// ```
/// use webstrata_url::reversed;
/// assert_eq!(reversed("www.example.com"), "com.example.www");
/// assert_eq!(reversed("com.example.www"), "www.example.com");
/// assert_eq!(reversed("192.0.2.7"), "192.0.2.7");
/// ```
pub fn reversed(name: &str) -> String {
    if is_address(name) {
        return name.to_owned();
    }
    let mut labels = String::with_capacity(name.len());
    append_reversed(name, ".", &mut labels);
    labels
}

/// Appends the labels of a host from the right, with a separator between them.
pub(crate) fn append_reversed(name: &str, separator: &str, out: &mut String) {
    for (number, label) in name.rsplit('.').enumerate() {
        out.push_str(if number > 0 { separator } else { "" });
        out.push_str(label);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_of_the_suffix_list_is_the_one_built_in() {
        let lock = include_str!("../../../Cargo.lock");
        let version = lock.split("[[package]]").find(|package| package.contains("name = \"psl\"\n")).unwrap();
        let version = version.split("version = \"").nth(1).and_then(|rest| rest.split('"').next()).unwrap();
        assert_eq!(SUFFIX_LIST, format!("psl {version}"));
    }
}
