//! Not committed: writes MU.
use std::collections::BTreeMap;
use std::time::Instant;
use webstrata_layers::*;
fn main() {
    let data = std::fs::read("/tmp/MU.bin").unwrap();
    let mut at = 0;
    let mut pages = Vec::new();
    let mut occ = 0u64;
    while at < data.len() {
        let u64_at = |i: usize| u64::from_le_bytes(data[i..i + 8].try_into().unwrap());
        let u32_at = |i: usize| u32::from_le_bytes(data[i..i + 4].try_into().unwrap());
        let (uid, t, l) = (u64_at(at), u32_at(at + 8) as usize, u32_at(at + 12) as usize);
        at += 16;
        let timestamps: Vec<i64> = (0..t).map(|i| u64_at(at + 8 * i) as i64).collect();
        at += 8 * t;
        let links: Vec<u64> = (0..l).map(|i| u64_at(at + 8 * i)).collect();
        at += 8 * l;
        let mut changes = Vec::new();
        for link in 0..l {
            let mut before = 1;
            for c in 0..t {
                let b = data[at + link * t + c];
                occ += u64::from(b);
                if b != before {
                    changes.push(Change { link: link as u32, capture: c as u32 });
                }
                before = b;
            }
        }
        at += l * t;
        pages.push(Page { uid, timestamps, unknown: vec![], links, changes });
    }
    // inlinks
    let mut by: BTreeMap<u64, Vec<(u64, Vec<i64>)>> = BTreeMap::new();
    for p in &pages {
        let mut ci = 0;
        for (i, &l) in p.links.iter().enumerate() {
            let s = ci;
            while ci < p.changes.len() && p.changes[ci].link == i as u32 {
                ci += 1;
            }
            let mut r = Vec::new();
            for (a, b) in presence::runs(&p.changes[s..ci], p.timestamps.len() as u32) {
                for c in a..=b {
                    r.push(RangeLength::Month.start(p.timestamps[c as usize]));
                }
            }
            r.dedup();
            by.entry(l).or_default().push((p.uid, r));
        }
    }
    let ins: Vec<InLinks> = by
        .into_iter()
        .map(|(uid, srcs)| {
            let mut ranges: Vec<i64> = srcs.iter().flat_map(|s| s.1.iter().copied()).collect();
            ranges.sort_unstable();
            ranges.dedup();
            let mut changes = Vec::new();
            for (i, (_, r)) in srcs.iter().enumerate() {
                let mut before = true;
                for (c, t) in ranges.iter().enumerate() {
                    let b = r.binary_search(t).is_ok();
                    if b != before {
                        changes.push(Change { link: i as u32, capture: c as u32 });
                    }
                    before = b;
                }
            }
            InLinks { uid, ranges, sources: srcs.iter().map(|s| s.0).collect(), changes }
        })
        .collect();
    let dir = std::path::PathBuf::from(std::env::args().nth(1).unwrap_or("/tmp/mu-store".into()));
    let _ = std::fs::remove_dir_all(&dir);
    let w = StoreWriter::open(&dir).unwrap();
    let row = w.begin_row().unwrap();
    let report = |name: &str, start: Instant, files: &[FileEntry]| {
        println!("{name} {:.2?}", start.elapsed());
        for f in files {
            println!("   {} {} bytes, {:.4} bit/occ", f.layer, f.bytes, f.bytes as f64 * 8.0 / occ as f64);
        }
        println!("   sum {:.4}", files.iter().map(|f| f.bytes).sum::<u64>() as f64 * 8.0 / occ as f64);
    };
    let s = Instant::now();
    let mut o = OutlinksWriter::create(&row, 0).unwrap();
    let mut counts = Counts::default();
    for p in &pages {
        o.push(p).unwrap();
    }
    let mut of = o.finish().unwrap();
    report("out", s, &of);
    let s = Instant::now();
    for p in &pages {
        counts.add_page(p);
    }
    println!("counts {:.2?}", s.elapsed());
    assert_eq!(counts.occurrences, occ);
    let s = Instant::now();
    let mut i = InlinksWriter::create(&row, 0).unwrap();
    for p in &ins {
        i.push(p).unwrap();
    }
    let inf = i.finish().unwrap();
    report("in", s, &inf);
    let urls = std::fs::read_to_string("/tmp/MU.urls").unwrap();
    let mut urls: Vec<(&str, &str)> = urls.lines().map(|l| l.split_once('\t').unwrap()).collect();
    urls.sort_by_cached_key(|u| key::key_of(u.0));
    let s = Instant::now();
    let mut u = UrlWriter::create(&row, 0).unwrap();
    for (i, (url, surt)) in urls.iter().enumerate() {
        u.push(i as u64, url, surt).unwrap();
    }
    let first_key = u.first_key();
    let mut files = u.finish().unwrap();
    report("url", s, &files);
    files.append(&mut of);
    files.extend(inf);
    counts.urls = urls.len() as u64;
    let n = urls.len() as u64;
    let part = PartitionEntry { partition: 0, first_uid: 0, urls: n, first_key, files };
    let r = RowEntry { row: row.row(), first_uid: 0, urls: n, partitions: vec![part], counts };
    let s = Instant::now();
    w.commit(NewEpoch { rows: vec![r], in_range: RangeLength::Month, provenance: Provenance::default() }).unwrap();
    println!("commit {:.2?}", s.elapsed());
}
