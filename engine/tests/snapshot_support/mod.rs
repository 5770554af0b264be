//! What the tests on snapshots and replay share: logs in temporary directories on each back end.

#![allow(dead_code, reason = "each test file uses a part of it")]
#![allow(unreachable_pub, reason = "it is shared by test files, each a crate of its own")]

pub mod traced;

use kraftlog::{DirError, Epoch, LogConfig, MetadataDir, MetadataLog, Offset, OpenError, OpenReport};
use kraftlog_io::probe::BackendChoice;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

pub const PART: &str = "__cluster_metadata-0";

/// Runs a test on each back end that this machine has; one that is missing is said to be skipped.
pub fn on_each_back_end(test: impl Fn(BackendChoice)) {
    for choice in [BackendChoice::Portable, BackendChoice::Uring] {
        let probe = tempfile::tempdir().unwrap();
        match MetadataDir::open_blocking(probe.path(), choice) {
            Ok(_) => test(choice),
            Err(DirError::Backend(error)) => eprintln!("SKIPPED on {choice:?}: {error}"),
            Err(error) => panic!("{error}"),
        }
    }
}

pub fn open(dir: &Path, choice: BackendChoice) -> Result<(MetadataLog, OpenReport), OpenError> {
    let dir = MetadataDir::open_blocking(dir, choice).unwrap();
    MetadataLog::open_blocking(dir, LogConfig::default())
}

/// An encoded NoOpRecord, and one that says a number: FeatureLevelRecord "f" with that level.
pub const NO_OP: [u8; 4] = [1, 20, 0, 0];

pub fn numbered(number: u16) -> Vec<u8> {
    let [high, low] = number.to_be_bytes();
    vec![1, 12, 0, 2, b'f', high, low, 0]
}

/// A log in epoch 1 with `batches` batches of two records each, all durable and committed.
pub fn lived(dir: &Path, choice: BackendChoice, batches: u16) -> MetadataLog {
    let (log, _) = open(dir, choice).unwrap();
    log.initialize_leader_epoch_blocking(Epoch(1)).unwrap();
    for batch in 0..batches {
        let records = [numbered(2 * batch), numbered(2 * batch + 1)];
        log.append_records(Epoch(1), records).unwrap().durable_blocking().unwrap();
    }
    log.update_high_watermark(log.end_offset()).unwrap();
    assert_eq!(log.end_offset(), Offset(2 * i64::from(batches)));
    log
}

/// Names in the part directory that have anything to do with checkpoints.
pub fn checkpoint_names(dir: &Path) -> Vec<String> {
    let entries = fs::read_dir(dir.join(PART)).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = names.filter(|name| name.contains(".checkpoint")).collect();
    names.sort();
    names
}

/// Bytes of a `.hex` file of the field cases.
pub fn case(name: &str) -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/cases").join(name);
    let text = fs::read_to_string(path).unwrap();
    let digits: String = text.lines().filter(|line| !line.starts_with('#')).collect();
    let pairs = digits.as_bytes().chunks(2);
    pairs.map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap()).collect()
}

pub fn write(path: &Path, bytes: &[u8]) {
    let mut file = fs::File::options().create(true).truncate(true).write(true).open(path).unwrap();
    file.write_all(bytes).unwrap();
}

/// Unpacks a capture of the fixtures.
pub fn unpack(fixture: &str, to: &Path) {
    let path = fixtures().join(fixture);
    let packed = fs::File::open(path).unwrap();
    tar::Archive::new(flate2::read::GzDecoder::new(packed)).unpack(to).unwrap();
}

pub fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/fixtures")
}

/// Copies a plain tree of the fixtures.
pub fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &target);
        } else {
            write(&target, &fs::read(entry.path()).unwrap());
        }
    }
}
