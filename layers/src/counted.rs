//! Counts in words for messages, with the singular or the plural of the noun.

/// A number with thousands separators and its noun: `1 link`, `1,204 links`. The noun is given in the singular; its
/// plural must end in s.
pub fn counted(count: impl TryInto<u64>, noun: &str) -> String {
    let count = count.try_into().unwrap_or(u64::MAX);
    let digits = count.to_string();
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    let ending = if count == 1 { "" } else { "s" };
    format!("{text} {noun}{ending}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_is_not_many() {
        for (count, text) in [
            (0_u64, "0 links"),
            (1, "1 link"),
            (2, "2 links"),
            (999, "999 links"),
            (1000, "1,000 links"),
            (1_234_567, "1,234,567 links"),
        ] {
            assert_eq!(counted(count, "link"), text);
        }
        assert_eq!(counted(u64::MAX, "URL"), "18,446,744,073,709,551,615 URLs");
        assert_eq!(counted(1_usize, "more page"), "1 more page");
    }
}
