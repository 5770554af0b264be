//! The state that the demo's records make, as far as it needs one: a checkpoint of it, and counts.
//!
//! The demo only creates topics, so the state's records are the log's records without the transaction
//! markers, in their order.

use kraftlog::snapshot::Frozen;
use kraftlog::{Epoch, MetadataLog, Replayed, SnapshotId};
use kraftlog_codecs::metadata::MetadataRecord;
use std::error::Error;

type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

/// Records handed to a checkpoint at once.
const CHUNK: usize = 4096;

/// How much a replay gave.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) topics: u64,
    pub(crate) partitions: u64,
    pub(crate) configs: u64,
    pub(crate) features: u64,
}

impl Counts {
    fn add(&mut self, record: &MetadataRecord<'_>) {
        match record {
            MetadataRecord::Topic(_) => self.topics += 1,
            MetadataRecord::Partition(_) => self.partitions += 1,
            MetadataRecord::Config(_) => self.configs += 1,
            MetadataRecord::FeatureLevel(_) => self.features += 1,
            _ => {}
        }
    }

    pub(crate) fn records(&self) -> u64 {
        self.topics + self.partitions + self.configs + self.features
    }
}

/// Replays everything committed and calls `each` for every record of the state. Gives the counts, and
/// the checkpoint that the replay began with.
fn replay(
    log: &MetadataLog,
    mut each: impl FnMut(&[u8]) -> Result<()>,
) -> Result<(Counts, Option<SnapshotId>)> {
    let (mut counts, mut from) = (Counts::default(), None);
    let mut replay = log.replay(None);
    loop {
        match replay.next_blocking()? {
            Replayed::Snapshot { id, .. } => from = Some(id),
            Replayed::Batch(batch) => {
                for record in batch.records()? {
                    let value = record?.value.unwrap_or_default();
                    let decoded = MetadataRecord::decode(value)?.record;
                    let marker = matches!(
                        decoded,
                        MetadataRecord::BeginTransaction(_) | MetadataRecord::EndTransaction(_)
                    );
                    if !marker {
                        counts.add(&decoded);
                        each(value)?;
                    }
                }
            }
            Replayed::CaughtUp(_) => return Ok((counts, from)),
            Replayed::Restart { damaged, fault, .. } => {
                return Err(format!("checkpoint {damaged} is damaged: {fault}").into());
            }
            _ => {}
        }
    }
}

/// Loads the state: the newest checkpoint and what the log has behind it.
pub(crate) fn load(log: &MetadataLog) -> Result<(Counts, Option<SnapshotId>)> {
    replay(log, |_| Ok(()))
}

/// Freezes a checkpoint of everything committed.
pub(crate) fn freeze(log: &MetadataLog, epoch: Epoch) -> Result<(Frozen, Counts)> {
    let id = SnapshotId { end_offset: log.high_watermark(), epoch };
    let mut writer = log.create_snapshot_blocking(id)?;
    let mut chunk: Vec<Vec<u8>> = Vec::with_capacity(CHUNK);
    let (counts, _) = replay(log, |value| {
        chunk.push(value.to_vec());
        if chunk.len() == CHUNK {
            writer.append_blocking(&chunk)?;
            chunk.clear();
        }
        Ok(())
    })?;
    if !chunk.is_empty() {
        writer.append_blocking(&chunk)?;
    }
    Ok((writer.freeze_blocking()?, counts))
}
