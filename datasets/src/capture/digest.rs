//! Payload digests. All spellings of one digest compare equal.
//!
//! The form is `algorithm:value`, perhaps after `urn:`. The value is in base 32 (as crawlers write digests) or
//! hexadecimal, in either case, or in either alphabet of base 64, with or without padding. `sha-1` means `sha1`.
//! Without an algorithm, the length of the value decides: 40 hexadecimal digits or 32 digits of base 32 are sha1, 32
//! hexadecimal digits are md5, and 64 are sha256. The digest is the xxh3-128 of the algorithm in lower case, `:`, and
//! the bytes of the value.

use crate::Digest;
use xxhash_rust::xxh3::xxh3_128;

/// The lengths in bytes of the digests of known algorithms.
const LENGTHS: [(&str, usize); 6] =
    [("sha1", 20), ("md5", 16), ("sha256", 32), ("sha512", 64), ("sha384", 48), ("blake3", 32)];
/// A value of an unknown algorithm is compared as text, if it is long enough to tell payloads apart.
const UNKNOWN_LENGTH_MIN: usize = 16;

/// The digest that a text spells; `None` if the text is not a digest (empty, `-`, too short or long for its algorithm).
pub(crate) fn digest_of(text: &str) -> Option<Digest> {
    let text = text.trim();
    let text = text.get(..4).filter(|urn| urn.eq_ignore_ascii_case("urn:")).map_or(text, |urn| &text[urn.len()..]);
    let (algorithm, value) = match text.split_once(':') {
        Some((algorithm, value)) => (algorithm.to_ascii_lowercase().replace(['-', '_'], ""), value.trim()),
        None => (guess(text)?.to_owned(), text),
    };
    let value = value.trim_end_matches('=');
    let bytes = match LENGTHS.iter().find(|(name, _)| *name == algorithm) {
        Some(&(_, length)) if value.len() == length * 2 => decode(value, 4)?,
        Some(&(_, length)) if value.len() == (length * 8).div_ceil(5) => decode(value, 5)?,
        Some(&(_, length)) if value.len() == (length * 8).div_ceil(6) => decode(value, 6)?,
        Some(_) => return None,
        None if value.len() < UNKNOWN_LENGTH_MIN => return None,
        None => value.as_bytes().to_vec(),
    };
    let mut hashed = algorithm.into_bytes();
    hashed.push(b':');
    hashed.extend(bytes);
    Some(Digest(xxh3_128(&hashed)))
}

fn guess(value: &str) -> Option<&'static str> {
    let is_hex = value.bytes().all(|byte| byte.is_ascii_hexdigit());
    match (value.trim_end_matches('=').len(), is_hex) {
        (40, true) | (32, false) => Some("sha1"),
        (32, true) => Some("md5"),
        (64, true) => Some("sha256"),
        _ => None,
    }
}

/// The bytes of a number with digits of 4 bits (hexadecimal), 5 bits (base 32) or 6 bits (base 64). Left-over bits are
/// dropped.
fn decode(value: &str, bits: u32) -> Option<Vec<u8>> {
    let (mut bytes, mut held, mut held_bits) = (Vec::with_capacity(value.len()), 0u32, 0);
    for digit in value.bytes() {
        let digit = match (digit, bits) {
            (b'0'..=b'9', 4) => digit - b'0',
            (b'a'..=b'f' | b'A'..=b'F', 4) => (digit | 0x20) - b'a' + 10,
            (b'a'..=b'z' | b'A'..=b'Z', 5) => (digit | 0x20) - b'a',
            (b'2'..=b'7', 5) => digit - b'2' + 26,
            (b'A'..=b'Z', 6) => digit - b'A',
            (b'a'..=b'z', 6) => digit - b'a' + 26,
            (b'0'..=b'9', 6) => digit - b'0' + 52,
            (b'+' | b'-', 6) => 62,
            (b'/' | b'_', 6) => 63,
            _ => return None,
        };
        held = held << bits | u32::from(digit);
        held_bits += bits;
        if held_bits >= 8 {
            held_bits -= 8;
            bytes.push(u8::try_from(held >> held_bits).ok()?);
            held &= (1 << held_bits) - 1;
        }
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spellings_agree() {
        let sha1 = digest_of("sha1:B2LTWWPUOYAH7UIPQ7ZUPQ4VMBSVC36A");
        assert!(sha1.is_some());
        for text in [
            "SHA-1:B2LTWWPUOYAH7UIPQ7ZUPQ4VMBSVC36A",
            " sha1:b2ltwwpuoyah7uipq7zupq4vmbsvc36a ",
            "sha1:0e973b59f476007fd10f87f347c3956065516fc0",
            "B2LTWWPUOYAH7UIPQ7ZUPQ4VMBSVC36A",
            "0E973B59F476007FD10F87F347C3956065516FC0",
            "urn:sha1:B2LTWWPUOYAH7UIPQ7ZUPQ4VMBSVC36A",
            "sha1:Dpc7WfR2AH/RD4fzR8OVYGVRb8A=",
            "SHA-1:Dpc7WfR2AH_RD4fzR8OVYGVRb8A",
        ] {
            assert_eq!(digest_of(text), sha1, "{text}");
        }
        let md5 = digest_of("md5:d41d8cd98f00b204e9800998ecf8427e");
        assert!(md5.is_some() && md5 != sha1);
        assert_eq!(digest_of("md5:2QOYZWMPACZAJ2MABGMOZ6CCPY======"), md5);
        assert_eq!(digest_of("d41d8cd98f00b204e9800998ecf8427e"), md5);
        assert_eq!(digest_of("md5:1B2M2Y8AsgTpgAmY7PhCfg=="), md5);
        // The digests of no bytes.
        for spellings in [
            &[
                "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
                "sha-256:E3B0C44298FC1C149AFBF4C8996FB92427AE41E4649B934CA495991B7852B855",
                "sha256:4OYMIQUY7QOBJGX36TEJS35ZEQT24QPEMSNZGTFESWMRW6CSXBKQ====",
                "sha256:47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=",
                "sha-256:47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU",
                "SHA_256: 47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=",
            ][..],
            &[
                "sha384:38b060a751ac96384cd9327eb1b1e36a21fdb71114be07434c0cc7bf63f6e1da\
                 274edebfe76f65fbd51ad2f14898b95b",
                "sha-384:OLBgp1GsljhM2TJ+sbHjaiH9txEUvgdDTAzHv2P24donTt6/529l+9Ua0vFImLlb",
            ],
        ] {
            let all: Vec<_> = spellings.iter().map(|text| digest_of(text)).collect();
            assert!(all[0].is_some() && all.iter().all(|digest| *digest == all[0]), "{all:?} {spellings:?}");
        }
    }

    #[test]
    fn what_spells_no_digest() {
        for text in [
            "",
            "-",
            "sha1:",
            "sha1:null",
            "sha1:0123",
            "md5:B2LTWWPUOYAH7UIPQ7ZUPQ4VMBSVC36A",
            "xx:short",
            "sha1:B2LTWWPUOYAH7UIPQ7ZUPQ4VMBSVC360",
        ] {
            assert_eq!(digest_of(text), None, "{text}");
        }
        assert_ne!(digest_of("other:0123456789abcdef"), digest_of("other:0123456789abcdeF"));
    }
}
