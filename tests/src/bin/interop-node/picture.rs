//! What is in an open log, in the words that Kafka's side of the round trips uses.

use kraftlog::{Isolation, MetadataLog, Offset};
use kraftlog_codecs::batch::Batches;
use serde_json::{Value, json};
use std::error::Error;

const READ_BYTES: usize = 1 << 20;

/// Reads every batch and record of the log and of its snapshots, checksums included.
pub(crate) fn of(log: &MetadataLog) -> Result<Value, Box<dyn Error>> {
    let (mut batches, mut records, mut controls) = (0, 0, 0);
    each_batch(log, log.start_offset(), |batch| {
        batches += 1;
        let count = batch.records()?.try_fold(0, |count, record| record.map(|_| count + 1))?;
        if batch.header().is_control() {
            controls += count
        } else {
            records += count
        }
        Ok(())
    })?;
    let mut snapshots = Vec::new();
    for (id, _) in log.snapshots() {
        let mut reader = log.open_snapshot_blocking(id)?;
        let (mut batches, mut records, mut controls) = (0, 0, 0);
        while let Some(batch) = reader.next_batch_blocking()? {
            batches += 1;
            let count = batch.records()?.try_fold(0, |count, record| record.map(|_| count + 1))?;
            if batch.is_control() { controls += count } else { records += count }
        }
        snapshots.push(json!({
            "offset": id.end_offset.0, "epoch": id.epoch.0, "size": reader.len(),
            "batches": batches, "records": records, "controlRecords": controls,
            "lastContainedLogTimestamp": reader.head().last_contained_log_timestamp,
        }));
    }
    let mut found = json!({
        "startOffset": log.start_offset().0,
        "endOffset": log.end_offset().0,
        "lastFetchedEpoch": log.last_epoch().0,
        "highWatermark": log.high_watermark().0,
        "logBatches": batches,
        "logRecords": records,
        "logControlRecords": controls,
        "snapshots": snapshots,
    });
    if let Some(id) = log.latest_snapshot() {
        found["latestSnapshot"] = json!(format!("{}-{}", id.end_offset, id.epoch));
    }
    if let Some(id) = log.earliest_snapshot() {
        found["earliestSnapshot"] = json!(format!("{}-{}", id.end_offset, id.epoch));
    }
    Ok(json!({ "log": found }))
}

/// Calls `visit` with every batch from `from` to the log end.
fn each_batch(
    log: &MetadataLog,
    from: Offset,
    mut visit: impl FnMut(&kraftlog_codecs::batch::Batch<'_>) -> Result<(), Box<dyn Error>>,
) -> Result<(), Box<dyn Error>> {
    let mut next = from;
    while next < log.end_offset() {
        let fetched = log.read_blocking(next, Isolation::Uncommitted, READ_BYTES)?;
        if fetched.next <= next {
            return Err(
                format!("the log ends at {} but nothing can be read at {next}", log.end_offset()).into()
            );
        }
        for batch in Batches::new(&fetched.bytes) {
            visit(&batch.1?)?;
        }
        next = fetched.next;
    }
    Ok(())
}
