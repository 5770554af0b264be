//! The batches of a checkpoint, byte for byte as Kafka's `RecordsSnapshotWriter` makes them.
//!
//! Header batch, data batches, footer batch; offsets count through the file from 0, every batch
//! has the epoch of the snapshot and the time at which it was opened. A list of records that is
//! given in one call never spans two batches; lists share a batch while they fit into 8 MiB. The
//! list that did not fit any more gets a batch to itself: Kafka's writer drains its accumulator
//! whenever a batch is complete, and draining completes the one just begun as well.
//!
//! Holds one open batch and does no I/O: batches that are complete are handed out.

use crate::control::VoterSet;
use crate::types::Epoch;
use kraftlog_codecs::batch::{
    Attributes, BATCH_BYTES_MAX, BatchBuilder, BatchHeader, BatchOptions, CRC_FROM, HEADER_BYTES,
    LENGTH_OVERHEAD,
};
use kraftlog_codecs::control::{ControlRecord, KRaftVersion, SnapshotFooter, SnapshotHeader};
use kraftlog_codecs::crc;
use kraftlog_codecs::cursor::{Put, Sizer};
use kraftlog_codecs::varint;

/// Bytes of a record around its value when the lengths are left out: attributes, timestamp delta,
/// null key, header count.
const RECORD_FIXED_BYTES: usize = 4;

/// Why a list of records was not taken; nothing of it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EncodeRefusal {
    /// The list needs more than one batch.
    #[error("records of one call need a batch of {bytes} bytes, the limit is {bytes_max}")]
    BatchTooLarge {
        /// Size of the batch they would need.
        bytes: usize,
        /// Kafka's limit.
        bytes_max: usize,
    },
    /// A record has no bytes; no reader would take it.
    #[error("record {index} of the list is empty")]
    EmptyRecord {
        /// Its place in the list.
        index: usize,
    },
}

/// What the first batch of a checkpoint says.
#[derive(Debug, Clone)]
pub struct Head {
    /// Append time of the last log batch that the snapshot covers, in milliseconds.
    pub last_contained_log_timestamp: i64,
    /// kraft.version as of the last offset covered. Version and voters are written from 1 on.
    pub kraft_version: i16,
    /// The voter set as of the last offset covered, if log or snapshot had one.
    pub voters: Option<VoterSet>,
}

/// Turns records into the batches of a checkpoint.
#[derive(Debug)]
pub struct SnapshotEncoder {
    epoch: Epoch,
    bytes_max: usize,
    next_offset: i64,
    /// The open data batch: room for its header, then its records. Empty when none is open.
    open: Vec<u8>,
    /// Time and record count of the open batch.
    opened_at: i64,
    count: i32,
}

impl SnapshotEncoder {
    /// Begins a checkpoint at time `now` and puts its header batch into `out`.
    pub fn new(epoch: Epoch, head: &Head, now: i64, out: &mut Vec<u8>) -> SnapshotEncoder {
        let mut builder = BatchBuilder::new(out, BatchOptions::control(0, epoch.0, now));
        let last_contained_log_timestamp = head.last_contained_log_timestamp;
        let header = SnapshotHeader { last_contained_log_timestamp, ..SnapshotHeader::default() };
        append(&mut builder, &ControlRecord::SnapshotHeader(header));
        if head.kraft_version > 0 {
            let version = KRaftVersion { kraft_version: head.kraft_version, ..KRaftVersion::default() };
            append(&mut builder, &ControlRecord::KRaftVersion(version));
            if let Some(voters) = &head.voters {
                append(&mut builder, &ControlRecord::Voters(voters.clone()));
            }
        }
        let next_offset = builder.finish().next_offset();
        let (open, opened_at, count) = (Vec::new(), 0, 0);
        SnapshotEncoder { epoch, bytes_max: BATCH_BYTES_MAX, next_offset, open, opened_at, count }
    }

    /// Lowers the batch limit, for tests of the rules at the limit.
    #[cfg(test)]
    pub(crate) fn with_batch_bytes_max(mut self, bytes_max: usize) -> SnapshotEncoder {
        self.bytes_max = bytes_max;
        self
    }

    /// Adds a list of encoded metadata records. If the open batch has no room for them, that batch
    /// and one with the list alone are given back. A new batch has the time `now()`.
    ///
    /// # Errors
    /// [`EncodeRefusal`]; nothing changed.
    pub fn append<R: AsRef<[u8]>>(
        &mut self,
        records: &[R],
        now: impl Fn() -> i64,
    ) -> Result<Option<Vec<u8>>, EncodeRefusal> {
        if let Some(index) = records.iter().position(|record| record.as_ref().is_empty()) {
            return Err(EncodeRefusal::EmptyRecord { index });
        }
        if records.is_empty() {
            return Ok(None);
        }
        let bytes = self.bytes_of(records);
        let mut complete = None;
        let mut alone = false;
        if self.open.len().max(HEADER_BYTES) + bytes > self.bytes_max {
            // As in Kafka, the size is that at the place in the open batch, not in a new one.
            if HEADER_BYTES + bytes > self.bytes_max {
                let (bytes, bytes_max) = (HEADER_BYTES + bytes, self.bytes_max);
                return Err(EncodeRefusal::BatchTooLarge { bytes, bytes_max });
            }
            complete = self.close_batch();
            alone = complete.is_some();
        }
        if self.open.is_empty() {
            self.open.resize(HEADER_BYTES, 0);
            self.opened_at = now();
        }
        for record in records {
            self.put_record(record.as_ref());
        }
        if alone {
            complete.get_or_insert_default().extend(self.close_batch().unwrap_or_default());
        }
        Ok(complete)
    }

    /// True if [`append`](Self::append) of these records would complete the open batch.
    pub fn completes_batch<R: AsRef<[u8]>>(&self, records: &[R]) -> bool {
        self.count > 0 && self.open.len() + self.bytes_of(records) > self.bytes_max
    }

    /// Ends the checkpoint: what is left, footer included.
    pub fn finish(mut self, now: i64) -> Vec<u8> {
        let mut out = self.close_batch().unwrap_or_default();
        let mut builder =
            BatchBuilder::new(&mut out, BatchOptions::control(self.next_offset, self.epoch.0, now));
        append(&mut builder, &ControlRecord::SnapshotFooter(SnapshotFooter::default()));
        builder.finish();
        out
    }

    /// What the records take in the open batch.
    fn bytes_of<R: AsRef<[u8]>>(&self, records: &[R]) -> usize {
        let record_bytes = |(delta, record): (i32, &R)| {
            let body = body_bytes(delta, record.as_ref().len());
            varint_bytes(body) + body
        };
        (self.count..).zip(records).map(record_bytes).sum()
    }

    fn put_record(&mut self, value: &[u8]) {
        let out = &mut self.open;
        out.put_varint(length(body_bytes(self.count, value.len())));
        out.put_u8(0);
        out.put_u8(0);
        out.put_varint(self.count);
        out.put_varint(-1);
        out.put_varint(length(value.len()));
        out.put(value);
        out.put_u8(0);
        self.count += 1;
    }

    fn close_batch(&mut self) -> Option<Vec<u8>> {
        if self.count == 0 {
            return None;
        }
        let mut batch = std::mem::take(&mut self.open);
        assert!(batch.len() <= self.bytes_max, "batch of {} bytes, at most {}", batch.len(), self.bytes_max);
        let mut header = BatchHeader {
            base_offset: self.next_offset,
            batch_length: length(batch.len() - LENGTH_OVERHEAD),
            leader_epoch: self.epoch.0,
            crc: 0,
            attributes: Attributes::DATA,
            last_offset_delta: self.count - 1,
            base_timestamp: self.opened_at,
            max_timestamp: self.opened_at,
            producer_id: -1,
            producer_epoch: -1,
            base_sequence: -1,
            records_count: self.count,
        };
        batch[..HEADER_BYTES].copy_from_slice(&header.encode());
        header.crc = crc::crc32c(&batch[CRC_FROM..]);
        batch[..HEADER_BYTES].copy_from_slice(&header.encode());
        self.next_offset = header.next_offset();
        self.count = 0;
        Some(batch)
    }
}

fn append(builder: &mut BatchBuilder<'_>, record: &ControlRecord<'_>) {
    let appended = builder.append_control(record);
    assert!(appended.is_ok(), "control records fit into a batch: {appended:?}");
}

/// Bytes of a record behind its length.
fn body_bytes(offset_delta: i32, value_bytes: usize) -> usize {
    let mut delta = Sizer::default();
    delta.put_varint(offset_delta);
    RECORD_FIXED_BYTES + delta.0 + varint_bytes(value_bytes) + value_bytes
}

fn varint_bytes(length_value: usize) -> usize {
    varint::size_u32(varint::zigzag32(length(length_value)))
}

/// Lengths in a batch are bounded by its limit, far below 2^31.
fn length(bytes: usize) -> i32 {
    i32::try_from(bytes).unwrap_or(i32::MAX)
}

#[cfg(test)]
#[path = "encode_tests.rs"]
mod tests;
