//! A checkpoint as a plain file, read without a log, a lane or a runtime.
//!
//! For tools, benches and loaders on one core: bytes are read in 256 KiB pieces straight behind
//! each other and their CRC is taken while they are in the CPU's cache; there is no read-ahead.
//! One buffer grows to the largest batch that is really in the file (8 MiB where Kafka wrote it).
//! Writes nothing.

use super::fault::{SnapshotError, SnapshotFault};
pub use super::whole::SnapshotSummary;
use super::whole::{BatchScan, Step, Verifier};
use kraftlog_codecs::batch::Batch;
use kraftlog_io::{IoError, Op};
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// Bytes read at once.
const READ_BYTES: usize = 256 * 1024;

/// A checkpoint that is read batch by batch, each checked and borrowed from one buffer.
#[derive(Debug)]
pub struct SnapshotFile {
    source: Source,
    scan: BatchScan,
    /// `buf[start..end]` are the bytes read and not handed out yet.
    buf: Vec<u8>,
    start: usize,
    end: usize,
    summary: Option<SnapshotSummary>,
}

impl SnapshotFile {
    /// Opens a checkpoint file of any name.
    ///
    /// # Errors
    /// [`SnapshotError::Io`]. What is wrong with the content shows while reading.
    pub fn open(path: impl AsRef<Path>) -> Result<SnapshotFile, SnapshotError> {
        let source = Source::open(path.as_ref())?;
        let scan = BatchScan::new(source.len);
        Ok(SnapshotFile { source, scan, buf: Vec::new(), start: 0, end: 0, summary: None })
    }

    /// Length of the file.
    pub fn len(&self) -> u64 {
        self.source.len
    }

    /// True for a file without bytes, which is no whole checkpoint.
    pub fn is_empty(&self) -> bool {
        self.source.len == 0
    }

    /// Where the next batch begins.
    pub fn position(&self) -> u64 {
        self.scan.position()
    }

    /// Batches and records of the whole file, once [`next_batch`](Self::next_batch) has answered `None`.
    pub fn summary(&self) -> Option<SnapshotSummary> {
        self.summary
    }

    /// The next batch, its CRC checked; `None` when the file has ended *and is whole*. Header and
    /// footer are handed out like the rest: they are control batches.
    ///
    /// # Errors
    /// [`SnapshotError::Invalid`] at the first batch that is not right, or at the end if the footer
    /// is missing. What was handed out before stays what the file says, but is not all of it.
    pub fn next_batch(&mut self) -> Result<Option<Batch<'_>>, SnapshotError> {
        if self.summary.is_some() {
            return Ok(None);
        }
        let header = loop {
            let position = self.scan.position();
            match self.scan.step(&self.buf[self.start..self.end]) {
                Ok(Step::More) => self.fill()?,
                Ok(Step::End(summary)) => {
                    self.summary = Some(summary);
                    return Ok(None);
                }
                Ok(Step::Batch(header)) => break (header, position),
                Err(fault) => return Err(self.source.invalid(fault)),
            }
        };
        let (header, position) = header;
        let bytes = &self.buf[self.start..self.start + header.size()];
        self.start += header.size();
        match Batch::parse(bytes) {
            Ok(batch) => Ok(Some(batch)),
            Err(cause) => Err(self.source.invalid(SnapshotFault::BadBatch { position, cause })),
        }
    }

    /// Reads one more piece behind the bytes held.
    fn fill(&mut self) -> Result<(), SnapshotError> {
        let left = usize::try_from(self.source.left()).unwrap_or(usize::MAX);
        let (have, room) = (self.end - self.start, READ_BYTES.min(left));
        // Room for the whole batch and the piece that reaches beyond it, at once: its size was held
        // against the length of the file.
        let want = have + self.scan.missing(have).min(left) + room;
        if self.start + want > self.buf.len() {
            self.buf.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, have);
            if want > self.buf.len() {
                self.buf.resize(want, 0);
            }
        }
        self.end += self.source.read(&mut self.buf[self.end..self.end + room])?;
        Ok(())
    }
}

/// Checks a checkpoint (header, footer, every CRC) with one 256 KiB buffer, keeping no batch.
///
/// # Errors
/// [`SnapshotError::Io`], or [`SnapshotError::Invalid`] with the first thing found to be wrong.
pub fn verify_file(path: impl AsRef<Path>) -> Result<SnapshotSummary, SnapshotError> {
    let mut source = Source::open(path.as_ref())?;
    let mut verifier = Verifier::new(source.len);
    let mut buf = vec![0; READ_BYTES];
    while source.left() > 0 {
        let read = source.read(&mut buf)?;
        verifier.feed(&buf[..read]).map_err(|fault| source.invalid(fault))?;
    }
    verifier.finish().map_err(|fault| source.invalid(fault))
}

/// A file read from front to end, up to the length it had when it was opened.
#[derive(Debug)]
struct Source {
    path: PathBuf,
    file: File,
    len: u64,
    read: u64,
}

impl Source {
    fn open(path: &Path) -> Result<Source, SnapshotError> {
        let file = File::open(path).map_err(|cause| IoError::new(Op::Open, path, cause))?;
        let meta = file.metadata().map_err(|cause| IoError::new(Op::Stat, path, cause))?;
        if !meta.is_file() {
            let cause = io::Error::new(io::ErrorKind::IsADirectory, "not a regular file");
            return Err(IoError::new(Op::Open, path, cause).into());
        }
        Ok(Source { path: path.to_path_buf(), file, len: meta.len(), read: 0 })
    }

    fn left(&self) -> u64 {
        self.len - self.read
    }

    /// Reads some bytes, at least one, never beyond the length.
    fn read(&mut self, into: &mut [u8]) -> Result<usize, SnapshotError> {
        let max = into.len().min(usize::try_from(self.left()).unwrap_or(usize::MAX));
        loop {
            match self.file.read(&mut into[..max]) {
                // The file has become shorter: what the length promised is not there.
                Ok(0) => {
                    let cause = io::Error::from(io::ErrorKind::UnexpectedEof);
                    return Err(IoError::new(Op::Read, &self.path, cause).into());
                }
                Ok(read) => {
                    self.read += read as u64;
                    return Ok(read);
                }
                Err(cause) if cause.kind() == io::ErrorKind::Interrupted => {}
                Err(cause) => return Err(IoError::new(Op::Read, &self.path, cause).into()),
            }
        }
    }

    fn invalid(&self, fault: SnapshotFault) -> SnapshotError {
        SnapshotError::Invalid { path: self.path.clone(), fault }
    }
}
