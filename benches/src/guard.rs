//! Was the disk the same before and after? 200 bare syncs of 4 KiB tell.

use crate::bare::{BareLog, Layout};
use crate::clock;
use crate::pairs::median;
use std::path::Path;
use std::time::Duration;

/// Syncs of one reading.
const SYNCS: usize = 200;
/// A measurement whose guard moved by more than this factor says nothing.
pub const MOVED: f64 = 1.5;

/// Takes readings on a file of its own.
#[derive(Debug)]
pub struct Guard {
    log: BareLog,
    block: Vec<u8>,
    last: Duration,
}

impl Guard {
    /// Makes the guard's file in `dir` and takes the first reading.
    pub fn new(dir: &Path) -> Guard {
        let log = BareLog::create(&dir.join("guard"), Layout::Extended);
        let mut guard = Guard { log, block: vec![0x6b; 4096], last: Duration::ZERO };
        guard.last = guard.reading();
        guard
    }

    /// The last reading: the median of one sync.
    pub fn last(&self) -> Duration {
        self.last
    }

    /// Runs `work` between the last reading and a new one; with the result, the factor by which the two
    /// differ (1 or more).
    pub fn watch<T>(&mut self, work: impl FnOnce() -> T) -> (T, f64) {
        let before = self.last;
        let result = work();
        self.last = self.reading();
        let ratio = self.last.as_secs_f64() / before.as_secs_f64();
        (result, ratio.max(1.0 / ratio))
    }

    fn reading(&mut self) -> Duration {
        let syncs = (0..SYNCS).map(|_| clock::time(|| self.log.append(&self.block)));
        Duration::from_secs_f64(median(syncs.map(|sync| sync.as_secs_f64()).collect()))
    }
}
