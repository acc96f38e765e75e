//! A store or servers, asked about many URLs at a time: NumPy arrays of UIDs in, tables out.
//!
//! Long lists are asked in parts. Between two parts, Ctrl-C is noticed. Each part is a record batch of the table.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;

use arrow_array::builder::{BooleanBuilder, StringBuilder};
use arrow_array::{ArrayRef, BooleanArray, RecordBatch, StringArray, TimestampSecondArray, UInt16Array, UInt64Array};
use arrow_buffer::BooleanBuffer;
use arrow_schema::{Field, Schema, SchemaRef};
use numpy::{IntoPyArray, PyArray1, PyReadonlyArray1};
use pyo3::exceptions::PyOverflowError;
use pyo3::prelude::*;
use webstrata_jobs::Failed;
use webstrata_jobs::graph::{Caller, Times};
use webstrata_layers::{Batch, Cut, Uid};

use crate::failed::exception;
use crate::table::{Table, of_arrow};

/// The number of UIDs that are asked at once.
const PART: usize = 4096;
/// The number in place of a UID for a URL that is not in the store.
const NONE: u64 = u64::MAX;
const UTC: &str = "UTC";

/// The start of each list of links and the end of the last list; and the links. SciPy takes both.
type Csr<'py> = (Bound<'py, PyAny>, Bound<'py, PyAny>);

/// A graph of links over time.
#[pyclass(frozen, module = "webstrata._webstrata")]
pub(crate) struct Graph(webstrata_jobs::graph::Graph);

fn seconds(times: impl IntoIterator<Item = i64>) -> ArrayRef {
    Arc::new(TimestampSecondArray::from_iter_values(times).with_timezone(UTC))
}

fn numbers(uids: impl IntoIterator<Item = Uid>) -> ArrayRef {
    Arc::new(UInt64Array::from_iter_values(uids.into_iter().map(|uid| uid.0)))
}

/// The question of each value of a batch.
fn asked<T>(uids: &[Uid], batch: &Batch<T>) -> Vec<Uid> {
    uids.iter().zip(batch.iter()).flat_map(|(&uid, answer)| std::iter::repeat_n(uid, answer.len())).collect()
}

/// A column of the URLs of UIDs in any order. Each URL is asked for once.
fn names(graph: &webstrata_jobs::graph::Graph, uids: &[Option<Uid>]) -> Result<ArrayRef, Failed> {
    let mut distinct: Vec<Uid> = uids.iter().flatten().copied().collect();
    distinct.sort_unstable();
    distinct.dedup();
    let urls = graph.urls_of(&distinct)?;
    let mut column = StringBuilder::new();
    for uid in uids {
        let place = uid.and_then(|uid| distinct.binary_search(&uid).ok());
        column.append_option(place.map(|place| &urls[place]));
    }
    Ok(Arc::new(column.finish()))
}

/// The columns that are added to a table, with their fields. URLs are added only on request.
struct Columns<'a> {
    graph: &'a webstrata_jobs::graph::Graph,
    has_names: bool,
    fields: Vec<Field>,
    arrays: Vec<ArrayRef>,
}

impl Columns<'_> {
    fn put(&mut self, name: &str, is_nullable: bool, array: ArrayRef) {
        self.fields.push(Field::new(name, array.data_type().clone(), is_nullable));
        self.arrays.push(array);
    }

    fn put_urls(&mut self, name: &str, uids: &[Option<Uid>]) -> Result<(), Failed> {
        if self.has_names {
            let is_nullable = uids.iter().any(Option::is_none) || name == "link";
            self.put(name, is_nullable, names(self.graph, uids)?);
        }
        Ok(())
    }
}

impl Graph {
    /// A table that is made part by part.
    fn table(
        &self,
        py: Python<'_>,
        uids: &[u64],
        has_names: bool,
        fill: impl Fn(&mut Columns<'_>, &[Uid]) -> Result<(), Failed> + Sync,
    ) -> PyResult<Table> {
        let graph = &self.0;
        let uids: Vec<Uid> = uids.iter().copied().map(Uid).collect();
        let (mut schema, mut batches): (Option<SchemaRef>, _) = (None, Vec::new());
        // If there are no UIDs, one part without UIDs gives the empty table its columns.
        let parts = if uids.is_empty() { vec![&uids[..]] } else { uids.chunks(PART).collect() };
        for part in parts {
            py.check_signals()?;
            let made = py.detach(|| {
                let mut columns = Columns { graph, has_names, fields: Vec::new(), arrays: Vec::new() };
                fill(&mut columns, part).map(|()| (columns.fields, columns.arrays))
            });
            let (fields, arrays) = made.map_err(|failed| exception(py, &failed))?;
            let schema = schema.get_or_insert_with(|| Arc::new(Schema::new(fields)));
            batches.push(RecordBatch::try_new(Arc::clone(schema), arrays).map_err(|error| of_arrow(&error))?);
        }
        Ok(Table::new(schema.unwrap_or_else(|| Arc::new(Schema::empty())), batches))
    }
}

#[pymethods]
impl Graph {
    #[staticmethod]
    fn open(py: Python<'_>, store: OsString, memory: usize) -> PyResult<Self> {
        py.detach(|| webstrata_jobs::graph::Graph::open(&store, memory))
            .map(Self)
            .map_err(|failed| exception(py, &failed))
    }

    #[staticmethod]
    #[pyo3(signature = (servers, tokens=None, tls_ca=None, tls_name=None))]
    fn connect(
        py: Python<'_>,
        servers: Vec<String>,
        tokens: Option<PathBuf>,
        tls_ca: Option<PathBuf>,
        tls_name: Option<String>,
    ) -> PyResult<Self> {
        let caller = Caller { tls_ca, tls_name, tokens };
        let connected = py.detach(|| webstrata_jobs::graph::Graph::connect(servers, caller));
        connected.map(Self).map_err(|failed| exception(py, &failed))
    }

    #[getter]
    fn epoch(&self) -> u64 {
        self.0.epoch()
    }

    fn __len__(&self) -> usize {
        usize::try_from(self.0.urls()).unwrap_or(usize::MAX)
    }

    fn find(&self, py: Python<'_>, url: &str) -> PyResult<(u64, String)> {
        let found = py.detach(|| self.0.find(url));
        found.map(|(uid, url)| (uid.0, url)).map_err(|failed| exception(py, &failed))
    }

    fn uids<'py>(&self, py: Python<'py>, urls: Vec<String>) -> PyResult<Bound<'py, PyArray1<u64>>> {
        let mut found = Vec::with_capacity(urls.len());
        for part in urls.chunks(PART) {
            py.check_signals()?;
            let uids = py.detach(|| self.0.uids_of(part)).map_err(|failed| exception(py, &failed))?;
            found.extend(uids.into_iter().map(|uid| uid.map_or(NONE, |uid| uid.0)));
        }
        Ok(found.into_pyarray(py))
    }

    fn urls(&self, py: Python<'_>, uids: PyReadonlyArray1<'_, u64>) -> PyResult<Vec<String>> {
        let uids: Vec<Uid> = uids.as_array().iter().copied().map(Uid).collect();
        let mut urls = Vec::with_capacity(uids.len());
        for part in uids.chunks(PART) {
            py.check_signals()?;
            urls.extend(py.detach(|| self.0.urls_of(part)).map_err(|failed| exception(py, &failed))?);
        }
        Ok(urls)
    }

    #[pyo3(signature = (
        uids, is_inward, is_exact, has_names, at=None, start=None, end=None, max_age=None, failures=None
    ))]
    #[expect(clippy::too_many_arguments, reason = "the package around it names them")]
    fn links(
        &self,
        py: Python<'_>,
        uids: PyReadonlyArray1<'_, u64>,
        is_inward: bool,
        is_exact: bool,
        has_names: bool,
        at: Option<&str>,
        start: Option<&str>,
        end: Option<&str>,
        max_age: Option<&str>,
        failures: Option<&str>,
    ) -> PyResult<Table> {
        let times = Times { at, from: start, to: end, max_age, failures };
        let window = times.window().map_err(|failed| exception(py, &failed))?;
        let uids = uids.as_array().to_vec();
        self.table(py, &uids, has_names, |columns, part| {
            let known = self.0.links_of(part, is_inward, is_exact, window)?;
            let unknown = self.0.unknown_of(part, is_inward, window)?;
            if unknown.values().is_empty() {
                // The usual case: the links are a column without changes.
                let (of, links) = (asked(part, &known), known.values());
                let none = BooleanBuffer::new_unset(links.len());
                columns.put("uid", false, numbers(of.iter().copied()));
                columns.put("link_uid", true, numbers(links.iter().copied()));
                columns.put("is_unknown", false, Arc::new(BooleanArray::new(none, None)));
                columns.put_urls("url", &of.into_iter().map(Some).collect::<Vec<_>>())?;
                return columns.put_urls("link", &links.iter().copied().map(Some).collect::<Vec<_>>());
            }
            // Of a page with unknown links: the links that it had when they were last known.
            let last_known = if is_inward { Batch::default() } else { self.0.last_known_of(part, window)? };
            let (mut sources, mut links, mut states) = (Vec::new(), Vec::new(), BooleanBuilder::new());
            for (at, &uid) in part.iter().enumerate() {
                for &link in known.get(at) {
                    sources.push(uid);
                    links.push(Some(link));
                    states.append_value(false);
                }
                for &page in unknown.get(at) {
                    // If links of a page are unknown, a row has no link.
                    sources.push(uid);
                    links.push(is_inward.then_some(page));
                    states.append_value(true);
                    let open = if is_inward { &[] } else { last_known.get(at) };
                    for link in open.iter().filter(|link| known.get(at).binary_search(link).is_err()) {
                        sources.push(uid);
                        links.push(Some(*link));
                        states.append_value(true);
                    }
                }
            }
            let link_uids: UInt64Array = links.iter().map(|link| link.map(|uid| uid.0)).collect();
            columns.put("uid", false, numbers(sources.iter().copied()));
            columns.put("link_uid", true, Arc::new(link_uids));
            columns.put("is_unknown", false, Arc::new(states.finish()));
            columns.put_urls("url", &sources.iter().copied().map(Some).collect::<Vec<_>>())?;
            columns.put_urls("link", &links)
        })
    }

    fn captures(&self, py: Python<'_>, uids: PyReadonlyArray1<'_, u64>, has_names: bool) -> PyResult<Table> {
        let uids = uids.as_array().to_vec();
        self.table(py, &uids, has_names, |columns, part| {
            let captures = self.0.captures_of(part)?;
            let of = asked(part, &captures);
            let mut known = BooleanBuilder::new();
            captures.values().iter().for_each(|capture| known.append_value(capture.known));
            let cut = captures.values().iter().map(|capture| capture.status.reason().map(Cut::name));
            let status = captures.values().iter().map(|capture| capture.status.code());
            columns.put("uid", false, numbers(of.iter().copied()));
            columns.put("timestamp", false, seconds(captures.values().iter().map(|capture| capture.time)));
            columns.put("status", false, Arc::new(UInt16Array::from_iter_values(status)));
            columns.put("is_known", false, Arc::new(known.finish()));
            columns.put("cut", true, Arc::new(StringArray::from_iter(cut)));
            columns.put_urls("url", &of.into_iter().map(Some).collect::<Vec<_>>())
        })
    }

    fn lifespans(&self, py: Python<'_>, uids: PyReadonlyArray1<'_, u64>, has_names: bool) -> PyResult<Table> {
        let uids = uids.as_array().to_vec();
        self.table(py, &uids, has_names, |columns, part| {
            let runs = self.0.lifespans_of(part)?;
            let of = asked(part, &runs);
            columns.put("uid", false, numbers(of.iter().copied()));
            columns.put("link_uid", false, numbers(runs.values().iter().map(|run| run.link)));
            columns.put("first", false, seconds(runs.values().iter().map(|run| run.first)));
            columns.put("last", false, seconds(runs.values().iter().map(|run| run.last)));
            columns.put_urls("url", &of.into_iter().map(Some).collect::<Vec<_>>())?;
            columns.put_urls("link", &runs.values().iter().map(|run| Some(run.link)).collect::<Vec<_>>())
        })
    }

    #[pyo3(signature = (at=None, start=None, end=None, max_age=None, failures=None))]
    fn csr<'py>(
        &self,
        py: Python<'py>,
        at: Option<&str>,
        start: Option<&str>,
        end: Option<&str>,
        max_age: Option<&str>,
        failures: Option<&str>,
    ) -> PyResult<Csr<'py>> {
        let times = Times { at, from: start, to: end, max_age, failures };
        let window = times.window().map_err(|failed| exception(py, &failed))?;
        let too_many = || PyOverflowError::new_err("the store has more URLs than a matrix of 32 bits has rows");
        let count = i32::try_from(self.0.urls()).map_err(|_| too_many())?;
        let (mut starts, mut links) = (vec![0_i64], Vec::<i32>::new());
        let (mut uids, all) = (Vec::with_capacity(PART), u64::from(count.unsigned_abs()));
        for first in (0..all).step_by(PART) {
            py.check_signals()?;
            uids.clear();
            uids.extend((first..all.min(first + PART as u64)).map(Uid));
            let found = py.detach(|| self.0.links_of(&uids, false, true, window));
            let found = found.map_err(|failed| exception(py, &failed))?;
            for answer in found.iter() {
                for link in answer {
                    links.push(i32::try_from(link.0).map_err(|_| too_many())?);
                }
                starts.push(i64::try_from(links.len()).map_err(|_| too_many())?);
            }
        }
        // SciPy needs both arrays in one type, and copies them if the types differ.
        let small: Result<Vec<i32>, _> = starts.iter().map(|&start| i32::try_from(start)).collect();
        Ok(match small {
            Ok(small) => (small.into_pyarray(py).into_any(), links.into_pyarray(py).into_any()),
            Err(_) => {
                let links: Vec<i64> = links.into_iter().map(i64::from).collect();
                (starts.into_pyarray(py).into_any(), links.into_pyarray(py).into_any())
            }
        })
    }

    fn barcode(&self, py: Python<'_>, url: &str, limit: usize, width: u32) -> PyResult<String> {
        py.detach(|| self.0.barcode(url, limit, width)).map_err(|failed| exception(py, &failed))
    }
}
