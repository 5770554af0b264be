//! A walk over the batches of one segment, from an index entry or its first byte to the batch that is wanted.
//!
//! The CRC of a batch does not cover its base offset, and open does not look again at what lies below the durable
//! end. So nothing here is taken from a header alone: each batch begins where the one before ended, and none
//! reaches over a border that is known from elsewhere, which are the index entry that the walk began with, the
//! next segment and the end of the log.

use crate::log::read::{Fetched, ReadError};
use crate::segment::{Floor, Placed};
use crate::types::Offset;
use crate::watermark::Watermark;
use bytes::BytesMut;
use kraftlog_codecs::batch::{Batch, BatchHeader, HEADER_BYTES};
use kraftlog_codecs::error::DecodeError;
use kraftlog_io::File;

/// Bytes read at once.
const CHUNK_BYTES: u64 = 128 * 1024;

/// What a reader asks for. `from < limit`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wanted {
    pub(crate) from: Offset,
    pub(crate) limit: Offset,
    pub(crate) bytes_max: usize,
}

/// Stands at one batch of the segment.
pub(crate) struct Walk<'a> {
    file: &'a dyn File,
    file_len: u64,
    placed: &'a Placed,
    wanted: Wanted,
    /// The file's bytes from `buf_at` on.
    buf: BytesMut,
    buf_at: u64,
    /// The batch that it stands at begins here in `buf`.
    at: usize,
    /// Where that batch must begin; `None` at an index entry.
    expected: Option<Offset>,
    /// No batch reaches over this offset, and the one that the walk began with lies below.
    border: Offset,
}

impl<'a> Walk<'a> {
    /// Stands at the batch that `floor` points at.
    pub(crate) async fn begin(
        file: &'a dyn File,
        placed: &'a Placed,
        floor: Floor,
        wanted: Wanted,
    ) -> Result<Walk<'a>, ReadError> {
        let file_len = file.len().await?;
        let expected = (floor.position == 0).then_some(placed.segment.base);
        let (buf, buf_at, border) = (BytesMut::new(), floor.position, floor.border);
        Ok(Walk { file, file_len, placed, wanted, buf, buf_at, at: 0, expected, border })
    }

    /// Finds the batch that holds the wanted offset and collects whole batches from there. What lies in front
    /// of damage is given; whoever goes on behind it learns of the damage then.
    ///
    /// Empty if the first batch ends above the limit.
    pub(crate) async fn collect(mut self, watermark: &Watermark) -> Result<Fetched, ReadError> {
        let Wanted { from, limit, bytes_max } = self.wanted;
        let mut header = self.header().await?;
        while header.next_offset() <= from.0 {
            self.pass_over(&header);
            header = self.header().await?;
        }
        let start = Offset(header.base_offset);
        if start > from {
            return Err(self.damaged(DecodeError::BadOffset));
        }
        let mut next = from;
        loop {
            match self.check(&header, watermark).await {
                Ok(()) => {}
                Err(ReadError::CorruptBatch { .. }) if self.at > 0 => break,
                Err(error) => return Err(error),
            }
            if header.next_offset() > limit.0 {
                break;
            }
            self.at += header.size();
            next = Offset(header.next_offset());
            self.expected = Some(next);
            if next >= limit {
                break;
            }
            header = match self.header().await {
                Ok(header) => header,
                // Also where the segment ends: the next one has the rest.
                Err(ReadError::CorruptBatch { .. }) => break,
                Err(error) => return Err(error),
            };
            if self.at.saturating_add(header.size()) > bytes_max {
                break;
            }
        }
        let start = if self.at == 0 { from } else { start };
        Ok(Fetched { start, next, bytes: self.buf.freeze().slice(..self.at) })
    }

    /// The header of the batch that it stands at, which lies where it should.
    async fn header(&mut self) -> Result<BatchHeader, ReadError> {
        if !self.fill(HEADER_BYTES).await? {
            return Err(self.damaged(DecodeError::Truncated));
        }
        let header = BatchHeader::parse(&self.buf[self.at..]).map_err(|cause| self.damaged(cause))?;
        let (base, next) = (Offset(header.base_offset), Offset(header.next_offset()));
        let is_placed = match self.expected {
            Some(expected) => base == expected && !(base < self.border && self.border < next),
            None => next <= self.border,
        };
        if !is_placed {
            return Err(self.damaged(DecodeError::BadOffset));
        }
        Ok(header)
    }

    /// Goes on to the batch behind this one, which nobody wants.
    fn pass_over(&mut self, header: &BatchHeader) {
        self.buf_at += header.size() as u64;
        if header.size() <= self.buf.len() {
            let _ = self.buf.split_to(header.size());
        } else {
            self.buf.clear();
        }
        self.expected = Some(Offset(header.next_offset()));
    }

    /// The batch that it stands at is there, whole and sound.
    async fn check(&mut self, header: &BatchHeader, watermark: &Watermark) -> Result<(), ReadError> {
        if !self.fill(header.size()).await? {
            return Err(self.damaged(DecodeError::Truncated));
        }
        Batch::check(&self.buf[self.at..self.at + header.size()]).map_err(|cause| self.damaged(cause))?;
        // Behind the read: what is in the file by now lies below this end.
        let end = self.placed.end.unwrap_or_else(|| watermark.end());
        if header.next_offset() > end.0 {
            return Err(self.damaged(DecodeError::BadOffset));
        }
        Ok(())
    }

    /// Reads until `size` bytes of the batch are there; whether the file has them.
    async fn fill(&mut self, size: usize) -> Result<bool, ReadError> {
        while self.buf.len() - self.at < size {
            let missing = (self.at + size - self.buf.len()) as u64;
            let have = self.buf_at + self.buf.len() as u64;
            let left = self.file_len.saturating_sub(have);
            if missing > left {
                return Ok(false);
            }
            let want = missing.max(CHUNK_BYTES).min(left);
            let before = self.buf.len();
            let buf = std::mem::take(&mut self.buf);
            self.buf = self.file.read_at(have, usize::try_from(want).unwrap_or(usize::MAX), buf).await?;
            if self.buf.len() == before {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn damaged(&self, cause: DecodeError) -> ReadError {
        ReadError::CorruptBatch {
            path: self.placed.segment.path.clone(),
            position: self.buf_at + self.at as u64,
            offset: self.expected.unwrap_or(self.wanted.from),
            cause,
        }
    }
}
