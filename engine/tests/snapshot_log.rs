//! Checkpoints of an open log: written, published, read, served, refused; on each back end.

#![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]

mod snapshot_support;
mod support;

use kraftlog::snapshot::{SnapshotError, SnapshotFault, SnapshotWriteError};
use kraftlog::{Epoch, ErrorKind, LogConfig, Offset, OpenError, SnapshotId};
use snapshot_support::*;
use std::fs;
use std::path::Path;
use support::{NO_OP, Place, case, fixtures};

fn id(end_offset: i64, epoch: i32) -> SnapshotId {
    SnapshotId::new(end_offset, epoch)
}

const FILE_8_1: &str = "00000000000000000008-0000000001.checkpoint";

fn timestamp_of_batch(log: &kraftlog::MetadataLog, base: i64) -> i64 {
    let fetched = log.read_blocking(Offset(base), kraftlog::Isolation::Uncommitted, 1).unwrap();
    kraftlog_codecs::batch::BatchHeader::parse(&fetched.bytes).unwrap().max_timestamp
}

fn flip_a_bit_in_the_data_batch(place: &Place, path: &Path) {
    let mut bytes = place.read(path);
    let at = bytes.len() - 75 - 10;
    bytes[at] ^= 1;
    place.write(path, &bytes);
}

on_every_backend! {
    fn a_frozen_snapshot_is_there_after_reopening_and_holds_what_was_appended(place: &Place) {
        let log = lived(place, 5);
        let mut writer = log.create_snapshot_blocking(id(8, 1)).unwrap();
        writer.append_blocking(&[numbered(1), numbered(2)]).unwrap();
        writer.append_blocking(&[numbered(3)]).unwrap();
        let frozen = writer.freeze_blocking().unwrap();
        // Header, three records, footer.
        assert_eq!((frozen.id, frozen.records), (id(8, 1), 5));
        assert_eq!(checkpoint_names(place), [FILE_8_1]);
        let path = place.part().join(FILE_8_1);
        assert_eq!(place.len(&path), frozen.bytes);
        assert!(place.mode(&path).is_none_or(|mode| mode == 0o400), "{:?}", place.mode(&path));
        assert_eq!(log.snapshots(), [(id(8, 1), frozen.bytes)]);
        log.close_blocking().unwrap();

        let (log, report) = place.open();
        assert_eq!((report.snapshot, log.start_offset()), (Some(id(8, 1)), Offset(0)));
        assert_eq!((log.latest_snapshot(), log.earliest_snapshot()), (Some(id(8, 1)), Some(id(8, 1))));
        let mut reader = log.open_snapshot_blocking(id(8, 1)).unwrap();
        let appended_at = timestamp_of_batch(&log, 6);
        assert_eq!(reader.head().last_contained_log_timestamp, appended_at);
        let mut values = Vec::new();
        while let Some(batch) = reader.next_batch_blocking().unwrap() {
            assert_eq!(batch.header().leader_epoch, 1);
            if !batch.is_control() {
                values.extend(batch.records().unwrap().map(|record| record.unwrap().value.unwrap().to_vec()));
            }
        }
        assert_eq!(values, [numbered(1), numbered(2), numbered(3)]);
        assert_eq!(reader.summary().map(|summary| summary.records), Some(5));
        assert!(reader.next_batch_blocking().unwrap().is_none());
    }

    fn a_snapshot_that_the_log_does_not_bear_is_refused_and_leaves_no_file(place: &Place) {
        let log = lived(place, 5);
        let refusal = |id| match log.create_snapshot_blocking(id) {
            Ok(_) => panic!("{id} was not refused"),
            Err(error) => error,
        };
        let high_watermark = Offset(10);
        let above = refusal(id(12, 1));
        assert!(
            matches!(above, SnapshotWriteError::AboveHighWatermark { high_watermark: h, .. } if h == high_watermark)
        );
        assert_eq!(above.kind(), ErrorKind::Refused);
        let inside = refusal(id(7, 1));
        assert!(
            matches!(inside, SnapshotWriteError::NotBatchAligned { batch_end: Offset(8), .. }),
            "{inside}"
        );
        let epoch = refusal(id(8, 2));
        assert!(matches!(epoch, SnapshotWriteError::WrongEpoch { found: Epoch(1), .. }), "{epoch}");
        let zero = refusal(id(0, 1));
        assert!(matches!(zero, SnapshotWriteError::WrongEpoch { found: Epoch(0), .. }), "{zero}");
        assert_eq!(checkpoint_names(place), [""; 0]);

        log.create_snapshot_blocking(id(8, 1)).unwrap().freeze_blocking().unwrap();
        assert!(matches!(refusal(id(8, 1)), SnapshotWriteError::AlreadyKnown { .. }));
    }

    fn a_dropped_writer_takes_its_part_file_with_it(place: &Place) {
        let log = lived(place, 5);
        let mut writer = log.create_snapshot_blocking(id(8, 1)).unwrap();
        writer.append_blocking(&[NO_OP]).unwrap();
        let names = checkpoint_names(place);
        let grammar = names[0].strip_prefix("00000000000000000008-0000000001-").unwrap();
        let digits = grammar.strip_suffix(".checkpoint.part").unwrap();
        assert!(digits.parse::<i64>().is_ok(), "{names:?}");
        drop(writer);
        // A second snapshot goes through the same lane behind the removal.
        log.create_snapshot_blocking(id(10, 1)).unwrap().freeze_blocking().unwrap();
        assert_eq!(checkpoint_names(place), ["00000000000000000010-0000000001.checkpoint"]);
        assert_eq!(log.latest_snapshot(), Some(id(10, 1)));
    }

    fn records_that_do_not_fit_leave_the_writer_usable(place: &Place) {
        let log = lived(place, 5);
        let mut writer = log.create_snapshot_blocking(id(8, 1)).unwrap();
        let too_large = writer.append_blocking(&[vec![1u8; 8 << 20]]).unwrap_err();
        assert!(matches!(too_large, SnapshotWriteError::Records(_)), "{too_large}");
        writer.append_blocking(&[NO_OP]).unwrap();
        assert_eq!(writer.freeze_blocking().unwrap().records, 3);
    }

    fn a_snapshot_of_many_batches_streams_back_in_order(place: &Place) {
        let log = lived(place, 5);
        let mut writer = log.create_snapshot_blocking(id(10, 1)).unwrap();
        // 30 MB: more than all batches that may wait anywhere.
        let value = |n: u32| [&n.to_be_bytes()[..], &vec![n as u8; 2000]].concat();
        for list in 0..150u32 {
            let records: Vec<Vec<u8>> = (0..100).map(|n| value(list * 100 + n)).collect();
            writer.append_blocking(&records).unwrap();
        }
        let frozen = writer.freeze_blocking().unwrap();
        assert!(frozen.bytes > 30_000_000, "{}", frozen.bytes);
        let mut reader = log.open_snapshot_blocking(id(10, 1)).unwrap();
        let (mut next, mut data_batches) = (0u32, 0);
        while let Some(batch) = reader.next_batch_blocking().unwrap() {
            if batch.is_control() {
                continue;
            }
            data_batches += 1;
            for record in batch.records().unwrap() {
                assert_eq!(record.unwrap().value.unwrap(), value(next));
                next += 1;
            }
        }
        assert_eq!(next, 15_000);
        assert!(data_batches > 4, "{data_batches}");
    }

    fn a_follower_gets_the_bytes_in_chunks_of_any_size(place: &Place) {
        let log = lived(place, 5);
        let mut writer = log.create_snapshot_blocking(id(8, 1)).unwrap();
        writer.append_blocking(&[NO_OP; 30]).unwrap();
        writer.freeze_blocking().unwrap();
        let file = place.read(&place.part().join(FILE_8_1));
        let mut fetched = Vec::new();
        while fetched.len() < file.len() {
            let chunk = log.snapshot_bytes_blocking(id(8, 1), fetched.len() as u64, 100).unwrap();
            assert_eq!((chunk.id, chunk.len), (id(8, 1), file.len() as u64));
            assert!(chunk.bytes.len() <= 100 && !chunk.bytes.is_empty());
            fetched.extend_from_slice(&chunk.bytes);
        }
        assert_eq!(fetched, file);
        let behind = log.snapshot_bytes_blocking(id(8, 1), file.len() as u64, 100).unwrap_err();
        assert!(matches!(behind, SnapshotError::PositionOutOfRange { .. }), "{behind}");
        let unknown = log.snapshot_bytes_blocking(id(6, 1), 0, 100).unwrap_err();
        assert!(matches!(unknown, SnapshotError::Unknown { .. }), "{unknown}");
    }

    fn the_zero_checkpoint_is_known_but_never_served(place: &Place) {
        place.copy_in(&fixtures().join("formatted-4.4.0/standalone/data"));
        let (log, _) = place.open();
        assert_eq!(log.latest_snapshot(), Some(SnapshotId::ZERO));
        assert!(log.open_snapshot_blocking(SnapshotId::ZERO).unwrap().head().voters.is_some());
        let refused = log.snapshot_bytes_blocking(SnapshotId::ZERO, 0, 100).unwrap_err();
        assert!(matches!(refused, SnapshotError::Unknown { .. }), "{refused}");
    }

    fn kraft_version_and_voters_go_into_the_snapshot_as_of_its_end(place: &Place) {
        place.unpack(&fixtures().join("quorum-4.4.0/c1-stopped.tar.gz"));
        let (log, _) = place.open();
        let end = log.end_offset();
        log.update_high_watermark(end).unwrap();
        let voters = log.voters_at(Offset(end.0 - 1)).unwrap().unwrap();
        assert!(voters.voters.len() > 1);
        let snapshot = SnapshotId { end_offset: end, epoch: log.last_epoch() };
        log.create_snapshot_blocking(snapshot).unwrap().freeze_blocking().unwrap();
        let reader = log.open_snapshot_blocking(snapshot).unwrap();
        assert_eq!((reader.head().kraft_version, reader.head().voters.as_ref()), (Some(1), Some(&voters)));
    }

    fn a_vanished_snapshot_is_known_no_more(place: &Place) {
        let log = lived(place, 5);
        log.create_snapshot_blocking(id(8, 1)).unwrap().freeze_blocking().unwrap();
        place.remove(&place.part().join(FILE_8_1));
        let gone = log.open_snapshot_blocking(id(8, 1)).map(|_| ()).unwrap_err();
        assert!(matches!(gone, SnapshotError::Unknown { .. }), "{gone}");
        assert_eq!(log.latest_snapshot(), None);
    }

    fn a_flipped_bit_in_the_middle_shows_when_the_stream_reaches_it(place: &Place) {
        let log = lived(place, 5);
        let mut writer = log.create_snapshot_blocking(id(8, 1)).unwrap();
        writer.append_blocking(&[NO_OP; 30]).unwrap();
        writer.freeze_blocking().unwrap();
        flip_a_bit_in_the_data_batch(place, &place.part().join(FILE_8_1));
        let mut reader = log.open_snapshot_blocking(id(8, 1)).unwrap();
        assert!(reader.next_batch_blocking().unwrap().unwrap().is_control());
        let error = reader.next_batch_blocking().unwrap_err();
        assert!(
            matches!(error, SnapshotError::Invalid { fault: SnapshotFault::BadCrc { .. }, .. }),
            "{error}"
        );
        assert_eq!(error.kind(), ErrorKind::Corrupt);
        assert!(reader.next_batch_blocking().is_err());
    }

    // Half-written snapshots from a crash were picked up as real ones.
    fn left_over_part_and_deleted_files_are_never_loaded_and_go_at_open(place: &Place) {
        let part = place.part();
        place.make_dir(&part);
        let snapshot = case("fx-snapshot-4-2.hex");
        place.write(&part.join("00000000000000000000.log"), case("fx-log.hex"));
        place.write(&part.join("00000000000000000004-0000000002.checkpoint"), &snapshot);
        place.write(&part.join("00000000000000000007-0000000002-8123.checkpoint.part"), &snapshot[..40]);
        place.write(&part.join("00000000000000000001-0000000001.checkpoint.deleted"), &snapshot);
        place.write(&part.join("00000000000000000004-0000000002.checkpoint.bak"), b"mine");
        let (log, _) = place.open();
        let kept =
            ["00000000000000000004-0000000002.checkpoint", "00000000000000000004-0000000002.checkpoint.bak"];
        assert_eq!(checkpoint_names(place), kept);
        assert_eq!(log.latest_snapshot(), Some(id(4, 2)));
        // The file of a writer at work stays where it is.
        log.update_high_watermark(log.end_offset()).unwrap();
        let writer = log.create_snapshot_blocking(id(7, 2)).unwrap();
        assert_eq!(checkpoint_names(place).len(), 3);
        drop(writer);
    }

    // A snapshot that was cut at a batch border loaded as if it were complete.
    fn a_snapshot_without_footer_is_set_aside_when_the_log_has_it_all(place: &Place) {
        let whole = case("fx-snapshot-4-2.hex");
        let longer = [&whole[..], b"x"].concat();
        for (bad, reason) in [
            (&whole[..174], "no footer"),
            (&whole[..200], "no footer"),
            (&whole[..83], "no footer"),
            (&whole[83..], "no header"),
            (&longer[..], "bytes after footer"),
        ] {
            let place = place.another();
            let part = place.part();
            place.make_dir(&part);
            let name = "00000000000000000004-0000000002.checkpoint";
            place.write(&part.join("00000000000000000000.log"), case("fx-log.hex"));
            place.write(&part.join(name), bad);
            let (log, report) = place.open();
            assert_eq!((log.start_offset(), log.end_offset()), (Offset(0), Offset(7)));
            assert_eq!(log.latest_snapshot(), None);
            assert_eq!(checkpoint_names(&place), [format!("{name}.bad")]);
            assert_eq!(place.read(&part.join(format!("{name}.bad"))), bad);
            let (path, fault) = &report.set_aside[0];
            assert_eq!(path, &part.join(format!("{name}.bad")));
            assert!(fault.to_string().starts_with(reason), "{fault}");
        }
    }

    // The other half of it: nothing else holds what was in the snapshot.
    fn a_snapshot_without_footer_is_refused_and_left_alone_when_the_log_starts_there(place: &Place) {
        let whole = case("fx-snapshot-4-2.hex");
        let log = case("fx-log.hex");
        for bad in [&whole[..174], &whole[..200], &whole[..83], &whole[83..], &[&whole[..], b"x"].concat()[..]] {
            let place = place.another();
            let part = place.part();
            place.make_dir(&part);
            let name = "00000000000000000004-0000000002.checkpoint";
            place.write(&part.join("00000000000000000004.log"), &log[log.len() - 94..]);
            place.write(&part.join(name), bad);
            let refused = place.try_open(LogConfig::default()).map(|_| ()).unwrap_err();
            assert!(refused.to_string().contains("snapshot"), "{refused}");
            assert_eq!(checkpoint_names(&place), [name]);
            assert_eq!(place.read(&part.join(name)), bad);
            let _: OpenError = refused;
        }
    }

    fn closing_the_log_ends_a_writer_and_removes_its_file(place: &Place) {
        let log = lived(place, 5);
        let mut writer = log.create_snapshot_blocking(id(8, 1)).unwrap();
        log.close_blocking().unwrap();
        let closed = writer
            .append_blocking(&[vec![1u8; 5 << 20]])
            .and_then(|()| writer.append_blocking(&[vec![1u8; 5 << 20]]));
        assert!(matches!(closed, Err(SnapshotWriteError::Closed)), "{closed:?}");
        drop(writer);
        // Opening waits for the lanes of the closed log.
        let (log, _) = place.open();
        assert_eq!(checkpoint_names(place), [""; 0]);
        assert_eq!(log.end_offset(), Offset(10));
    }

    fn the_futures_may_cross_threads(place: &Place) {
        fn send<T: Send>(_: &T) {}
        let log = lived(place, 1);
        send(&log.create_snapshot(id(2, 1)));
        send(&log.open_snapshot(id(2, 1)));
        send(&log.snapshot_bytes(id(2, 1), 0, 1));
        let mut writer = log.create_snapshot_blocking(id(2, 1)).unwrap();
        send(&writer);
        send(&writer.append(&[NO_OP]));
        send(&writer.freeze());
        let mut replay = log.replay(None);
        send(&replay);
        send(&replay.next());
    }

    // A metadata log that does not begin at zero once started without the snapshot before it.
    fn a_log_that_starts_above_zero_needs_a_snapshot_that_covers_its_start(place: &Place) {
        let start = "00000000005000000000";
        let below = "00000000004999999999-0000000002.checkpoint";
        let at_start = "00000000005000000000-0000000002.checkpoint";
        let deleted = "00000000005000000000-0000000002.checkpoint.deleted";
        for (name, opens) in [("", false), (below, false), (at_start, true), (deleted, false)] {
            let place = place.another();
            let part = place.part();
            place.make_dir(&part);
            place.write(&part.join(format!("{start}.log")), case("log-big-offset.hex"));
            if !name.is_empty() {
                place.write(&part.join(name), case("fx-snapshot-4-2.hex"));
            }
            match place.try_open(LogConfig::default()) {
                Ok((log, _)) => assert_eq!((opens, log.start_offset()), (true, Offset(5_000_000_000)), "{name}"),
                Err(error) => {
                    assert!(!opens, "{name}: {error}");
                    let text = error.to_string();
                    assert!(text.contains("log starts at 5000000000"), "{text}");
                    assert_eq!(text.contains("marked as deleted"), name == deleted, "{text}");
                    // Nothing is cleaned up before a refusal.
                    assert_eq!(checkpoint_names(&place).len(), usize::from(!name.is_empty()));
                }
            }
        }
    }

    // After copying a data dir the node looped: could not read file `..6012624-0000000019.checkpoint`.
    fn a_snapshot_that_cannot_be_read_is_an_error_with_its_path_and_no_reason_to_fall_back(place: &Place) {
        let name = "00000000000000000004-0000000002.checkpoint";
        place.put_segment(0, &case("fx-log.hex"));
        place.make_dir(&place.part().join(name));
        let error = place.refused();
        assert!(error.to_string().contains(name), "{error}");
        assert_eq!(checkpoint_names(place), [name]);
    }

    #[not_on_sim = "needs symbolic links"]
    fn a_snapshot_that_is_a_link_to_nowhere_is_an_error_with_its_path(place: &Place) {
        let name = "00000000000000000004-0000000002.checkpoint";
        place.put_segment(0, &case("fx-log.hex"));
        std::os::unix::fs::symlink("nowhere", place.part().join(name)).unwrap();
        let error = place.refused();
        assert!(error.to_string().contains(name), "{error}");
        assert_eq!(checkpoint_names(place), [name]);
    }

    // More snapshots than file handles.
    #[not_on_sim = "looks into /proc for open files"]
    fn five_hundred_snapshots_are_opened_one_at_a_time(place: &Place) {
        let part = place.part();
        place.make_dir(&part);
        place.write(&part.join("00000000000000000000.log"), case("fx-log.hex"));
        let snapshot = case("fx-snapshot-4-2.hex");
        for epoch in 2..=501 {
            place.write(&part.join(format!("00000000000000000004-{epoch:010}.checkpoint")), &snapshot);
        }
        let (log, _) = place.open();
        assert_eq!((log.snapshots().len(), log.latest_snapshot()), (500, Some(id(4, 501))));
        assert_eq!((log.start_offset(), log.end_offset()), (Offset(0), Offset(7)));
        let open_files = fs::read_dir("/proc/self/fd").unwrap();
        let snapshots = open_files.filter_map(|fd| fs::read_link(fd.unwrap().path()).ok());
        assert_eq!(
            snapshots
                .filter(|path| path.starts_with(&part) && path.extension().is_some_and(|e| e == "checkpoint"))
                .count(),
            0
        );
    }
}
