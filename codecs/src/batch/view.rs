//! A batch borrowed from the bytes that hold it, and the walk over batches back to back.

use super::header::{BatchHeader, CRC_FROM, HEADER_BYTES};
use super::records::{GeneralRecords, Records};
use crate::crc;
use crate::error::DecodeError;

/// One whole batch.
#[derive(Clone, Copy, Debug)]
pub struct Batch<'a> {
    header: BatchHeader,
    bytes: &'a [u8],
}

impl<'a> Batch<'a> {
    /// Takes the batch at the front of `bytes` and checks its CRC; bytes behind it are not looked at.
    ///
    /// # Errors
    /// [`DecodeError::Truncated`] if the batch may go on behind the end of `bytes`,
    /// [`DecodeError::BadCrc`], or what [`BatchHeader::parse`] says.
    #[inline]
    pub fn check(bytes: &'a [u8]) -> Result<Batch<'a>, DecodeError> {
        let batch = Batch::parse(bytes)?;
        batch.check_crc()?;
        Ok(batch)
    }

    /// Takes the batch at the front of `bytes` *without* looking at its CRC, for callers that
    /// checked it while they read.
    ///
    /// # Errors
    /// As [`Batch::check`], without the CRC.
    #[inline]
    pub fn parse(bytes: &'a [u8]) -> Result<Batch<'a>, DecodeError> {
        let header = BatchHeader::parse(bytes)?;
        match bytes.get(..header.size()) {
            Some(bytes) => Ok(Batch { header, bytes }),
            None => Err(DecodeError::Truncated),
        }
    }

    /// Compares the stored CRC with that of the bytes.
    ///
    /// # Errors
    /// [`DecodeError::BadCrc`].
    #[inline]
    pub fn check_crc(&self) -> Result<(), DecodeError> {
        if self.computed_crc() == self.header.crc { Ok(()) } else { Err(DecodeError::BadCrc) }
    }

    /// The CRC that the bytes have, whatever the header says.
    #[inline]
    pub fn computed_crc(&self) -> u32 {
        crc::crc32c(self.bytes.get(CRC_FROM..).unwrap_or_default())
    }

    /// The header.
    #[inline]
    pub const fn header(&self) -> &BatchHeader {
        &self.header
    }

    /// The whole batch, header included.
    #[inline]
    pub const fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// What stands behind the header: records, or one compressed stream of them.
    #[inline]
    pub fn records_bytes(&self) -> &'a [u8] {
        self.bytes.get(HEADER_BYTES..).unwrap_or_default()
    }

    /// [`BatchHeader::check_strict`].
    ///
    /// # Errors
    /// The first rule of a KRaft batch that the header breaks.
    #[inline]
    pub fn check_strict(&self) -> Result<(), DecodeError> {
        self.header.check_strict()
    }

    /// Walks the records by the rules of a KRaft log or checkpoint.
    ///
    /// # Errors
    /// If the header breaks a rule, or claims more records than the bytes can hold.
    #[inline]
    pub fn records(&self) -> Result<Records<'a>, DecodeError> {
        Records::new(&self.header, self.records_bytes())
    }

    /// Walks records by the general rules: keys, deltas, headers and gaps are allowed.
    ///
    /// `bytes` are [`Batch::records_bytes`] or, for a compressed batch, what
    /// [`crate::compress::decompress`] made of them.
    #[inline]
    pub fn records_general<'b>(&self, bytes: &'b [u8]) -> GeneralRecords<'b> {
        GeneralRecords::new(&self.header, bytes)
    }
}

/// How the bytes of [`Batches`] end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tail {
    /// With the end of a batch.
    Clean,
    /// Inside what may be a batch: nothing contradicts that the rest is still to come.
    Partial,
    /// With bytes that are no batch.
    Corrupt(DecodeError),
}

/// Iterator over batches back to back: the position of each, and the batch or why it is none.
/// The first error is the last item.
#[derive(Clone, Debug)]
pub struct Batches<'a> {
    bytes: &'a [u8],
    position: usize,
    failed: Option<DecodeError>,
}

impl<'a> Batches<'a> {
    /// Walks `bytes` from their start, checking CRCs.
    #[inline]
    pub const fn new(bytes: &'a [u8]) -> Batches<'a> {
        Batches { bytes, position: 0, failed: None }
    }

    /// Bytes of the good batches seen so far.
    #[inline]
    pub const fn valid_bytes(&self) -> usize {
        self.position
    }

    /// How the bytes end, as far as the walk has come.
    #[inline]
    pub const fn tail(&self) -> Tail {
        match self.failed {
            None => Tail::Clean,
            Some(DecodeError::Truncated) => Tail::Partial,
            Some(error) => Tail::Corrupt(error),
        }
    }
}

impl<'a> Iterator for Batches<'a> {
    type Item = (usize, Result<Batch<'a>, DecodeError>);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let rest = self.bytes.get(self.position..).unwrap_or_default();
        if rest.is_empty() || self.failed.is_some() {
            return None;
        }
        let position = self.position;
        let batch = Batch::check(rest);
        match &batch {
            Ok(batch) => self.position += batch.bytes.len(),
            Err(error) => self.failed = Some(*error),
        }
        Some((position, batch))
    }
}

#[cfg(test)]
mod tests {
    use super::super::golden;
    use super::*;

    #[test]
    fn back_to_back_batches_are_found_at_their_positions() {
        let bytes = golden::zero_checkpoint_4_4();
        let mut batches = Batches::new(&bytes);
        let positions: Vec<usize> = batches.by_ref().map(|(at, batch)| batch.map(|_| at).unwrap()).collect();
        assert_eq!(positions, [0, 166, 419]);
        assert_eq!((batches.valid_bytes(), batches.tail()), (494, Tail::Clean));
    }

    #[test]
    fn a_partial_tail_is_told_from_a_corrupt_one() {
        let bytes = golden::zero_checkpoint_4_4();
        let end_of_second = 419;
        for cut in end_of_second + 1..bytes.len() {
            let mut batches = Batches::new(&bytes[..cut]);
            let errors = batches.by_ref().filter(|(_, batch)| batch.is_err()).count();
            assert_eq!(errors, 1, "cut at {cut}");
            assert_eq!(
                (batches.valid_bytes(), batches.tail()),
                (end_of_second, Tail::Partial),
                "cut at {cut}"
            );
        }
        for (at, error) in [
            (end_of_second + 8, DecodeError::BatchTooShort),
            (end_of_second + 16, DecodeError::BadMagic),
            (end_of_second + 17, DecodeError::BadCrc),
            (bytes.len() - 1, DecodeError::BadCrc),
        ] {
            let mut bad = bytes.clone();
            bad[at] ^= 0x80;
            let mut batches = Batches::new(&bad);
            assert_eq!(batches.by_ref().count(), 3);
            assert_eq!(
                (batches.valid_bytes(), batches.tail()),
                (end_of_second, Tail::Corrupt(error)),
                "{at}"
            );
        }
    }

    #[test]
    fn zeros_behind_the_last_batch_are_corrupt_not_partial() {
        let mut bytes = golden::zero_checkpoint_4_4();
        let end = bytes.len();
        bytes.resize(end + 4096, 0);
        let mut batches = Batches::new(&bytes);
        assert_eq!(batches.by_ref().count(), 4);
        assert_eq!((batches.valid_bytes(), batches.tail()), (end, Tail::Corrupt(DecodeError::BatchTooShort)));
    }
}
