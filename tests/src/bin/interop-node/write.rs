//! A short time as leader of a single-voter quorum, step by step as a controller goes.

use crate::args::WriteCommand;
use crate::fold::Fold;
use crate::topic::Topic;
use kraftlog::{Epoch, MetadataLog, NodeId, Offset, Replayed, SnapshotId};
use kraftlog_codecs::quorum::{QuorumState, VersionData, Vote};
use kraftlog_codecs::uuid::Uuid;
use serde_json::{Value, json};
use std::error::Error;
use std::time::{SystemTime, UNIX_EPOCH};

/// Records that are handed to a snapshot writer at once.
const SNAPSHOT_RECORDS: usize = 1000;

/// Leads the next epoch and says what was written.
pub(crate) fn write(log: &MetadataLog, command: &WriteCommand) -> Result<Value, Box<dyn Error>> {
    let epoch_start = log.end_offset();
    let epoch = win_election(log, command)?;
    log.initialize_leader_epoch_blocking(epoch)?;
    let latest = log.latest_snapshot().ok_or("a directory of a dynamic quorum has a snapshot")?;
    let voters = log
        .open_snapshot_blocking(latest)?
        .head()
        .voters
        .clone()
        .ok_or("the latest snapshot has no voters")?;
    let voter = voters.voters.iter().find(|voter| voter.id == command.node).ok_or("this node is no voter")?;
    commit(log, log.append_leader_change(epoch, voter, &[NodeId(command.node)])?)?;

    let version = replay(log)?.metadata_version().ok_or("the log has no metadata.version")?;
    let topic = |name: &str| {
        let topic = Topic {
            name,
            id: random_uuid(name),
            partitions: 2,
            broker: command.node,
            directory: command.directory,
        };
        commit(log, log.append_as_leader(epoch, topic.batch(version, now_ms())?)?)?;
        Ok::<Uuid, Box<dyn Error>>(topic.id)
    };
    let topic_id = topic(&command.topic)?;

    let fold = replay(log)?;
    let id = SnapshotId { end_offset: log.end_offset(), epoch };
    let mut writer = log.create_snapshot_blocking(id)?;
    for records in fold.values().chunks(SNAPSHOT_RECORDS) {
        writer.append_blocking(records)?;
    }
    let frozen = writer.freeze_blocking()?;

    topic(&format!("{}-after", command.topic))?;
    Ok(json!({
        "topicId": topic_id.to_string(),
        "snapshot": id.to_string(),
        "snapshotBytes": frozen.bytes,
        "epochEntry": format!("{epoch} {epoch_start}"),
        "endOffset": log.end_offset().0,
    }))
}

/// Votes for this node and finds it elected, with the two states of `quorum-state` that a Kafka leaves then.
fn win_election(log: &MetadataLog, command: &WriteCommand) -> Result<Epoch, Box<dyn Error>> {
    let file = log.quorum_state();
    let seen = file.read_blocking()?.map_or(0, |state| state.leader_epoch);
    let epoch = Epoch(seen.max(log.last_epoch().0) + 1);
    let candidate = QuorumState {
        leader_id: None,
        leader_epoch: epoch.0,
        voted: Some(Vote { id: command.node, directory_id: command.directory }),
        version_data: VersionData::V1,
    };
    file.write_blocking(&candidate)?;
    file.write_blocking(&QuorumState { leader_id: Some(command.node), voted: None, ..candidate })?;
    Ok(epoch)
}

/// The only voter commits what is durable here.
fn commit(log: &MetadataLog, ticket: kraftlog::Ticket) -> Result<(), Box<dyn Error>> {
    let appended = ticket.durable_blocking()?;
    log.update_high_watermark(Offset(appended.last.0 + 1))?;
    Ok(())
}

/// The committed state, as a metadata loader gets it.
fn replay(log: &MetadataLog) -> Result<Fold, Box<dyn Error>> {
    let mut fold = Fold::default();
    let mut replay = log.replay(None);
    loop {
        match replay.next_blocking()? {
            Replayed::Batch(batch) => {
                for record in batch.records()? {
                    fold.replay(record?.payload())?;
                }
            }
            Replayed::Snapshot { .. } | Replayed::Restart { .. } => fold = Fold::default(),
            Replayed::CaughtUp(end) => {
                assert!(end == log.end_offset(), "replay ends at {end}, the log at {}", log.end_offset());
                return Ok(fold);
            }
            _ => {}
        }
    }
}

fn now_ms() -> i64 {
    #[expect(clippy::disallowed_methods, reason = "a program of its own reads the clock itself")]
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(now.as_millis()).unwrap_or(i64::MAX)
}

/// Random enough for a test: the hash keys of the standard library are drawn by the system.
fn random_uuid(name: &str) -> Uuid {
    use std::hash::{BuildHasher, RandomState};
    Uuid::random(|| RandomState::new().hash_one(name))
}
