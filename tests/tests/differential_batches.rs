//! The batch codec against `kafka-protocol`, which shares no code with it: on the same valid bytes both read
//! the same, and on what KRaft writes both write the same bytes.
//!
//! A run prints its seed; `KRAFTLOG_SEED=<number>` replays it, `PROPTEST_CASES` sets its length.

#[path = "differential/batch.rs"]
mod batch;

use batch::{Header, Input, InputRecord, kraft_input, read_by_them, read_by_us, written_by_us};
use kraftlog_codecs::batch::Batches;
use kraftlog_tests::fixtures;
use proptest::collection::{btree_map, vec};
use proptest::option;
use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use std::hash::{BuildHasher as _, RandomState};

/// A runner whose cases follow from a printed seed.
fn runner() -> TestRunner {
    let seed = std::env::var("KRAFTLOG_SEED")
        .map(|text| text.parse().expect("KRAFTLOG_SEED is a number"))
        .unwrap_or_else(|_| RandomState::new().hash_one("seed"));
    println!("KRAFTLOG_SEED={seed}");
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_be_bytes());
    let config = Config { failure_persistence: None, ..Config::default() };
    TestRunner::new_with_rng(config, TestRng::from_seed(RngAlgorithm::ChaCha, &bytes))
}

/// Short ones, and now and then one that a compressor can do something with.
fn bytes() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        4 => vec(any::<u8>(), 0..40),
        1 => (any::<u8>(), 0..20_000_usize).prop_map(|(byte, len)| vec![byte; len]),
        1 => vec(any::<u8>(), 4_000..70_000),
    ]
}

fn headers() -> impl Strategy<Value = Vec<Header>> {
    btree_map(".{0,8}", option::of(vec(any::<u8>(), 0..20)), 0..4).prop_map(|map| map.into_iter().collect())
}

prop_compose! {
    fn record()(
        gap in prop_oneof![4 => Just(0_u16), 1 => any::<u16>()],
        // Far apart and on both sides of 1970, but not so far that a difference does not fit.
        timestamp in prop_oneof![1_600_000_000_000..1_800_000_000_000_i64, -(1_i64 << 61)..1_i64 << 61],
        key in option::of(bytes()),
        value in option::of(bytes()),
        headers in headers(),
    ) -> InputRecord {
        InputRecord { gap, timestamp, key, value, headers }
    }
}

prop_compose! {
    fn input()(
        compression in 0..5_u8,
        base_offset in prop_oneof![0..1_000_i64, 0..i64::MAX - (1 << 32)],
        epoch in -1..i32::MAX,
        producer_id in -1..i64::MAX,
        producer_epoch in -1..i16::MAX,
        base_sequence in -1..i32::MAX,
        transactional in any::<bool>(),
        control in any::<bool>(),
        records in vec(record(), 1..12),
    ) -> Input {
        Input {
            compression, base_offset, epoch, producer_id, producer_epoch, base_sequence, transactional, control,
            records,
        }
    }
}

#[test]
fn a_batch_that_they_wrote_reads_the_same_in_both_codecs() {
    let ran = runner().run(&input(), |input| {
        let bytes = input.written_by_them();
        let flat = input.flat();
        prop_assert_eq!(&read_by_us(&bytes), &flat);
        prop_assert_eq!(&read_by_them(&bytes), &flat);
        Ok(())
    });
    ran.unwrap_or_else(|error| panic!("{error}"));
}

#[test]
fn a_batch_that_we_wrote_is_the_one_that_they_write() {
    let values = vec(vec(any::<u8>(), 1..300), 1..50);
    let at = (0..i64::MAX - (1 << 32), 0..i32::MAX, 0..i64::MAX);
    let ran = runner().run(&(at, values), |((base_offset, epoch, timestamp), values)| {
        let ours = written_by_us(base_offset, epoch, timestamp, &values);
        let input = kraft_input(base_offset, epoch, timestamp, &values);
        prop_assert_eq!(&read_by_them(&ours), &input.flat());
        prop_assert_eq!(&read_by_us(&ours), &input.flat());
        prop_assert_eq!(&ours, &input.written_by_them());
        Ok(())
    });
    ran.unwrap_or_else(|error| panic!("{error}"));
}

#[test]
fn what_kafka_wrote_reads_the_same_in_both_codecs() {
    let mut batches = 0;
    for name in ["lived-4.4.0/n1-stopped", "lived-4.0.2/n1-stopped", "quorum-4.4.0/c1-stopped"] {
        let unpacked = fixtures::capture(name).unpack();
        let dir = std::fs::read_dir(unpacked.part_dir()).expect("a directory of the metadata log");
        for entry in dir {
            let path = entry.expect("an entry").path();
            if !path.extension().is_some_and(|suffix| suffix == "log" || suffix == "checkpoint") {
                continue;
            }
            let bytes = std::fs::read(&path).expect("a file");
            for (_, batch) in Batches::new(&bytes) {
                let Ok(batch) = batch else { break };
                assert_eq!(read_by_us(batch.bytes()), read_by_them(batch.bytes()), "{}", path.display());
                batches += 1;
            }
        }
    }
    assert!(batches > 100, "only {batches} batches of Kafka were compared");
}
