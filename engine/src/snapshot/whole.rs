//! Whether a checkpoint is whole, told from its bytes alone.
//!
//! [`WholeCheck`] holds the rule of batches: header first, footer last, nothing behind.
//! [`BatchScan`] cuts a file into checked batches for readers that keep each batch in memory;
//! [`Verifier`] takes any chunks and keeps none. All three are without I/O: the callers, on a lane
//! or on a plain file, bring the bytes.
//!
//! Not checked here, as Kafka writes files that differ in it or peers accept them: epochs and
//! offsets of the batches (they count through the file, B-149), and the records behind the first
//! of a batch, which the walk over a batch checks.

use super::fault::SnapshotFault;
use kraftlog_codecs::batch::{BatchHeader, HEADER_BYTES};
use kraftlog_codecs::crc;
use kraftlog_codecs::cursor::Reader;
use kraftlog_codecs::error::DecodeError;

/// Bytes at the front of a batch that always tell the type of its first control record: the batch
/// header, five varints of at most 5 bytes and one of at most 10, an attribute byte, the key.
pub(super) const FRONT_BYTES: usize = HEADER_BYTES + 4 * 5 + 10 + 1 + 4;

/// The first byte of a batch that its CRC covers.
const CRC_FROM: usize = 21;
const _: () = assert!(CRC_FROM < HEADER_BYTES);

const SNAPSHOT_HEADER: i16 = 3;
const SNAPSHOT_FOOTER: i16 = 4;

/// What a checkpoint that was read to its end held.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct SnapshotSummary {
    /// Length of the file.
    pub bytes: u64,
    /// Batches, header and footer included.
    pub batches: u64,
    /// Records by the count fields of the batches, control records included.
    pub records: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Seen {
    Nothing,
    Header,
    Footer,
}

/// Follows the batches of one checkpoint of known length.
#[derive(Debug, Clone)]
pub(super) struct WholeCheck {
    len: u64,
    position: u64,
    seen: Seen,
    summary: SnapshotSummary,
}

impl WholeCheck {
    pub(super) fn new(len: u64) -> WholeCheck {
        WholeCheck { len, position: 0, seen: Seen::Nothing, summary: SnapshotSummary::default() }
    }

    /// Where the next batch begins.
    pub(super) fn position(&self) -> u64 {
        self.position
    }

    /// Bytes of the file from the next batch on.
    pub(super) fn left(&self) -> u64 {
        self.len - self.position
    }

    /// What to say if nothing, or less than a header, is left where a batch should begin.
    /// `Ok` only at the very end of a whole file.
    pub(super) fn end(&self) -> Result<SnapshotSummary, SnapshotFault> {
        let left = self.left();
        match self.seen {
            Seen::Nothing => Err(SnapshotFault::NoHeader { len: self.len }),
            Seen::Footer if left == 0 => Ok(SnapshotSummary { bytes: self.len, ..self.summary }),
            Seen::Footer => Err(SnapshotFault::BytesAfterFooter { position: self.position, bytes: left }),
            Seen::Header if left == 0 => Err(SnapshotFault::NoFooter { len: self.len }),
            Seen::Header => {
                Err(SnapshotFault::Cut { position: self.position, size: HEADER_BYTES as u64, left })
            }
        }
    }

    /// The header of the batch that begins at [`position`](Self::position). `front` has at least
    /// [`HEADER_BYTES`]; all of [`FRONT_BYTES`] that the batch has if the type is to be told.
    pub(super) fn header(&self, front: &[u8]) -> Result<BatchHeader, SnapshotFault> {
        if self.seen == Seen::Footer {
            let (position, bytes) = (self.position, self.left());
            return Err(SnapshotFault::BytesAfterFooter { position, bytes });
        }
        let header = match BatchHeader::parse(front) {
            Ok(header) => header,
            Err(_) if self.seen == Seen::Nothing => return Err(SnapshotFault::NoHeader { len: self.len }),
            Err(cause) => return Err(SnapshotFault::BadBatch { position: self.position, cause }),
        };
        if self.seen == Seen::Nothing && first_control_type(&header, front) != Some(SNAPSHOT_HEADER) {
            return Err(SnapshotFault::NoHeader { len: self.len });
        }
        let size = header.size() as u64;
        if size > self.left() {
            return Err(SnapshotFault::Cut { position: self.position, size, left: self.left() });
        }
        Ok(header)
    }

    /// A batch is complete, with the CRC `found`; the next one begins behind it.
    pub(super) fn batch(
        &mut self,
        header: &BatchHeader,
        front: &[u8],
        found: u32,
    ) -> Result<(), SnapshotFault> {
        if found != header.crc {
            let position = self.position;
            return Err(SnapshotFault::BadCrc { position, expected: header.crc, found });
        }
        let footer = header.records_count == 1 && first_control_type(header, front) == Some(SNAPSHOT_FOOTER);
        self.seen = if footer { Seen::Footer } else { Seen::Header };
        self.position += header.size() as u64;
        self.summary.batches += 1;
        self.summary.records += u64::try_from(header.records_count).unwrap_or(0);
        Ok(())
    }
}

/// Type of the first record of a control batch; `None` for data batches and for what is no record.
fn first_control_type(header: &BatchHeader, front: &[u8]) -> Option<i16> {
    fn read(record: &[u8]) -> Result<i16, DecodeError> {
        let mut reader = Reader::new(record);
        reader.varint()?;
        reader.i8()?;
        reader.varlong()?;
        reader.varint()?;
        if reader.varint()? < 4 {
            return Err(DecodeError::BadKey);
        }
        reader.i16()?;
        reader.i16()
    }
    if !header.is_control() {
        return None;
    }
    let end = front.len().min(header.size());
    read(front.get(HEADER_BYTES..end)?).ok()
}

/// What [`BatchScan::step`] found.
#[derive(Debug)]
pub(super) enum Step {
    /// Bring more bytes; the file has some.
    More,
    /// The bytes begin with this checked batch.
    Batch(BatchHeader),
    /// The file ended, and is whole.
    End(SnapshotSummary),
}

/// Cuts a checkpoint into batches, taking the CRC of bytes soon after they were read.
#[derive(Debug, Clone)]
pub(super) struct BatchScan {
    check: WholeCheck,
    open: Option<Open>,
}

/// The batch whose bytes are arriving.
#[derive(Debug, Clone)]
struct Open {
    header: BatchHeader,
    crc: u32,
    summed: usize,
}

impl BatchScan {
    pub(super) fn new(len: u64) -> BatchScan {
        BatchScan { check: WholeCheck::new(len), open: None }
    }

    /// Looks at all bytes held from the next batch on. After `Batch` the caller drops (or keeps)
    /// `header.size()` of them and comes again with those behind.
    ///
    /// # Errors
    /// [`SnapshotFault`]; the scan is over then.
    pub(super) fn step(&mut self, bytes: &[u8]) -> Result<Step, SnapshotFault> {
        let left = self.check.left();
        if left < HEADER_BYTES as u64 {
            return self.check.end().map(Step::End);
        }
        let mut open = match self.open.take() {
            Some(open) => open,
            None => {
                // Less than the front can only be judged if the file has no more.
                if bytes.len() < FRONT_BYTES && (bytes.len() as u64) < left {
                    return Ok(Step::More);
                }
                Open { header: self.check.header(bytes)?, crc: 0, summed: CRC_FROM }
            }
        };
        let have = bytes.len().min(open.header.size());
        if have > open.summed {
            open.crc = crc::extend(open.crc, &bytes[open.summed..have]);
            open.summed = have;
        }
        if open.summed < open.header.size() {
            self.open = Some(open);
            return Ok(Step::More);
        }
        self.check.batch(&open.header, bytes, open.crc)?;
        Ok(Step::Batch(open.header))
    }

    /// Where the next batch begins in the file.
    pub(super) fn position(&self) -> u64 {
        self.check.position()
    }

    /// Bytes that the batch in hand still lacks beyond `have`, at least 1.
    pub(super) fn missing(&self, have: usize) -> usize {
        let want = self.open.as_ref().map_or(FRONT_BYTES, |open| open.header.size());
        want.saturating_sub(have).max(1)
    }
}

/// Checks a checkpoint from chunks of any size and keeps none of them.
#[derive(Debug, Clone)]
pub(super) struct Verifier {
    check: WholeCheck,
    front: Vec<u8>,
    body: Option<Body>,
}

/// The batch whose front is complete and whose body is passing by.
#[derive(Debug, Clone)]
struct Body {
    header: BatchHeader,
    crc: u32,
    left: usize,
}

impl Verifier {
    pub(super) fn new(len: u64) -> Verifier {
        Verifier { check: WholeCheck::new(len), front: Vec::with_capacity(FRONT_BYTES), body: None }
    }

    /// Takes the next bytes of the file.
    ///
    /// # Errors
    /// [`SnapshotFault`]; the check is over then.
    pub(super) fn feed(&mut self, mut bytes: &[u8]) -> Result<(), SnapshotFault> {
        while !bytes.is_empty() {
            let Some(body) = &mut self.body else {
                bytes = self.feed_front(bytes)?;
                continue;
            };
            let (now, rest) = bytes.split_at(body.left.min(bytes.len()));
            body.crc = crc::extend(body.crc, now);
            body.left -= now.len();
            bytes = rest;
            self.finish_batch()?;
        }
        Ok(())
    }

    /// All bytes were fed: is the file whole?
    ///
    /// # Errors
    /// [`SnapshotFault`].
    pub(super) fn finish(&self) -> Result<SnapshotSummary, SnapshotFault> {
        self.check.end()
    }

    fn feed_front<'a>(&mut self, bytes: &'a [u8]) -> Result<&'a [u8], SnapshotFault> {
        let left = usize::try_from(self.check.left()).unwrap_or(usize::MAX);
        let bytes = self.gather(bytes, HEADER_BYTES.min(left));
        if self.front.len() < HEADER_BYTES {
            // Either more comes, or the file ends here, which `end` has an error for.
            return if self.front.len() < left { Ok(bytes) } else { self.check.end().map(|_| bytes) };
        }
        // The front ends early where the batch does, and where the file does.
        let size = BatchHeader::parse(&self.front).map_or(0, |header| header.size());
        let want = FRONT_BYTES.min(size).min(left);
        let bytes = self.gather(bytes, want);
        if self.front.len() < want {
            return Ok(bytes);
        }
        let header = self.check.header(&self.front)?;
        let crc = crc::crc32c(&self.front[CRC_FROM..]);
        let left = header.size() - self.front.len();
        self.body = Some(Body { header, crc, left });
        self.finish_batch()?;
        Ok(bytes)
    }

    /// Moves bytes to the front until it has `want`; gives back those behind.
    fn gather<'a>(&mut self, bytes: &'a [u8], want: usize) -> &'a [u8] {
        let (now, rest) = bytes.split_at(want.saturating_sub(self.front.len()).min(bytes.len()));
        self.front.extend_from_slice(now);
        rest
    }

    fn finish_batch(&mut self) -> Result<(), SnapshotFault> {
        if let Some(Body { header, crc, left: 0 }) = &self.body {
            self.check.batch(header, &self.front, *crc)?;
            self.body = None;
            self.front.clear();
        }
        Ok(())
    }
}
