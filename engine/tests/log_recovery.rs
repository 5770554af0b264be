//! One test for each row of the table in `engine/src/recover/mod.rs`.

#![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]
#![allow(clippy::disallowed_methods, reason = "the directory is prepared without the engine")]

mod support;

use kraftlog::{
    Epoch, ErrorKind, Evidence, Isolation, LogConfig, Offset, OpenError, Preallocation, Role, Scanned,
};
use kraftlog_codecs::batch::{BatchBuilder, BatchOptions};
use support::{Place, append, batch, big_batch, case, chain, lead};

/// Ten batches of one record, closed.
fn ten(place: &Place) -> Vec<u8> {
    let (log, _) = place.open();
    lead(&log, 1, 10);
    log.close_blocking().unwrap();
    place.read_segment(0)
}

/// The same bytes without the side file, as another program would leave them.
fn ten_without_state(place: &Place) -> Vec<u8> {
    let bytes = ten(place);
    place.remove(&place.part().join("kraftlog.state"));
    bytes
}

/// A small batch, a large one, a small one, closed.
fn one_large_one(place: &Place) -> Vec<u8> {
    let (log, _) = place.open();
    lead(&log, 1, 1);
    log.append_as_leader(Epoch(1), big_batch(0, 1, 3000)).unwrap().durable_blocking().unwrap();
    append(&log, 1, 1).durable_blocking().unwrap();
    log.close_blocking().unwrap();
    place.read_segment(0)
}

fn size_of_one() -> usize {
    batch(0, 1, 1).len()
}

/// Marks the side file as that of a log that was not closed, with `durable` batches of ten durable.
fn not_closed(place: &Place, durable: usize) {
    let path = place.part().join("kraftlog.state");
    let text = place.read_text(&path);
    let bytes = place.read_segment(0);
    let at = (durable - 1) * size_of_one();
    let crc = u32::from_be_bytes(bytes[at + 17..at + 21].try_into().unwrap());
    let mut body = String::new();
    for line in text.lines().filter(|line| !line.starts_with("crc ")) {
        let line = match line.split(' ').next().unwrap() {
            "clean" => "clean false".to_string(),
            "durable" => format!("durable {durable}"),
            "last" => format!("last 0 {at} {} 1 {crc:08x}", durable - 1),
            "segment" => format!("segment 0 {}", durable * size_of_one()),
            _ => line.to_string(),
        };
        body += &line;
        body.push('\n');
    }
    body += &format!("crc {:08x}\n", kraftlog_codecs::crc::crc32c(body.as_bytes()));
    place.write(&path, body);
}

on_every_backend! {
    fn a_torn_end_is_cut_and_kept_whatever_it_is(place: &Place) {
        let good = ten_without_state(place);
        let one = size_of_one();
        let mut bad_crc = good[9 * one..].to_vec();
        bad_crc[one - 1] ^= 0x40;
        let torn: [(&str, Vec<u8>); 5] = [
            ("short header", good[9 * one..9 * one + 30].to_vec()),
            ("short frame", good[9 * one..9 * one + 9].to_vec()),
            ("short body", good[9 * one..10 * one - 6].to_vec()),
            ("bad crc", bad_crc),
            ("garbage", vec![0xff; 100]),
        ];
        for (name, tail) in torn {
            for zeros in [0usize, 4096, 70_000] {
                let mut bytes = good[..9 * one].to_vec();
                bytes.extend_from_slice(&tail);
                bytes.resize(bytes.len() + zeros, 0);
                place.wipe();
                place.put_segment(0, &bytes);
                let (log, report) = place.open();
                let cut = report.torn_tail.unwrap_or_else(|| panic!("{name}, {zeros} zeros: nothing cut"));
                assert_eq!((cut.position, cut.end), (9 * one as u64, Offset(9)), "{name}");
                assert_eq!(log.end_offset(), Offset(9));
                assert_eq!(place.read_segment(0), &good[..9 * one], "{name}");
                let kept = place.read(&cut.kept[0]);
                assert!(kept.starts_with(&tail) && bytes[9 * one..].starts_with(&kept), "{name}");
                assert_eq!(cut.bytes, kept.len() as u64);
                lead(&log, 2, 1);
                drop(log);
                let (log, report) = place.open();
                assert!(report.torn_tail.is_none(), "{name}: {report}");
                assert_eq!(log.end_offset(), Offset(10));
            }
        }
    }

    // "After a power cut the node said that its log is corrupt, and it was only torn": what a record holds
    // may look like headers, and their checksums used up what the search behind damage may spend.
    fn a_torn_batch_full_of_bytes_that_look_like_headers_is_torn(place: &Place) {
        let good = ten_without_state(place);
        // A base offset, a length, an epoch and a magic byte, wherever one begins to read.
        let decoy = [0, 0, 0, 0, 0x7f, 0, 0, 0, 0, 8, 0, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0].repeat(4000);
        let mut torn = Vec::new();
        let mut builder = BatchBuilder::new(&mut torn, BatchOptions::data(10, 1, 0));
        for _ in 0..20 {
            builder.append(None, &decoy).unwrap();
        }
        builder.finish();
        torn.truncate(torn.len() - 1);
        place.wipe();
        place.put_segment(0, &[good.clone(), torn.clone()].concat());
        let (log, report) = place.open();
        assert_eq!(report.torn_tail.as_ref().map(|cut| cut.bytes), Some(torn.len() as u64), "{report}");
        assert_eq!(log.end_offset(), Offset(10));
    }

    fn a_preallocated_tail_of_zeros_is_no_damage(place: &Place) {
        let good = ten_without_state(place);
        // It ends where a sector does; zeros that do not are the front of a torn batch.
        for end in [1024usize, 4096, 1 << 20, 4 << 20] {
            let zeros = end - good.len();
            place.wipe();
            place.put_segment(0, &[good.clone(), vec![0; zeros]].concat());
            let (log, report) = place.open();
            assert!(report.torn_tail.is_none(), "{report}");
            assert_eq!((report.zero_tail_bytes, log.end_offset()), (zeros as u64, Offset(10)));
            drop(log);
            drop(place.open());
            place.settle();
            assert_eq!(place.read_segment(0), good);
        }
    }

    fn a_bad_batch_with_valid_ones_behind_is_rot_and_nothing_changes(place: &Place) {
        let mut bytes = ten_without_state(place);
        let one = size_of_one();
        bytes[4 * one + 65] ^= 1;
        place.put_segment(0, &bytes);
        let before = place.everything();
        let error = place.refused();
        assert!(
            matches!(&error, OpenError::CorruptBatch { position, offset: Offset(4), valid_behind: Some(behind), .. }
                if *position == 4 * one as u64 && behind.batches == 5 && behind.last == Offset(9)),
            "{error}"
        );
        assert_eq!(error.kind(), ErrorKind::Corrupt);
        assert_eq!(place.everything(), before);
    }

    fn a_lost_batch_within_a_group_is_torn_if_a_sector_of_it_is_zero(place: &Place) {
        let good = one_large_one(place);
        let mut bytes = good.clone();
        bytes[512..1024].fill(0);
        place.write(&place.segment(0), &bytes);
        // Durable up to the first batch: the rest was one group in flight.
        not_closed(place, 1);
        let (log, report) = place.open();
        assert_eq!(report.torn_tail.as_ref().map(|cut| cut.position), Some(size_of_one() as u64), "{report}");
        assert_eq!(log.end_offset(), Offset(1));
    }

    fn a_damaged_batch_within_a_group_is_rot_without_a_sector_of_zeros(place: &Place) {
        let mut bytes = one_large_one(place);
        bytes[700] ^= 1;
        // Less than a sector, or one that is not aligned, proves nothing.
        bytes[1025..1536].fill(0);
        place.write(&place.segment(0), &bytes);
        not_closed(place, 1);
        let before = place.everything();
        assert!(matches!(place.refused(), OpenError::CorruptBatch { .. }));
        assert_eq!(place.everything(), before);
    }

    fn a_damaged_batch_below_the_durable_end_is_rot_whatever_it_looks_like(place: &Place) {
        let mut bytes = one_large_one(place);
        bytes[512..1024].fill(0);
        place.write(&place.segment(0), &bytes);
        // With the hints in doubt the whole log is read.
        place.write(&place.part().join("00000000000000000000.index"), b"?");
        assert!(matches!(place.refused(), OpenError::CorruptBatch { .. }));
    }

    fn a_cut_below_the_recorded_durable_end_is_refused(place: &Place) {
        let bytes = ten(place);
        place.write(&place.segment(0), &bytes[..bytes.len() - 10]);
        let before = place.everything();
        let error = place.refused();
        assert!(
            matches!(error, OpenError::LostRecords { evidence: Evidence::DurableEnd, offset: Offset(10), end: Offset(9), .. }),
            "{error}"
        );
        assert_eq!(place.everything(), before);
        place.remove(&place.segment(0));
        assert!(matches!(place.refused(), OpenError::LostRecords { end: Offset(0), .. }));
    }

    fn a_kafka_in_between_voids_the_durable_end_but_not_the_high_watermark(place: &Place) {
        let (log, _) = place.open();
        lead(&log, 1, 10);
        log.update_high_watermark(Offset(7)).unwrap();
        log.close_blocking().unwrap();
        let bytes = place.read_segment(0);
        let one = size_of_one();
        place.write(&place.part().join("00000000000000000008.snapshot"), b"\0\x01\x48\x67\x4b\xc7\0\0\0\0");
        place.write(&place.segment(0), &bytes[..6 * one]);
        let error = place.refused();
        assert!(
            matches!(error, OpenError::LostRecords { evidence: Evidence::HighWatermark, offset: Offset(7), .. }),
            "{error}"
        );
        place.write(&place.segment(0), &bytes[..8 * one]);
        let (log, report) = place.open();
        assert!(report.kafka_was_here && report.scanned == Scanned::All, "{report}");
        assert_eq!(log.end_offset(), Offset(8));
        assert!(!place.exists(&place.part().join("00000000000000000008.snapshot")));
    }

    fn an_observer_cuts_at_the_first_bad_batch(place: &Place) {
        let mut bytes = ten(place);
        let one = size_of_one();
        bytes[4 * one + 65] ^= 1;
        place.write(&place.segment(0), &bytes);
        let mut config = LogConfig::default();
        config.role = Role::Observer;
        place.remove(&place.part().join("kraftlog.state"));
        let (log, report) = place.open_with(config);
        assert_eq!(log.end_offset(), Offset(4));
        assert_eq!(report.torn_tail.unwrap().bytes, 6 * one as u64);
    }

    fn misplaced_batches_and_falling_epochs_are_refused(place: &Place) {
        place.put_segment(0, &[batch(0, 1, 1), batch(2, 1, 1)].concat());
        let error = place.refused();
        assert!(
            matches!(error, OpenError::MisplacedBatch { expected: Offset(1), found: Offset(2), .. }),
            "{error}"
        );
        place.put_segment(0, &[batch(0, 3, 1), batch(1, 2, 1)].concat());
        let error = place.refused();
        assert!(matches!(error, OpenError::EpochGoesDown { found: Epoch(2), last: Epoch(3), .. }), "{error}");
    }

    fn segments_that_do_not_meet_are_refused(place: &Place) {
        place.put_segment(0, &batch(0, 1, 2));
        place.put_segment(3, &batch(3, 1, 1));
        let before = place.everything();
        let error = place.refused();
        assert!(
            matches!(error, OpenError::SegmentsDoNotMeet { expected: Offset(2), found: Offset(3), .. }),
            "{error}"
        );
        assert_eq!(place.everything(), before);
        place.remove(&place.segment(3));
        place.put_segment(1, &batch(1, 1, 1));
        assert!(matches!(place.refused(), OpenError::SegmentsDoNotMeet { found: Offset(1), .. }));
    }

    fn a_log_that_starts_above_zero_needs_a_snapshot(place: &Place) {
        place.put_segment(5_000_000_000, &case("log-big-offset.hex"));
        let error = place.refused();
        assert!(chain(&error).contains("5000000000"), "{}", chain(&error));
        assert_eq!(error.kind(), ErrorKind::Refused);
        place.write(&place.part().join("00000000005000000000-0000000002.checkpoint"), case("fx-snapshot-4-2.hex"));
        let (log, _) = place.open();
        assert_eq!((log.start_offset(), log.end_offset()), (Offset(5_000_000_000), Offset(5_000_000_003)));
        let fetched = log.read_blocking(Offset(5_000_000_001), Isolation::Uncommitted, 1).unwrap();
        assert!(fetched.start <= Offset(5_000_000_001) && fetched.next > Offset(5_000_000_001));
    }

    fn a_snapshot_beyond_the_end_is_a_lost_tail_unless_a_kafka_was_here(place: &Place) {
        place.put_segment(0, &batch(0, 1, 2));
        place.write(&place.part().join("00000000000000000004-0000000002.checkpoint"), case("fx-snapshot-4-2.hex"));
        let before = place.everything();
        assert_eq!(place.refused().kind(), ErrorKind::Refused);
        assert_eq!(place.everything(), before);
        place.write(&place.part().join("00000000000000000002.snapshot"), b"\0\x01\x48\x67\x4b\xc7\0\0\0\0");
        let (log, report) = place.open();
        assert_eq!(report.truncated_to, Some(kraftlog::SnapshotId::new(4, 2)));
        assert_eq!((log.start_offset(), log.end_offset(), log.last_epoch()), (Offset(4), Offset(4), Epoch(2)));
        assert!(!place.exists(&place.segment(0)) && place.exists(&place.segment(4)));
        // The snapshot's epoch counts as the log's.
        assert_eq!(log.initialize_leader_epoch_blocking(Epoch(2)).unwrap_err().kind(), ErrorKind::Refused);
        lead(&log, 3, 2);
        drop(log);
        let (log, _) = place.open();
        assert_eq!((log.start_offset(), log.end_offset()), (Offset(4), Offset(6)));
    }

    fn after_a_clean_close_open_reads_the_tail_only(place: &Place) {
        let (place, faults) = place.faulty();
        let (log, _) = place.open();
        lead(&log, 1, 0);
        for _ in 0..64 {
            drop(log.append_as_leader(Epoch(1), big_batch(0, 1, 1 << 20)).unwrap());
            log.flush_blocking().unwrap();
        }
        log.close_blocking().unwrap();
        faults.bytes_read.store(0, std::sync::atomic::Ordering::SeqCst);
        let (log, report) = place.open();
        let read = faults.bytes_read.load(std::sync::atomic::Ordering::SeqCst);
        assert!(read < 8 << 20, "{read} bytes read of 64 MiB");
        assert_eq!((report.scanned, log.end_offset()), (Scanned::Tail, Offset(64)));
        assert_eq!(report.rewritten_bytes, 0);
    }

    fn a_log_that_was_not_closed_is_written_again_from_the_durable_end(place: &Place) {
        let bytes = ten(place);
        not_closed(place, 6);
        let (log, report) = place.open();
        assert_eq!((report.scanned, log.end_offset()), (Scanned::SinceDurable, Offset(10)));
        assert_eq!(report.rewritten_bytes, 5 * size_of_one() as u64);
        drop(log);
        place.settle();
        assert_eq!(place.read_segment(0), bytes);
    }

    fn a_damaged_side_file_counts_as_none(place: &Place) {
        ten(place);
        let path = place.part().join("kraftlog.state");
        let mut text = place.read(&path);
        text[20] ^= 1;
        place.write(&path, text);
        let (log, report) = place.open();
        assert!(report.state_fault.is_some() && report.scanned == Scanned::All, "{report}");
        assert_eq!(log.end_offset(), Offset(10));
    }

    fn another_batch_in_the_place_of_the_last_durable_one_is_refused(place: &Place) {
        let mut bytes = ten(place);
        let one = size_of_one();
        bytes.truncate(9 * one);
        bytes.extend(support::batch_at(9, 1, 1, 5));
        place.write(&place.segment(0), &bytes);
        let error = place.refused();
        assert!(matches!(error, OpenError::OtherBatch { offset: Offset(9), .. }), "{error}");
    }

    fn a_gap_below_a_whole_snapshot_is_a_delete_to_finish(place: &Place) {
        place.put_segment(0, &batch(0, 1, 1));
        place.put_segment(3, &batch(3, 2, 1));
        place.put_segment(4, &batch(4, 2, 1));
        place.write(&place.part().join("00000000000000000004-0000000002.checkpoint"), case("fx-snapshot-4-2.hex"));
        let (log, _) = place.open();
        assert_eq!((log.start_offset(), log.end_offset()), (Offset(4), Offset(5)));
        assert!(!place.exists(&place.segment(0)) && place.exists(&place.segment(3)));
    }

    fn kafkas_small_files_are_made_when_missing_and_refused_when_foreign(place: &Place) {
        drop(place.open());
        let text = place.read_text(&place.part().join("partition.metadata"));
        assert_eq!(text, "version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAQ");
        assert_eq!(place.read(&place.part().join("leader-epoch-checkpoint")), b"");
        place.write(&place.part().join("partition.metadata"), "version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAABQ");
        let error = place.refused();
        assert!(matches!(error, OpenError::OtherTopic { .. }), "{error}");
    }

    fn each_preallocation_leaves_the_same_bytes(place: &Place) {
        for how in [Preallocation::Extend(4 << 20), Preallocation::KeepSize(1 << 20), Preallocation::None] {
            place.wipe();
            let mut config = LogConfig::default();
            config.preallocation = how;
            let (log, _) = place.open_with(config);
            lead(&log, 1, 3);
            log.close_blocking().unwrap();
            let expected = [batch(0, 1, 1), batch(1, 1, 1), batch(2, 1, 1)].concat();
            assert_eq!(place.read_segment(0), expected, "{how:?}");
        }
    }
}
