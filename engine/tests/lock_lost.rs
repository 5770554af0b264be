//! A lock whose file somebody deletes.

#![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]

use kraftlog::io::BackendChoice;
use kraftlog::{ErrorKind, LogConfig, MetadataDir, MetadataLog, OpenError};

/// A Kafka that stops gives its lock up and deletes the file then. Who takes the lock in between has a lock
/// on a file without a name, and the next one gets a lock as well: two nodes wrote into one directory.
#[test]
fn a_log_is_not_opened_under_a_lock_that_keeps_nobody_out() {
    let place = tempfile::tempdir().unwrap();
    let dir = MetadataDir::open_blocking(place.path(), BackendChoice::Portable).unwrap();
    std::fs::remove_file(place.path().join(".lock")).unwrap();
    let error = MetadataLog::open_blocking(dir, LogConfig::default()).err().unwrap();
    assert!(matches!(error, OpenError::LockLost { .. }), "{error}");
    assert_eq!(error.kind(), ErrorKind::Locked);
    assert_eq!(std::fs::read_dir(place.path()).unwrap().count(), 0, "something was written");
    let dir = MetadataDir::open_blocking(place.path(), BackendChoice::Portable).unwrap();
    MetadataLog::open_blocking(dir, LogConfig::default()).unwrap();
}
