//! Resume tokens: where a partial answer continues. HTTP calls a token `resume_key`, gRPC calls it `page_token`.
//!
//! A token is opaque text in hexadecimal digits: the epoch, a position in the answer, and the fingerprint of the
//! question. Epochs never change, so a token always gives exactly the rest of its answer, even after a newer epoch is
//! current. A token fails once its epoch is no longer served. A token of another question or epoch is refused.

use tonic::Status;
use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

use crate::protocol::status::bad;

/// The hash of a question, which is the same for every page of the answer. Different questions have different hashes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fingerprint(u64);

impl Fingerprint {
    /// Hashes a question without its limit, its token and its epoch.
    pub(crate) fn of(question: &[u8]) -> Self {
        Self(xxh3_64(question))
    }

    /// The same question to one store. A server of another store refuses the token.
    pub(crate) fn of_store(self, store: &str) -> Self {
        Self(xxh3_64_with_seed(store.as_bytes(), self.0))
    }
}

/// A position in an answer: two numbers that say how much was sent, and the seed of a random sample.
pub(crate) type AnswerPosition = [u64; 3];

/// The digits of a number.
const DIGITS: usize = 16;

/// The content of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Token {
    epoch: u64,
    position: AnswerPosition,
    question: Fingerprint,
}

/// The text of an epoch in a token. The token is valid in this epoch only.
fn epoch_to(epoch: u64) -> String {
    number_to(epoch)
}

/// Splits the epoch from the beginning of a token, and also returns the rest.
fn epoch_of(text: &str) -> Option<(u64, &str)> {
    number_of(text).filter(|&(epoch, _)| epoch > 0)
}

fn number_to(number: u64) -> String {
    format!("{number:0DIGITS$x}")
}

fn number_of(text: &str) -> Option<(u64, &str)> {
    let (digits, rest) = text.split_at_checked(DIGITS)?;
    let is_digits = digits.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    Some((u64::from_str_radix(digits, 16).ok().filter(|_| is_digits)?, rest))
}

impl Token {
    fn of(text: &str) -> Option<Self> {
        let (epoch, rest) = epoch_of(text)?;
        let (first, rest) = number_of(rest)?;
        let (second, rest) = number_of(rest)?;
        let (seed, rest) = number_of(rest)?;
        let (question, rest) = number_of(rest)?;
        rest.is_empty().then_some(Self { epoch, position: [first, second, seed], question: Fingerprint(question) })
    }
}

/// The token for a position in the answer to a question in an epoch.
pub(crate) fn token(epoch: u64, [first, second, seed]: AnswerPosition, Fingerprint(question): Fingerprint) -> String {
    epoch_to(epoch) + &[first, second, seed, question].map(number_to).concat()
}

/// Reads the token in `field`: its epoch and its position. `question` and `epoch` (0: none) are of the new request.
///
/// # Errors
/// BAD_REQUEST for text that is not a token, and for a token of another question or epoch.
pub(crate) fn resumed(
    field: &str,
    token: &str,
    question: Fingerprint,
    epoch: u64,
) -> Result<(u64, AnswerPosition), Status> {
    let token = Token::of(token).ok_or_else(|| bad(format!("{field}: not copied from an earlier answer")))?;
    if token.question != question {
        return Err(bad(format!(
            "{field}: belongs to another question; repeat the question that gave it (only the limit may differ)"
        )));
    }
    if epoch != 0 && epoch != token.epoch {
        let of_token = token.epoch;
        return Err(bad(format!("epoch: {epoch} differs from {of_token}, the epoch of {field}; give only one")));
    }
    Ok((token.epoch, token.position))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::status::Reason;
    use proptest::prelude::*;

    const QUESTION: &[u8] = b"links of a";

    fn read(text: &str, question: &[u8], epoch: u64) -> Result<(u64, AnswerPosition), String> {
        resumed("token", text, Fingerprint::of(question), epoch).map_err(|status| {
            assert_eq!(Reason::of(&status), Some(Reason::BadRequest));
            status.message().to_owned()
        })
    }

    #[test]
    fn a_token_is_of_one_question_and_one_epoch() {
        let given = token(7, [17, 3, 5], Fingerprint::of(QUESTION));
        assert_eq!(read(&given, QUESTION, 0), Ok((7, [17, 3, 5])));
        assert_eq!(read(&given, QUESTION, 7), Ok((7, [17, 3, 5])));
        let [one, other] = ["one", "other"].map(|store| Fingerprint::of(QUESTION).of_store(store));
        assert!(resumed("token", &token(7, [17, 3, 5], one), one, 0).is_ok());
        assert!(resumed("token", &token(7, [17, 3, 5], one), other, 0).is_err());
        assert!(read(&given, b"links of b", 0).unwrap_err().starts_with("token: belongs to another question"));
        let other_epoch = "epoch: 8 differs from 7, the epoch of token; give only one";
        assert_eq!(read(&given, QUESTION, 8), Err(other_epoch.to_owned()));
    }

    #[test]
    fn what_no_answer_gave_is_refused() {
        let given = token(7, [17, 3, 5], Fingerprint::of(QUESTION));
        let of_no_epoch = token(0, [17, 3, 5], Fingerprint::of(QUESTION));
        for text in ["", "0.5", "7.17.3.0", &given[1..], &(given.clone() + "0"), &given.to_uppercase(), &of_no_epoch] {
            assert_eq!(read(text, QUESTION, 0), Err("token: not copied from an earlier answer".to_owned()), "{text}");
        }
    }

    proptest! {
        #[test]
        fn places_come_back(epoch in 1..=u64::MAX, place: [u64; 3]) {
            prop_assert_eq!(read(&token(epoch, place, Fingerprint::of(QUESTION)), QUESTION, 0), Ok((epoch, place)));
        }

        #[test]
        fn no_text_panics(text in "[0-9a-fé]{0,90}") {
            let _ = Token::of(&text);
        }
    }
}
