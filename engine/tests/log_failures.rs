//! A full disk and a failed sync.

#![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]
#![allow(clippy::disallowed_methods, reason = "the directory is prepared without the engine")]

mod support;

use kraftlog::{AppendError, Epoch, ErrorKind, Isolation, Offset};
use std::sync::atomic::Ordering;
use support::{append, batch, lead};

on_every_backend! {
    fn a_full_disk_fails_what_waits_and_leaves_the_log_usable(place: &Place) {
        let (place, faults) = place.faulty();
        let (log, _) = place.open();
        lead(&log, 1, 3);
        faults.full.store(true, Ordering::SeqCst);
        let tickets: Vec<_> = (0..20).map(|_| append(&log, 1, 1)).collect();
        let errors: Vec<AppendError> =
            tickets.iter().map(|ticket| ticket.durable_blocking().unwrap_err()).collect();
        assert!(matches!(errors[0], AppendError::NoSpace { .. }), "{}", errors[0]);
        assert!(errors.iter().all(|error| error.kind() == ErrorKind::Retry));
        // The half batch that found room is cut off again, and so is the reserve.
        let one = batch(0, 1, 1).len();
        assert_eq!(place.len(&place.segment(0)), 3 * one as u64);
        assert_eq!((log.end_offset(), log.durable_end()), (Offset(3), Offset(3)));
        assert_eq!(log.initialize_leader_epoch_blocking(Epoch(2)).unwrap_err().kind(), ErrorKind::Retry);
        let fetched = log.read_blocking(Offset(0), Isolation::Uncommitted, usize::MAX).unwrap();
        assert_eq!(fetched.next, Offset(3));
        faults.full.store(false, Ordering::SeqCst);
        let ticket = append(&log, 1, 1);
        assert_eq!(ticket.offsets(), 3..=3);
        ticket.durable_blocking().unwrap();
        lead(&log, 2, 1);
        log.close_blocking().unwrap();
        let (log, report) = place.open();
        assert!(report.torn_tail.is_none(), "{report}");
        assert_eq!(log.end_offset(), Offset(5));
    }

    fn a_full_disk_at_close_is_said_and_nothing_acknowledged_is_lost(place: &Place) {
        let (place, faults) = place.faulty();
        let (log, _) = place.open();
        lead(&log, 1, 3);
        faults.full.store(true, Ordering::SeqCst);
        append(&log, 1, 1).durable_blocking().unwrap_err();
        let report = log.close_blocking().unwrap();
        assert!(!report.clean && report.not_clean_because.is_some());
        let left = place.names(&place.part());
        assert!(!left.iter().any(|name| name.ends_with(".tmp")), "{left:?}");
        faults.full.store(false, Ordering::SeqCst);
        let (log, report) = place.open();
        assert!(report.torn_tail.is_none(), "{report}");
        assert_eq!(log.end_offset(), Offset(3));
    }

    fn a_failed_sync_fences_the_directory_for_good(place: &Place) {
        let (place, faults) = place.faulty();
        let (log, _) = place.open();
        lead(&log, 1, 3);
        faults.sync_fails.store(true, Ordering::SeqCst);
        let ticket = append(&log, 1, 1);
        let error = ticket.durable_blocking().unwrap_err();
        assert!(matches!(error, AppendError::Fenced(_)), "{error}");
        faults.sync_fails.store(false, Ordering::SeqCst);
        let error = log.append_as_leader(Epoch(1), batch(0, 1, 1)).err().unwrap();
        assert_eq!(error.kind(), ErrorKind::Fenced);
        assert_eq!(log.initialize_leader_epoch_blocking(Epoch(2)).unwrap_err().kind(), ErrorKind::Fenced);
        assert_eq!(log.flush_blocking().unwrap_err().kind(), ErrorKind::Fenced);
        // What is not durable is not read any more; what is, is.
        assert_eq!(log.durable_end(), Offset(3));
        let fetched = log.read_blocking(Offset(0), Isolation::Uncommitted, usize::MAX).unwrap();
        assert_eq!(fetched.next, Offset(3));
        assert!(log.read_blocking(Offset(3), Isolation::Uncommitted, 10).unwrap().bytes.is_empty());
        assert_eq!(log.close_blocking().unwrap_err().kind(), ErrorKind::Fenced);
        let (log, report) = place.open();
        assert!(report.rewritten_bytes > 0, "{report}");
        assert!(log.end_offset() >= Offset(3));
    }
}
