//! Strongly connected components of the links as of a date, walked in the cells of a store, which stay compressed.
//!
//! ```text
//! webstrata cells STORE
//! cargo run --release --example components_of_cells -- STORE [AT]
//! ```
//!
//! Each list is decoded once, when the walk comes to its page. Prints one JSON line: links, components, and the seconds
//! of the walk and of reading all lists in order. Memory: the cells, 16 bytes a URL, the lists on the way.

use serde_json::json;
use std::error::Error;
use std::io::Write;
use std::time::Instant;
use webstrata_analysis::strongly_connected;
use webstrata_cells::Cells;
use webstrata_cells::image::Residence;
use webstrata_codecs::ENCODINGS;
use webstrata_layers::{Direction, Links, Location, Store, Uid, Window, parse_time};

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let store = arguments.next().ok_or("give a store that has cells, and a time if not the latest links are meant")?;
    let time = arguments.next().map(|text| parse_time(&text, true));
    let window = Window::as_of(time.transpose()?.unwrap_or(i64::MAX));
    let cells = Cells::open(&Store::open(Location::parse(store)?)?, Residence::Memory, ENCODINGS)?;
    let cells = cells.ok_or("the store has no cells: make them with `webstrata cells STORE`")?;
    let urls = u32::try_from(cells.urls())?;

    let began = Instant::now();
    let (mut own, mut links) = (Vec::new(), 0);
    for uid in Uid::each(Uid::below(cells.urls())) {
        cells.links_into(uid, Direction::Out, window, &mut own)?;
        links += own.len();
    }
    let pass = began.elapsed();

    let began = Instant::now();
    let mut numbers = strongly_connected(urls, |uid, all| -> Result<(), Box<dyn Error>> {
        cells.links_into(Uid(uid.into()), Direction::Out, window, &mut own)?;
        for &link in &own {
            all.push(u32::try_from(link.0)?);
        }
        Ok(())
    })?;
    let walk = began.elapsed();
    numbers.sort_unstable();
    numbers.dedup();

    let [pass, walk] = [pass, walk].map(|time| time.as_secs_f64());
    let line = json!({"links": links, "components": numbers.len(), "pass_seconds": pass, "seconds": walk});
    writeln!(std::io::stdout(), "{line}")?;
    Ok(())
}
