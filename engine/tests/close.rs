//! What close leaves behind, for this process and for others.

#![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]

mod support;

use kraftlog::{Epoch, Isolation, Offset};
use support::NO_OP;

on_every_backend! {
    // "A tool that ran right after the node had stopped said that the directory is in use": close answered
    // while its lanes still held the lock.
    fn a_directory_is_free_for_others_when_close_answers(place: &Place) {
        for round in 1..=60 {
            let (log, _) = place.open();
            log.initialize_leader_epoch_blocking(Epoch(round)).unwrap();
            log.append_records(Epoch(round), [NO_OP]).unwrap().durable_blocking().unwrap();
            log.read_blocking(Offset(0), Isolation::Uncommitted, 1).unwrap();
            log.close_blocking().unwrap();
            let lock = place.rt.lock_dir(place.path());
            assert!(lock.is_ok(), "round {round}: {}", lock.err().unwrap());
        }
    }

    // A clone that is still there keeps the lock, and close does not wait for it.
    fn close_does_not_wait_for_clones_of_the_handle(place: &Place) {
        let (log, _) = place.open();
        let clone = log.clone();
        assert!(log.close_blocking().unwrap().clean);
        assert!(place.rt.lock_dir(place.path()).is_err(), "the clone still has the directory");
        drop(clone);
        assert!(place.rt.lock_dir(place.path()).is_ok(), "nobody has it any more");
    }
}
