//! Prints the links of a page that were seen in a window of time, and the pages that linked to it then:
//! `cargo run -p webstrata-layers --example links -- STORE http://example.org/ 2008 2009-06`.

#![expect(clippy::print_stdout, reason = "an example prints what it finds")]

use std::error::Error;
use std::path::Path;
use webstrata_layers::{Links, Precision, Reader, Store, Window, parse_time};

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [store, url, from, to] = &arguments[..] else { return Err("usage: links STORE URL FROM TO".into()) };
    // A year or a day means all of it: the window ends with its last second.
    let time = |text: &str, end| parse_time(text, end);
    let window = Window::Seen { from: time(from, false)?, to: time(to, true)? };

    let reader = Reader::new(Store::open(Path::new(store))?, 64 << 20);
    let uid = reader.uid(url)?.ok_or_else(|| format!("{url} is not in the store"))?;
    for link in reader.out_links(uid, window)? {
        println!("{url} -> {}", reader.url(link)?);
    }
    for source in reader.in_links(uid, window, Precision::Exact)? {
        println!("{} -> {url}", reader.url(source)?);
    }
    Ok(())
}
