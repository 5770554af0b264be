//! What the tests on a real disk share: a node in a process of its own, and the oracle in the parent.
//!
//! A test binary starts itself again as a node (`node::live`), hears on a pipe what the node
//! acknowledges, does it harm (a kill, a power cut, a limit) and holds what is left in the directory
//! against what it heard (`acknowledged`).

#![allow(dead_code, reason = "no test file uses all of it")]
#![allow(clippy::disallowed_methods, reason = "who does harm to a process waits on the real clock")]

pub(crate) mod acknowledged;
pub(crate) mod child;
pub(crate) mod loop_disk;
pub(crate) mod node;

use kraftlog::io::{BackendChoice, BackendError, ThreadRt, rt};
use kraftlog::{LogConfig, MetadataDir, MetadataLog, NodeId, OpenError, OpenReport};
use std::error::Error;
use std::path::Path;

/// Small segments, so that whatever stops a node also meets rolls.
pub(crate) const SEGMENT_BYTES_MAX: u64 = 16 << 10;

/// Opens the log of a directory on this back end, whatever `KRAFTLOG_IO` says.
pub(crate) fn try_open(
    dir: &Path,
    choice: BackendChoice,
    segment_bytes_max: u64,
) -> Result<(MetadataLog, OpenReport), OpenError> {
    let (runtime, backend) = match ThreadRt::open(dir, choice) {
        Ok(opened) => opened,
        Err(BackendError::Io(cause)) => return Err(OpenError::Io(cause)),
        Err(error) => panic!("{}", chain(&error)),
    };
    let locked = rt::block_on(MetadataDir::with_rt(dir, runtime, backend))
        .unwrap_or_else(|error| panic!("the directory is not free: {}", chain(&error)));
    let mut config = LogConfig::default();
    config.node_id = Some(NodeId(1));
    config.segment_bytes_max = segment_bytes_max;
    MetadataLog::open_blocking(locked, config)
}

/// As [`try_open`]; a refusal fails the test and says `context`.
pub(crate) fn open(dir: &Path, choice: BackendChoice, context: &str) -> (MetadataLog, OpenReport) {
    try_open(dir, choice, SEGMENT_BYTES_MAX)
        .unwrap_or_else(|error| panic!("the log does not open: {}; {context}", chain(&error)))
}

/// False, and said, where this machine lacks the back end.
pub(crate) fn can_be_had(choice: BackendChoice, dir: &Path) -> bool {
    match ThreadRt::open(dir, choice) {
        Ok(_) => true,
        Err(BackendError::Unsupported { reason }) => {
            println!("not run: {choice:?} cannot be had: {reason}");
            false
        }
        Err(error) => panic!("{}", chain(&error)),
    }
}

/// What an error says, with all its causes.
pub(crate) fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(next) = cause {
        text.push_str(": ");
        text.push_str(&next.to_string());
        cause = next.source();
    }
    text
}

/// A number from the environment.
pub(crate) fn number(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(text.parse().unwrap_or_else(|error| panic!("{name} is `{text}`: {error}")))
}

/// The seed of `KRAFTLOG_SEED`, or a new one. Whoever takes it prints it.
pub(crate) fn seed() -> u64 {
    number("KRAFTLOG_SEED").unwrap_or_else(|| fastrand::u64(1..1 << 32))
}
