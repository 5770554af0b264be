//! Crashes on purpose: nodes on a simulated machine lose power, and what is found is held against what
//! was promised.
//!
//! - [`exhaustive`]: each operation alone and in pairs, a power cut before every step, all that may be
//!   left of it (sampled where there is too much);
//! - [`random`]: long seeded histories with many clients, crashed, crashed again in recovery, gone on
//!   with from what was found;
//! - [`faults`]: every step of every operation fails in every way, then the process or the machine dies;
//! - [`program`]: histories written down in bytes, for a fuzzer;
//! - [`identity`]: format, start and learning the cluster id, crashed and failed at every step;
//! - [`plants`]: the same with a mistake planted in the code, to see that it is found.
//!
//! To add an operation: give it an `Action` (`node.rs`), do it in `Node::act`, put what it promises into
//! `Expect`, and hold that against what is found in `check::look`. It is then explored everywhere.

mod check;
pub mod exhaustive;
mod expect;
pub mod faults;
pub mod identity;
mod node;
pub mod plants;
pub mod program;
pub mod random;
mod report;

pub use report::{Tally, Violation};

use kraftlog::{Epoch, LogConfig, Preallocation, Role};
use kraftlog_codecs::batch::{BatchBuilder, BatchOptions};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether steps and answers are told on stderr, for whoever replays a violation.
static TRACE: AtomicBool = AtomicBool::new(false);

/// Tells steps and answers on stderr from now on.
pub fn trace() {
    TRACE.store(true, Ordering::Relaxed);
}

fn tell(what: &dyn std::fmt::Display) {
    if TRACE.load(Ordering::Relaxed) {
        eprintln!("  {what}");
    }
}

const NODE_DIR: &str = "/node";

fn part_dir() -> PathBuf {
    PathBuf::from(NODE_DIR).join("__cluster_metadata-0")
}

/// A record of about so many bytes that nobody needs to understand (a NoOpRecord with a tagged field).
fn record(bytes: usize) -> Vec<u8> {
    let len = bytes.clamp(8, 16_000) - 6;
    let low = u8::try_from(len & 0x7f).expect("seven bits");
    let high = u8::try_from(len >> 7).expect("seven bits");
    let mut value = vec![1, 20, 0, 1, 100, low | 0x80, high];
    value.resize(value.len() + len, 0x5a);
    value
}

/// A batch of so many records and about so many bytes.
fn batch(epoch: Epoch, records: usize, bytes: usize) -> Vec<u8> {
    let mut batch = Vec::new();
    let mut builder = BatchBuilder::new(&mut batch, BatchOptions::data(0, epoch.0, 1_700_000_000_000));
    for _ in 0..records {
        builder.append(None, &record(bytes.saturating_sub(70) / records)).expect("a small batch has room");
    }
    builder.finish();
    batch
}

/// Small segments, so that logs roll; each kind of preallocation, and an observer, which cuts where a
/// voter refuses: what was acknowledged it must keep as well.
fn configs() -> [LogConfig; 4] {
    [
        (Role::Voter, Preallocation::Extend(4096)),
        (Role::Voter, Preallocation::None),
        (Role::Voter, Preallocation::KeepSize(4096)),
        (Role::Observer, Preallocation::Extend(4096)),
    ]
    .map(|(role, preallocation)| {
        let mut config = LogConfig::default();
        config.role = role;
        config.segment_bytes_max = 2500;
        config.preallocation = preallocation;
        config
    })
}
