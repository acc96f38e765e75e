//! The same names without the feature `client`: each request for a file of another machine is refused.

use std::convert::Infallible;
use std::io::{self, ErrorKind, Read};
use std::ops::Range;
use std::sync::Arc;

use crate::{Address, Failure};

fn refused<T>() -> io::Result<T> {
    let text = "this program reads only files of this machine; build it with `cargo install --path jobs --features \
                remote`, or download the file and give - as the input: curl -s URL | webstrata build --out STORE -";
    Err(Failure::error(ErrorKind::Unsupported, text.to_owned()))
}

/// A file on another machine. This program has none.
#[derive(Debug)]
pub struct Object(Infallible);

/// A reader of an [`Object`].
pub struct Reader(Infallible);

impl Object {
    /// Refuses.
    ///
    /// # Errors
    /// Always: the program was built without the feature `client`.
    pub fn open(_: &Address) -> io::Result<Self> {
        refused()
    }

    /// Refuses.
    ///
    /// # Errors
    /// Always: the program was built without the feature `client`.
    pub fn known(_: &Address, _: u64, _: &str, _: bool) -> io::Result<Self> {
        refused()
    }

    /// Cannot be called.
    pub fn address(&self) -> &Address {
        match self.0 {}
    }

    /// Cannot be called.
    pub fn bytes(&self) -> u64 {
        match self.0 {}
    }

    /// Cannot be called.
    pub fn version(&self) -> &str {
        match self.0 {}
    }

    /// Cannot be called.
    pub fn has_ranges(&self) -> bool {
        match self.0 {}
    }

    /// Cannot be called.
    ///
    /// # Errors
    /// None.
    pub fn read_at(&self, _: &mut [u8], _: u64) -> io::Result<usize> {
        match self.0 {}
    }

    /// Cannot be called.
    ///
    /// # Errors
    /// None.
    pub fn reader(self: &Arc<Self>, _: Range<u64>) -> io::Result<Reader> {
        match self.0 {}
    }
}

impl Read for Reader {
    fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
        match self.0 {}
    }
}

/// Refuses.
///
/// # Errors
/// Always: the program was built without the feature `client`.
pub fn list(_: &Address) -> io::Result<Option<Vec<Address>>> {
    refused()
}

/// Refuses.
///
/// # Errors
/// Always: the program was built without the feature `client`.
pub fn open_all(_: &[Address]) -> io::Result<Vec<io::Result<Object>>> {
    refused()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_the_feature_every_request_is_refused() {
        let address = Address::of("https://archive.example/a.warc.gz").unwrap();
        let errors = [
            Object::open(&address).err(),
            Object::known(&address, 1, "", true).err(),
            list(&address).err(),
            open_all(&[address]).err(),
        ];
        for error in errors {
            let error = error.unwrap();
            assert!(crate::is_failure(&error) && error.to_string().contains("--features remote"), "{error}");
        }
    }
}
