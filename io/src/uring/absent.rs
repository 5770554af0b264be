//! What stands in for the io_uring back end where it is not built: a ring that nobody can have.

use crate::disk::Disk;
use std::io;
use std::rc::Rc;

pub(crate) enum Ring {}

impl Ring {
    pub(crate) const BUILT: bool = false;

    pub(crate) fn new() -> io::Result<Ring> {
        Err(io::ErrorKind::Unsupported.into())
    }

    pub(crate) fn answers() -> io::Result<bool> {
        Err(io::ErrorKind::Unsupported.into())
    }

    pub(crate) fn run<F>(self, _make: impl FnOnce(Rc<dyn Disk>) -> F + 'static) -> F::Output
    where
        F: Future<Output: 'static> + 'static,
    {
        match self {}
    }
}
