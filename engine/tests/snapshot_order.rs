//! The order of steps in which a checkpoint gets its name, and what a failure at each of them leaves.

#![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]

mod snapshot_support;
mod support;

use kraftlog::snapshot::SnapshotWriteError;
use kraftlog::{AppendError, Epoch, MetadataLog, SnapshotId};
use snapshot_support::traced::{Trace, TracedRt};
use snapshot_support::*;
use std::sync::Arc;
use support::Place;

const EIO: i32 = 5;
const ENOSPC: i32 = 28;
const NAME: &str = "00000000000000000004-0000000001.checkpoint";

fn traced(place: &Place) -> (MetadataLog, Arc<Trace>) {
    let trace = Arc::new(Trace::default());
    let mut traced = place.at(place.path().to_path_buf());
    traced.rt = Arc::new(TracedRt { inner: Arc::clone(&place.rt), trace: Arc::clone(&trace) });
    let (log, _) = traced.open();
    log.initialize_leader_epoch_blocking(Epoch(1)).unwrap();
    log.append_records(Epoch(1), [numbered(0), numbered(1), numbered(2), numbered(3)])
        .unwrap()
        .durable_blocking()
        .unwrap();
    log.update_high_watermark(log.end_offset()).unwrap();
    (log, trace)
}

/// A snapshot of a megabyte.
fn snapshot(log: &MetadataLog) -> Result<(), SnapshotWriteError> {
    let mut writer = log.create_snapshot_blocking(SnapshotId::new(4, 1))?;
    writer.append_blocking(&vec![[7u8; 1000]; 1000])?;
    writer.freeze_blocking().map(|_| ())
}

on_every_backend! {
    fn a_checkpoint_is_written_verified_synced_made_read_only_renamed_and_its_name_synced(place: &Place) {
        let (log, trace) = traced(place);
        snapshot(&log).unwrap();
        let mut steps = trace.steps();
        let data = steps.iter().position(|step| step == "read part").unwrap();
        let written: Vec<String> = steps.drain(..data).collect();
        assert_eq!(written[0], "create part 600");
        // Never more than 256 KiB are dirty: of a megabyte each piece is synced before the next.
        let (pieces, syncs) = ("write part", "fdatasync part");
        assert!(written[1..].iter().all(|step| step == pieces || step == syncs), "{written:?}");
        assert!(written.iter().filter(|step| *step == syncs).count() >= 3, "{written:?}");
        let rename = format!("rename part to {NAME}");
        let publish = ["read part", "fsync part", "mode 400 part", &rename, "sync the directory"];
        assert_eq!(steps, publish);
    }

    // A machine can stop before any step: what is there then must be nothing or all of it.
    fn before_each_step_there_is_no_checkpoint_and_behind_the_rename_a_whole_one(place: &Place) {
        for step in ["create", "write", "read", "mode", "rename"] {
            let place = place.another();
            let (log, trace) = traced(&place);
            trace.fail(step, EIO);
            let error = snapshot(&log).unwrap_err();
            assert!(matches!(error, SnapshotWriteError::Io(_)), "{step}: {error}");
            assert_eq!((log.latest_snapshot(), checkpoint_names(&place)), (None, vec![]), "{step}");
            // The log is not concerned, and the next try works.
            trace.mend();
            log.append_records(Epoch(1), [numbered(9)]).unwrap().durable_blocking().unwrap();
            snapshot(&log).unwrap();
            assert_eq!(checkpoint_names(&place), [NAME], "{step}");
            place.verify(&place.part().join(NAME)).unwrap();
        }
    }

    fn a_full_disk_costs_the_snapshot_and_nothing_else(place: &Place) {
        let (log, trace) = traced(place);
        trace.fail("write", ENOSPC);
        let error = snapshot(&log).unwrap_err();
        assert_eq!(error.kind(), kraftlog::ErrorKind::Retry);
        assert_eq!(checkpoint_names(place), [""; 0]);
        log.append_records(Epoch(1), [numbered(9)]).unwrap().durable_blocking().unwrap();
    }

    fn a_failed_sync_of_a_snapshot_fences_the_directory(place: &Place) {
        for (step, whole) in [("fdatasync", false), ("fsync", false), ("sync the directory", true)] {
            let place = place.another();
            let (log, trace) = traced(&place);
            trace.fail(step, EIO);
            let error = snapshot(&log).unwrap_err();
            assert!(matches!(error, SnapshotWriteError::Fenced(_)), "{step}: {error}");
            assert_eq!(log.latest_snapshot(), None, "{step}");
            let names = checkpoint_names(&place);
            assert_eq!(names.iter().any(|name| name == NAME), whole, "{step}: {names:?}");
            // The first cause stays; nothing more is written, also when the disk is well again.
            trace.mend();
            let appended = log.append_records(Epoch(1), [numbered(9)]);
            let appended = appended.and_then(|ticket| ticket.durable_blocking());
            assert!(matches!(appended, Err(AppendError::Fenced(_))), "{step}: {appended:?}");
            assert!(matches!(snapshot(&log), Err(SnapshotWriteError::Fenced(_))), "{step}");
        }
    }

    fn bytes_that_do_not_read_back_are_never_published(place: &Place) {
        let (log, _) = traced(place);
        let mut writer = log.create_snapshot_blocking(SnapshotId::new(4, 1)).unwrap();
        writer.append_blocking(&vec![[7u8; 1000]; 1000]).unwrap();
        // A flipped bit between memory and disk.
        let part = checkpoint_names(place).remove(0);
        let path = place.part().join(part);
        place.wait_until(|| place.len(&path) >= 72);
        place.patch(&path, 70, &[0xff]);
        let error = writer.freeze_blocking().unwrap_err();
        assert!(matches!(error, SnapshotWriteError::NotWhole { .. }), "{error}");
        assert_eq!((log.latest_snapshot(), checkpoint_names(place)), (None, vec![]));
    }
}
