//! The 61 bytes in front of a batch: parse, check, write, and patch in place.
//!
//! The CRC covers everything from [`CRC_FROM`] on. Base offset and leader epoch lie before it, so
//! a leader may assign them to a finished batch ([`patch_offset_and_epoch`]).

use crate::compress::Compression;
use crate::cursor::{Put, Reader};
use crate::error::DecodeError;

/// Size of the header.
pub const HEADER_BYTES: usize = 61;
/// Bytes that `batch_length` does not count: base offset and the length itself.
pub const LENGTH_OVERHEAD: usize = 12;
/// Most bytes of one batch, header included (`KafkaRaftClient.MAX_BATCH_SIZE_BYTES`).
pub const BATCH_BYTES_MAX: usize = 8 << 20;
/// First byte that the CRC covers.
pub const CRC_FROM: usize = 21;

const MAGIC: u8 = 2;
const MAGIC_AT: usize = 16;
const BATCH_LENGTH_MIN: i32 = 49;
const _: () = assert!(BATCH_LENGTH_MIN as usize + LENGTH_OVERHEAD == HEADER_BYTES);
const _: () = assert!(CRC_FROM < HEADER_BYTES);

/// Attribute bits of a batch; unused bits are kept as they were read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct Attributes(pub i16);

impl Attributes {
    /// What KRaft writes for data: no compression, create time.
    pub const DATA: Attributes = Attributes(0);
    /// What KRaft writes for control records.
    pub const CONTROL: Attributes = Attributes(0x20);

    /// How the records are compressed.
    ///
    /// # Errors
    /// [`DecodeError::BadCompression`] for ids 5 to 7.
    #[inline]
    pub const fn compression(self) -> Result<Compression, DecodeError> {
        match Compression::from_id((self.0 & 0x07).cast_unsigned()) {
            Some(compression) => Ok(compression),
            None => Err(DecodeError::BadCompression),
        }
    }

    /// True if every record's timestamp is the batch's maximum.
    #[inline]
    pub const fn is_log_append_time(self) -> bool {
        self.0 & 0x08 != 0
    }

    /// True if the batch belongs to a producer's transaction (not a metadata transaction).
    #[inline]
    pub const fn is_transactional(self) -> bool {
        self.0 & 0x10 != 0
    }

    /// True if the records are control records.
    #[inline]
    pub const fn is_control(self) -> bool {
        self.0 & 0x20 != 0
    }

    /// True if the base timestamp holds a delete horizon instead.
    #[inline]
    pub const fn has_delete_horizon(self) -> bool {
        self.0 & 0x40 != 0
    }
}

/// The header of a batch, without its magic, which is 2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BatchHeader {
    /// Offset of the first record.
    pub base_offset: i64,
    /// Bytes behind this field: the batch's size less 12.
    pub batch_length: i32,
    /// Epoch of the leader that wrote the batch, or the epoch of the checkpoint. Not under the CRC.
    pub leader_epoch: i32,
    /// CRC-32C of everything from byte 21 on.
    pub crc: u32,
    /// Compression, kind of timestamps, transactional, control.
    pub attributes: Attributes,
    /// Offset of the last record less the base offset.
    pub last_offset_delta: i32,
    /// Timestamp that the records' deltas add to; -1 is none.
    pub base_timestamp: i64,
    /// Greatest timestamp of the records; -1 is none.
    pub max_timestamp: i64,
    /// -1 in a KRaft batch.
    pub producer_id: i64,
    /// -1 in a KRaft batch.
    pub producer_epoch: i16,
    /// -1 in a KRaft batch.
    pub base_sequence: i32,
    /// Number of records.
    pub records_count: i32,
}

impl BatchHeader {
    /// Parses and checks the header at the front of `bytes`; what follows is not looked at.
    ///
    /// After `Ok`, size and offsets are in range: `size() >= 61`, `0 <= base_offset <= last_offset()`
    /// and `next_offset()` does not overflow.
    ///
    /// # Errors
    /// [`DecodeError::Truncated`] if there are fewer than 61 bytes and those that are there could
    /// begin a batch; [`DecodeError::BatchTooShort`], [`DecodeError::BadMagic`] or
    /// [`DecodeError::BadOffset`] if they cannot.
    #[inline]
    pub fn parse(bytes: &[u8]) -> Result<BatchHeader, DecodeError> {
        let Some(header) = bytes.first_chunk::<HEADER_BYTES>() else { return Err(parse_short(bytes)) };
        let mut reader = Reader::new(header);
        let base_offset = reader.i64()?;
        let batch_length = reader.i32()?;
        if batch_length < BATCH_LENGTH_MIN {
            return Err(DecodeError::BatchTooShort);
        }
        let leader_epoch = reader.i32()?;
        if reader.u8()? != MAGIC {
            return Err(DecodeError::BadMagic);
        }
        let header = BatchHeader {
            base_offset,
            batch_length,
            leader_epoch,
            crc: reader.u32()?,
            attributes: Attributes(reader.i16()?),
            last_offset_delta: reader.i32()?,
            base_timestamp: reader.i64()?,
            max_timestamp: reader.i64()?,
            producer_id: reader.i64()?,
            producer_epoch: reader.i16()?,
            base_sequence: reader.i32()?,
            records_count: reader.i32()?,
        };
        if base_offset < 0 || header.last_offset_delta < 0 || header.last_offset() == i64::MAX {
            return Err(DecodeError::BadOffset);
        }
        Ok(header)
    }

    /// Size of the batch at the front of `bytes`, of which twelve must be there.
    ///
    /// # Errors
    /// [`DecodeError::Truncated`] below twelve bytes, [`DecodeError::BatchTooShort`] if the length
    /// is below a header's.
    #[inline]
    pub fn frame(bytes: &[u8]) -> Result<usize, DecodeError> {
        let mut reader = Reader::new(bytes);
        let _base_offset = reader.i64()?;
        let length = reader.i32()?;
        if length < BATCH_LENGTH_MIN {
            return Err(DecodeError::BatchTooShort);
        }
        Ok(size_of_length(length))
    }

    /// Size of the whole batch in bytes.
    #[inline]
    pub const fn size(&self) -> usize {
        size_of_length(self.batch_length)
    }

    /// Offset of the last record.
    #[inline]
    pub const fn last_offset(&self) -> i64 {
        self.base_offset.saturating_add(self.last_offset_delta as i64)
    }

    /// Offset of the batch that follows.
    #[inline]
    pub const fn next_offset(&self) -> i64 {
        self.last_offset().saturating_add(1)
    }

    /// True if the records are control records.
    #[inline]
    pub const fn is_control(&self) -> bool {
        self.attributes.is_control()
    }

    /// True if the batch belongs to a producer's transaction.
    #[inline]
    pub const fn is_transactional(&self) -> bool {
        self.attributes.is_transactional()
    }

    /// How the records are compressed.
    ///
    /// # Errors
    /// [`DecodeError::BadCompression`] for ids that Kafka does not know.
    #[inline]
    pub const fn compression(&self) -> Result<Compression, DecodeError> {
        self.attributes.compression()
    }

    /// What the header alone must show in a KRaft batch: no compression, at least one record, and
    /// the last offset that the count asks for. Kafka's KRaft reader does not notice the last of these.
    ///
    /// # Errors
    /// The first rule that is broken.
    #[inline]
    pub fn check_strict(&self) -> Result<(), DecodeError> {
        if self.compression()? != Compression::None {
            return Err(DecodeError::Compressed);
        }
        if self.records_count <= 0 {
            return Err(DecodeError::BadRecordCount);
        }
        if self.last_offset_delta != self.records_count - 1 {
            return Err(DecodeError::BadLastOffsetDelta);
        }
        Ok(())
    }

    /// The header as it stands on disk.
    pub fn encode(&self) -> [u8; HEADER_BYTES] {
        let mut header = [0u8; HEADER_BYTES];
        let mut out = FixedPut { rest: &mut header };
        out.put_i64(self.base_offset);
        out.put_i32(self.batch_length);
        out.put_i32(self.leader_epoch);
        out.put_u8(MAGIC);
        out.put_u32(self.crc);
        out.put_i16(self.attributes.0);
        out.put_i32(self.last_offset_delta);
        out.put_i64(self.base_timestamp);
        out.put_i64(self.max_timestamp);
        out.put_i64(self.producer_id);
        out.put_i16(self.producer_epoch);
        out.put_i32(self.base_sequence);
        out.put_i32(self.records_count);
        assert!(out.rest.is_empty(), "{} bytes of the header are not written", out.rest.len());
        header
    }
}

/// Size of a batch whose length field, already checked to be positive, is `length`.
#[inline]
const fn size_of_length(length: i32) -> usize {
    // The cast keeps the value: it is not negative, and pointers have at least 32 bits.
    LENGTH_OVERHEAD + length.cast_unsigned() as usize
}

/// Tells a batch that may still be arriving from bytes that cannot begin one.
#[cold]
fn parse_short(bytes: &[u8]) -> DecodeError {
    if let Err(error) = BatchHeader::frame(bytes) {
        return error;
    }
    match bytes.get(MAGIC_AT) {
        Some(&magic) if magic != MAGIC => DecodeError::BadMagic,
        _ => DecodeError::Truncated,
    }
}

/// Assigns offset and epoch to a finished batch in place; the CRC does not cover them.
///
/// # Panics
/// If `batch` is shorter than a header.
#[inline]
pub fn patch_offset_and_epoch(batch: &mut [u8], base_offset: i64, leader_epoch: i32) {
    assert!(batch.len() >= HEADER_BYTES, "a batch of {} bytes has no header", batch.len());
    if let Some(field) = batch.first_chunk_mut::<8>() {
        *field = base_offset.to_be_bytes();
    }
    if let Some(field) = batch.get_mut(LENGTH_OVERHEAD..MAGIC_AT) {
        field.copy_from_slice(&leader_epoch.to_be_bytes());
    }
}

/// Writes into a slice of exactly the right size.
pub(super) struct FixedPut<'b> {
    pub(super) rest: &'b mut [u8],
}

impl Put for FixedPut<'_> {
    fn put(&mut self, bytes: &[u8]) {
        let Some((head, rest)) = std::mem::take(&mut self.rest).split_at_mut_checked(bytes.len()) else {
            panic!("{} bytes do not fit into what is left of the header", bytes.len());
        };
        head.copy_from_slice(bytes);
        self.rest = rest;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header() -> BatchHeader {
        BatchHeader {
            base_offset: 7,
            batch_length: 49,
            leader_epoch: 3,
            crc: 0xdead_beef,
            attributes: Attributes(0x7fb9_u16.cast_signed()),
            last_offset_delta: 5,
            base_timestamp: -1,
            max_timestamp: i64::MAX,
            producer_id: -1,
            producer_epoch: -1,
            base_sequence: -1,
            records_count: -6,
        }
    }

    #[test]
    fn every_field_comes_back_from_its_bytes() {
        assert_eq!(BatchHeader::parse(&header().encode()), Ok(header()));
        assert_eq!(header().size(), HEADER_BYTES);
        assert_eq!((header().last_offset(), header().next_offset()), (12, 13));
    }

    #[test]
    fn lengths_and_offsets_out_of_range_are_refused() {
        for length in [i32::MIN, -1, 0, 13, 48] {
            let bytes = BatchHeader { batch_length: length, ..header() }.encode();
            assert_eq!(BatchHeader::parse(&bytes), Err(DecodeError::BatchTooShort), "{length}");
            assert_eq!(BatchHeader::frame(&bytes[..12]), Err(DecodeError::BatchTooShort), "{length}");
        }
        let longest = BatchHeader { batch_length: i32::MAX, ..header() };
        assert_eq!(BatchHeader::parse(&longest.encode()).map(|h| h.size()), Ok((1 << 31) + 11));
        for (base_offset, last_offset_delta) in
            [(-1, 0), (0, -1), (i64::MAX, 0), (i64::MAX - 1, 1), (i64::MIN, i32::MAX)]
        {
            let bytes = BatchHeader { base_offset, last_offset_delta, ..header() }.encode();
            assert_eq!(BatchHeader::parse(&bytes), Err(DecodeError::BadOffset), "{base_offset}");
        }
        let greatest = BatchHeader { base_offset: i64::MAX - 2, last_offset_delta: 1, ..header() };
        assert_eq!(BatchHeader::parse(&greatest.encode()).map(|h| h.next_offset()), Ok(i64::MAX));
    }

    #[test]
    fn a_short_header_is_partial_only_if_it_can_begin_a_batch() {
        let good = header().encode();
        for len in 0..HEADER_BYTES {
            assert_eq!(BatchHeader::parse(&good[..len]), Err(DecodeError::Truncated), "{len} bytes");
        }
        assert_eq!(BatchHeader::parse(&[0; 12]), Err(DecodeError::BatchTooShort));
        let mut bad = good;
        bad[MAGIC_AT] = 1;
        assert_eq!(BatchHeader::parse(&bad[..17]), Err(DecodeError::BadMagic));
        assert_eq!(BatchHeader::parse(&bad), Err(DecodeError::BadMagic));
    }

    #[test]
    fn strict_rules_of_the_header() {
        let good = BatchHeader { attributes: Attributes::CONTROL, records_count: 6, ..header() };
        assert_eq!(good.check_strict(), Ok(()));
        for (bad, error) in [
            (BatchHeader { attributes: Attributes(1), ..good }, DecodeError::Compressed),
            (BatchHeader { attributes: Attributes(5), ..good }, DecodeError::BadCompression),
            (BatchHeader { records_count: 0, ..good }, DecodeError::BadRecordCount),
            (BatchHeader { records_count: i32::MIN, ..good }, DecodeError::BadRecordCount),
            (BatchHeader { records_count: 5, ..good }, DecodeError::BadLastOffsetDelta),
        ] {
            assert_eq!(bad.check_strict(), Err(error));
        }
    }

    #[test]
    fn patching_changes_offset_and_epoch_alone() {
        let mut bytes = header().encode();
        patch_offset_and_epoch(&mut bytes, 1 << 40, 9);
        let expected = BatchHeader { base_offset: 1 << 40, leader_epoch: 9, ..header() };
        assert_eq!(BatchHeader::parse(&bytes), Ok(expected));
    }
}
