//! Batches, and logs that have some.

use kraftlog::{Epoch, MetadataLog, Ticket};
use kraftlog_codecs::batch::{BatchBuilder, BatchOptions};
use std::path::Path;

/// A NoOpRecord, as Kafka frames it.
pub(crate) const NO_OP: [u8; 4] = [1, 20, 0, 0];

/// A batch of `count` NoOpRecords with a fixed timestamp.
pub(crate) fn batch(base: i64, epoch: i32, count: usize) -> Vec<u8> {
    batch_at(base, epoch, count, 1_700_000_000_000)
}

pub(crate) fn batch_at(base: i64, epoch: i32, count: usize, timestamp: i64) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut builder = BatchBuilder::new(&mut bytes, BatchOptions::data(base, epoch, timestamp));
    for _ in 0..count {
        builder.append(None, &NO_OP).expect("room");
    }
    builder.finish();
    bytes
}

/// A batch with one record of `len` bytes (a NoOpRecord with an unknown tagged field).
pub(crate) fn big_batch(base: i64, epoch: i32, len: usize) -> Vec<u8> {
    let mut value = vec![1, 20, 0, 1, 100];
    let mut left = len - 10;
    loop {
        let byte = u8::try_from(left & 0x7f).expect("seven bits");
        left >>= 7;
        value.push(if left > 0 { byte | 0x80 } else { byte });
        if left == 0 {
            break;
        }
    }
    value.resize(value.len() + len - 10, 0x5a);
    let mut bytes = Vec::new();
    let options = BatchOptions { bytes_max: 16 << 20, ..BatchOptions::data(base, epoch, 1_700_000_000_000) };
    let mut builder = BatchBuilder::new(&mut bytes, options);
    builder.append(None, &value).expect("room");
    builder.finish();
    bytes
}

/// Leads an epoch and appends `batches` batches of one record, waiting for each.
pub(crate) fn lead(log: &MetadataLog, epoch: i32, batches: usize) {
    log.initialize_leader_epoch_blocking(Epoch(epoch)).expect("a new epoch");
    for _ in 0..batches {
        append(log, epoch, 1).durable_blocking().expect("durable");
    }
}

pub(crate) fn append(log: &MetadataLog, epoch: i32, count: usize) -> Ticket {
    log.append_as_leader(Epoch(epoch), batch(0, epoch, count)).expect("queued")
}

/// A file of `tests/cases`, decoded.
pub(crate) fn case(name: &str) -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/cases").join(name);
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let hex: String = text.lines().filter(|line| !line.starts_with('#')).collect();
    hex.as_bytes()
        .chunks(2)
        .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).expect("hex"), 16).expect("hex"))
        .collect()
}
