//! The specification of a store, and a test that the schemas in the code match the specification.

#![doc = include_str!("format.md")]

#[cfg(test)]
mod tests {
    use arrow_schema::{DataType, TimeUnit};

    use crate::file::schema::Layer;
    use crate::store::manifest::FORMAT;

    /// The type of a column in the words of the specification.
    fn words(of: &DataType, nullable: bool) -> String {
        let words = match of {
            DataType::UInt64 => "uint64".to_owned(),
            DataType::UInt32 => "uint32".to_owned(),
            DataType::UInt16 => "uint16".to_owned(),
            DataType::Utf8 => "string".to_owned(),
            DataType::Binary => "binary".to_owned(),
            DataType::Timestamp(TimeUnit::Millisecond, Some(zone)) => format!("timestamp, milliseconds, {zone}"),
            DataType::List(element) => {
                assert_eq!((element.name().as_str(), element.is_nullable()), ("element", false));
                format!("list of {}", words(element.data_type(), false))
            }
            other => format!("{other}"),
        };
        if nullable { format!("{words}, or null") } else { words }
    }

    #[test]
    fn the_specification_names_the_columns_of_the_code_in_order() {
        let text = include_str!("format.md");
        let of_code = Layer::ALL.iter().flat_map(|layer| {
            let row = |name: &str, of: &DataType, null| format!("| {layer} | `{name}` | {} |", words(of, null));
            let schema = layer.schema();
            schema
                .fields()
                .iter()
                .map(|field| row(field.name(), field.data_type(), field.is_nullable()))
                .collect::<Vec<_>>()
        });
        let is_row = |line: &&str| Layer::ALL.iter().any(|layer| line.starts_with(&format!("| {layer} |")));
        let of_text: Vec<&str> = text.lines().filter(is_row).collect();
        let of_code: Vec<String> = of_code.collect();
        assert_eq!(of_text.len(), of_code.len());
        for (text, code) in of_text.iter().zip(&of_code) {
            assert!(text.starts_with(code), "the specification says\n{text}\nthe code says\n{code}");
        }
    }

    #[test]
    fn the_specification_is_of_the_version_of_the_code() {
        let text = include_str!("format.md");
        assert!(text.starts_with(&format!("The format of a store, version {FORMAT}.\n")));
        assert!(text.contains(&format!("| `format` | {FORMAT};")));
        let last = text.trim_end().lines().last().unwrap_or_default();
        assert!(last.starts_with(&format!("| {FORMAT} |")), "{last}");
    }
}
