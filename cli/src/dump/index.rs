//! Offset and time indexes as kafka-dump-log prints them, held against their segment.
//!
//! An index in use has zeros behind its entries; the dump ends at the first zero entry, as Kafka's
//! does. An index is a cache that every Kafka rebuilds: what disagrees is told, not damage of data.

use super::Dump;
use super::kind::Kind;
use crate::exit::Failure;
use kraftlog_codecs::batch::{BatchHeader, HEADER_BYTES};
use kraftlog_codecs::cursor::Reader;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

/// Bytes of the largest index; more is not read.
const INDEX_BYTES_MAX: u64 = 64 << 20;

pub(super) fn dump(dump: &mut Dump<'_>, path: &Path, kind: Kind) -> Result<(), Failure> {
    let mut file = dump.open(path)?;
    let size = file.metadata().map_err(|error| super::io_failure(path, "read", &error))?.len();
    dump.begin_file(path, size, kind)?;
    let entry_bytes = if kind == Kind::Index { 8 } else { 12 };
    let base_offset = base_offset(path);
    let mut log = Log::open(path);
    let (mut entries, mut mismatches) = (0u64, Vec::new());
    let mut bytes = Vec::new();
    let mut left = size.min(INDEX_BYTES_MAX);
    'file: while left > 0 {
        bytes.clear();
        let chunk = left.min(64 * 1024 * entry_bytes);
        let read = (&mut file)
            .take(chunk)
            .read_to_end(&mut bytes)
            .map_err(|error| super::io_failure(path, "read", &error))?;
        if read == 0 {
            break;
        }
        left -= read as u64;
        for entry in bytes.chunks_exact(entry_bytes as usize) {
            if entry.iter().all(|&byte| byte == 0) {
                break 'file;
            }
            let mut reader = Reader::new(entry);
            if kind == Kind::Index {
                let (Ok(relative), Ok(position)) = (reader.i32(), reader.i32()) else { break 'file };
                let offset = base_offset + i64::from(relative);
                let last =
                    log.as_mut().and_then(|log| log.batch_at(position)).map(|header| header.last_offset());
                if last != Some(offset) && log.is_some() {
                    mismatches.push((offset, last));
                }
                dump.entry(&[("offset", offset), ("position", i64::from(position))])?;
            } else {
                let (Ok(timestamp), Ok(relative)) = (reader.i64(), reader.i32()) else { break 'file };
                let offset = base_offset + i64::from(relative);
                dump.entry(&[("timestamp", timestamp), ("offset", offset)])?;
            }
            entries += 1;
        }
    }
    if entries == 0 {
        dump.text_line(format_args!("{} is empty.", path.display()))?;
    }
    if size % entry_bytes != 0 {
        dump.finding(format_args!(
            "IndexInvalid: {}: size {size} is no multiple of {entry_bytes}; a node rebuilds it at start",
            path.display()
        ));
    }
    if !mismatches.is_empty() {
        dump.finding(format_args!("Mismatches in :{}", path.display()));
        for (offset, last) in mismatches {
            match last {
                Some(last) => dump.finding(format_args!("  Index offset: {offset}, log offset: {last}")),
                None => dump.finding(format_args!("  Index offset: {offset}, no batch in the log there")),
            }
        }
    }
    dump.end_entries(entries)
}

/// The segment beside an index.
struct Log {
    file: File,
}

impl Log {
    fn open(index: &Path) -> Option<Log> {
        let name = index.file_name()?.to_str()?;
        let name = name.strip_suffix(".deleted").unwrap_or(name);
        let path: PathBuf = index.with_file_name(format!("{}.log", name.split_once('.')?.0));
        Some(Log { file: File::open(path).ok()? })
    }

    fn batch_at(&mut self, position: i32) -> Option<BatchHeader> {
        let position = u64::try_from(position).ok()?;
        let mut header = [0; HEADER_BYTES];
        self.file.seek(SeekFrom::Start(position)).ok()?;
        self.file.read_exact(&mut header).ok()?;
        BatchHeader::parse(&header).ok()
    }
}

fn base_offset(path: &Path) -> i64 {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    name.split('.').next().and_then(|stem| stem.parse().ok()).unwrap_or(0)
}
