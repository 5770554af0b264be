//! Appending: tickets, groups, order, epochs, bounds.

#![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]
#![allow(clippy::disallowed_methods, reason = "the directory is prepared without the engine")]

mod support;

use kraftlog::{AppendError, Epoch, EpochError, ErrorKind, Isolation, LogConfig, Offset};
use support::{Client, append, batch, big_batch, lead};

on_every_backend! {
    fn what_was_acknowledged_is_there_after_a_restart(place: &Place) {
        let (log, _) = place.open();
        lead(&log, 1, 5);
        let ticket = append(&log, 1, 3);
        assert_eq!(ticket.offsets(), 5..=7);
        assert_eq!(ticket.durable_blocking().unwrap().last, Offset(7));
        assert_eq!((log.end_offset(), log.durable_end()), (Offset(8), Offset(8)));
        let report = log.close_blocking().unwrap();
        assert!(report.clean);
        assert_eq!(place.read_segment(0).len() as u64, report.segment_bytes);
        let (log, report) = place.open();
        assert!(report.is_quiet() || report.quorum_state_missing, "{report}");
        assert_eq!((log.end_offset(), log.durable_end(), log.last_epoch()), (Offset(8), Offset(8), Epoch(1)));
        assert_eq!(log.high_watermark(), Offset(0));
    }

    fn sixty_four_callers_share_syncs_and_keep_their_order(place: &Place) {
        let (log, _) = place.open();
        lead(&log, 1, 0);
        let callers = (0..64).map(|_| {
            let log = log.clone();
            Box::pin(async move {
                let mut last = -1;
                for _ in 0..20 {
                    let ticket = append(&log, 1, 2);
                    let first = *ticket.offsets().start();
                    assert!(first > last);
                    last = first;
                    let appended = ticket.durable().await.unwrap();
                    assert!(log.durable_end() > appended.last);
                }
            }) as Client
        });
        place.together(callers.collect());
        assert_eq!(log.end_offset(), Offset(64 * 20 * 2));
        assert_eq!(log.metrics().batches_appended(), 64 * 20);
        assert!(log.metrics().groups_committed() <= 64 * 20);
        let fetched = log.read_blocking(Offset(0), Isolation::Uncommitted, usize::MAX).unwrap();
        assert_eq!(fetched.next, Offset(64 * 20 * 2));
    }

    fn tickets_resolve_in_the_order_of_the_calls(place: &Place) {
        let (log, _) = place.open();
        lead(&log, 1, 0);
        let tickets: Vec<_> = (0..200).map(|_| append(&log, 1, 1)).collect();
        tickets[199].durable_blocking().unwrap();
        assert!(tickets.iter().all(kraftlog::Ticket::is_settled));
    }

    fn a_dropped_ticket_changes_nothing(place: &Place) {
        let (log, _) = place.open();
        lead(&log, 1, 0);
        for _ in 0..10 {
            drop(append(&log, 1, 1));
        }
        log.flush_blocking().unwrap();
        assert_eq!(log.durable_end(), Offset(10));
    }

    fn only_a_begun_epoch_can_be_appended_to(place: &Place) {
        let (log, _) = place.open();
        let error = log.append_as_leader(Epoch(1), batch(0, 1, 1)).err().unwrap();
        assert!(matches!(error, AppendError::WrongEpoch { given: Epoch(1), begun: None }), "{error}");
        lead(&log, 3, 1);
        let error = log.append_as_leader(Epoch(2), batch(0, 2, 1)).err().unwrap();
        assert_eq!(error.kind(), ErrorKind::Refused);
        for epoch in [0, 2, 3] {
            let error = log.initialize_leader_epoch_blocking(Epoch(epoch)).unwrap_err();
            assert!(matches!(error, EpochError::NotAbove { last: Epoch(3), .. }), "{error}");
        }
        lead(&log, 4, 1);
        drop(log);
        place.settle();
        assert_eq!(
            place.read_text(&place.part().join("leader-epoch-checkpoint")),
            "0\n2\n3 0\n4 1\n"
        );
    }

    fn a_batch_that_is_none_is_refused(place: &Place) {
        let (log, _) = place.open();
        lead(&log, 1, 1);
        let mut bad = batch(0, 1, 1);
        bad[70] ^= 1;
        let cases = [
            (Vec::new(), ErrorKind::Invalid),
            (bad, ErrorKind::Corrupt),
            (batch(0, 1, 1)[..60].to_vec(), ErrorKind::Corrupt),
            ([batch(0, 1, 1), batch(1, 1, 1)].concat(), ErrorKind::Corrupt),
        ];
        for (bytes, kind) in cases {
            assert_eq!(log.append_as_leader(Epoch(1), bytes).err().unwrap().kind(), kind);
        }
        assert_eq!(append(&log, 1, 1).offsets(), 1..=1);
    }

    fn own_offsets_must_fit_the_end(place: &Place) {
        let (log, _) = place.open();
        log.append_at(Offset(0), Epoch(5), batch(9, 1, 2)).unwrap().durable_blocking().unwrap();
        let error = log.append_at(Offset(3), Epoch(5), batch(0, 1, 1)).err().unwrap();
        assert!(matches!(error, AppendError::Gap { given: Offset(3), end: Offset(2) }), "{error}");
        let error = log.append_at(Offset(1), Epoch(5), batch(0, 1, 1)).err().unwrap();
        assert!(matches!(error, AppendError::Overlap { given: Offset(1), end: Offset(2) }), "{error}");
        let error = log.append_at(Offset(2), Epoch(4), batch(0, 1, 1)).err().unwrap();
        assert!(matches!(error, AppendError::EpochGoesDown { last: Epoch(5), .. }), "{error}");
        log.append_at(Offset(2), Epoch(6), batch(0, 1, 1)).unwrap().durable_blocking().unwrap();
        assert_eq!(log.last_epoch(), Epoch(6));
    }

    fn a_full_queue_says_so_and_a_permit_waits(place: &Place) {
        let mut config = LogConfig::default();
        config.queue_bytes_max = 3000;
        let (log, _) = place.open_with(config);
        lead(&log, 1, 0);
        let permit = log.reserve_blocking(2990);
        let error = log.append_as_leader(Epoch(1), batch(0, 1, 1)).err().unwrap();
        assert!(matches!(error, AppendError::QueueFull { waiting: 2990, limit: 3000 }), "{error}");
        assert_eq!(error.kind(), ErrorKind::Retry);
        let (waiting, appending) = (log.clone(), log.clone());
        place.together(vec![
            Box::pin(async move { assert_eq!(waiting.reserve(500).await.bytes(), 500) }),
            Box::pin(async move {
                let ticket = appending.try_append(permit, Epoch(1), big_batch(0, 1, 2800)).unwrap();
                ticket.durable().await.unwrap();
            }),
        ]);
        append(&log, 1, 1).durable_blocking().unwrap();
    }

    fn a_closed_log_takes_nothing_more(place: &Place) {
        let (log, _) = place.open();
        lead(&log, 1, 1);
        let clone = log.clone();
        log.close_blocking().unwrap();
        assert_eq!(clone.append_as_leader(Epoch(1), batch(0, 1, 1)).err().unwrap().kind(), ErrorKind::Fenced);
        assert!(clone.flush_blocking().is_err());
        assert!(clone.quorum_state().read_blocking().is_err());
    }

    fn a_drop_drains_and_the_next_open_waits_for_it(place: &Place) {
        for round in 1..=5 {
            let (log, report) = place.open();
            assert!(report.torn_tail.is_none(), "{report}");
            assert_eq!(log.end_offset(), Offset((round - 1) * 50));
            lead(&log, i32::try_from(round).unwrap(), 0);
            for _ in 0..50 {
                drop(append(&log, i32::try_from(round).unwrap(), 1));
            }
        }
    }

    fn a_watcher_sees_the_end_before_and_with_durability(place: &Place) {
        let (log, _) = place.open();
        lead(&log, 1, 0);
        let mut watch = log.watch();
        let ticket = append(&log, 1, 1);
        let seen = place.run(async {
            loop {
                let ends = watch.changed().await.unwrap();
                assert!(ends.durable_end <= ends.end);
                if ends.durable_end == Offset(1) {
                    break ends;
                }
            }
        });
        assert_eq!(seen.end, Offset(1));
        ticket.durable_blocking().unwrap();
        log.update_high_watermark(Offset(1)).unwrap();
        assert_eq!(place.run(watch.changed()).unwrap().high_watermark, Offset(1));
        assert!(log.update_high_watermark(Offset(2)).is_err());
        log.update_high_watermark(Offset(0)).unwrap();
        assert_eq!(log.high_watermark(), Offset(1));
    }

    fn futures_are_send_and_belong_to_no_runtime(place: &Place) {
        fn send<T: Send>(value: T) -> T { value }
        let (log, _) = place.open();
        place.run(send(log.initialize_leader_epoch(Epoch(1)))).unwrap();
        let ticket = append(&log, 1, 1);
        place.run(send(ticket.durable())).unwrap();
        place.run(send(log.read(Offset(0), Isolation::Uncommitted, 1))).unwrap();
        place.run(send(log.close())).unwrap();
    }
}
