//! Crawl files in, captures out. (WARC, WAT, ARC, links files, tables.)

mod capture;
mod error;
mod reader;
mod tally;

pub use capture::{Capture, Content, Digest, Profile, Revisit, Texts};
pub use error::Error;
pub use reader::{CaptureReader, Input, LinkKinds, Part, inputs, open};
pub use tally::{EXAMPLES_PER_KIND_MAX, Example, Finding, Tally};

#[allow(missing_docs, unused, clippy::all, clippy::unwrap_used)]
mod stub {
    use std::io::{self, Write};
    pub fn canonical(base: Option<&url::Url>, reference: &str) -> Result<String, crate::Finding> {
        let mut u = url::Url::parse(reference).map_err(|_| crate::Finding::BadLink)?;
        if !matches!(u.scheme(), "http" | "https") {
            return Err(crate::Finding::OtherLinkScheme);
        }
        u.set_fragment(None);
        Ok(u.into())
    }
    #[derive(Clone, Copy, Debug)]
    pub enum Profile {
        Uk,
        Hard,
        Irregular,
    }
    #[derive(Clone, Copy, Debug)]
    pub struct GenerateOptions {
        pub profile: Profile,
        pub occurrences: u64,
        pub seed: u64,
        pub months: u32,
    }
    pub fn write_jsonl(out: &mut impl Write, o: GenerateOptions) -> io::Result<()> {
        let pages = (o.occurrences / 10 / o.months as u64).max(1);
        for m in 0..o.months as u64 {
            for p in 0..pages {
                let links: Vec<String> = (0..10)
                    .map(|k| {
                        format!("\"http://h{}.example/{}\"", k % 4, (p * 7 + k * k + (m * k) % 13 + o.seed) % pages)
                    })
                    .collect();
                writeln!(
                    out,
                    "{{\"url\":\"http://h{}.example/{}\",\"ts\":{},\"links\":[{}]}}",
                    p % 4,
                    p,
                    1146441600 + m * 2629800 + p,
                    links.join(",")
                )?;
            }
        }
        Ok(())
    }
    pub fn write_warc(out: &mut impl Write, o: GenerateOptions) -> io::Result<()> {
        write_jsonl(out, o)
    }
}
pub use stub::canonical;
/// stub
pub mod generate {
    pub use super::stub::*;
}
