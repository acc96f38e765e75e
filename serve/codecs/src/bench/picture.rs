//! The tables as one SVG with a panel for each graph: bits a link to the right and nanoseconds a link upwards, both on
//! scales of powers of two. An encoding is a dot with its name, so small and fast encodings are at the lower left.

use std::fmt::Write;

use super::Table;

const PANEL_WIDTH: f64 = 460.0;
const PANEL_HEIGHT: f64 = 320.0;
/// The margin around the area with the dots.
const MARGIN: f64 = 48.0;
/// The powers of two at the edges of a panel: bits, nanoseconds.
const BITS: (f64, f64) = (0.0, 7.0);
const NANOSECONDS: (f64, f64) = (-1.0, 10.0);

/// Draws tables, two panels a line.
pub fn picture(tables: &[Table]) -> String {
    let lines = tables.len().div_ceil(2).max(1) as f64;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{}\" height=\"{}\" \
         font-family=\"sans-serif\" font-size=\"11\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n",
        2.0 * PANEL_WIDTH,
        lines * PANEL_HEIGHT,
    );
    for (at, table) in tables.iter().enumerate() {
        let (left, top) = ((at % 2) as f64 * PANEL_WIDTH, (at / 2) as f64 * PANEL_HEIGHT);
        // Writing to a string never fails.
        let _ = panel(table, left, top, &mut svg);
    }
    svg.push_str("</svg>\n");
    svg
}

/// The position of a value between the edges, from 0 to 1.
fn share(value: f64, (low, high): (f64, f64)) -> f64 {
    ((value.max(f64::MIN_POSITIVE).log2() - low) / (high - low)).clamp(0.0, 1.0)
}

fn panel(table: &Table, left: f64, top: f64, svg: &mut String) -> std::fmt::Result {
    let x = |bits: f64| left + MARGIN + share(bits, BITS) * (PANEL_WIDTH - 2.0 * MARGIN);
    let y = |ns: f64| top + PANEL_HEIGHT - MARGIN - share(ns, NANOSECONDS) * (PANEL_HEIGHT - 2.0 * MARGIN);
    let name = table.graph.replace('&', "&amp;").replace('<', "&lt;");
    writeln!(svg, "<text x=\"{}\" y=\"{}\" font-size=\"13\">{name}</text>", left + MARGIN, top + 24.0)?;
    for bits in [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0] {
        let (x, low, high) = (x(bits), y(0.5), y(1024.0));
        writeln!(svg, "<line x1=\"{x:.1}\" y1=\"{low:.1}\" x2=\"{x:.1}\" y2=\"{high:.1}\" stroke=\"#ddd\"/>")?;
        writeln!(svg, "<text x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\" fill=\"#777\">{bits}</text>", low + 14.0)?;
    }
    for ns in [1.0, 4.0, 16.0, 64.0, 256.0, 1024.0] {
        let (y, low, high) = (y(ns), x(1.0), x(128.0));
        writeln!(svg, "<line x1=\"{low:.1}\" y1=\"{y:.1}\" x2=\"{high:.1}\" y2=\"{y:.1}\" stroke=\"#ddd\"/>")?;
        writeln!(
            svg,
            "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\" fill=\"#777\">{ns}</text>",
            low - 5.0,
            y + 4.0
        )?;
    }
    let (middle, below) = (left + PANEL_WIDTH / 2.0, top + PANEL_HEIGHT - 14.0);
    writeln!(
        svg,
        "<text x=\"{middle}\" y=\"{below}\" text-anchor=\"middle\">bits a link; upwards ns a link, random</text>"
    )?;
    for row in &table.rows {
        let (x, y) = (x(table.bits_a_link(row.data_bytes + row.index_bytes)), y(row.random_ns));
        let color = if row.codec.starts_with("webgraph") { "#c33" } else { "#36c" };
        writeln!(svg, "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3.5\" fill=\"{color}\"/>")?;
        writeln!(svg, "<text x=\"{:.1}\" y=\"{:.1}\">{}</text>", x + 6.0, y + 4.0, row.codec)?;
    }
    Ok(())
}
