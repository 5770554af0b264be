//! One pass over a segment: which batches are there, and where the first fault is.
//!
//! Work is linear in the bytes of the file, memory in the largest batch that is really there. Nothing
//! is written.

use crate::segment::Indexer;
use crate::state::LastBatch;
use crate::types::{Epoch, Offset};
use bytes::{Bytes, BytesMut};
use kraftlog_codecs::batch::{Batch, BatchHeader, HEADER_BYTES};
use kraftlog_codecs::epochs::EpochEntry;
use kraftlog_codecs::error::DecodeError;
use kraftlog_codecs::features::{METADATA_VERSION, MetadataVersion};
use kraftlog_codecs::index::OffsetEntry;
use kraftlog_codecs::metadata::MetadataRecord;
use kraftlog_io::{File, IoError};

const CHUNK_BYTES: u64 = 1 << 20;

/// What is wrong at the first byte that is no part of the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// No whole batch with a good CRC.
    BadBatch { cause: DecodeError, base: Option<i64>, crcs: Option<(u32, u32)> },
    /// A whole batch that begins somewhere else than the one before ended.
    Misplaced { base: i64 },
    /// A whole batch of an epoch below the one before.
    EpochGoesDown { epoch: i32 },
}

/// A record that this build must not pass over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NewerRecord {
    Level { offset: Offset, level: i16 },
    Type { offset: Offset, api_key: u32, version: u32 },
}

/// Everything that the passes over all segments gather.
#[derive(Debug)]
pub(crate) struct Gathered {
    /// Where the next batch must begin.
    pub(crate) end: Offset,
    pub(crate) last_epoch: Epoch,
    pub(crate) epochs: Vec<EpochEntry>,
    /// Control batches with voters or kraft.version.
    pub(crate) control: Vec<(Offset, Bytes)>,
    pub(crate) last: Option<LastBatch>,
    pub(crate) newer: Option<NewerRecord>,
    /// The last state of a migration from ZooKeeper, with its offset.
    pub(crate) migration: Option<(Offset, i8)>,
    /// The batch that the side file calls the last durable one was seen with another CRC or epoch.
    pub(crate) evidence_differs: Option<LastBatch>,
}

/// What one segment turned out to be.
#[derive(Debug)]
pub(crate) struct Scanned {
    /// Bytes of good batches at the front.
    pub(crate) valid: u64,
    pub(crate) file_len: u64,
    pub(crate) fault: Option<Fault>,
    pub(crate) index: Vec<OffsetEntry>,
    pub(crate) indexer: Indexer,
    pub(crate) first_timestamp: Option<i64>,
    pub(crate) batches: u64,
    /// An entry of the index file points at no batch.
    pub(crate) index_differs: bool,
}

/// Where and how a pass begins.
pub(crate) struct From<'a> {
    pub(crate) base: Offset,
    pub(crate) position: u64,
    pub(crate) index: Vec<OffsetEntry>,
    pub(crate) indexer: Indexer,
    /// Entries of the index file, to be held against the batches.
    pub(crate) index_file: &'a [OffsetEntry],
    pub(crate) check_records: bool,
    pub(crate) evidence: Option<LastBatch>,
}

/// Walks one segment from `from.position`, until its end or the first fault.
pub(crate) async fn scan(
    file: &dyn File,
    from: From<'_>,
    gathered: &mut Gathered,
) -> Result<Scanned, IoError> {
    let file_len = file.len().await?;
    let mut scanned = Scanned {
        valid: from.position,
        file_len,
        fault: None,
        index: from.index,
        indexer: from.indexer,
        first_timestamp: None,
        batches: 0,
        index_differs: false,
    };
    let mut index_file = from.index_file.iter().peekable();
    let mut buf = BytesMut::new();
    loop {
        let left = file_len - scanned.valid;
        if left == 0 {
            break;
        }
        let header = BatchHeader::parse(&buf);
        let size = match &header {
            Ok(header) => header.size(),
            Err(_) => HEADER_BYTES,
        };
        let truncated = header.as_ref().err().is_none_or(|cause| *cause == DecodeError::Truncated);
        if truncated && buf.len() < size {
            if (size as u64) > left {
                let base = header.ok().map(|header| header.base_offset);
                scanned.fault = Some(Fault::BadBatch { cause: DecodeError::Truncated, base, crcs: None });
                break;
            }
            let have = scanned.valid + buf.len() as u64;
            let want = CHUNK_BYTES.max(size as u64 - buf.len() as u64).min(file_len - have);
            let before = buf.len();
            buf = file.read_at(have, usize::try_from(want).unwrap_or(usize::MAX), buf).await?;
            if buf.len() == before {
                // The file is shorter than it said; what is not there cannot be a batch.
                scanned.fault =
                    Some(Fault::BadBatch { cause: DecodeError::Truncated, base: None, crcs: None });
                break;
            }
            continue;
        }
        let header = match header {
            Ok(header) => header,
            Err(cause) => {
                scanned.fault = Some(Fault::BadBatch { cause, base: None, crcs: None });
                break;
            }
        };
        if let Some(fault) = take(&buf[..size], &header, gathered, from.check_records, from.evidence) {
            scanned.fault = Some(fault);
            break;
        }
        let position = scanned.valid;
        while let Some(entry) = index_file.peek() {
            if i64::from(entry.position) > position.cast_signed() {
                break;
            }
            let relative = i64::from(entry.relative_offset);
            let is_batch = i64::from(entry.position) == position.cast_signed()
                && relative == header.last_offset() - from.base.0;
            // What lies before a pass that begins in the middle was held against batches before.
            scanned.index_differs |= !is_batch && i64::from(entry.position) >= from.position.cast_signed();
            index_file.next();
        }
        if let Some(entry) = scanned.indexer.add(&header, position) {
            scanned.index.push(entry);
        }
        if position == 0 {
            scanned.first_timestamp = Some(header.max_timestamp);
        }
        gathered.last = Some(LastBatch {
            segment: from.base,
            position,
            base: Offset(header.base_offset),
            epoch: Epoch(header.leader_epoch),
            crc: header.crc,
        });
        scanned.batches += 1;
        scanned.valid += size as u64;
        let _ = buf.split_to(size);
    }
    scanned.index_differs |= index_file.peek().is_some();
    Ok(scanned)
}

/// Checks one whole batch and takes over what it says.
fn take(
    bytes: &[u8],
    header: &BatchHeader,
    gathered: &mut Gathered,
    check_records: bool,
    evidence: Option<LastBatch>,
) -> Option<Fault> {
    let base = Some(header.base_offset);
    let batch = match Batch::parse(bytes) {
        Ok(batch) => batch,
        Err(cause) => return Some(Fault::BadBatch { cause, base, crcs: None }),
    };
    let computed = batch.computed_crc();
    if computed != header.crc {
        let crcs = Some((header.crc, computed));
        return Some(Fault::BadBatch { cause: DecodeError::BadCrc, base, crcs });
    }
    if header.base_offset != gathered.end.0 {
        return Some(Fault::Misplaced { base: header.base_offset });
    }
    if header.leader_epoch < gathered.last_epoch.0 {
        return Some(Fault::EpochGoesDown { epoch: header.leader_epoch });
    }
    if let Some(expected) = evidence
        && expected.base.0 == header.base_offset
        && (expected.crc, expected.epoch.0) != (header.crc, header.leader_epoch)
    {
        gathered.evidence_differs = Some(expected);
    }
    if gathered.epochs.last().is_none_or(|last| last.epoch < header.leader_epoch) {
        gathered.epochs.push(EpochEntry { epoch: header.leader_epoch, start_offset: header.base_offset });
    }
    if crate::lane::log_lane::changes_quorum(&batch) {
        gathered.control.push((Offset(header.base_offset), Bytes::copy_from_slice(bytes)));
    }
    if check_records && !header.is_control() {
        check_batch(&batch, gathered);
    }
    gathered.end = Offset(header.next_offset());
    gathered.last_epoch = Epoch(header.leader_epoch);
    None
}

/// Looks for records that only a newer build understands (field case C-31), and for an unfinished
/// migration (C-48). Records that do not decode are for the reader of the log to complain of.
fn check_batch(batch: &Batch<'_>, gathered: &mut Gathered) {
    let Ok(records) = batch.records() else { return };
    for record in records {
        let Ok(record) = record else { return };
        let offset = Offset(record.offset);
        let Ok(framed) = MetadataRecord::decode(record.value.unwrap_or_default()) else { continue };
        let newer = match framed.record {
            MetadataRecord::Unknown(unknown) => {
                NewerRecord::Type { offset, api_key: unknown.api_key, version: unknown.version }
            }
            MetadataRecord::FeatureLevel(feature)
                if feature.name == METADATA_VERSION && !MetadataVersion(feature.feature_level).is_known() =>
            {
                NewerRecord::Level { offset, level: feature.feature_level }
            }
            MetadataRecord::ZkMigrationState(state) => {
                gathered.migration = Some((offset, state.zk_migration_state));
                continue;
            }
            _ => continue,
        };
        gathered.newer.get_or_insert(newer);
    }
}
