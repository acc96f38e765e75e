//! The encoding of increasing lists of numbers in messages: the first number, then the number of integers skipped
//! between two neighbours, all as LEB128 varints.
//!
//! The links of a page are close together, so most links take one byte. Protocol buffers would encode each link in
//! full, which costs more time than finding the link in a cell.
//!
//! ```
//! use webstrata_serve::protocol::gaps;
//! let mut bytes = Vec::new();
//! gaps::put(&[300, 301, 303], &mut bytes);
//! gaps::put(&[7], &mut bytes);
//! assert_eq!(bytes, [0xac, 0x02, 0, 1, 7]);
//! assert_eq!(gaps::take(&bytes, &[3, 0, 1]), Some(vec![300, 301, 303, 7]));
//! ```

/// Appends an increasing list to `bytes`.
pub fn put(list: &[u64], bytes: &mut Vec<u8>) {
    bytes.reserve(2 * list.len());
    let mut next = 0;
    for &number in list {
        debug_assert!(number >= next, "a list that does not rise");
        let mut gap = number.wrapping_sub(next);
        next = number.wrapping_add(1);
        while gap >= 0x80 {
            bytes.push(gap.to_le_bytes()[0] | 0x80);
            gap >>= 7;
        }
        bytes.push(gap.to_le_bytes()[0]);
    }
}

/// Reads consecutive lists of these lengths; `None` if the bytes do not encode such lists. The allocation is bounded by
/// the number of bytes, whatever the lengths claim.
pub fn take(bytes: &[u8], counts: &[u32]) -> Option<Vec<u64>> {
    let total: u64 = counts.iter().map(|&count| u64::from(count)).sum();
    let total = usize::try_from(total).ok().filter(|&total| total <= bytes.len())?;
    let mut numbers = Vec::with_capacity(total);
    let mut rest = bytes.iter();
    for &count in counts {
        let mut last = None;
        for _ in 0..count {
            let gap = match *rest.next()? {
                byte @ 0..0x80 => u64::from(byte),
                byte => long(byte, &mut rest)?,
            };
            let number = match last {
                None => gap,
                Some(last) => gap.checked_add(last)?.checked_add(1)?,
            };
            numbers.push(number);
            last = Some(number);
        }
    }
    rest.as_slice().is_empty().then_some(numbers)
}

/// A varint of several bytes.
fn long<'a>(first: u8, rest: &mut impl Iterator<Item = &'a u8>) -> Option<u64> {
    let mut value = u64::from(first & 0x7f);
    for shift in (7..64).step_by(7) {
        let byte = *rest.next()?;
        let digits = u64::from(byte & 0x7f);
        value |= digits << shift;
        if byte < 0x80 {
            // The tenth byte may hold one bit.
            return (digits << shift >> shift == digits).then_some(value);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::{btree_set, vec};
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn lists_come_back(
            lists in vec(btree_set(prop_oneof![0..1000u64, any::<u64>(), Just(u64::MAX)], 0..40), 0..8)
        ) {
            let (mut bytes, mut all, mut counts) = (Vec::new(), Vec::new(), Vec::new());
            for list in lists {
                let list: Vec<u64> = list.into_iter().collect();
                put(&list, &mut bytes);
                counts.push(u32::try_from(list.len()).unwrap());
                all.extend(list);
            }
            prop_assert_eq!(take(&bytes, &counts), Some(all));
            bytes.push(0);
            prop_assert_eq!(take(&bytes, &counts), None, "a byte too many");
            bytes.truncate(bytes.len().saturating_sub(2));
            prop_assert!(counts.iter().all(|&count| count == 0) || take(&bytes, &counts).is_none(), "one too few");
        }

        #[test]
        fn any_bytes_are_lists_that_rise_or_none(bytes in vec(any::<u8>(), 0..60), counts in vec(any::<u32>(), 0..4)) {
            let small = |count: u32| if count.is_multiple_of(7) { count } else { count % 20 };
            let counts: Vec<u32> = counts.into_iter().map(small).collect();
            if let Some(all) = take(&bytes, &counts) {
                let mut rest = &all[..];
                for count in counts {
                    let (list, after) = rest.split_at(count as usize);
                    prop_assert!(list.is_sorted_by(|one, other| one < other));
                    rest = after;
                }
            }
        }
    }
}
