//! The encoder against files that Kafka's own writer made.

use super::*;
use crate::snapshot::{SnapshotFile, SnapshotHead};
use std::cell::Cell;
use std::path::{Path, PathBuf};

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/fixtures").join(name)
}

/// What a checkpoint of Kafka was made from.
struct Source {
    bytes: Vec<u8>,
    epoch: Epoch,
    head: Head,
    times: Vec<i64>,
    values: Vec<Vec<u8>>,
}

impl Source {
    fn read(path: &Path) -> Source {
        let mut source = Source {
            bytes: std::fs::read(path).unwrap(),
            epoch: Epoch(-1),
            head: Head { last_contained_log_timestamp: -1, kraft_version: 0, voters: None },
            times: Vec::new(),
            values: Vec::new(),
        };
        let mut file = SnapshotFile::open(path).unwrap();
        while let Some(batch) = file.next_batch().unwrap() {
            let header = batch.header();
            if header.base_offset == 0 {
                let head = SnapshotHead::from_batch(&batch).unwrap();
                source.epoch = Epoch(header.leader_epoch);
                source.head = Head {
                    last_contained_log_timestamp: head.last_contained_log_timestamp,
                    kraft_version: head.kraft_version.unwrap_or(0),
                    voters: head.voters,
                };
            }
            source.times.push(header.base_timestamp);
            if !header.is_control() {
                source.values.extend(batch.records().unwrap().map(|r| r.unwrap().value.unwrap().to_vec()));
            }
        }
        source
    }

    /// Writes it again with lists of the given lengths and Kafka's clock.
    fn encode(&self, bytes_max: usize, mut list_len: impl FnMut(usize) -> usize) -> Vec<u8> {
        let mut out = Vec::new();
        let encoder = SnapshotEncoder::new(self.epoch, &self.head, self.times[0], &mut out);
        let mut encoder = encoder.with_batch_bytes_max(bytes_max);
        let opened = Cell::new(0);
        let now = || {
            opened.set(opened.get() + 1);
            self.times[opened.get()]
        };
        let (mut rest, mut list) = (&self.values[..], 0);
        while !rest.is_empty() {
            let (records, behind) = rest.split_at(list_len(list).min(rest.len()));
            let completes = encoder.completes_batch(records);
            let complete = encoder.append(records, now).unwrap();
            assert_eq!(complete.is_some(), completes, "list {list}");
            out.extend(complete.unwrap_or_default());
            (rest, list) = (behind, list + 1);
        }
        out.extend(encoder.finish(*self.times.last().unwrap()));
        out
    }
}

/// Names the first difference instead of printing megabytes.
fn assert_same(ours: &[u8], kafkas: &[u8]) {
    let differs = ours.iter().zip(kafkas).position(|(ours, kafkas)| ours != kafkas);
    assert_eq!((differs, ours.len()), (None, kafkas.len()), "first difference, length");
}

#[test]
fn lists_fill_batches_exactly_as_in_kafkas_writer() {
    let kafka = Source::read(&fixture("snapshot-writer-4.4.0/00000000000000000020-0000000003.checkpoint"));
    assert_eq!(kafka.values.len(), 155);
    assert_eq!(kafka.head.last_contained_log_timestamp, 1_699_999_999_123);
    assert!(kafka.times.len() > 8, "several data batches, not {}", kafka.times.len());
    assert_same(&kafka.encode(1500, |list| 1 + list % 7), &kafka.bytes);
}

#[test]
fn a_large_checkpoint_is_packed_as_a_running_kafka_packed_it() {
    use std::io::Read;
    let packed = fixture("large-checkpoint-4.4.0/00000000000000055949-0000000003.checkpoint.gz");
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("00000000000000055949-0000000003.checkpoint");
    let mut bytes = Vec::new();
    flate2::read::GzDecoder::new(std::fs::File::open(packed).unwrap()).read_to_end(&mut bytes).unwrap();
    std::fs::OpenOptions::new()
        .create_new(true)
        .write(true)
        .open(&path)
        .and_then(|mut file| std::io::Write::write_all(&mut file, &bytes))
        .unwrap();
    let kafka = Source::read(&path);
    // Kafka's image writer hands its records over in lists of 1024.
    assert_same(&kafka.encode(BATCH_BYTES_MAX, |_| 1024), &kafka.bytes);
}

#[test]
fn kraft_version_0_writes_the_header_record_alone() {
    let mut out = Vec::new();
    let voters = Some(VoterSet::default());
    let head = Head { last_contained_log_timestamp: 7, kraft_version: 0, voters };
    let encoder = SnapshotEncoder::new(Epoch(2), &head, 5, &mut out);
    assert_eq!(encoder.next_offset, 1);
}

#[test]
fn records_that_cannot_share_a_batch_are_refused_and_change_nothing() {
    let mut out = Vec::new();
    let head = Head { last_contained_log_timestamp: 0, kraft_version: 0, voters: None };
    let mut encoder = SnapshotEncoder::new(Epoch(1), &head, 0, &mut out).with_batch_bytes_max(200);
    assert_eq!(encoder.append(&[[1u8; 50]], || 1), Ok(None));
    let too_large = encoder.append(&[vec![1u8; 60], vec![2; 80]], || 2);
    assert!(
        matches!(too_large, Err(EncodeRefusal::BatchTooLarge { bytes: 218, bytes_max: 200 })),
        "{too_large:?}"
    );
    assert_eq!(encoder.append(&[&b"x"[..], b""], || 2), Err(EncodeRefusal::EmptyRecord { index: 1 }));
    assert_eq!(encoder.append::<&[u8]>(&[], || 2), Ok(None));
    assert_eq!((encoder.count, encoder.open.len()), (1, HEADER_BYTES + 57));
}
