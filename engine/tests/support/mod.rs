//! What the tests of the log share: every test runs on every back end, in a directory of its own.
#![allow(dead_code, reason = "no test file uses all of it")]
#![allow(clippy::disallowed_methods, reason = "tests prepare files without the engine")]

pub(crate) mod faulty;

use kraftlog::{Epoch, LogConfig, MetadataDir, MetadataLog, OpenError, OpenReport, Ticket};
use kraftlog_codecs::batch::{BatchBuilder, BatchOptions};
use kraftlog_io::{BackendChoice, BackendError, BackendReport, Rt, ThreadRt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A directory of one test, on one back end.
pub(crate) struct Place {
    pub(crate) dir: tempfile::TempDir,
    pub(crate) rt: Arc<dyn Rt>,
    pub(crate) backend: BackendReport,
    /// The directory of the log, if it is not `dir` itself.
    pub(crate) root: Option<PathBuf>,
}

impl Place {
    /// `None` where this machine lacks the back end: said, and not counted as passed by the eye.
    pub(crate) fn new(choice: BackendChoice) -> Option<Place> {
        let dir = tempfile::tempdir().expect("a temporary directory");
        match ThreadRt::open(dir.path(), choice) {
            Ok((rt, backend)) => Some(Place { dir, rt, backend, root: None }),
            Err(BackendError::Unsupported { reason }) => {
                println!("not run: {choice:?} cannot be had: {reason}");
                None
            }
            Err(error) => panic!("{error}"),
        }
    }

    pub(crate) fn path(&self) -> &Path {
        self.root.as_deref().unwrap_or(self.dir.path())
    }

    pub(crate) fn part(&self) -> PathBuf {
        self.path().join("__cluster_metadata-0")
    }

    pub(crate) fn lock(&self) -> MetadataDir {
        let taken = MetadataDir::with_rt(self.path(), Arc::clone(&self.rt), self.backend.clone());
        kraftlog_io::rt::block_on(taken).expect("the directory is free")
    }

    pub(crate) fn try_open(&self, config: LogConfig) -> Result<(MetadataLog, OpenReport), OpenError> {
        MetadataLog::open_blocking(self.lock(), config)
    }

    /// Waits until a log that was dropped has drained.
    pub(crate) fn settle(&self) {
        drop(self.lock());
    }

    /// An empty directory again.
    pub(crate) fn wipe(&self) {
        self.settle();
        let _ = std::fs::remove_dir_all(self.part());
    }

    pub(crate) fn open_with(&self, config: LogConfig) -> (MetadataLog, OpenReport) {
        self.try_open(config).unwrap_or_else(|error| panic!("{}", chain(&error)))
    }

    pub(crate) fn open(&self) -> (MetadataLog, OpenReport) {
        self.open_with(LogConfig::default())
    }

    pub(crate) fn refused(&self) -> OpenError {
        match self.try_open(LogConfig::default()) {
            Ok((_, report)) => panic!("opened: {report}"),
            Err(error) => error,
        }
    }

    pub(crate) fn segment(&self, base: i64) -> PathBuf {
        self.part().join(format!("{base:020}.log"))
    }

    /// Puts a segment into an otherwise empty directory.
    pub(crate) fn put_segment(&self, base: i64, bytes: &[u8]) {
        std::fs::create_dir_all(self.part()).expect("part dir");
        std::fs::write(self.segment(base), bytes).expect("segment");
    }

    pub(crate) fn read_segment(&self, base: i64) -> Vec<u8> {
        std::fs::read(self.segment(base)).expect("segment")
    }

    /// Every file with its content, for "nothing was changed".
    pub(crate) fn everything(&self) -> Vec<(PathBuf, Vec<u8>)> {
        let mut all = Vec::new();
        walk(self.path(), &mut all);
        all.sort();
        all.retain(|(path, _)| !path.ends_with(".lock"));
        all
    }
}

fn walk(dir: &Path, all: &mut Vec<(PathBuf, Vec<u8>)>) {
    for entry in std::fs::read_dir(dir).expect("a directory") {
        let path = entry.expect("an entry").path();
        match path.is_dir() {
            true => walk(&path, all),
            false => all.push((path.clone(), std::fs::read(&path).expect("a file"))),
        }
    }
}

/// An error with its causes.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        next = cause.source();
    }
    text
}

/// Runs each test on each back end.
#[macro_export]
macro_rules! on_every_backend {
    ($(fn $name:ident($place:ident: &Place) $body:block)*) => {
        $(fn $name($place: &$crate::support::Place) $body)*

        mod portable {
            $(#[test]
            fn $name() {
                if let Some(place) = $crate::support::Place::new(kraftlog_io::BackendChoice::Portable) {
                    super::$name(&place);
                }
            })*
        }

        mod uring {
            $(#[test]
            fn $name() {
                if let Some(place) = $crate::support::Place::new(kraftlog_io::BackendChoice::Uring) {
                    super::$name(&place);
                }
            })*
        }
    };
}

/// A NoOpRecord, as Kafka frames it.
pub(crate) const NO_OP: [u8; 4] = [1, 20, 0, 0];

/// A batch of `count` NoOpRecords with a fixed timestamp.
pub(crate) fn batch(base: i64, epoch: i32, count: usize) -> Vec<u8> {
    batch_at(base, epoch, count, 1_700_000_000_000)
}

pub(crate) fn batch_at(base: i64, epoch: i32, count: usize, timestamp: i64) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut builder = BatchBuilder::new(&mut bytes, BatchOptions::data(base, epoch, timestamp));
    for _ in 0..count {
        builder.append(None, &NO_OP).expect("room");
    }
    builder.finish();
    bytes
}

/// A batch with one record of `len` bytes (a NoOpRecord with an unknown tagged field).
pub(crate) fn big_batch(base: i64, epoch: i32, len: usize) -> Vec<u8> {
    let mut value = vec![1, 20, 0, 1, 100];
    let mut left = len - 10;
    loop {
        let byte = u8::try_from(left & 0x7f).expect("seven bits");
        left >>= 7;
        value.push(if left > 0 { byte | 0x80 } else { byte });
        if left == 0 {
            break;
        }
    }
    value.resize(value.len() + len - 10, 0x5a);
    let mut bytes = Vec::new();
    let options = BatchOptions { bytes_max: 16 << 20, ..BatchOptions::data(base, epoch, 1_700_000_000_000) };
    let mut builder = BatchBuilder::new(&mut bytes, options);
    builder.append(None, &value).expect("room");
    builder.finish();
    bytes
}

/// Leads an epoch and appends `batches` batches of one record, waiting for each.
pub(crate) fn lead(log: &MetadataLog, epoch: i32, batches: usize) {
    log.initialize_leader_epoch_blocking(Epoch(epoch)).expect("a new epoch");
    for _ in 0..batches {
        append(log, epoch, 1).durable_blocking().expect("durable");
    }
}

pub(crate) fn append(log: &MetadataLog, epoch: i32, count: usize) -> Ticket {
    log.append_as_leader(Epoch(epoch), batch(0, epoch, count)).expect("queued")
}

/// A file of `tests/cases`, decoded.
pub(crate) fn case(name: &str) -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/cases").join(name);
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let hex: String = text.lines().filter(|line| !line.starts_with('#')).collect();
    hex.as_bytes()
        .chunks(2)
        .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).expect("hex"), 16).expect("hex"))
        .collect()
}
