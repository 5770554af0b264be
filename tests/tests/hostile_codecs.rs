//! Bytes that nobody wrote, through every decoder: errors only, little memory, and none at all
//! where records are walked and decoded.
//!
//! A run prints its seed; `KRAFTLOG_SEED=<number>` replays it, `PROPTEST_CASES` sets its length.

use allocation_counter::{AllocationInfo, measure};
use kraftlog_codecs::batch::{Batch, BatchHeader, Batches, CRC_FROM, Found, HEADER_BYTES, find_valid_batch};
use kraftlog_codecs::compress::{Compression, decompress};
use kraftlog_codecs::control::ControlRecord;
use kraftlog_codecs::crc;
use kraftlog_codecs::epochs;
use kraftlog_codecs::index::{OffsetIndex, TimeIndex};
use kraftlog_codecs::meta_properties::MetaProperties;
use kraftlog_codecs::metadata::MetadataRecord;
use kraftlog_codecs::names::{Name, PartitionDir};
use kraftlog_codecs::partition_metadata::PartitionMetadata;
use kraftlog_codecs::properties::Properties;
use kraftlog_codecs::quorum::QuorumState;
use kraftlog_tests::fixtures;
use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestRng, TestRunner};
use std::hash::{BuildHasher as _, RandomState};
use std::hint::black_box;

/// Most bytes that a decoder may hold at a time for inputs of at most [`INPUT_BYTES_MAX`].
const HELD_BYTES_MAX: u64 = 1 << 20;
const INPUT_BYTES_MAX: usize = 16 << 10;
/// Cases of each random test unless `PROPTEST_CASES` says otherwise.
const CASES: u32 = 4096;

/// A runner whose cases follow from a printed seed.
fn runner() -> TestRunner {
    let seed = std::env::var("KRAFTLOG_SEED")
        .map(|text| text.parse().expect("KRAFTLOG_SEED is a number"))
        .unwrap_or_else(|_| RandomState::new().hash_one("seed"));
    println!("KRAFTLOG_SEED={seed}");
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_be_bytes());
    // A seed in the output says more than a file of regressions beside the test.
    let mut config = Config { failure_persistence: None, ..Config::default() };
    if std::env::var_os("PROPTEST_CASES").is_none() {
        config.cases = CASES;
    }
    TestRunner::new_with_rng(config, TestRng::from_seed(RngAlgorithm::ChaCha, &bytes))
}

/// One change of a sample: where (taken modulo its length), what, and with which value.
type Change = (u32, u8, u8);

fn mutate(sample: &[u8], changes: &[Change], crc: bool) -> Vec<u8> {
    let mut bytes = sample.to_vec();
    for &(place, kind, value) in changes {
        let at = place as usize % (bytes.len() + 1);
        match kind % 6 {
            0 => bytes.truncate(at),
            1 => bytes.insert(at, value),
            2 => {
                if at < bytes.len() {
                    bytes.remove(at);
                }
            }
            // Lengths and counts are where it hurts: the greatest, and the first negative.
            3 => bytes.iter_mut().skip(at).take(4).for_each(|byte| *byte = 0xff),
            4 => bytes.iter_mut().skip(at).take(1).for_each(|byte| *byte ^= 1 << (value % 8)),
            _ => bytes.iter_mut().skip(at).take(1).for_each(|byte| *byte = value),
        }
    }
    if crc {
        mend_crc(&mut bytes);
    }
    bytes
}

/// Makes the first batch's length and CRC right, so that what is damaged is inside.
fn mend_crc(bytes: &mut [u8]) {
    if bytes.len() < HEADER_BYTES {
        return;
    }
    let length = i32::try_from(bytes.len() - 12).expect("samples are short");
    bytes[8..12].copy_from_slice(&length.to_be_bytes());
    let sum = crc::crc32c(&bytes[CRC_FROM..]);
    bytes[17..21].copy_from_slice(&sum.to_be_bytes());
}

/// Walks and decodes all that is in a batch.
fn walk(batch: &Batch<'_>) {
    for record in batch.records().into_iter().flatten().flatten() {
        if let Some(key) = record.key {
            let _ = black_box(ControlRecord::decode(key, record.payload()));
        }
        let _ = black_box(MetadataRecord::decode(record.payload()));
    }
    for record in batch.records_general(batch.records_bytes()).flatten() {
        black_box(record.headers.count());
    }
}

fn binary_decoders(bytes: &[u8]) {
    let _ = black_box(BatchHeader::parse(bytes));
    let _ = black_box(BatchHeader::frame(bytes));
    let mut batches = Batches::new(bytes);
    for (_, batch) in batches.by_ref() {
        batch.iter().for_each(walk);
    }
    assert!(batches.valid_bytes() <= bytes.len());
    if let Ok(batch) = Batch::parse(bytes) {
        walk(&batch);
    }
    black_box(find_valid_batch(bytes, 1, 0, 0, 2 * bytes.len() as u64));
    for index in [0, 1, bytes.len() / 2] {
        let rest = bytes.get(index..).unwrap_or_default();
        if let Ok(framed) = MetadataRecord::decode(rest) {
            let mut again = Vec::new();
            framed.record.encode(framed.version, &mut again).expect("what was decoded can be encoded");
            framed.record.write_json(framed.version, &mut again);
        }
        for kind in 0..8 {
            let key = [0, 0, 0, kind];
            if let Ok(record) = ControlRecord::decode(&key, rest) {
                let mut again = Vec::new();
                record.encode_value(&mut again).expect("what was decoded can be encoded");
                // Varints in a longer form than Kafka's get shorter, nothing else changes.
                assert!(again.len() <= rest.len(), "{record:?}");
                assert_eq!(ControlRecord::decode(&key, &again).as_ref(), Ok(&record));
                record.write_json(&mut again);
            }
        }
        for codec in 0..5 {
            let codec = Compression::from_id(codec).expect("a codec");
            let mut out = Vec::new();
            let _ = black_box(decompress(codec, rest, 128 << 10, &mut out));
            assert!(out.len() <= 128 << 10);
        }
    }
    if let Ok(index) = OffsetIndex::check(bytes) {
        black_box((index.entries().count(), index.lookup(7)));
    }
    if let Ok(index) = TimeIndex::check(bytes) {
        black_box((index.entries().count(), index.lookup(7)));
    }
}

fn text_decoders(bytes: &[u8]) {
    let _ = black_box(epochs::parse(bytes));
    let _ = black_box(QuorumState::parse(bytes));
    let _ = black_box(Properties::parse(bytes));
    let _ = black_box(MetaProperties::parse(bytes));
    let _ = black_box(PartitionMetadata::parse(bytes));
    let text = String::from_utf8_lossy(bytes);
    let _ = black_box(Name::parse(&text));
    let _ = black_box(PartitionDir::parse(&text));
}

fn check_memory(info: &AllocationInfo, bytes: &[u8]) -> Result<(), TestCaseError> {
    prop_assert!(
        info.bytes_max <= HELD_BYTES_MAX,
        "{} bytes held for an input of {}",
        info.bytes_max,
        bytes.len()
    );
    prop_assert_eq!(info.bytes_current, 0, "all of it is freed again");
    Ok(())
}

/// Short batches and compressed streams of real Kafkas, and every small file.
fn samples() -> (Vec<Vec<u8>>, Vec<Vec<u8>>) {
    let mut binary = Vec::new();
    let mut text = Vec::new();
    for name in [
        "lived-4.4.0/n1-killed",
        "quorum-4.4.0/c3-killed",
        "records-every-version/seed-1/00000000000000000000.log",
    ] {
        let unpacked = fixtures::capture(name).unpack();
        let dir = if unpacked.part_dir().exists() { unpacked.part_dir() } else { unpacked.dir().to_owned() };
        for entry in std::fs::read_dir(dir).expect("a directory") {
            let path = entry.expect("an entry").path();
            let bytes = std::fs::read(&path).expect("a file");
            let file = path.file_name().expect("a name").to_string_lossy().into_owned();
            if file.contains(".log") || file.contains(".checkpoint") {
                let batches = Batches::new(&bytes).filter_map(|(_, batch)| batch.ok());
                binary.extend(batches.map(|b| b.bytes().to_vec()).filter(|b| b.len() < INPUT_BYTES_MAX / 2));
            } else if file.ends_with("index") {
                binary.push(bytes[..bytes.len().min(256)].to_vec());
            } else {
                text.push(bytes);
                text.push(file.into_bytes());
            }
        }
        if let Ok(bytes) = std::fs::read(unpacked.dir().join("meta.properties")) {
            text.push(bytes);
        }
    }
    // The NoOp record in each framing of Kafka's producers.
    for stream in [
        "1f8b08000000000000ff1361606060e46014015200046697dd0b000000",
        "82534e415050590000000001000000010000000d0b281400000001080114000000",
        "04224d186040820b000080140000000108011400000000000000",
        "28b52ffd00585800001400000001080114000000010000",
    ] {
        binary.push(
            stream
                .as_bytes()
                .chunks(2)
                .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).expect("ASCII"), 16).expect("hex"))
                .collect(),
        );
    }
    assert!(binary.len() > 500 && text.len() >= 10, "{} and {} samples", binary.len(), text.len());
    (binary, text)
}

#[test]
fn mutated_bytes_of_real_kafkas_give_errors_and_little_memory() {
    let (binary, text) = samples();
    let changes = prop::collection::vec(any::<Change>(), 0..6);
    let cases = (any::<prop::sample::Index>(), any::<prop::sample::Index>(), changes, any::<bool>());
    runner()
        .run(&cases, |(of_binary, of_text, changes, crc)| {
            let bytes = mutate(&binary[of_binary.index(binary.len())], &changes, crc);
            check_memory(&measure(|| binary_decoders(&bytes)), &bytes)?;
            let bytes = mutate(&text[of_text.index(text.len())], &changes, false);
            check_memory(&measure(|| text_decoders(&bytes)), &bytes)
        })
        .unwrap_or_else(|error| panic!("{error}"));
}

#[test]
fn random_bytes_give_errors_and_little_memory() {
    let cases = (prop::collection::vec(any::<u8>(), 0..400), any::<bool>());
    runner()
        .run(&cases, |(mut bytes, crc)| {
            if crc && bytes.len() > HEADER_BYTES {
                // A header that gets past every check, so that the noise is in the records.
                bytes[..8].fill(0);
                bytes[16] = 2;
                bytes[21..27].fill(0);
                bytes[57..60].fill(0);
                mend_crc(&mut bytes);
            }
            check_memory(&measure(|| binary_decoders(&bytes)), &bytes)?;
            check_memory(&measure(|| text_decoders(&bytes)), &bytes)
        })
        .unwrap_or_else(|error| panic!("{error}"));
}

#[test]
fn a_whole_checkpoint_is_checked_walked_and_decoded_without_one_allocation() {
    for name in [
        "large-checkpoint-4.4.0/00000000000000055949-0000000003.checkpoint",
        "records-every-version/seed-1/00000000000000000000.log",
        "records-every-version/seed-2/00000000000000126696-0000000669.checkpoint",
    ] {
        let unpacked = fixtures::capture(name).unpack();
        let bytes = unpacked.read(name.rsplit('/').next().unwrap_or_default());
        let (mut records, mut controls) = (0, 0);
        let info = measure(|| {
            for (_, batch) in Batches::new(&bytes) {
                let batch = batch.expect("a batch of a real Kafka");
                batch.records_general(batch.records_bytes()).for_each(|record| {
                    black_box(record.is_ok());
                });
                for record in batch.records().expect("strict") {
                    let record = record.expect("a record of a real Kafka");
                    match record.key {
                        None => {
                            let framed = MetadataRecord::decode(record.payload()).expect("a metadata record");
                            if let MetadataRecord::Partition(partition) = &framed.record {
                                black_box(partition.replicas.iter().max());
                            }
                            black_box(framed);
                            records += 1;
                        }
                        // A voter set is owned; every other control record is borrowed.
                        Some([_, _, _, 6]) => {}
                        Some(key) => {
                            let record =
                                ControlRecord::decode(key, record.payload()).expect("a control record");
                            if let ControlRecord::LeaderChange(change) = &record {
                                black_box(change.voters.ids().count());
                            }
                            black_box(&record);
                            controls += 1;
                        }
                    }
                }
            }
            black_box(find_valid_batch(&bytes, 1, i64::MAX, 0, 2 * bytes.len() as u64));
        });
        assert_eq!(info.count_total, 0, "{} allocations in {name}", info.count_total);
        assert!(records > 200 && controls >= 2, "{records} and {controls} records in {name}");
    }
}

#[test]
fn a_header_that_claims_two_hundred_million_records_gets_no_memory() {
    let unpacked = fixtures::capture("formatted-4.4.0/standalone/data").unpack();
    let file = unpacked.read("00000000000000000000-0000000000.checkpoint");
    let mut header = BatchHeader::parse(&file).expect("a header of a real Kafka");
    header.records_count = 200_000_000;
    header.last_offset_delta = 199_999_999;
    let mut bytes = header.encode().to_vec();
    bytes.extend_from_slice(&[0; 29]);
    mend_crc(&mut bytes);
    assert_eq!(bytes.len(), 90);
    let info = measure(|| {
        let batch = Batch::check(&bytes).expect("length and checksum are right");
        assert!(batch.records().is_err());
        assert!(batch.records_general(batch.records_bytes()).next().is_some_and(|first| first.is_err()));
    });
    assert_eq!(info.count_total, 0);
}

/// Recovery of a log that someone sowed with headers must not read it a thousand times over.
#[test]
fn a_search_among_planted_headers_ends_within_its_budget_and_without_memory() {
    let unpacked = fixtures::capture("formatted-4.4.0/standalone/data").unpack();
    let file = unpacked.read("00000000000000000000-0000000000.checkpoint");
    let template = BatchHeader::parse(&file).expect("a header of a real Kafka");
    let planted = 100_000;
    let total = planted * HEADER_BYTES;
    let mut bytes = Vec::with_capacity(total);
    for index in 0..planted {
        let left = i32::try_from(total - index * HEADER_BYTES - 12).expect("below 2 GiB");
        bytes.extend_from_slice(&BatchHeader { batch_length: left, ..template }.encode());
    }
    let info = measure(|| assert_eq!(find_valid_batch(&bytes, 0, 0, 0, 2 * total as u64), Found::GaveUp));
    assert_eq!(info.count_total, 0);
}
