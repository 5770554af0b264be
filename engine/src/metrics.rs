//! Counters of one open log, all named in one table, and the back end that serves it.

use crate::sync::{AtomicU64, Ordering};
use kraftlog_io::BackendReport;

macro_rules! metrics {
    ($($(#[$doc:meta])* $field:ident, $name:literal;)*) => {
        /// Counters of one open log. They start at zero at open and never go down.
        #[derive(Debug)]
        pub struct Metrics {
            backend: BackendReport,
            $(pub(crate) $field: AtomicU64,)*
        }

        impl Metrics {
            pub(crate) fn new(backend: BackendReport) -> Metrics {
                Metrics { backend, $($field: AtomicU64::new(0),)* }
            }

            $($(#[$doc])*
            pub fn $field(&self) -> u64 {
                self.$field.load(Ordering::Relaxed)
            }
            )*

            /// Name and value of each, for an exporter. Behind the counters `kraftlog_uring`, which is 1
            /// where io_uring serves the log; [`backend`](Metrics::backend) has the reason.
            pub fn snapshot(&self) -> Vec<(&'static str, u64)> {
                let uring = u64::from(self.backend.backend == "uring");
                vec![$(($name, self.$field()),)* ("kraftlog_uring", uring)]
            }
        }
    };
}

metrics! {
    /// Batches that became durable.
    batches_appended, "kraftlog_batches_appended_total";
    /// Bytes that became durable.
    bytes_appended, "kraftlog_bytes_appended_total";
    /// Group commits, that is syncs of the active segment for appends.
    groups_committed, "kraftlog_groups_committed_total";
    /// Groups that failed before a sync.
    groups_failed, "kraftlog_groups_failed_total";
    /// Segments begun.
    segments_rolled, "kraftlog_segments_rolled_total";
    /// Reads answered from memory.
    reads_from_memory, "kraftlog_reads_from_memory_total";
    /// Reads that went to the disk.
    reads_from_disk, "kraftlog_reads_from_disk_total";
    /// Small files replaced.
    files_replaced, "kraftlog_files_replaced_total";
    /// Nanoseconds spent in write and sync of group commits.
    commit_nanos, "kraftlog_commit_nanoseconds_total";
}

impl Metrics {
    /// Which back end serves the log, and why, as in the open report.
    pub fn backend(&self) -> &BackendReport {
        &self.backend
    }

    pub(crate) fn add(counter: &AtomicU64, n: u64) {
        counter.fetch_add(n, Ordering::Relaxed);
    }
}
