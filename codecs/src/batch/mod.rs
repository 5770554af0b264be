//! Record batches of magic 2, the only kind that a KRaft log or checkpoint holds.
//!
//! [`BatchHeader`] is the 61 bytes in front, [`Batch`] a borrowed batch, [`Batches`] many of them
//! back to back, [`Records`] the walk that KRaft's rules allow, [`GeneralRecords`] the walk over
//! anything that Kafka may have written elsewhere, [`BatchBuilder`] the way to write one, and
//! [`find_valid_batch`] the search for what still stands behind a damaged one.
//!
//! Nothing here allocates, except that a builder grows the vector it was given.

mod build;
mod header;
mod records;
mod search;
mod view;

pub use build::{AppendError, BatchBuilder, BatchFull, BatchOptions};
pub use header::{
    Attributes, BATCH_BYTES_MAX, BatchHeader, CRC_FROM, HEADER_BYTES, LENGTH_OVERHEAD, patch_offset_and_epoch,
};
pub use records::{GeneralRecord, GeneralRecords, Record, RecordHeaders, Records};
pub use search::{Found, find_valid_batch};
pub use view::{Batch, Batches, Tail};

#[cfg(test)]
mod golden;
