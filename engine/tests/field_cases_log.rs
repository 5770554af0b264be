//! Faults of the log that operators met (`cases/field-cases.md`), named after what they saw.

#![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]
#![allow(clippy::disallowed_methods, reason = "the directory is prepared without the engine")]

mod support;

use kraftlog::{
    AppendError, DirError, Epoch, ErrorKind, Isolation, LogConfig, MetadataDir, Offset, OpenError,
};
use kraftlog_codecs::quorum::QuorumStateError;
use kraftlog_io::BackendChoice;
use std::fs;
use support::{Place, append, batch, big_batch, case, lead};

fn fx_log() -> Vec<u8> {
    let bytes = case("fx-log.hex");
    assert_eq!(bytes.len(), 378);
    bytes
}

fn fresh(place: &Place, bytes: &[u8]) {
    place.wipe();
    place.put_segment(0, bytes);
}

on_every_backend! {
    fn c25_metadata_loader_never_finishes_after_a_torn_last_batch(place: &Place) {
        let log_bytes = fx_log();
        for len in [377, 300, 296, 295, 292, 285, 284, 91, 90, 11, 1, 0] {
            fresh(place, &log_bytes[..len]);
            let (good, end) = match len {
                284.. => (284, 4),
                91.. => (91, 1),
                _ => (0, 0),
            };
            let (log, report) = place.open();
            assert_eq!(log.end_offset(), Offset(end), "{len}");
            assert_eq!(report.torn_tail.as_ref().map_or(0, |cut| cut.bytes), (len - good) as u64, "{len}: {report}");
            assert_eq!(report.torn_tail.is_some(), len != good);
            drop(log);
            place.settle();
            assert_eq!(place.read_segment(0), &log_bytes[..good]);
            let (_, report) = place.open();
            assert!(report.torn_tail.is_none(), "{len}: {report}");
        }
    }

    fn c26_a_bad_checksum_in_the_middle_was_passed_over(place: &Place) {
        let mut bytes = fx_log();
        bytes[160] = 0xff;
        fresh(place, &bytes);
        let before = place.everything();
        let error = place.refused();
        let OpenError::CorruptBatch { ref path, position, offset, stored_crc, computed_crc, valid_behind, .. } = error
        else {
            panic!("{error}")
        };
        assert_eq!((position, offset), (91, Offset(1)));
        assert_eq!(path, &place.segment(0));
        let behind = valid_behind.unwrap();
        assert_eq!((behind.batches, behind.first, behind.last), (2, Offset(3), Offset(6)));
        let (stored, computed) = (stored_crc.unwrap(), computed_crc.unwrap());
        assert_eq!(stored, 0xfb65_b0da);
        assert_ne!(computed, stored);
        let text = error.to_string();
        for part in ["fb65b0da".to_string(), format!("{computed:08x}"), "byte 91".into(), "offsets 3-6".into()] {
            assert!(text.contains(&part), "`{part}` is not in: {text}");
        }
        assert_eq!(place.everything(), before);
    }

    fn c27_a_broken_length_field_hid_the_batch_behind_it(place: &Place) {
        for length in [[0, 0, 0, 0], [0xff, 0xff, 0xff, 0xf4], [0x7f, 0xff, 0xff, 0xff]] {
            let mut bytes = fx_log();
            bytes[201..205].copy_from_slice(&length);
            fresh(place, &bytes);
            let before = place.everything();
            let error = place.refused();
            assert!(
                matches!(&error, OpenError::CorruptBatch { position: 193, valid_behind: Some(behind), .. }
                    if behind.position == 284),
                "{error}"
            );
            assert_eq!(place.everything(), before);
        }
    }

    fn c28_an_unknown_control_type_stops_nothing_and_takes_its_offset(place: &Place) {
        fresh(place, &[fx_log(), case("log-control-99.hex")].concat());
        let (log, report) = place.open();
        assert_eq!(log.end_offset(), Offset(8), "{report}");
    }

    fn c29_a_huge_batch_took_the_cluster_down(place: &Place) {
        let (log, _) = place.open();
        lead(&log, 1, 1);
        for refused in [big_batch(0, 1, 9 << 20), batch(0, 1, 10_001)] {
            let len = refused.len();
            let error = log.append_as_leader(Epoch(1), refused).err().unwrap();
            assert!(
                matches!(error, AppendError::BatchTooLarge { bytes, bytes_max: 8_388_608, records_max: 10_000, .. }
                    if bytes == len),
                "{error}"
            );
            assert_eq!(log.end_offset(), Offset(1));
        }
        append(&log, 1, 1).durable_blocking().unwrap();
        assert_eq!(log.end_offset(), Offset(2));
        let mut exact = (8 << 20) - 61 - 30;
        let whole = loop {
            let bytes = big_batch(0, 1, exact);
            match bytes.len().cmp(&8_388_608) {
                std::cmp::Ordering::Equal => break bytes,
                std::cmp::Ordering::Less => exact += 8_388_608 - bytes.len(),
                std::cmp::Ordering::Greater => exact -= bytes.len() - 8_388_608,
            }
        };
        log.append_as_leader(Epoch(1), whole).unwrap().durable_blocking().unwrap();
        log.append_as_leader(Epoch(1), batch(0, 1, 10_000)).unwrap().durable_blocking().unwrap();
        drop(log);
        fresh(place, &[big_batch(0, 1, 9 << 20), batch(1, 1, 1)].concat());
        let (log, _) = place.open();
        assert_eq!(log.end_offset(), Offset(2));
        let fetched = log.read_blocking(Offset(0), Isolation::Uncommitted, 100).unwrap();
        assert!(fetched.bytes.len() > 9 << 20);
    }

    fn c31_after_a_downgrade_the_controller_died_on_a_feature_record(place: &Place) {
        fresh(place, &[fx_log(), case("log-mv99.hex")].concat());
        let before = place.everything();
        let error = place.refused();
        assert!(matches!(error, OpenError::UnsupportedMetadataVersion { offset: Offset(7), level: 99, .. }), "{error}");
        assert_eq!(place.everything(), before);
        fresh(place, &[fx_log(), case("log-unknown-type.hex")].concat());
        let error = place.refused();
        assert!(
            matches!(error, OpenError::UnknownRecordType { offset: Offset(7), api_key: 120, version: 0, .. }),
            "{error}"
        );
        fresh(place, &[fx_log(), case("log-unknown-version.hex")].concat());
        let error = place.refused();
        assert!(
            matches!(error, OpenError::UnknownRecordType { offset: Offset(7), api_key: 12, version: 9, .. }),
            "{error}"
        );
        assert_eq!(error.kind(), ErrorKind::Unsupported);
    }

    fn c33_two_controllers_ran_on_one_directory(place: &Place) {
        let (log, _) = place.open();
        lead(&log, 1, 1);
        let error = place.try_lock().err().unwrap();
        assert_eq!(error.kind(), ErrorKind::Locked);
        assert!(matches!(error, DirError::Lock(_)), "{error}");
        let error = kraftlog::MetadataLog::open_blocking(log.dir().clone(), LogConfig::default()).err().unwrap();
        assert!(matches!(error, OpenError::AlreadyOpen { .. }), "{error}");
        append(&log, 1, 1).durable_blocking().unwrap();
    }

    #[not_on_sim = "needs symbolic links"]
    fn c33_two_controllers_ran_on_one_directory_under_two_names(place: &Place) {
        let (log, _) = place.open();
        lead(&log, 1, 1);
        let link = place.path().with_extension("link");
        std::os::unix::fs::symlink(place.path(), &link).unwrap();
        for name in [place.path(), &link, &place.path().join("../").join(place.path().file_name().unwrap())] {
            let error = MetadataDir::open_blocking(name, BackendChoice::Portable).err().unwrap();
            assert_eq!(error.kind(), ErrorKind::Locked);
            assert!(matches!(error, DirError::Lock(_)), "{error}");
        }
        fs::remove_file(&link).unwrap();
        append(&log, 1, 1).durable_blocking().unwrap();
    }

    fn c35_a_damaged_epoch_file_blocked_the_start(place: &Place) {
        let nul = [0u8; 16];
        let cases = fs::read_dir(std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/cases")).unwrap();
        let mut texts: Vec<(String, Vec<u8>)> = cases
            .map(|entry| entry.unwrap().path())
            .filter(|path| path.file_name().unwrap().to_str().unwrap().starts_with("epoch-"))
            .map(|path| (path.display().to_string(), fs::read(path).unwrap()))
            .collect();
        texts.push(("empty".into(), Vec::new()));
        texts.push(("NULs".into(), nul.to_vec()));
        assert!(texts.len() >= 8, "{}", texts.len());
        for (name, text) in texts {
            fresh(place, &fx_log());
            let path = place.part().join("leader-epoch-checkpoint");
            place.write(&path, &text);
            if text.starts_with(b"9") {
                let error = place.refused();
                assert!(matches!(error, OpenError::EpochCacheInvalid { .. }), "{name}: {error}");
                assert_eq!(place.read(&path), text);
                continue;
            }
            let (log, report) = place.open();
            assert!(report.epochs_rebuilt.is_some(), "{name}");
            assert_eq!(place.read_text(&path), "0\n2\n1 0\n2 3\n", "{name}");
            assert_eq!(log.last_epoch(), Epoch(2));
        }
    }

    fn c40_half_written_snapshots_were_taken_for_real_ones(place: &Place) {
        fresh(place, &fx_log());
        let snapshot = case("fx-snapshot-4-2.hex");
        let names = [
            ("00000000000000000004-0000000002.checkpoint", snapshot.as_slice(), true),
            ("00000000000000000007-0000000002-8123.checkpoint.part", &snapshot[..40], false),
            ("00000000000000000001-0000000001.checkpoint.deleted", &snapshot, false),
            ("00000000000000000004-0000000002.checkpoint.bak", &snapshot, true),
            ("quorum-state.tmp", b"{", false),
            ("00000000000000000000.log.deleted", b"x", false),
            ("notes.txt", b"mine", true),
        ];
        for (name, bytes, _) in names {
            place.write(&place.part().join(name), bytes);
        }
        let (log, report) = place.open();
        for (name, _, stays) in names {
            assert_eq!(place.exists(&place.part().join(name)), stays, "{name}");
        }
        assert_eq!(report.removed.len(), 4, "{:?}", report.removed);
        assert_eq!(log.latest_snapshot(), Some(kraftlog::SnapshotId::new(4, 2)));
    }

    fn c43_an_unknown_quorum_state_was_read_as_a_known_one(place: &Place) {
        let fine = [
            r#"{"clusterId":"","leaderId":1,"leaderEpoch":2,"votedId":-1,"appliedOffset":0,"currentVoters":[{"voterId":1}],"data_version":0}"#,
            r#"{"clusterId":"","leaderId":1,"leaderEpoch":2,"votedId":-1,"appliedOffset":0,"currentVoters":[{"voterId":1}],"data_version":0,"extra":7}"#,
            r#"{"leaderId":-1,"leaderEpoch":2,"votedId":1,"votedDirectoryId":"Y0_TxaqAQb2tTuW2MXphaA","data_version":1}"#,
        ];
        let path = place.part().join("quorum-state");
        for text in fine {
            fresh(place, &fx_log());
            place.write(&path, text);
            drop(place.open());
            place.settle();
            assert_eq!(place.read_text(&path), text);
        }
        let bad = [
            r#"{"leaderId":-1,"leaderEpoch":2,"votedId":-1,"data_version":2}"#,
            r#"{"leaderId":-1,"leaderEpoch":2,"votedId":-1}"#,
            "[]",
            r#"{"leaderId":-1,"leaderEpoch":-5,"votedId":-1,"votedDirectoryId":"AAAAAAAAAAAAAAAAAAAAAA","data_version":1}"#,
            "",
        ];
        for text in bad {
            fresh(place, &fx_log());
            place.write(&path, text);
            let before = place.everything();
            match place.refused() {
                OpenError::UnsupportedQuorumStateVersion { version, .. } => assert_eq!(version, 2),
                OpenError::QuorumStateInvalid { cause, .. } => {
                    assert!(matches!(cause, QuorumStateError::Invalid { .. }), "{cause}");
                    assert!(!text.contains("data_version\":2"));
                }
                error => panic!("{text}: {error}"),
            }
            assert_eq!(place.everything(), before);
        }
        fresh(place, &fx_log());
        place.write(&path, fine[0].replace(r#""clusterId":"""#, r#""clusterId":"other""#));
        let mut config = LogConfig::default();
        config.cluster_id = Some("Jk01gj4RQRegVl2GLqYuTg".into());
        let error = place.try_open(config).err().unwrap();
        assert!(matches!(error, OpenError::ClusterIdMismatch { .. }), "{error}");
    }

    fn c48_a_migration_was_begun_and_never_finished(place: &Place) {
        for (name, state) in [("log-zkmig-1.hex", 1), ("log-zkmig-2.hex", 2)] {
            fresh(place, &[fx_log(), case(name)].concat());
            let error = place.refused();
            assert!(
                matches!(error, OpenError::MigrationUnfinished { offset: Offset(7), state: found } if found == state),
                "{error}"
            );
        }
        fresh(place, &[fx_log(), case("log-zkmig-3.hex")].concat());
        drop(place.open());
    }

    fn c27_random_short_files_never_panic_or_hang(place: &Place) {
        let seed = support::seed();
        println!("KRAFTLOG_SEED={seed}");
        let mut random = seed;
        for len in 1..=60usize {
            let mut bytes = vec![0; len];
            for byte in &mut bytes {
                random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                *byte = if len % 7 == 0 { 0 } else { (random >> 33) as u8 };
            }
            fresh(place, &bytes);
            let (log, _) = place.open();
            assert_eq!(log.end_offset(), Offset(0));
        }
    }
}
