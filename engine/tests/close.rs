//! What close leaves behind, for this process and for others.

use kraftlog::io::{BackendChoice, DirLock};
use kraftlog::{Epoch, Isolation, LogConfig, MetadataDir, MetadataLog, Offset};

/// NoOpRecord: frame version, type, version, no tagged fields.
const NO_OP: [u8; 4] = [1, 20, 0, 0];

/// "A tool that ran right after the node had stopped said that the directory is in use": close answered
/// while its lanes still held the lock.
#[test]
fn a_directory_is_free_for_others_when_close_answers() -> Result<(), Box<dyn std::error::Error>> {
    let temporary = tempfile::tempdir()?;
    for round in 1..=60 {
        let dir = MetadataDir::open_blocking(temporary.path(), BackendChoice::Portable)?;
        let (log, _) = MetadataLog::open_blocking(dir, LogConfig::default())?;
        log.initialize_leader_epoch_blocking(Epoch(round))?;
        log.append_records(Epoch(round), [NO_OP])?.durable_blocking()?;
        log.read_blocking(Offset(0), Isolation::Uncommitted, 1)?;
        log.close_blocking()?;
        let lock = DirLock::acquire(temporary.path());
        assert!(lock.is_ok(), "round {round}: {}", lock.expect_err("it is not Ok"));
    }
    Ok(())
}

/// A clone that is still there keeps the lock, and close does not wait for it.
#[test]
fn close_does_not_wait_for_clones_of_the_handle() -> Result<(), Box<dyn std::error::Error>> {
    let temporary = tempfile::tempdir()?;
    let dir = MetadataDir::open_blocking(temporary.path(), BackendChoice::Portable)?;
    let (log, _) = MetadataLog::open_blocking(dir, LogConfig::default())?;
    let clone = log.clone();
    assert!(log.close_blocking()?.clean);
    assert!(DirLock::acquire(temporary.path()).is_err(), "the clone still has the directory");
    drop(clone);
    assert!(DirLock::acquire(temporary.path()).is_ok(), "nobody has it any more");
    Ok(())
}
