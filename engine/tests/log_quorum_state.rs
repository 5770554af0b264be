//! The vote, through the log's lane.

#![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]
#![allow(clippy::disallowed_methods, reason = "the directory is prepared without the engine")]

mod support;

use kraftlog::{Epoch, EpochError, ErrorKind, LogConfig, NodeId};
use kraftlog_codecs::quorum::{QuorumState, VersionData, Vote};
use kraftlog_codecs::uuid::Uuid;

fn voted(epoch: i32, id: Option<i32>) -> QuorumState {
    QuorumState {
        leader_id: None,
        leader_epoch: epoch,
        voted: id.map(|id| Vote { id, directory_id: Uuid([7; 16]) }),
        version_data: VersionData::V1,
    }
}

on_every_backend! {
    fn a_vote_is_durable_as_kafka_writes_it(place: &Place) {
        let (log, _) = place.open();
        assert_eq!(log.quorum_state().read_blocking().unwrap(), None);
        log.quorum_state().write_blocking(&voted(7, Some(3))).unwrap();
        let text = place.read_text(&place.part().join("quorum-state"));
        assert_eq!(
            text,
            r#"{"leaderId":-1,"leaderEpoch":7,"votedId":3,"votedDirectoryId":"BwcHBwcHBwcHBwcHBwcHBw","data_version":1}"#
        );
        drop(log);
        let (log, report) = place.open();
        assert!(report.is_quiet(), "{report}");
        assert_eq!(log.quorum_state().read_blocking().unwrap(), Some(voted(7, Some(3))));
    }

    fn a_vote_is_not_taken_back(place: &Place) {
        let (log, _) = place.open();
        let file = log.quorum_state();
        file.write_blocking(&voted(7, Some(3))).unwrap();
        for refused in [voted(6, None), voted(7, Some(2))] {
            assert_eq!(file.write_blocking(&refused).unwrap_err().kind(), ErrorKind::Refused);
        }
        assert_eq!(file.read_blocking().unwrap(), Some(voted(7, Some(3))));
        file.write_blocking(&voted(8, Some(2))).unwrap();
    }

    fn a_vote_is_not_forgotten_within_its_epoch(place: &Place) {
        // A node voted for 3 in epoch 7, wrote a state without the vote, and could vote for 2 in the same
        // epoch: two leaders of one epoch.
        let (log, _) = place.open();
        let file = log.quorum_state();
        file.write_blocking(&voted(7, Some(3))).unwrap();
        let error = file.write_blocking(&voted(7, None)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Refused);
        // With the leader of the epoch known no vote is given any more, and Kafka's version 0 drops it.
        file.write_blocking(&QuorumState { leader_id: Some(2), ..voted(7, None) }).unwrap();
    }

    fn an_epoch_led_before_a_restart_is_not_led_again(place: &Place) {
        let mut config = LogConfig::default();
        config.node_id = Some(NodeId(1));
        let (log, _) = place.open_with(config.clone());
        let leader = QuorumState { leader_id: Some(1), ..voted(5, None) };
        log.quorum_state().write_blocking(&leader).unwrap();
        log.initialize_leader_epoch_blocking(Epoch(5)).unwrap();
        drop(log);
        let (log, _) = place.open_with(config);
        let error = log.initialize_leader_epoch_blocking(Epoch(5)).unwrap_err();
        assert!(matches!(error, EpochError::LedBefore { led: Epoch(5), .. }), "{error}");
        log.initialize_leader_epoch_blocking(Epoch(6)).unwrap();
    }
}
