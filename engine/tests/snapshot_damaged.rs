//! Checkpoints that are cut, damaged or hostile: an error that says what is wrong, never a panic,
//! and whole means whole.

#![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]

use kraftlog::snapshot::{SnapshotError, SnapshotFault, SnapshotFile, SnapshotSummary, verify_file};
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

/// `fx-snapshot-4-2` of the field cases: header batch of 83 bytes, data batch of 91, footer of 75.
fn small() -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/cases/fx-snapshot-4-2.hex");
    let text = std::fs::read_to_string(path).unwrap();
    let digits: String = text.lines().filter(|line| !line.starts_with('#')).collect();
    let bytes = digits.as_bytes().chunks(2);
    bytes.map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap()).collect()
}

struct Place {
    dir: tempfile::TempDir,
}

impl Place {
    fn new() -> Place {
        Place { dir: tempfile::tempdir().unwrap() }
    }

    fn write(&self, bytes: &[u8]) -> PathBuf {
        let path = self.dir.path().join("00000000000000000004-0000000002.checkpoint");
        let options = File::options().create(true).truncate(true).write(true).open(&path);
        options.unwrap().write_all(bytes).unwrap();
        path
    }

    /// What both readers say; they must agree.
    fn read(&self, bytes: &[u8]) -> Result<SnapshotSummary, SnapshotFault> {
        let path = self.write(bytes);
        let verified = fault(verify_file(&path));
        let streamed = (|| {
            let mut file = SnapshotFile::open(&path)?;
            while let Some(batch) = file.next_batch()? {
                // Records of hostile batches are errors, not panics.
                let _ = batch.records().map(|records| records.filter(Result::is_ok).count());
            }
            Ok(file.summary().unwrap())
        })();
        assert_eq!(verified, fault(streamed));
        verified
    }
}

fn fault(read: Result<SnapshotSummary, SnapshotError>) -> Result<SnapshotSummary, SnapshotFault> {
    read.map_err(|error| match error {
        SnapshotError::Invalid { fault, .. } => fault,
        other => panic!("{other}"),
    })
}

#[test]
fn snapshot_without_footer_says_so() {
    let (place, whole) = (Place::new(), small());
    assert_eq!(whole.len(), 249);
    assert_eq!(
        place.read(&whole).map(|summary| (summary.bytes, summary.batches, summary.records)),
        Ok((249, 3, 3))
    );
    assert_eq!(place.read(&whole[..174]), Err(SnapshotFault::NoFooter { len: 174 }));
    assert_eq!(place.read(&whole[..200]), Err(SnapshotFault::Cut { position: 174, size: 61, left: 26 }));
    assert_eq!(place.read(&whole[..240]), Err(SnapshotFault::Cut { position: 174, size: 75, left: 66 }));
    assert_eq!(place.read(&whole[..83]), Err(SnapshotFault::NoFooter { len: 83 }));
    assert_eq!(place.read(&whole[83..]), Err(SnapshotFault::NoHeader { len: 166 }));
    assert_eq!(place.read(&[]), Err(SnapshotFault::NoHeader { len: 0 }));
    let longer = [&whole[..], &[0]].concat();
    assert_eq!(place.read(&longer), Err(SnapshotFault::BytesAfterFooter { position: 249, bytes: 1 }));
    let footer_twice = [&whole[..], &whole[174..]].concat();
    assert_eq!(place.read(&footer_twice), Err(SnapshotFault::BytesAfterFooter { position: 249, bytes: 75 }));
    for (cut, text) in [(174, "no footer"), (200, "no footer"), (83, "no footer")] {
        assert!(place.read(&whole[..cut]).unwrap_err().to_string().starts_with(text));
    }
}

#[test]
fn a_cut_at_any_byte_is_never_taken_for_whole() {
    let (place, whole) = (Place::new(), small());
    for cut in 0..whole.len() {
        assert!(place.read(&whole[..cut]).is_err(), "cut at {cut}");
    }
    for from in 1..whole.len() {
        assert!(place.read(&whole[from..]).is_err(), "cut before {from}");
    }
}

#[test]
fn a_flipped_bit_anywhere_under_a_checksum_is_found() {
    let (place, whole) = (Place::new(), small());
    for at in 0..whole.len() {
        for bit in 0..8 {
            let mut bad = whole.clone();
            bad[at] ^= 1 << bit;
            let in_batch = [174, 83, 0].iter().map(|start| at.checked_sub(*start)).find_map(|at| at).unwrap();
            // Base offset and epoch lie before the checksum; Kafka does not look at them either.
            let covered = !(0..8).contains(&in_batch) && !(12..16).contains(&in_batch);
            let read = place.read(&bad);
            assert!(read.is_err() || !covered, "byte {at} bit {bit}: {read:?}");
        }
    }
    let mut bad = whole.clone();
    bad[150] ^= 1;
    assert!(matches!(
        place.read(&bad),
        Err(SnapshotFault::BadCrc { position: 83, expected: 0xddc1_9b9f, .. })
    ));
}

#[test]
fn sizes_that_lie_are_held_against_the_file() {
    let (place, whole) = (Place::new(), small());
    for length in [i32::MAX, 1 << 30, 0, -1, i32::MIN, 48] {
        let mut bad = whole.clone();
        bad[83 + 8..83 + 12].copy_from_slice(&length.to_be_bytes());
        assert!(place.read(&bad).is_err(), "length {length}");
    }
}

/// Two random bytes changed, or a random piece doubled, many times over.
#[test]
fn hostile_bytes_are_errors_and_both_readers_agree() {
    let seed =
        std::env::var("KRAFTLOG_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(20_261_201u64);
    println!("KRAFTLOG_SEED={seed}");
    let mut state = seed;
    let mut random = move |below: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % below
    };
    let (place, whole) = (Place::new(), small());
    for _ in 0..2000 {
        let mut bad = whole.clone();
        for _ in 0..=random(3) {
            let at = random(bad.len());
            bad[at] = random(256) as u8;
        }
        if random(4) == 0 {
            let (from, to) = (random(bad.len()), random(bad.len()));
            let piece = bad[from.min(to)..from.max(to)].to_vec();
            let at = random(bad.len());
            bad.splice(at..at, piece);
        }
        let _ = place.read(&bad);
    }
}

#[test]
fn many_small_batches_cross_every_read_border() {
    let (place, whole) = (Place::new(), small());
    let (header, data, footer) = (&whole[..83], &whole[83..174], &whole[174..]);
    // 20,000 batches are 1.8 MB, seven reads of 256 KiB whose ends fall anywhere in a batch.
    let mut bytes = header.to_vec();
    for _ in 0..20_000 {
        bytes.extend(data);
    }
    assert_eq!(place.read(&bytes), Err(SnapshotFault::NoFooter { len: bytes.len() as u64 }));
    bytes.extend(footer);
    assert_eq!(place.read(&bytes).map(|summary| (summary.batches, summary.records)), Ok((20_002, 20_002)));
    // The same without its last byte.
    bytes.pop();
    assert!(matches!(place.read(&bytes), Err(SnapshotFault::Cut { .. })));
}
