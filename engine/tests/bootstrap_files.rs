//! The files of bootstrap records: the four cases (B-74, field cases C-19, C-41, C-47), and the
//! transaction that a real Kafka made of them.
#![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]

mod support;

use kraftlog::bootstrap::{
    ActivationError, Bootstrap, BootstrapError, BootstrapSource, FileFault, ReplayedState, activate,
};
use kraftlog_codecs::features::MetadataVersion;
use kraftlog_codecs::metadata::MetadataRecord;
use std::path::PathBuf;
use support::{Place, case, fixtures};

fn find(
    place: &Place,
    legacy: Option<&[u8]>,
    zero: Option<&[u8]>,
) -> (PathBuf, Result<Bootstrap, BootstrapError>) {
    let place = place.another();
    if let Some(bytes) = legacy {
        place.write(&place.path().join("bootstrap.checkpoint"), bytes);
    }
    if let Some(bytes) = zero {
        place.write(&place.part().join("00000000000000000000-0000000000.checkpoint"), bytes);
    }
    (place.path().to_path_buf(), find_in(&place))
}

fn find_in(place: &Place) -> Result<Bootstrap, BootstrapError> {
    let dir = place.path().to_path_buf();
    place.on_disk(|disk| async move { Bootstrap::find(&*disk, &dir).await })
}

on_every_backend! {
    fn the_zero_checkpoint_wins_if_it_has_records_and_the_legacy_file_counts_without(place: &Place) {
        let (zero, control_only, legacy) =
            (case("fx-zero-checkpoint.hex"), case("zero-control-only.hex"), case("bootstrap-mv20.hex"));
        let level = |bootstrap: &Bootstrap| bootstrap.metadata_version().0;

        for zero in [None, Some(control_only.as_slice())] {
            let (dir, found) = find(place, Some(&legacy), zero);
            let found = found.unwrap();
            assert_eq!(level(&found), 20);
            assert_eq!(found.source(), &BootstrapSource::Legacy(dir.join("bootstrap.checkpoint")));
            assert!(found.warning().is_none());
        }
        let found = find(place, None, Some(&zero)).1.unwrap();
        assert_eq!((level(&found), found.source()), (21, &BootstrapSource::ZeroCheckpoint));
        assert!(found.warning().is_none());
        let found = find(place, Some(&legacy), Some(&zero)).1.unwrap();
        assert_eq!((level(&found), found.source()), (21, &BootstrapSource::ZeroCheckpoint));
        let warning = found.warning().unwrap().to_string();
        assert!(warning.contains("bootstrap.checkpoint is ignored"), "{warning}");
        for zero in [None, Some(control_only.as_slice())] {
            let found = find(place, None, zero).1.unwrap();
            assert_eq!((level(&found), found.source()), (33, &BootstrapSource::Default));
        }
    }

    fn a_broken_legacy_file_is_not_looked_into_when_the_zero_checkpoint_has_records(place: &Place) {
        let found = find(place, Some(b"garbage"), Some(&case("fx-zero-checkpoint.hex"))).1.unwrap();
        assert_eq!(found.metadata_version().0, 21);
    }

    fn damaged_files_are_refused_with_the_fault(place: &Place) {
        let whole = case("fx-snapshot-4-2.hex");
        let fault = |result: (PathBuf, Result<Bootstrap, BootstrapError>)| match result.1 {
            Err(BootstrapError::Invalid { fault, .. }) => fault,
            other => panic!("{other:?}"),
        };
        // As a zero checkpoint everything must be there.
        assert_eq!(fault(find(place, None, Some(&whole[..174]))), FileFault::NoFooter);
        assert!(matches!(fault(find(place, None, Some(&whole[..200]))), FileFault::Cut { .. }));
        assert_eq!(fault(find(place, None, Some(&whole[..83]))), FileFault::NoFooter);
        assert_eq!(fault(find(place, None, Some(&whole[83..]))), FileFault::NoHeader);
        let longer = [&whole[..], &[0]].concat();
        assert_eq!(fault(find(place, None, Some(&longer))), FileFault::BehindFooter);
        // In a legacy file header and footer may be missing, but nothing may be cut or changed.
        assert!(find(place, Some(&whole[..174]), None).1.is_ok());
        assert!(find(place, Some(&whole[83..]), None).1.is_ok());
        assert!(matches!(fault(find(place, Some(&whole[..200]), None)), FileFault::Cut { .. }));
        assert_eq!(fault(find(place, Some(&longer), None)), FileFault::BehindFooter);
        let mut flipped = whole.clone();
        flipped[170] ^= 1;
        assert!(matches!(fault(find(place, Some(&flipped), None)), FileFault::BadBatch { position: 83, .. }));
        assert_eq!(fault(find(place, Some(&[]), None)), FileFault::NoMetadataVersion);
        assert_eq!(fault(find(place, Some(&whole[..83]), None)), FileFault::NoMetadataVersion);
    }

    fn a_level_of_a_newer_build_is_read_and_refused_when_it_is_needed(place: &Place) {
        let found = find(place, None, Some(&case("zero-mv99.hex"))).1.unwrap();
        assert_eq!(found.metadata_version(), MetadataVersion(99));
        let error = activate(&ReplayedState::new(), &found, 1).unwrap_err();
        assert!(matches!(error, ActivationError::UnsupportedMetadataVersion { level: 99, .. }), "{error}");
        assert!(error.to_string().contains("newer build"), "{error}");
    }

    // The log of a controller that Kafka 4.4.0 formatted and ran begins with the transaction that we
    // would write from the same zero checkpoint.
    fn the_transaction_equals_the_one_that_kafka_wrote(place: &Place) {
        place.copy_in(&fixtures().join("formatted-4.4.0/standalone/data"));
        let bootstrap = find_in(place).unwrap();
        let activation = activate(&ReplayedState::new(), &bootstrap, 1).unwrap();
        assert_eq!(activation.writes.len(), 1);
        // B-78, from a run of 4.4.0: Begin, MV, elr, group, share, streams, transaction, Config, End.
        let texts: Vec<String> = activation.writes[0]
            .iter()
            .map(|value| match MetadataRecord::decode(value).unwrap().record {
                MetadataRecord::BeginTransaction(begin) => format!("begin {}", begin.name.unwrap()),
                MetadataRecord::FeatureLevel(f) => format!("{}={}", f.name, f.feature_level),
                MetadataRecord::Config(c) => {
                    format!("{} {:?} {}={}", c.resource_type, c.resource_name, c.name, c.value.unwrap())
                }
                MetadataRecord::EndTransaction(_) => "end".to_owned(),
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(
            texts,
            [
                "begin Bootstrap records",
                "metadata.version=33",
                "eligible.leader.replicas.version=1",
                "group.version=1",
                "share.version=2",
                "streams.version=1",
                "transaction.version=2",
                "4 \"\" min.insync.replicas=1",
                "end"
            ]
        );
        assert_eq!(
            activation.message,
            "Performing controller activation. The metadata log appears to be empty. Appending 6 bootstrap \
             record(s) in metadata transaction at metadata.version 4.4-IV2 from bootstrap source 'bootstrap'."
        );
    }
}
