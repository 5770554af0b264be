//! Appending what a leader sent.

#![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]
#![allow(clippy::disallowed_methods, reason = "the directory is prepared without the engine")]

mod support;

use kraftlog::{AppendError, Epoch, EpochEnd, ErrorKind, FollowerAppend, Offset, Validity};
use support::{append, batch, big_batch, lead};

on_every_backend! {
    fn a_copy_has_the_same_bytes(place: &Place) {
        let (log, _) = place.open();
        let sent: Vec<u8> = [batch(0, 1, 3), batch(3, 1, 1), batch(4, 2, 2), big_batch(6, 2, 9 << 20)].concat();
        let ticket = log.append_as_follower(Epoch(2), sent.clone()).unwrap().ticket().unwrap();
        assert_eq!(ticket.offsets(), 0..=6);
        assert_eq!(ticket.durable_blocking().unwrap().epoch, Epoch(2));
        assert_eq!((log.end_offset(), log.last_epoch()), (Offset(7), Epoch(2)));
        assert_eq!(log.end_offset_for_epoch(Epoch(1)), EpochEnd { epoch: Epoch(1), end_offset: Offset(4) });
        assert_eq!(log.validate(Offset(3), Epoch(1)), Validity::Valid);
        assert!(matches!(log.validate(Offset(7), Epoch(1)), Validity::Diverging(_)));
        log.close_blocking().unwrap();
        assert!(place.read_segment(0) == sent);
        assert_eq!(
            place.read_text(&place.part().join("leader-epoch-checkpoint")),
            "0\n2\n1 0\n2 4\n"
        );
    }

    fn batches_of_a_later_epoch_and_an_incomplete_end_are_left_out(place: &Place) {
        let (log, _) = place.open();
        let sent = [batch(0, 1, 1), batch(1, 1, 1), batch(2, 3, 1), batch(3, 3, 1)].concat();
        let ticket = log.append_as_follower(Epoch(2), sent.clone()).unwrap().ticket().unwrap();
        assert_eq!(ticket.offsets(), 0..=1);
        let cut = [batch(2, 2, 1), batch(3, 2, 1)[..40].to_vec()].concat();
        assert_eq!(log.append_as_follower(Epoch(2), cut).unwrap().ticket().unwrap().offsets(), 2..=2);
        for nothing in [batch(3, 3, 1), batch(3, 2, 1)[..61].to_vec(), vec![0, 0, 0]] {
            assert!(matches!(log.append_as_follower(Epoch(2), nothing).unwrap(), FollowerAppend::Skipped));
        }
        assert_eq!(log.append_as_follower(Epoch(2), Vec::new()).err().unwrap().kind(), ErrorKind::Invalid);
    }

    fn one_bad_batch_fails_the_whole_call(place: &Place) {
        let (log, _) = place.open();
        let mut sent = [batch(0, 1, 1), batch(1, 1, 1), batch(2, 1, 1)].concat();
        let one = batch(0, 1, 1).len();
        sent[one + 66] ^= 4;
        let error = log.append_as_follower(Epoch(1), sent).err().unwrap();
        assert!(matches!(error, AppendError::BadBatch { position, .. } if position == one), "{error}");
        assert_eq!(error.kind(), ErrorKind::Corrupt);
        assert_eq!(log.end_offset(), Offset(0));
    }

    fn gaps_overlaps_and_falling_epochs_are_refused(place: &Place) {
        let (log, _) = place.open();
        log.append_as_follower(Epoch(2), batch(0, 2, 2)).unwrap().ticket().unwrap().durable_blocking().unwrap();
        let error = log.append_as_follower(Epoch(2), batch(3, 2, 1)).err().unwrap();
        assert!(matches!(error, AppendError::Gap { given: Offset(3), end: Offset(2) }), "{error}");
        let error = log.append_as_follower(Epoch(2), batch(0, 2, 2)).err().unwrap();
        assert!(matches!(error, AppendError::Overlap { given: Offset(0), end: Offset(2) }), "{error}");
        let error = log.append_as_follower(Epoch(2), batch(2, 1, 1)).err().unwrap();
        assert!(matches!(error, AppendError::EpochGoesDown { .. }), "{error}");
        let inside = [batch(2, 2, 1), batch(4, 2, 1)].concat();
        let error = log.append_as_follower(Epoch(2), inside).err().unwrap();
        assert!(matches!(error, AppendError::Gap { given: Offset(4), end: Offset(3) }), "{error}");
        assert_eq!(log.end_offset(), Offset(2));
    }

    fn a_leader_that_follows_a_newer_epoch_leads_no_more(place: &Place) {
        let (log, _) = place.open();
        lead(&log, 1, 1);
        log.append_as_follower(Epoch(2), batch(1, 2, 1)).unwrap().ticket().unwrap().durable_blocking().unwrap();
        let error = log.append_as_leader(Epoch(1), batch(0, 1, 1)).err().unwrap();
        assert!(matches!(error, AppendError::WrongEpoch { begun: None, .. }), "{error}");
        lead(&log, 3, 0);
        append(&log, 3, 1).durable_blocking().unwrap();
    }
}
