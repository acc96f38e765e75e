//! Words: values that have one name in options, parameters, JSON and descriptions.
//!
//! A type of words has its names once, in [`words!`], so that a name is the same wherever it is read or written. The
//! first value is the default, where a question has one.

/// A value that has a name.
pub trait Word: Copy + 'static {
    /// All values, the default first.
    const VALUES: &'static [Self];

    /// The name of the value.
    fn word(self) -> &'static str;

    /// The value of a name.
    fn of_word(word: &str) -> Option<Self> {
        Self::VALUES.iter().copied().find(|value| value.word() == word)
    }
}

/// Gives the values of an enum their names, and reads and writes them in JSON by these.
macro_rules! words {
    ($type:ident { $($variant:ident = $word:literal),+ $(,)? }) => {
        impl $type {
            /// All values, the default first.
            pub const ALL: [Self; [$($word),+].len()] = [$(Self::$variant),+];

            /// The name of the value.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $word),+
                }
            }
        }

        impl $crate::word::Word for $type {
            const VALUES: &'static [Self] = &Self::ALL;

            fn word(self) -> &'static str {
                self.name()
            }
        }

        impl serde::Serialize for $type {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.name())
            }
        }

        impl<'de> serde::Deserialize<'de> for $type {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = String::deserialize(deserializer)?;
                let unknown = || serde::de::Error::unknown_variant(&text, &[$($word),+]);
                <Self as $crate::word::Word>::of_word(&text).ok_or_else(unknown)
            }
        }

        impl schemars::JsonSchema for $type {
            fn inline_schema() -> bool {
                true
            }

            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($type).into()
            }

            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                schemars::json_schema!({"type": "string", "enum": [$($word),+]})
            }
        }
    };
}

pub(crate) use words;

#[cfg(test)]
mod tests {
    use crate::record::key::matching::Match;
    use crate::word::Word;

    #[test]
    fn words_are_read_as_they_are_written() {
        for value in Match::ALL {
            let text = serde_json::to_string(&value).unwrap();
            assert_eq!((Match::of_word(value.name()), text), (Some(value), format!("{:?}", value.name())));
            assert_eq!(serde_json::from_str::<Match>(&format!("{:?}", value.name())).unwrap(), value);
        }
        assert_eq!(Match::of_word("all"), None);
        let error = serde_json::from_str::<Match>("\"all\"").unwrap_err().to_string();
        assert!(error.starts_with("unknown variant `all`, expected one of `exact`, `surt`"), "{error}");
    }
}
