//! The batches of one file, one after the other, in constant memory.
//!
//! Invariants: memory is the larger of a search window and one batch, and a batch's size is believed
//! only when the file really has so many bytes. Every step moves forward or ends.
//!
//! Damage does not stop the walk. A batch whose checksum is wrong is given out as such, and the walk
//! goes on behind it by its length, unless a valid batch begins inside of it: then the length is
//! what is broken. Bytes that are no batch are skipped up to the next batch with a good checksum.
//! What remains at the end without any is the torn tail.

use kraftlog_codecs::batch::{Batch, BatchHeader, Found, HEADER_BYTES, find_valid_batch};
use kraftlog_codecs::error::DecodeError;
use std::fs::File;
use std::io::{self, Read};

/// Bytes that are read at once.
const READ_BYTES: usize = 256 << 10;
/// Bytes that a search behind damage looks at together; a batch of Kafka's largest size fits twice.
const WINDOW_BYTES: usize = 20 << 20;
/// Bytes at the end of a window that the next one looks at again.
const OVERLAP_BYTES: usize = 10 << 20;

/// One step of the walk.
pub(crate) enum Step<'s> {
    /// A batch with a good checksum.
    Batch(u64, Batch<'s>),
    /// A batch whose checksum is wrong: its position, header and the checksum its bytes have.
    Corrupt(u64, BatchHeader, u32),
    /// Bytes that are no batch, with a valid one behind them.
    Damage {
        /// Where they begin.
        position: u64,
        /// How many they are.
        bytes: u64,
        /// Why no batch begins there.
        error: DecodeError,
    },
    /// The end.
    End {
        /// Where the last batch ends.
        valid_bytes: u64,
        /// Bytes behind it that hold no batch.
        trailing_bytes: u64,
        /// True if all of them are zero, as preallocation leaves them.
        zero: bool,
    },
}

/// A walk over the batches of a file.
pub(crate) struct Source {
    file: io::Take<File>,
    size: u64,
    buf: Vec<u8>,
    /// Bytes of `buf` before this one are done with.
    start: usize,
    /// Position in the file of `buf[start]`.
    position: u64,
    /// End of the last batch.
    valid_bytes: u64,
    last_offset: i64,
}

impl Source {
    /// A walk over the bytes that the file has now; what a running node appends is not looked at.
    pub(crate) fn open(file: File) -> io::Result<Source> {
        let size = file.metadata()?.len();
        Ok(Source {
            file: file.take(size),
            size,
            buf: Vec::new(),
            start: 0,
            position: 0,
            valid_bytes: 0,
            last_offset: -1,
        })
    }

    /// Size of the file when it was opened.
    pub(crate) fn size(&self) -> u64 {
        self.size
    }

    /// How far the walk has come.
    pub(crate) fn position(&self) -> u64 {
        self.position
    }

    /// The next batch or what is there instead.
    pub(crate) fn step(&mut self) -> io::Result<Step<'_>> {
        let position = self.position;
        self.fill(HEADER_BYTES)?;
        if self.available().is_empty() {
            return Ok(Step::End { valid_bytes: self.valid_bytes, trailing_bytes: 0, zero: false });
        }
        let header = match BatchHeader::parse(self.available()) {
            Ok(header) if header.size() as u64 <= self.size - position => header,
            Ok(_) => return self.skip(DecodeError::Truncated),
            Err(error) => return self.skip(error),
        };
        let size = header.size();
        self.fill(size)?;
        let Ok(batch) = Batch::parse(self.available()) else {
            // The file has become shorter since it was opened.
            return self.skip(DecodeError::Truncated);
        };
        let computed = batch.computed_crc();
        if computed != header.crc {
            let by = self.behind_corrupt(size)?;
            self.advance(by);
            return Ok(Step::Corrupt(position, header, computed));
        }
        self.last_offset = header.last_offset();
        let from = self.start;
        self.advance(size);
        self.valid_bytes = self.position;
        let bytes = self.buf.get(from..from + size).unwrap_or_default();
        match Batch::parse(bytes) {
            Ok(batch) => Ok(Step::Batch(position, batch)),
            Err(error) => unreachable!("a batch that was parsed is none any more: {error}"),
        }
    }

    /// How far to go behind a batch with a wrong checksum: by its length, or to a valid batch before
    /// its end, since the length may be what is broken.
    fn behind_corrupt(&mut self, size: usize) -> io::Result<usize> {
        self.fill(size + HEADER_BYTES)?;
        let behind = self.available().get(size..).unwrap_or_default();
        let mut reach = size;
        if !behind.is_empty() && BatchHeader::parse(behind).is_err() {
            // The true next batch may reach beyond the end that the length claims.
            self.fill(size + OVERLAP_BYTES)?;
            reach = self.available().len().min(size + OVERLAP_BYTES);
        }
        let bytes = self.available().get(..reach).unwrap_or_default();
        Ok(next_valid(bytes, 1, self.last_offset + 1).map_or(size, |inner| inner.min(size)))
    }

    /// Goes to the next batch with a good checksum behind bytes that are no batch, or to the end.
    fn skip(&mut self, error: DecodeError) -> io::Result<Step<'_>> {
        let position = self.position;
        let mut zero = true;
        let mut from = 1;
        loop {
            self.fill(WINDOW_BYTES)?;
            let window = self.available();
            zero &= window.iter().all(|&byte| byte == 0);
            if !zero && let Some(at) = next_valid(window, from, self.last_offset + 1) {
                self.advance(at);
                let bytes = self.position - position;
                return Ok(Step::Damage { position, bytes, error });
            }
            let len = window.len();
            if len < WINDOW_BYTES {
                self.advance(len);
                let valid_bytes = self.valid_bytes.min(position);
                let trailing_bytes = self.size - valid_bytes;
                return Ok(Step::End { valid_bytes, trailing_bytes, zero });
            }
            self.advance(len - OVERLAP_BYTES);
            from = 0;
        }
    }

    fn available(&self) -> &[u8] {
        self.buf.get(self.start..).unwrap_or_default()
    }

    fn advance(&mut self, bytes: usize) {
        self.start += bytes;
        self.position += bytes as u64;
    }

    /// Reads until `bytes` are available or the file ends. The buffer grows with what was read, never
    /// with what a header claims.
    fn fill(&mut self, bytes: usize) -> io::Result<()> {
        if self.buf.len() - self.start >= bytes {
            return Ok(());
        }
        self.buf.drain(..self.start);
        self.start = 0;
        while self.buf.len() < bytes {
            let before = self.buf.len();
            self.buf.resize(before + READ_BYTES, 0);
            let room = self.buf.get_mut(before..).unwrap_or_default();
            let read = match self.file.read(room) {
                Ok(read) => read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => 0,
                Err(error) => return Err(error),
            };
            self.buf.truncate(before + read);
            if read == 0 && self.file.limit() == 0 {
                break;
            }
            if read == 0 && self.is_at_end()? {
                break;
            }
        }
        Ok(())
    }

    /// True if the file was cut after it was opened, so that no more will come.
    fn is_at_end(&self) -> io::Result<bool> {
        Ok(self.file.get_ref().metadata()?.len() <= self.position + self.buf.len() as u64)
    }
}

/// The first batch with a good checksum at `from` or behind. Checksums are taken of at most twice the
/// bytes, as in recovery.
fn next_valid(bytes: &[u8], from: usize, min_base_offset: i64) -> Option<usize> {
    match find_valid_batch(bytes, from, min_base_offset, 0, 2 * bytes.len() as u64) {
        Found::At(position) => Some(position),
        Found::None | Found::GaveUp => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kraftlog_codecs::batch::{BatchBuilder, BatchOptions};
    use std::io::Write;

    fn batch(base_offset: i64, record: &[u8], records: usize) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut builder = BatchBuilder::new(&mut bytes, BatchOptions::data(base_offset, 1, 0));
        for _ in 0..records {
            builder.append(None, record).unwrap();
        }
        builder.finish();
        bytes
    }

    #[test]
    fn a_batch_behind_damage_is_found_among_bytes_that_look_like_headers() {
        // Records whose every sixteenth byte could be a magic byte, behind a sane length and offset.
        let decoy = [0, 0, 0, 0, 0x7f, 0, 0, 0, 0, 8, 0, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0].repeat(40);
        let first = batch(0, &decoy, 1000);
        let second = batch(1000, &decoy, 1000);
        let mut bytes = [first.clone(), second.clone(), batch(2000, &decoy, 1000)].concat();
        bytes[8..12].copy_from_slice(&i32::MAX.to_be_bytes());
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&bytes).unwrap();
        std::io::Seek::rewind(&mut file).unwrap();
        let mut source = Source::open(file).unwrap();
        match source.step().unwrap() {
            Step::Damage { position: 0, bytes, .. } => assert_eq!(bytes, first.len() as u64),
            _ => panic!("the broken length must be damage"),
        }
        for expected in [1000, 2000] {
            match source.step().unwrap() {
                Step::Batch(_, batch) => assert_eq!(batch.header().base_offset, expected),
                _ => panic!("a valid batch at offset {expected}"),
            }
        }
        assert!(matches!(source.step().unwrap(), Step::End { trailing_bytes: 0, .. }));
    }
}
