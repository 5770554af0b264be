//! `dump`: what stands in segments, checkpoints and indexes, as text like kafka-dump-log's or as JSON.
//!
//! It opens files for reading, writes nothing and judges no file against another; `verify` does.
//! Memory stays constant: a read buffer of the size of the largest batch, an output buffer of 1 MiB.
//! Damage is told on standard error, the dump goes on behind it, and the exit status is 1.
//!
//! `kind` says what a file is, `source` walks its batches, `content` decodes a record, `text` and
//! `json` print, `index` has the indexes.

mod content;
mod index;
mod json;
mod kind;
mod source;
mod text;

use crate::exit::{Exit, Failure};
use crate::output::say;
use content::Content;
use indicatif::{ProgressBar, ProgressStyle};
use kind::Kind;
use kraftlog_codecs::batch::{Batch, BatchHeader};
use kraftlog_codecs::compress::{Compression, decompress};
use kraftlog_codecs::names::METADATA_PARTITION_DIR;
use kraftlog_io::DirLock;
use source::{Source, Step};
use std::collections::BTreeSet;
use std::fmt;
use std::fs::File;
use std::io::{self, IsTerminal, Write};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

/// Bytes of output that are collected before they are written.
const OUTPUT_BYTES: usize = 1 << 20;
/// Bytes that the records of a foreign, compressed batch may have.
const DECOMPRESSED_BYTES_MAX: usize = 32 << 20;
/// Files below this size need no progress bar.
const PROGRESS_BYTES_MIN: u64 = 64 << 20;

/// What to show.
pub(crate) struct Options {
    /// One JSON object a line instead of text.
    pub(crate) json: bool,
    /// First offset shown.
    pub(crate) offset_from: i64,
    /// Last offset shown.
    pub(crate) offset_to: i64,
    /// Indexes too, where a directory is given.
    pub(crate) index: bool,
}

/// A dump in progress.
pub(crate) struct Dump<'o> {
    options: &'o Options,
    out: Vec<u8>,
    stdout: File,
    scratch: Vec<u8>,
    /// Directories about which the warning of a running node was given.
    warned: BTreeSet<PathBuf>,
    findings: bool,
}

impl<'o> Dump<'o> {
    /// A dump to standard output.
    pub(crate) fn new(options: &'o Options) -> Result<Dump<'o>, Failure> {
        // Not `io::Stdout`, which looks for line ends in every buffer.
        let stdout = File::from(io::stdout().as_fd().try_clone_to_owned()?);
        Ok(Dump {
            options,
            out: Vec::with_capacity(2 * OUTPUT_BYTES),
            stdout,
            scratch: Vec::new(),
            warned: BTreeSet::new(),
            findings: false,
        })
    }

    /// Dumps a file, or the files of a log directory or of its metadata partition.
    pub(crate) fn path(&mut self, path: &Path) -> Result<(), Failure> {
        let about = std::fs::metadata(path).map_err(|error| io_failure(path, "open", &error))?;
        if !about.is_dir() {
            self.warn_if_running(path.parent());
            return self.file(path, Kind::of(path));
        }
        self.warn_if_running(Some(path));
        let mut files = self.list(path)?;
        let partition = path.join(METADATA_PARTITION_DIR);
        if partition.is_dir() {
            self.warn_if_running(Some(&partition));
            files.extend(self.list(&partition)?);
        }
        if files.is_empty() {
            self.finding(format_args!("{}: no segment and no checkpoint is there", path.display()));
        }
        for file in files {
            self.file(&file, Kind::of(&file))?;
        }
        Ok(())
    }

    /// Writes what is left and says how the process ends.
    pub(crate) fn finish(mut self) -> Result<Exit, Failure> {
        self.flush()?;
        Ok(if self.findings { Exit::FINDINGS } else { Exit::SOUND })
    }

    /// The files of a directory that are dumped, by name.
    fn list(&self, dir: &Path) -> Result<Vec<PathBuf>, Failure> {
        let fail = |error: io::Error| io_failure(dir, "list", &error);
        let mut files = Vec::new();
        for entry in std::fs::read_dir(dir).map_err(fail)? {
            let path = entry.map_err(fail)?.path();
            let kind = Kind::of(&path);
            if (kind.has_records() || (self.options.index && kind.is_index())) && path.is_file() {
                files.push(path);
            }
        }
        files.sort();
        Ok(files)
    }

    /// Warns once a directory if a node has it open: what is shown may be half written.
    fn warn_if_running(&mut self, dir: Option<&Path>) {
        let dir = match dir {
            Some(dir) if dir.as_os_str().is_empty() => Path::new("."),
            Some(dir) => dir,
            None => return,
        };
        for dir in [dir.to_path_buf(), dir.join("..")] {
            let Ok(dir) = dir.canonicalize() else { continue };
            if !dir.join(".lock").exists() || !self.warned.insert(dir.clone()) {
                continue;
            }
            if let Ok(Some(holder)) = DirLock::probe(&dir) {
                let who = holder.pid.map_or_else(String::new, |pid| format!(" (process {pid})"));
                say(format_args!(
                    "warning: {} is in use by a running node{who}; the picture may move and the tail look torn",
                    dir.display()
                ));
            }
        }
    }

    fn file(&mut self, path: &Path, kind: Kind) -> Result<(), Failure> {
        match kind {
            Kind::Index | Kind::TimeIndex => index::dump(self, path, kind),
            _ => self.records(path, kind),
        }
    }

    /// Opens a file; directories, which some systems open too, are refused by the caller.
    fn open(&self, path: &Path) -> Result<File, Failure> {
        File::open(path).map_err(|error| io_failure(path, "open", &error))
    }

    fn begin_file(&mut self, path: &Path, size: u64, kind: Kind) -> Result<(), Failure> {
        if self.options.json {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            json::file(&mut self.out, &name, size, kind);
            return self.flush_if_full();
        }
        self.text_line(format_args!("Dumping {}", path.display()))?;
        match kind {
            Kind::Log(Some(base_offset)) => {
                self.text_line(format_args!("Log starting offset: {base_offset}"))
            }
            Kind::Checkpoint(end_offset, epoch) | Kind::Part(end_offset, epoch) => {
                self.text_line(format_args!("Snapshot end offset: {end_offset}, epoch: {epoch}"))
            }
            Kind::Bootstrap => self.text_line("KRaft bootstrap snapshot"),
            _ => Ok(()),
        }
    }

    fn records(&mut self, path: &Path, kind: Kind) -> Result<(), Failure> {
        let failed = |error: io::Error| io_failure(path, "read", &error);
        let mut source = Source::open(self.open(path)?).map_err(failed)?;
        self.begin_file(path, source.size(), kind)?;
        let progress = progress(source.size());
        let (mut batches, mut records) = (0u64, 0u64);
        let mut corrupt = false;
        loop {
            progress.set_position(source.position());
            match source.step().map_err(failed)? {
                Step::Batch(position, batch) => {
                    batches += 1;
                    records += self.batch(path, position, &batch)?;
                }
                Step::Corrupt(position, header, computed) => {
                    batches += 1;
                    corrupt = true;
                    if self.in_range(&header) {
                        self.batch_line(position, &header, false);
                    }
                    self.finding(format_args!(
                        "CorruptBatch: {}: position {position}, base offset {}: stored checksum {:08x}, \
                         computed {computed:08x}; its records are not decoded",
                        path.display(),
                        header.base_offset,
                        header.crc
                    ));
                }
                Step::Damage { position, bytes, error } => {
                    corrupt = true;
                    self.damage(path, position, bytes, &error.to_string())?;
                    self.finding(format_args!(
                        "CorruptBatch: {}: position {position}: {error}; the next valid batch begins {bytes} \
                         bytes further on",
                        path.display()
                    ));
                }
                Step::End { valid_bytes, trailing_bytes, zero } => {
                    let counts = (batches, records);
                    let name = self.tail(path, kind, counts, valid_bytes, trailing_bytes, zero)?;
                    let name = name.or(corrupt.then_some("CorruptBatch"));
                    if self.options.json {
                        json::file_end(&mut self.out, counts, valid_bytes, trailing_bytes, name);
                    }
                    progress.finish_and_clear();
                    return self.flush_if_full();
                }
            }
        }
    }

    /// Says what the end of a file shows; gives the name of what is wrong with it.
    fn tail(
        &mut self,
        path: &Path,
        kind: Kind,
        (batches, _): (u64, u64),
        valid_bytes: u64,
        trailing_bytes: u64,
        zero: bool,
    ) -> Result<Option<&'static str>, Failure> {
        let shown = path.display();
        if batches == 0 {
            self.text_line("0 batches")?;
        }
        if trailing_bytes > 0 {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            self.text_line(format_args!("Found {trailing_bytes} invalid bytes at the end of {name}"))?;
            let what = if zero { "zero bytes, as preallocation leaves them," } else { "bytes" };
            let told = format!(
                "TornTail: {shown}: the last good end is {valid_bytes}; {trailing_bytes} {what} behind it hold \
                 no whole batch"
            );
            if matches!(kind, Kind::Part(..)) {
                // A download that was cut off is no damage: nobody reads it, and the next start removes it.
                say(told);
                return Ok(None);
            }
            self.finding(told);
            return Ok(Some("TornTail"));
        }
        if batches == 0 && matches!(kind, Kind::Checkpoint(..) | Kind::Bootstrap) {
            self.finding(format_args!("SnapshotInvalid: {shown}: a checkpoint without any batch"));
            return Ok(Some("SnapshotInvalid"));
        }
        Ok(None)
    }

    fn in_range(&self, header: &BatchHeader) -> bool {
        header.base_offset <= self.options.offset_to && header.last_offset() >= self.options.offset_from
    }

    fn batch_line(&mut self, position: u64, header: &BatchHeader, valid: bool) {
        if self.options.json {
            json::batch(&mut self.out, position, header, valid);
        } else {
            text::batch(&mut self.out, position, header, valid);
        }
    }

    /// Prints a batch with a good checksum and its records; gives the number of records.
    fn batch(&mut self, path: &Path, position: u64, batch: &Batch<'_>) -> Result<u64, Failure> {
        let header = *batch.header();
        if !self.in_range(&header) {
            return Ok(0);
        }
        self.batch_line(position, &header, true);
        let mut scratch = std::mem::take(&mut self.scratch);
        scratch.clear();
        let bytes = match header.compression() {
            Ok(Compression::None) => Ok(batch.records_bytes()),
            Ok(compression) => {
                decompress(compression, batch.records_bytes(), DECOMPRESSED_BYTES_MAX, &mut scratch)
                    .map(|()| &*scratch)
            }
            Err(error) => Err(error),
        };
        let mut records = 0u64;
        let mut bad = None;
        match bytes {
            Err(error) => bad = Some((header.base_offset, error)),
            Ok(bytes) => {
                for record in batch.records_general(bytes) {
                    let general = match record {
                        Ok(general) => general,
                        Err(error) => {
                            bad = Some((header.base_offset.saturating_add(records.cast_signed()), error));
                            break;
                        }
                    };
                    records += 1;
                    let offset = general.record.offset;
                    if offset < self.options.offset_from || offset > self.options.offset_to {
                        continue;
                    }
                    let content = Content::of(&header, &general.record);
                    if self.options.json {
                        json::record(&mut self.out, &header, &general, &content);
                    } else {
                        text::record(&mut self.out, &header, &general, &content);
                    }
                    if let Content::Bad(error) = content {
                        self.finding(format_args!(
                            "{}: offset {offset}, in the batch at {position}: the value is bad: {error}",
                            path.display()
                        ));
                    }
                    self.flush_if_full()?;
                }
            }
        }
        self.scratch = scratch;
        if let Some((offset, error)) = bad {
            self.damage(path, position, header.size() as u64, &error.to_string())?;
            self.finding(format_args!(
                "CorruptBatch: {}: position {position}, base offset {}: records from offset {offset} on cannot \
                 be read though the checksum is good: {error}",
                path.display(),
                header.base_offset
            ));
        }
        Ok(records)
    }

    fn damage(&mut self, path: &Path, position: u64, bytes: u64, error: &str) -> Result<(), Failure> {
        if self.options.json {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            json::damage(&mut self.out, &name, position, bytes, error);
            return self.flush_if_full();
        }
        self.text_line(format_args!("Found {bytes} invalid bytes at position {position}: {error}"))
    }

    /// The line of an index entry.
    fn entry(&mut self, fields: &[(&'static str, i64)]) -> Result<(), Failure> {
        if self.options.json {
            json::entry(&mut self.out, fields);
            return self.flush_if_full();
        }
        for (index, (name, value)) in fields.iter().enumerate() {
            let space = if index == 0 { "" } else { " " };
            write!(self.out, "{space}{name}: {value}")?;
        }
        self.out.push(b'\n');
        self.flush_if_full()
    }

    fn end_entries(&mut self, entries: u64) -> Result<(), Failure> {
        if self.options.json {
            writeln!(self.out, r#"{{"kind":"end","entries":{entries}}}"#)?;
        }
        self.flush_if_full()
    }

    /// A line of the text; nothing in JSON.
    fn text_line(&mut self, line: impl fmt::Display) -> Result<(), Failure> {
        if !self.options.json {
            writeln!(self.out, "{line}")?;
        }
        self.flush_if_full()
    }

    /// Tells what is wrong and remembers that something is. What was printed before comes first.
    fn finding(&mut self, text: impl fmt::Display) {
        // An error will come again with the next write.
        let _ = self.flush();
        self.findings = true;
        say(text);
    }

    fn flush_if_full(&mut self) -> Result<(), Failure> {
        if self.out.len() >= OUTPUT_BYTES { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> Result<(), Failure> {
        let result = self.stdout.write_all(&self.out);
        self.out.clear();
        self.out.shrink_to(2 * OUTPUT_BYTES);
        Ok(result?)
    }
}

/// A bar on standard error, for large files and people only.
fn progress(size: u64) -> ProgressBar {
    if size < PROGRESS_BYTES_MIN || !io::stderr().is_terminal() || io::stdout().is_terminal() {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::new(size);
    if let Ok(style) = ProgressStyle::with_template("{bar:40} {bytes}/{total_bytes} {bytes_per_sec} {eta}") {
        bar.set_style(style);
    }
    bar
}

fn io_failure(path: &Path, what: &str, error: &io::Error) -> Failure {
    Failure::new(Exit::IO, "IoError", format!("could not {what} {}: {error}", path.display()))
}
