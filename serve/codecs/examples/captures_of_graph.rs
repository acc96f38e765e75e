//! Converts a graph in WebGraph's BV format to one capture a node, as JSON lines: `cargo run --example
//! captures_of_graph BASENAME`.
//!
//! Node 17 becomes `http://graph.example/000000017`, so that UIDs of a store built from it are the nodes. Memory: the
//! graph.

use std::io::{BufWriter, Write};
use std::path::PathBuf;
use webstrata_codecs::codec::bv_files::import;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let basename = std::env::args_os().nth(1).map(PathBuf::from).ok_or("usage: captures_of_graph BASENAME")?;
    let lists = import(&basename)?;
    let mut out = BufWriter::new(std::io::stdout().lock());
    let mut first = 0;
    for (node, &end) in lists.ends.iter().enumerate() {
        write!(out, r#"{{"url":"http://graph.example/{node:09}","ts":"20000101000000","links":["#)?;
        for (at, link) in lists.links[first..end].iter().enumerate() {
            let comma = if at == 0 { "" } else { "," };
            write!(out, r#"{comma}"http://graph.example/{link:09}""#)?;
        }
        writeln!(out, "]}}")?;
        first = end;
    }
    out.flush()?;
    Ok(())
}
