//! Building a batch at the end of a caller's vector, byte for byte as Kafka's `BatchBuilder` does.
//!
//! Invariant: the vector holds what it held before, then room for a header, then whole records. A
//! record that does not fit changes nothing, and a builder that is dropped before
//! [`BatchBuilder::finish`] gives the vector back as it was.

use super::header::{
    Attributes, BATCH_BYTES_MAX, BatchHeader, CRC_FROM, FixedPut, HEADER_BYTES, LENGTH_OVERHEAD,
};
use crate::control::ControlRecord;
use crate::crc;
use crate::cursor::Put;
use crate::error::EncodeError;
use crate::varint;

/// What a batch shall be.
#[derive(Clone, Copy, Debug)]
pub struct BatchOptions {
    /// Offset of the first record; may be patched later, the CRC does not cover it.
    pub base_offset: i64,
    /// Epoch of the leader or of the checkpoint; may be patched later.
    pub leader_epoch: i32,
    /// Base and maximum timestamp in milliseconds.
    pub timestamp: i64,
    /// Control records (each with a key) instead of data records (none with a key).
    pub control: bool,
    /// Most bytes of the batch, header included; [`BATCH_BYTES_MAX`] is Kafka's limit.
    pub bytes_max: usize,
}

impl BatchOptions {
    /// Options of a data batch with Kafka's size limit.
    pub const fn data(base_offset: i64, leader_epoch: i32, timestamp: i64) -> BatchOptions {
        BatchOptions { base_offset, leader_epoch, timestamp, control: false, bytes_max: BATCH_BYTES_MAX }
    }

    /// Options of a control batch with Kafka's size limit.
    pub const fn control(base_offset: i64, leader_epoch: i32, timestamp: i64) -> BatchOptions {
        BatchOptions { base_offset, leader_epoch, timestamp, control: true, bytes_max: BATCH_BYTES_MAX }
    }
}

/// A record does not fit into the batch, which is unchanged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("record of {record_bytes} bytes does not fit into a batch of {batch_bytes} of at most {bytes_max}")]
pub struct BatchFull {
    /// Bytes of the record, its length prefix included.
    pub record_bytes: usize,
    /// Bytes that the batch has.
    pub batch_bytes: usize,
    /// Most bytes it may have.
    pub bytes_max: usize,
}

impl BatchFull {
    /// True if an empty batch with this limit could not hold the record either.
    pub const fn never_fits(&self) -> bool {
        self.record_bytes > self.bytes_max - HEADER_BYTES
    }
}

/// Why [`BatchBuilder::append_with`] added nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AppendError<E: std::error::Error + 'static = EncodeError> {
    /// The batch has no room for the record.
    #[error(transparent)]
    Full(#[from] BatchFull),
    /// The record could not be encoded.
    #[error("record cannot be encoded")]
    Encode(#[source] E),
}

/// Writes one batch behind what a vector holds.
///
/// ```
/// use kraftlog_codecs::batch::{Batch, BatchBuilder, BatchOptions};
/// let mut bytes = Vec::new();
/// let mut builder = BatchBuilder::new(&mut bytes, BatchOptions::data(1, 1, 1_700_000_000_000));
/// builder.append(None, &[1, 20, 0, 0])?; // a NoOpRecord
/// assert_eq!(builder.finish().last_offset(), 1);
/// assert_eq!(Batch::check(&bytes)?.records()?.count(), 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct BatchBuilder<'b> {
    buf: &'b mut Vec<u8>,
    /// Where the batch starts in `buf`.
    start: usize,
    options: BatchOptions,
    count: i32,
    finished: bool,
}

impl<'b> BatchBuilder<'b> {
    /// Begins a batch at the end of `buf`.
    ///
    /// # Panics
    /// If the base offset is negative, or the limit is below a header's size or above 2^31 - 1.
    pub fn new(buf: &'b mut Vec<u8>, options: BatchOptions) -> BatchBuilder<'b> {
        assert!(options.base_offset >= 0, "base offset {}", options.base_offset);
        assert!(options.bytes_max >= HEADER_BYTES, "limit of {} bytes", options.bytes_max);
        assert!(i32::try_from(options.bytes_max).is_ok(), "limit of {} bytes", options.bytes_max);
        let start = buf.len();
        buf.resize(start + HEADER_BYTES, 0);
        BatchBuilder { buf, start, options, count: 0, finished: false }
    }

    /// Number of records.
    #[inline]
    pub const fn count(&self) -> usize {
        self.count.cast_unsigned() as usize
    }

    /// True if there are no records yet.
    #[inline]
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Bytes of the batch so far, header included.
    #[inline]
    pub const fn size(&self) -> usize {
        self.buf.len() - self.start
    }

    /// Offset that the next record gets.
    #[inline]
    pub const fn next_offset(&self) -> i64 {
        self.options.base_offset + self.count as i64
    }

    /// Adds a record.
    ///
    /// # Errors
    /// [`BatchFull`]; the batch is as before.
    ///
    /// # Panics
    /// If `value` is empty, or there is a key in a data batch, or none of four bytes or more in a
    /// control batch: no reader would take the batch.
    #[inline]
    pub fn append(&mut self, key: Option<&[u8]>, value: &[u8]) -> Result<(), BatchFull> {
        self.check_key(key);
        assert!(!value.is_empty(), "record {} of a batch has no value", self.count);
        let prefix = Prefix::new(self.count, key, value.len());
        if prefix.record_bytes > self.options.bytes_max - self.size() {
            return Err(self.full(&prefix));
        }
        self.buf.reserve(prefix.record_bytes);
        prefix.put(self.buf, key);
        self.buf.extend_from_slice(value);
        self.buf.push(0);
        self.count += 1;
        Ok(())
    }

    /// Adds a record whose value `encode` writes straight to the end of the vector it gets. It must
    /// only append there.
    ///
    /// # Errors
    /// [`AppendError::Full`], or [`AppendError::Encode`] with what `encode` returned; the batch is
    /// as before.
    ///
    /// # Panics
    /// As [`BatchBuilder::append`]; also if `encode` shortened the vector.
    pub fn append_with<E: std::error::Error + 'static>(
        &mut self,
        key: Option<&[u8]>,
        encode: impl FnOnce(&mut Vec<u8>) -> Result<(), E>,
    ) -> Result<(), AppendError<E>> {
        self.check_key(key);
        let record_at = self.buf.len();
        if let Err(error) = encode(self.buf) {
            self.buf.truncate(record_at);
            return Err(AppendError::Encode(error));
        }
        assert!(self.buf.len() >= record_at, "encode cut the vector to {} of {record_at}", self.buf.len());
        let value_bytes = self.buf.len() - record_at;
        assert!(value_bytes > 0, "record {} of a batch has no value", self.count);
        let prefix = Prefix::new(self.count, key, value_bytes);
        if prefix.record_bytes > self.options.bytes_max - (record_at - self.start) {
            self.buf.truncate(record_at);
            return Err(AppendError::Full(self.full(&prefix)));
        }
        // Only now is it known how long the prefix is: make room for it and for the header count.
        let value_at = record_at + prefix.bytes(value_bytes);
        self.buf.resize(record_at + prefix.record_bytes, 0);
        self.buf.copy_within(record_at..record_at + value_bytes, value_at);
        if let Some(room) = self.buf.get_mut(record_at..value_at) {
            prefix.put(&mut FixedPut { rest: room }, key);
        }
        if let Some(header_count) = self.buf.last_mut() {
            *header_count = 0;
        }
        self.count += 1;
        Ok(())
    }

    /// Adds a control record, key and value.
    ///
    /// # Errors
    /// As [`BatchBuilder::append_with`].
    pub fn append_control(&mut self, record: &ControlRecord<'_>) -> Result<(), AppendError> {
        let mut key = Vec::with_capacity(4);
        record.encode_key(&mut key);
        self.append_with(Some(&key), |out| record.encode_value(out))
    }

    /// Writes length, count and CRC into the header and ends the batch.
    ///
    /// # Panics
    /// If there is no record: a KRaft batch is never empty.
    pub fn finish(mut self) -> BatchHeader {
        assert!(self.count > 0, "a batch at offset {} without records", self.options.base_offset);
        let size = self.size();
        let Ok(batch_length) = i32::try_from(size - LENGTH_OVERHEAD) else {
            panic!("a batch of {size} bytes, limit {}", self.options.bytes_max);
        };
        let mut header = BatchHeader {
            base_offset: self.options.base_offset,
            batch_length,
            leader_epoch: self.options.leader_epoch,
            crc: 0,
            attributes: if self.options.control { Attributes::CONTROL } else { Attributes::DATA },
            last_offset_delta: self.count - 1,
            base_timestamp: self.options.timestamp,
            max_timestamp: self.options.timestamp,
            producer_id: -1,
            producer_epoch: -1,
            base_sequence: -1,
            records_count: self.count,
        };
        self.put_header(&header);
        header.crc = crc::crc32c(self.buf.get(self.start + CRC_FROM..).unwrap_or_default());
        self.put_header(&header);
        self.finished = true;
        header
    }

    fn put_header(&mut self, header: &BatchHeader) {
        if let Some(room) = self.buf.get_mut(self.start..self.start + HEADER_BYTES) {
            room.copy_from_slice(&header.encode());
        }
    }

    #[cold]
    fn full(&self, prefix: &Prefix) -> BatchFull {
        BatchFull {
            record_bytes: prefix.record_bytes,
            batch_bytes: self.size(),
            bytes_max: self.options.bytes_max,
        }
    }

    #[inline]
    fn check_key(&self, key: Option<&[u8]>) {
        match key {
            None => assert!(!self.options.control, "control record {} has no key", self.count),
            Some(key) => {
                assert!(self.options.control, "data record {} has a key of {} bytes", self.count, key.len());
                assert!(key.len() >= 4, "control record {} has a key of {} bytes", self.count, key.len());
            }
        }
    }
}

impl Drop for BatchBuilder<'_> {
    fn drop(&mut self) {
        if !self.finished {
            self.buf.truncate(self.start);
        }
    }
}

/// What stands before a record's value: length, attributes, deltas, key, length of the value.
struct Prefix {
    /// Bytes of the whole record, its length prefix included; saturated if out of any range.
    record_bytes: usize,
    body_bytes: usize,
    offset_delta: i32,
    value_bytes: usize,
}

impl Prefix {
    #[inline]
    fn new(offset_delta: i32, key: Option<&[u8]>, value_bytes: usize) -> Prefix {
        let key_bytes = match key {
            None => varint::size_i32(-1),
            Some(key) => length_size(key.len()).saturating_add(key.len()),
        };
        // Attributes, timestamp delta and header count are one byte each.
        let body_bytes = (3 + varint::size_i32(offset_delta) + length_size(value_bytes))
            .saturating_add(key_bytes)
            .saturating_add(value_bytes);
        let record_bytes = length_size(body_bytes).saturating_add(body_bytes);
        Prefix { record_bytes, body_bytes, offset_delta, value_bytes }
    }

    /// Bytes before the value.
    #[inline]
    fn bytes(&self, value_bytes: usize) -> usize {
        self.record_bytes - value_bytes - 1
    }

    #[inline]
    fn put(&self, out: &mut impl Put, key: Option<&[u8]>) {
        put_length(out, self.body_bytes);
        out.put(&[0, 0]);
        out.put_varint(self.offset_delta);
        match key {
            None => out.put_varint(-1),
            Some(key) => {
                put_length(out, key.len());
                out.put(key);
            }
        }
        put_length(out, self.value_bytes);
    }
}

/// Bytes of a length as a zigzag varint. Lengths stay below the batch limit, so below 2^31.
#[inline]
fn length_size(length: usize) -> usize {
    varint::size_u64((length as u64).saturating_mul(2))
}

#[inline]
fn put_length(out: &mut impl Put, length: usize) {
    out.put_uvarlong(length as u64 * 2);
}

#[cfg(test)]
#[path = "build_tests.rs"]
mod tests;
