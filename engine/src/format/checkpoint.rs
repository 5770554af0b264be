//! The bytes of the checkpoints that format writes.
//!
//! The zero checkpoint, id (0, 0), is three batches at epoch 0 with offsets running on: control
//! records (header, kraft.version if at least 1, voters if given), all bootstrap records in one data
//! batch, footer (B-56; formats.md 10.6). The legacy `bootstrap.checkpoint` has the header alone in
//! its first batch, and its header says time 0.

use super::FormatError;
use crate::scram::ScramCredential;
use kraftlog_codecs::batch::{AppendError, BATCH_BYTES_MAX, BatchBuilder, BatchOptions};
use kraftlog_codecs::control::{ControlRecord, KRaftVersion, SnapshotFooter, SnapshotHeader, Voters};
use kraftlog_codecs::metadata::{FeatureLevelRecord, MetadataRecord, UserScramCredentialRecord};

/// The four clock readings in a checkpoint, in milliseconds. Kafka reads its clock for each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CheckpointTimes {
    /// `LastContainedLogTimestamp` of the header: the time of formatting.
    pub header: i64,
    /// Timestamp of the first control batch.
    pub control: i64,
    /// Timestamp of the data batch.
    pub data: i64,
    /// Timestamp of the footer's batch.
    pub footer: i64,
}

impl CheckpointTimes {
    /// One time for all.
    pub fn all(time: i64) -> CheckpointTimes {
        CheckpointTimes { header: time, control: time, data: time, footer: time }
    }
}

/// The bytes of a zero checkpoint. `records` are encoded metadata records, possibly none; `voters`
/// are written as they are ordered.
///
/// # Errors
/// [`FormatError::BatchTooLarge`] if the records do not fit into one batch of 8 MiB.
pub fn zero_checkpoint(
    kraft_version: i16,
    voters: Option<&Voters>,
    records: &[Vec<u8>],
    times: CheckpointTimes,
) -> Result<Vec<u8>, FormatError> {
    let mut out = Vec::new();
    let header = ControlRecord::SnapshotHeader(SnapshotHeader {
        version: 0,
        last_contained_log_timestamp: times.header,
        ..SnapshotHeader::default()
    });
    let mut builder = BatchBuilder::new(&mut out, BatchOptions::control(0, 0, times.control));
    builder.append_control(&header).map_err(too_large)?;
    if kraft_version >= 1 {
        let version = KRaftVersion { version: 0, kraft_version, ..KRaftVersion::default() };
        builder.append_control(&ControlRecord::KRaftVersion(version)).map_err(too_large)?;
    }
    if let Some(voters) = voters {
        builder.append_control(&ControlRecord::Voters(voters.clone())).map_err(too_large)?;
    }
    let next = builder.finish().next_offset();
    let next = data_batch(&mut out, next, records, times.data)?;
    footer(&mut out, next, times.footer)?;
    Ok(out)
}

/// The bytes of a legacy `bootstrap.checkpoint`.
pub(super) fn legacy_checkpoint(records: &[Vec<u8>], times: CheckpointTimes) -> Result<Vec<u8>, FormatError> {
    let mut out = Vec::new();
    let header = ControlRecord::SnapshotHeader(SnapshotHeader::default());
    let mut builder = BatchBuilder::new(&mut out, BatchOptions::control(0, 0, times.control));
    builder.append_control(&header).map_err(too_large)?;
    let next = builder.finish().next_offset();
    let next = data_batch(&mut out, next, records, times.data)?;
    footer(&mut out, next, times.footer)?;
    Ok(out)
}

fn data_batch(
    out: &mut Vec<u8>,
    base_offset: i64,
    records: &[Vec<u8>],
    time: i64,
) -> Result<i64, FormatError> {
    if records.is_empty() {
        return Ok(base_offset);
    }
    // One batch without a limit tells the size that did not fit.
    let options = BatchOptions { bytes_max: i32::MAX as usize, ..BatchOptions::data(base_offset, 0, time) };
    let mut builder = BatchBuilder::new(out, options);
    for record in records {
        builder.append(None, record).map_err(|full| too_large(AppendError::Full(full)))?;
    }
    let size = builder.size();
    if size > BATCH_BYTES_MAX {
        return Err(FormatError::BatchTooLarge { size, limit: BATCH_BYTES_MAX });
    }
    Ok(builder.finish().next_offset())
}

fn footer(out: &mut Vec<u8>, base_offset: i64, time: i64) -> Result<(), FormatError> {
    let mut builder = BatchBuilder::new(out, BatchOptions::control(base_offset, 0, time));
    builder.append_control(&ControlRecord::SnapshotFooter(SnapshotFooter::default())).map_err(too_large)?;
    builder.finish();
    Ok(())
}

fn too_large(error: AppendError) -> FormatError {
    match error {
        AppendError::Full(full) => {
            FormatError::BatchTooLarge { size: full.batch_bytes + full.record_bytes, limit: full.bytes_max }
        }
        AppendError::Encode(error) => FormatError::Record(error),
    }
}

/// Encodes the bootstrap records in Kafka's order (B-55): metadata.version, the other features of a
/// level above 0 by name, SCRAM credentials as given.
///
/// # Errors
/// If a name is too long to be encoded.
pub(super) fn bootstrap_records(
    features: &[(String, i16)],
    scram: &[ScramCredential],
) -> Result<Vec<Vec<u8>>, FormatError> {
    let mut records = Vec::with_capacity(features.len() + scram.len());
    for (name, level) in features {
        let record = FeatureLevelRecord { name, feature_level: *level, ..FeatureLevelRecord::default() };
        records.push(encode(record.into())?);
    }
    for user in scram {
        let record = UserScramCredentialRecord {
            name: &user.name,
            mechanism: user.mechanism.code(),
            salt: &user.salt,
            stored_key: &user.stored_key,
            server_key: &user.server_key,
            iterations: user.iterations.cast_signed(),
            ..UserScramCredentialRecord::default()
        };
        records.push(encode(record.into())?);
    }
    Ok(records)
}

fn encode(record: MetadataRecord<'_>) -> Result<Vec<u8>, FormatError> {
    let mut out = Vec::new();
    record.encode(0, &mut out)?;
    Ok(out)
}
