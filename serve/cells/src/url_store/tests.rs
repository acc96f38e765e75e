//! Compares the URL store with a sorted list of keys, opens damaged images, and checks the worked example.

use super::*;
use crate::bench::Random;
use crate::error::UrlsError;
use proptest::prelude::*;
use webstrata_layers::record::key::{key, url_of_key};

fn image(keys: &[Vec<u8>], options: Options) -> Vec<u8> {
    encode::<UrlsError>(|each| keys.iter().try_for_each(|key| each(key)), options).unwrap()
}

/// Keys of URLs, rising.
fn keys(urls: impl IntoIterator<Item = String>) -> Vec<Vec<u8>> {
    let mut keys: Vec<_> = urls.into_iter().map(|url| key_of(&url)).collect();
    keys.sort_unstable();
    keys.dedup();
    keys
}

fn key_of(url: &str) -> Vec<u8> {
    let mut out = Vec::new();
    key(url, &mut out);
    out
}

/// Compares all answers about `keys`, and about `others`, with a sorted list.
fn compare(keys: &[Vec<u8>], others: &[Vec<u8>], options: Options) {
    let store = UrlStore::open(image(keys, options).into()).unwrap();
    assert_eq!(store.len(), keys.len() as u64);
    let (mut out, mut url) = (Vec::new(), String::new());
    for (at, key) in (0..).zip(keys) {
        store.key(at, &mut out).unwrap();
        assert_eq!(out.escape_ascii().to_string(), key.escape_ascii().to_string());
        assert_eq!(store.find(key), Ok(Some(at)));
        assert_eq!(store.lower_bound(key), Ok(at));
        match url_of_key(key) {
            Some(expected) => {
                store.url(at, &mut url).unwrap();
                assert_eq!(url, expected);
            }
            None => assert!(store.url(at, &mut url).is_err() || !url.is_empty()),
        }
    }
    assert!(store.key(keys.len() as u64, &mut out).is_err());
    let altered = keys.iter().step_by(keys.len() / 1000 + 1).flat_map(|key| {
        let cut = |length: usize| key[..length.min(key.len())].to_vec();
        let more = |byte: u8| [key.as_slice(), &[byte]].concat();
        let other =
            |add: u8| key.split_last().map_or(vec![add], |(last, rest)| [rest, &[last.wrapping_add(add)]].concat());
        [cut(key.len() / 2), cut(key.len().saturating_sub(1)), more(0), more(255), other(1), other(255), cut(12)]
    });
    for other in others.iter().cloned().chain(altered) {
        let below = keys.partition_point(|key| *key < other);
        let with = keys[below..].partition_point(|key| key.starts_with(&other));
        assert_eq!(store.lower_bound(&other), Ok(below as u64), "{:?}", other.escape_ascii().to_string());
        assert_eq!(store.find(&other), Ok(keys.get(below).filter(|key| **key == other).map(|_| below as u64)));
        assert_eq!(store.prefix(&other), Ok(below as u64..(below + with) as u64));
    }
}

fn url() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => "https?://(www\\.)?[a-c]{1,2}(\\.co)?\\.(uk|com)(:80[0-9])?/([a-c]{1,3}/){0,3}\
              (page[0-9]{0,3}\\.html)?(\\?id=[0-9]{1,4})?",
        1 => "https?://[0-9]{1,3}(\\.[0-9]{1,3}){2,4}/[a-c]{0,2}",
        1 => "(http|https|ftp)://[ -~]{0,8}/?[\\x00-\\x20é]{0,4}",
        1 => any::<String>(),
        1 => ("[a-z]{1,40}", 1usize..200)
            .prop_map(|(text, times)| format!("http://long.example.com/{}", text.repeat(times))),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn answers_are_those_of_a_sorted_list(
        urls in proptest::collection::vec(url(), 0..400),
        others in proptest::collection::vec(url(), 0..20),
        block in 4usize..=64,
    ) {
        let others: Vec<_> = others.iter().map(|url| key_of(url)).collect();
        compare(&keys(urls), &others, Options { block, ..Options::default() });
    }

    #[test]
    fn any_rising_strings_will_do(
        mut keys in proptest::collection::vec(
            proptest::collection::vec(prop_oneof![0u8..4, any::<u8>()], 0..12), 0..300
        ),
        others in proptest::collection::vec(proptest::collection::vec(0u8..4, 0..6), 0..30),
        block in 4usize..=64,
    ) {
        keys.sort_unstable();
        keys.dedup();
        compare(&keys, &others, Options { block, ..Options::default() });
    }
}

/// Generated URLs of a few sites.
fn made_up(count: u64) -> Vec<Vec<u8>> {
    keys((0..count).map(|n| {
        let mixed = n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20;
        let words = ["news", "about", "list", "product", "archive", "forum", "image", "user"];
        let word = |shift: u32| words[(mixed >> shift) as usize % words.len()];
        format!("http://www.site-{}.example/{}/{}-{}/{}.html", mixed % 97, word(3), word(7), mixed % 1009, n)
    }))
}

#[test]
fn a_hundred_thousand_keys() {
    compare(&made_up(100_000), &[], Options::default());
}

#[test]
fn an_empty_store_one_key_and_long_keys() {
    compare(&[], &[Vec::new(), b"a".to_vec()], Options::default());
    compare(&[Vec::new()], &[b"a".to_vec()], Options::default());
    compare(&keys(["http://example.com/".to_owned()]), &[], Options::default());
    compare(&[b"a".to_vec()], &[Vec::new(), b"a\0".to_vec(), b"b".to_vec()], Options::default());
    let long = |n: usize| format!("http://example.com/{}/{}", "abcdefg".repeat(n * 997), n);
    compare(&keys((0..40).map(long)), &[], Options::default());
}

/// Keys of which each is a prefix of the next, in several nodes: shared lengths rise without end, and rests are short.
#[test]
fn all_keys_share_their_beginnings() {
    let nested: Vec<Vec<u8>> = (0..700).map(|length| b"ab".repeat(350)[..length].to_vec()).collect();
    compare(&nested, &[b"b".to_vec()], Options { block: 4, ..Options::default() });
    let mut same: Vec<Vec<u8>> = (0..5000u32).map(|n| [&b"x".repeat(300)[..], &n.to_be_bytes()].concat()).collect();
    compare(&same, &[b"x".repeat(299), b"x".repeat(301)], Options::default());
    same.iter_mut().for_each(|key| key.extend([0; 40]));
    compare(&same, &[], Options { block: 64, ..Options::default() });
}

/// All values of bytes occur, so none is free to end a key, and zeros end some keys.
#[test]
fn all_bytes_occur() {
    let mut keys: Vec<Vec<u8>> = (0..=255u8)
        .flat_map(|a| {
            (0..=255u8).step_by(5).flat_map(move |b| [vec![a], vec![a, b], vec![a, b, 0], vec![b, 0, a, 255]])
        })
        .collect();
    keys.sort_unstable();
    keys.dedup();
    compare(&keys, &[vec![0, 0, 0], vec![255, 255], Vec::new()], Options::default());
}

#[test]
fn a_key_of_a_megabyte_among_short_ones() {
    let mut random = Random::new(3);
    let long: Vec<u8> = (0..1 << 20).map(|_| (random.next() & 0xff) as u8 | 0x80).collect();
    let mut keys: Vec<Vec<u8>> = (0..300u32).map(|n| n.to_be_bytes().to_vec()).collect();
    keys.extend([long[..1 << 19].to_vec(), long.clone(), [&long[..], b"1"].concat(), vec![255; 9]]);
    keys.sort_unstable();
    compare(&keys, &[long[..1 << 18].to_vec()], Options::default());
}

#[test]
fn sizes_add_up() {
    let keys = made_up(3000);
    let image = image(&keys, Options::default());
    let length = image.len() as u64;
    let sizes = UrlStore::open(image.into()).unwrap().sizes();
    assert_eq!(sizes.data + sizes.index + sizes.dictionary, length);
    assert!(sizes.dictionary > 100 && sizes.index > 3000 / 128 * 20 && sizes.expanded > 1024);
}

#[test]
fn disorder_and_other_mistakes_are_refused() {
    let refused = |keys: &[&str], options: Options| {
        encode::<UrlsError>(|each| keys.iter().try_for_each(|key| each(key.as_bytes())), options).unwrap_err()
    };
    let out_of_order = UrlsError::OutOfOrder { previous: b"b".to_vec(), got: b"a".to_vec() };
    assert_eq!(refused(&["a", "b", "a"], Options::default()), out_of_order);
    assert_eq!(out_of_order.to_string(), "keys out of order: \"a\" after \"b\"");
    let twice = UrlsError::OutOfOrder { previous: b"ab".to_vec(), got: b"ab".to_vec() };
    assert_eq!(refused(&["ab", "ab"], Options::default()), twice);
    assert_eq!(refused(&["a"], Options { block: 3, ..Options::default() }), UrlsError::Block { block: 3 });
    for changed in [vec!["a", "b", "c"], vec!["a", "x"], vec!["a"]] {
        let mut pass = 0;
        let result = encode::<UrlsError>(
            |each| {
                pass += 1;
                if pass == 1 {
                    ["a", "b"].iter().try_for_each(|key| each(key.as_bytes()))
                } else {
                    changed.iter().try_for_each(|key| each(key.as_bytes()))
                }
            },
            Options::default(),
        );
        assert_eq!(result, Err(UrlsError::Changed));
    }
}

/// The example of the module's documentation, byte by byte.
#[test]
fn the_example_is_true() {
    let keys = [b"com,a,)/\x01".to_vec(), b"com,a,)/b\x01".to_vec()];
    let image = image(&keys, Options { block: 4, ..Options::default() });
    let header = [2, 4, 1, 4, 10, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 71, 0, 0, 0, 0, 0, 0, 0, 9, 0, 0, 0];
    assert_eq!(image[..28], header);
    assert_eq!(image[99..], [64, 2, 3, 21, 251, 167, 136, 70, 1, 6, 5]);
    let bits = |bytes: &[u8]| -> String {
        let bits = bytes.iter().flat_map(|byte| (0..8).map(move |bit| byte >> bit & 1));
        bits.map(|bit| char::from(b'0' + bit)).collect()
    };
    let com = ["1101", "1111", "1110", "010", "100", "010", "001", "011", "000", "101"].concat();
    assert_eq!(bits(&image[103..108]).trim_end_matches('0'), com);
    assert_eq!(bits(&image[108..]).trim_end_matches('0'), ["0", "1100", "000", "101"].concat());
}

#[test]
fn same_keys_same_bytes() {
    let keys = made_up(3000);
    assert_eq!(image(&keys, Options::default()), image(&keys, Options::default()));
}

/// Asks all questions of an image that may be damaged. Only [`Damage`] or an answer of bounded size may come.
fn ask_all(image: Vec<u8>, keys: &[Vec<u8>]) {
    let length = image.len();
    let Ok(store) = UrlStore::open(image.into()) else { return };
    let (mut out, mut url) = (Vec::new(), String::new());
    for at in (0..40).chain((0..store.len()).step_by(usize::try_from(store.len() / 40).unwrap() + 1)) {
        if store.key(at, &mut out).is_ok() {
            assert!(out.len() <= store.longest && out.len() <= length * 16);
        }
        let _ = store.url(at, &mut url);
    }
    for key in keys.iter().step_by(keys.len() / 40 + 1) {
        let _ = store.find(key);
        let _ = store.prefix(&key[..key.len() / 2]);
    }
}

#[test]
fn damaged_images_give_errors_or_wrong_answers() {
    let mut random = Random::new(9);
    for keys in [made_up(700), keys((0..30).map(|n| format!("http://a.example/{}", "xy".repeat(n * n))))] {
        let sound = image(&keys, Options::default());
        for length in (0..sound.len()).step_by(sound.len() / 200) {
            ask_all(sound[..length].to_vec(), &keys);
        }
        for _ in 0..3000 {
            let mut damaged = sound.clone();
            for _ in 0..1 + random.below(4) {
                let at = usize::try_from(random.next()).unwrap() % damaged.len();
                // Half of the damage is in the part that describes the parts.
                let at = if random.below(2) == 0 { at } else { at % 200 };
                damaged[at] = match random.below(3) {
                    0 => 0xff,
                    1 => damaged[at] ^ 1 << random.below(8),
                    _ => (random.next() & 0xff) as u8,
                };
            }
            ask_all(damaged, &keys);
        }
    }
}
