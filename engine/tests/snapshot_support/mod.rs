//! What the tests on snapshots and replay share: logs that lived.

#![allow(dead_code, reason = "each test file uses a part of it")]
#![allow(unreachable_pub, reason = "it is shared by test files, each a crate of its own")]

pub mod traced;

use crate::support::Place;
use kraftlog::{Epoch, MetadataLog, Offset};

/// A record that says a number: FeatureLevelRecord "f" with that level.
pub fn numbered(number: u16) -> Vec<u8> {
    let [high, low] = number.to_be_bytes();
    vec![1, 12, 0, 2, b'f', high, low, 0]
}

/// A log in epoch 1 with `batches` batches of two records each, all durable and committed.
pub(crate) fn lived(place: &Place, batches: u16) -> MetadataLog {
    let (log, _) = place.open();
    log.initialize_leader_epoch_blocking(Epoch(1)).unwrap();
    for batch in 0..batches {
        let records = [numbered(2 * batch), numbered(2 * batch + 1)];
        log.append_records(Epoch(1), records).unwrap().durable_blocking().unwrap();
    }
    log.update_high_watermark(log.end_offset()).unwrap();
    assert_eq!(log.end_offset(), Offset(2 * i64::from(batches)));
    log
}

/// Names in the part directory that have anything to do with checkpoints.
pub(crate) fn checkpoint_names(place: &Place) -> Vec<String> {
    let mut names = place.names(&place.part());
    names.retain(|name| name.contains(".checkpoint"));
    names
}
