//! Reads, rolls and index files.

#![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]
#![allow(clippy::disallowed_methods, reason = "the directory is prepared without the engine")]

mod support;

use kraftlog::{Epoch, ErrorKind, Isolation, LogConfig, Offset, ReadError};
use kraftlog_codecs::index::OffsetIndex;
use support::{append, batch, batch_at, big_batch, lead};

fn small_segments() -> LogConfig {
    let mut config = LogConfig::default();
    config.segment_bytes_max = 20_000;
    config.tail_cache_bytes_max = 0;
    config
}

on_every_backend! {
    fn committed_reads_stop_at_the_high_watermark(place: &Place) {
        let (log, _) = place.open();
        lead(&log, 1, 0);
        for _ in 0..4 {
            append(&log, 1, 5).durable_blocking().unwrap();
        }
        assert!(log.read_blocking(Offset(0), Isolation::Committed, 1000).unwrap().bytes.is_empty());
        log.update_high_watermark(Offset(10)).unwrap();
        let fetched = log.read_blocking(Offset(7), Isolation::Committed, usize::MAX).unwrap();
        assert_eq!((fetched.start, fetched.next), (Offset(5), Offset(10)));
        assert_eq!(fetched.bytes, batch(5, 1, 5));
        let fetched = log.read_blocking(Offset(7), Isolation::Uncommitted, usize::MAX).unwrap();
        assert_eq!((fetched.start, fetched.next), (Offset(5), Offset(20)));
        assert!(log.read_blocking(Offset(20), Isolation::Uncommitted, 10).unwrap().bytes.is_empty());
        let error = log.read_blocking(Offset(21), Isolation::Uncommitted, 10).unwrap_err();
        assert!(matches!(error, ReadError::OutOfRange { end: Offset(20), .. }), "{error}");
    }

    fn at_least_one_batch_comes_whatever_the_limit(place: &Place) {
        let (log, _) = place.open();
        lead(&log, 1, 2);
        let one = batch(0, 1, 1).len();
        assert_eq!(log.read_blocking(Offset(0), Isolation::Uncommitted, 1).unwrap().bytes.len(), one);
        assert_eq!(log.read_blocking(Offset(0), Isolation::Uncommitted, 2 * one - 1).unwrap().bytes.len(), one);
        assert_eq!(log.read_blocking(Offset(0), Isolation::Uncommitted, 2 * one).unwrap().bytes.len(), 2 * one);
    }

    fn memory_and_disk_give_the_same_bytes(place: &Place) {
        let (log, _) = place.open();
        lead(&log, 1, 0);
        for at in 0..200 {
            let bytes = if at % 50 == 7 { big_batch(0, 1, 300_000) } else { batch(0, 1, 1 + at % 3) };
            log.append_as_leader(Epoch(1), bytes).unwrap().durable_blocking().unwrap();
        }
        let end = log.end_offset();
        let mut from_memory = Vec::new();
        for at in 0..end.0 {
            let fetched = log.read_blocking(Offset(at), Isolation::Uncommitted, 1000).unwrap();
            assert!(fetched.start <= Offset(at) && Offset(at) < fetched.next);
            from_memory.push(fetched);
        }
        assert_eq!(log.metrics().reads_from_disk(), 0);
        log.close_blocking().unwrap();
        let (log, _) = place.open();
        for (at, expected) in from_memory.iter().enumerate() {
            let at = Offset(i64::try_from(at).unwrap());
            assert_eq!(&log.read_blocking(at, Isolation::Uncommitted, 1000).unwrap(), expected);
        }
        assert_eq!(log.metrics().reads_from_memory(), 0);
    }

    fn segments_roll_at_their_size_and_reads_cross_them(place: &Place) {
        let (log, _) = place.open_with(small_segments());
        lead(&log, 1, 0);
        for _ in 0..1000 {
            drop(append(&log, 1, 1));
        }
        log.flush_blocking().unwrap();
        let per_segment = 20_000 / batch(0, 1, 1).len();
        assert_eq!(log.metrics().segments_rolled() as usize, 999 / per_segment);
        let mut next = Offset(0);
        let mut all = Vec::new();
        while next < log.end_offset() {
            let fetched = log.read_blocking(next, Isolation::Uncommitted, 5000).unwrap();
            assert_eq!(fetched.start, next);
            all.extend_from_slice(&fetched.bytes);
            next = fetched.next;
        }
        let expected: Vec<u8> = (0..1000).flat_map(|base| batch(base, 1, 1)).collect();
        assert!(all == expected);
        log.close_blocking().unwrap();
        let (log, report) = place.open_with(small_segments());
        assert_eq!(report.segments, 1 + 999 / per_segment, "{report}");
        assert_eq!(log.end_offset(), Offset(1000));
        assert_eq!(log.read_blocking(Offset(500), Isolation::Uncommitted, 1).unwrap().bytes, batch(500, 1, 1));
    }

    fn a_segment_is_rolled_when_a_batch_is_much_younger(place: &Place) {
        let mut config = LogConfig::default();
        config.segment_ms = 1000;
        let (log, _) = place.open_with(config);
        lead(&log, 1, 0);
        for (timestamp, base) in [(5000, 0), (6000, 0), (6001, 2), (6500, 2), (9000, 4)] {
            let bytes = batch_at(0, 1, 1, timestamp);
            log.append_as_leader(Epoch(1), bytes).unwrap().durable_blocking().unwrap();
            assert!(place.exists(&place.segment(base)), "{timestamp}");
        }
        assert_eq!(log.metrics().segments_rolled(), 2);
    }

    fn index_entries_are_made_as_kafka_makes_them(place: &Place) {
        let (log, _) = place.open();
        lead(&log, 1, 0);
        for _ in 0..200 {
            append(&log, 1, 1).durable_blocking().unwrap();
        }
        log.close_blocking().unwrap();
        let one = batch(0, 1, 1).len();
        let bytes = place.read(&place.part().join("00000000000000000000.index"));
        let index = OffsetIndex::check(&bytes).unwrap();
        // The first batch behind more than 4096 bytes, then again and again.
        let step = 4096 / one + 1;
        let expected: Vec<(i32, i32)> =
            (1..).map(|n| n * step).take_while(|at| *at < 200).map(|at| (at as i32, (at * one) as i32)).collect();
        let found: Vec<_> = index.entries().map(|entry| (entry.relative_offset, entry.position)).collect();
        assert_eq!(found, expected);
        let times = place.read(&place.part().join("00000000000000000000.timeindex"));
        assert_eq!(times.len(), 12);
    }

    fn rot_below_the_durable_end_is_named_and_what_lies_in_front_of_it_is_given(place: &Place) {
        // "The loader stands at offset 6 and asks for it again and again, at full load": a bit of a batch that open
        // had no reason to look at again, and that now claims to reach beyond the log's end. Or "the controller
        // applied a record twice": a bit of a base offset, which no CRC covers.
        let (log, _) = place.open();
        lead(&log, 1, 0);
        for _ in 0..10 {
            append(&log, 1, 5).durable_blocking().unwrap();
        }
        log.close_blocking().unwrap();
        let sound = place.read_segment(0);
        let one = batch(0, 1, 5).len();
        let damaged = 4 * one..5 * one;
        // No CRC covers the leader epoch, and nothing says what it should be.
        let epoch = 8 * (damaged.start + 12)..8 * (damaged.start + 16);
        for bit in (8 * damaged.start..8 * damaged.end).filter(|bit| !epoch.contains(bit)) {
            let mut rotten = sound.clone();
            rotten[bit / 8] ^= 1 << (bit % 8);
            place.put_segment(0, &rotten);
            let (log, _) = place.open();
            // In all sizes: alone, with its neighbours, and with all.
            for bytes_max in [1, 3 * one, usize::MAX] {
                let mut next = Offset(0);
                let error = loop {
                    match log.read_blocking(next, Isolation::Uncommitted, bytes_max) {
                        Ok(fetched) => {
                            assert_eq!(fetched.start, next, "bit {bit}");
                            assert!(fetched.next > next, "bit {bit}: a read of {next} does not get on");
                            let at = usize::try_from(next.0).unwrap() / 5 * one;
                            assert!(fetched.bytes == sound[at..at + fetched.bytes.len()], "bit {bit}");
                            next = fetched.next;
                        }
                        Err(error) => break error,
                    }
                };
                assert_eq!(next, Offset(20), "bit {bit}: all in front of it can be read");
                assert!(
                    matches!(&error, ReadError::CorruptBatch { position, offset: Offset(20), .. }
                        if *position == damaged.start as u64),
                    "bit {bit}: {error}"
                );
            }
            // The middle of the damaged batch is asked for without having seen those in front of it.
            assert_eq!(log.read_blocking(Offset(22), Isolation::Uncommitted, 1).unwrap_err().kind(), ErrorKind::Corrupt);
            log.close_blocking().unwrap();
        }
    }

    fn a_batch_behind_an_index_entry_is_not_believed_where_it_begins(place: &Place) {
        let (log, _) = place.open();
        lead(&log, 1, 0);
        for _ in 0..200 {
            append(&log, 1, 5).durable_blocking().unwrap();
        }
        log.close_blocking().unwrap();
        let sound = place.read_segment(0);
        let index = place.read(&place.part().join("00000000000000000000.index"));
        let entry = OffsetIndex::check(&index).unwrap().entries().next().unwrap();
        let (position, last) = (usize::try_from(entry.position).unwrap(), i64::from(entry.relative_offset));
        for base in [last - 6, last - 5, last - 3, last - 2, last, last + 1] {
            let mut rotten = sound.clone();
            rotten[position..position + 8].copy_from_slice(&base.to_be_bytes());
            place.put_segment(0, &rotten);
            let (log, _) = place.open();
            for asked in [last, last + 1] {
                let read = log.read_blocking(Offset(asked), Isolation::Uncommitted, 1);
                let ReadError::CorruptBatch { .. } = read.unwrap_err() else { panic!("base {base}, asked {asked}") };
            }
            log.close_blocking().unwrap();
        }
        place.put_segment(0, &sound);
        let (log, _) = place.open();
        assert_eq!(log.read_blocking(Offset(last), Isolation::Uncommitted, 1).unwrap().start, Offset(last - 4));
    }

    fn damaged_index_files_are_rebuilt_and_reads_are_right(place: &Place) {
        // "Corrupt index found ... non-zero size but last offset no larger than base offset".
        let log_bytes = support::case("fx-log.hex");
        let falling = [0, 0, 0, 3, 0, 0, 0, 91, 0, 0, 0, 2, 0, 0, 0, 193];
        let cases: [(&str, Option<&[u8]>); 6] = [
            ("index", Some(&[0; 16])),
            ("index", Some(&[1; 13])),
            ("index", Some(&[0, 0, 0, 3, 0, 0, 0x27, 0x0f])),
            ("index", Some(&falling)),
            ("timeindex", Some(&[7; 12])),
            ("index", None),
        ];
        for (suffix, bytes) in cases {
            place.wipe();
            place.put_segment(0, &log_bytes);
            let path = place.part().join(format!("00000000000000000000.{suffix}"));
            if let Some(bytes) = bytes {
                place.write(&path, bytes);
            }
            let (log, report) = place.open();
            assert_eq!(place.read_segment(0), log_bytes);
            assert_eq!(report.indexes_rebuilt.len(), usize::from(bytes.is_some()), "{report}");
            for at in 0..7 {
                let fetched = log.read_blocking(Offset(at), Isolation::Uncommitted, 1).unwrap();
                assert!(fetched.start.0 <= at && at < fetched.next.0);
            }
            drop(log);
            let (_, report) = place.open();
            assert!(report.indexes_rebuilt.is_empty(), "{report}");
            OffsetIndex::check(&place.read(&place.part().join("00000000000000000000.index"))).unwrap();
        }
    }
}
