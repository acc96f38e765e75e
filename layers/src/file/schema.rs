//! The layers of a store: their names, columns and types. `format.md` specifies them.
//!
//! Invariants: the first column of each layer is `uid`. Only columns that are declared nullable may be null. List
//! elements are required and named `element`. SQL engines and data frames can read the types without help.

use std::fmt;
use std::sync::Arc;

use arrow_schema::{DataType, Field, Fields, Schema, TimeUnit};
use serde::{Deserialize, Serialize};

/// A layer of a store.
///
/// ```
/// use webstrata_layers::Layer;
///
/// let columns: Vec<String> = Layer::Ol.schema().fields().iter().map(|field| field.name().clone()).collect();
/// assert_eq!((Layer::Ol.name(), columns), ("ol", vec!["uid".to_owned(), "links".to_owned()]));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Layer {
    /// URLs in key order, each with its UID.
    Url,
    /// Out-links: the union of the links of all captures of a page.
    Ol,
    /// Timestamps of the captures of a page, and their statuses.
    Ts,
    /// The presence of links in captures, as changes.
    Bv,
    /// The evidence of a page: digests of captures, and revisits.
    Rv,
    /// In-links: the pages that ever linked to a URL.
    Il,
    /// The time ranges in which pages linked to a URL.
    Tr,
    /// The presence of sources in ranges, as changes.
    Ibv,
}

impl Layer {
    /// All layers, in the order in which manifests list them.
    pub const ALL: [Layer; 8] =
        [Layer::Url, Layer::Ol, Layer::Ts, Layer::Bv, Layer::Rv, Layer::Il, Layer::Tr, Layer::Ibv];

    /// Whether several records of the layer may belong to one URL.
    pub(crate) fn has_repeated_uids(self) -> bool {
        matches!(self, Layer::Il | Layer::Tr | Layer::Ibv)
    }

    /// The name, as in paths and manifests.
    pub fn name(self) -> &'static str {
        match self {
            Layer::Url => "url",
            Layer::Ol => "ol",
            Layer::Ts => "ts",
            Layer::Bv => "bv",
            Layer::Il => "il",
            Layer::Tr => "tr",
            Layer::Ibv => "ibv",
            Layer::Rv => "rv",
        }
    }

    /// The columns.
    pub fn schema(self) -> Arc<Schema> {
        let uid = Field::new("uid", DataType::UInt64, false);
        let list = |name: &str, of: DataType| Field::new(name, DataType::List(element(of)), false);
        let maybe = |name: &str, of: DataType| list(name, of).with_nullable(true);
        let changes = || Field::new("changes", DataType::Binary, true);
        let columns = match self {
            Layer::Url => {
                vec![uid, Field::new("url", DataType::Utf8, false), Field::new("surt", DataType::Utf8, false)]
            }
            Layer::Ol | Layer::Il => vec![uid, list("links", DataType::UInt64)],
            Layer::Ts => vec![
                uid,
                list("timestamps", time()),
                maybe("blank", DataType::UInt32),
                maybe("status_captures", DataType::UInt32),
                maybe("statuses", DataType::UInt16),
            ],
            Layer::Tr => vec![uid, list("ranges", time())],
            Layer::Bv | Layer::Ibv => vec![uid, changes()],
            Layer::Rv => vec![
                uid,
                maybe("digests", DataType::UInt64),
                maybe("revisits", DataType::UInt32),
                maybe("not_modified", DataType::UInt32),
                maybe("without_status", DataType::UInt32),
                maybe("referring", DataType::UInt32),
                maybe("referred", time()),
                maybe("with_links", DataType::UInt32),
                maybe("links", DataType::UInt64),
                maybe("elsewhere", DataType::UInt32),
                Field::new("forms", DataType::Binary, true),
            ],
        };
        Arc::new(Schema::new(Fields::from(columns)))
    }
}

impl fmt::Display for Layer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// The element of a list.
pub(crate) fn element(of: DataType) -> Arc<Field> {
    Arc::new(Field::new("element", of, false))
}

/// Times: milliseconds since 1970, UTC (the finest unit that all readers take for a timestamp and that holds seconds).
pub(crate) fn time() -> DataType {
    DataType::Timestamp(TimeUnit::Millisecond, Some("UTC".into()))
}
