use super::*;
use BackendChoice::{Auto, Portable, Uring};

/// The report for a directory on a file system where `Auto` wants io_uring, if the probe ends so.
fn decided(probed: Result<Backend, Trouble>) -> (Backend, String) {
    let at = FileSystem { magic: 1, name: "goodfs", uring_gains: Some(true) };
    decide(at, || Ok(()), || probed)
}

#[test]
fn auto_falls_back_to_portable_and_tells_every_reason() {
    for (refusal, words) in [
        (UringRefusal::NotBuilt, "feature `uring`"),
        (UringRefusal::Forbidden, "kernel.io_uring_disabled"),
        (UringRefusal::NoKernelSupport, "kernel has no io_uring"),
        (UringRefusal::NoMemory, "ulimit -l"),
        (UringRefusal::TooOld, "Linux 5.6"),
        (UringRefusal::Silent, "does not answer"),
        (UringRefusal::TimedOut { seconds: 10 }, "10 seconds"),
        (UringRefusal::Failed(Arc::new(io::Error::other("odd"))), "odd"),
    ] {
        let (backend, reason) = decided(Err(Trouble::Refused(refusal)));
        assert_eq!(backend, Backend::Portable);
        assert!(reason.contains(words), "{reason:?} does not say {words:?}");
    }
}

#[test]
fn auto_opens_also_where_the_probe_met_a_full_disk() {
    let full = IoError::new(Op::Write, "/d/kraftlog.probe", Errno::NOSPC);
    let (backend, reason) = decided(Err(Trouble::Disk(full)));
    assert_eq!(backend, Backend::Portable);
    assert!(reason.contains("could not write /d/kraftlog.probe: No space left"), "{reason:?}");
}

#[test]
fn auto_probes_no_file_where_a_ring_is_not_worth_it() {
    for uring_gains in [Some(false), None] {
        let at = FileSystem { magic: 1, name: "slowfs", uring_gains };
        let (backend, reason) = decide(at, || Ok(()), || panic!("probed"));
        assert_eq!(backend, Backend::Portable);
        assert!(reason.contains("slowfs") && !reason.contains("forbidden"), "{reason:?}");
    }
}

/// Seen by a user in a container: `auto` said that io_uring gains nothing on ext4, and only an explicit
/// `uring` told him that the container forbids it.
#[test]
fn auto_says_that_io_uring_is_forbidden_also_where_it_would_gain_nothing() {
    for uring_gains in [Some(false), None, Some(true)] {
        let at = FileSystem { magic: 1, name: "somefs", uring_gains };
        let (backend, reason) = decide(at, || Err(UringRefusal::Forbidden), || panic!("probed"));
        assert_eq!(backend, Backend::Portable);
        assert!(reason.contains("io_uring is forbidden here"), "{reason:?}");
        assert_eq!(reason.contains("somefs"), uring_gains != Some(true), "{reason:?}");
    }
}

#[test]
fn the_environment_names_a_back_end_or_is_refused_with_its_value() {
    let parse = |value: &str| BackendChoice::parse_or(Some(value.into()), Portable);
    assert_eq!(BackendChoice::parse_or(None, Uring).unwrap(), Uring);
    assert_eq!(parse("").unwrap(), Portable);
    assert_eq!(parse("auto").unwrap(), Auto);
    assert_eq!(parse("portable").unwrap(), Portable);
    assert_eq!(parse("uring").unwrap(), Uring);
    for wrong in ["URING", "io_uring", " uring"] {
        let error = parse(wrong).unwrap_err().to_string();
        assert!(error.contains(&format!("`{wrong}`")) && error.contains("KRAFTLOG_IO"), "{error}");
    }
}

#[test]
fn each_file_system_stands_once_in_the_table() {
    let mut seen = std::collections::BTreeSet::new();
    for row in FILE_SYSTEMS {
        assert!(seen.insert(row.magic), "{} stands twice", row.name);
    }
}

mod ring {
    use super::*;
    #[test]
    fn refusals_of_the_kernel_have_their_reason_and_errors_of_the_disk_are_none() {
        let refusal = |errno: Errno| UringRefusal::from_operation(&errno.into());
        assert!(matches!(refusal(Errno::PERM), Some(UringRefusal::Forbidden)));
        assert!(matches!(refusal(Errno::NOSYS), Some(UringRefusal::NoKernelSupport)));
        assert!(matches!(refusal(Errno::NOMEM), Some(UringRefusal::NoMemory)));
        assert!(matches!(refusal(Errno::INVAL), Some(UringRefusal::TooOld)));
        assert!(refusal(Errno::NOSPC).is_none());
        assert!(refusal(Errno::IO).is_none());
        assert!(matches!(UringRefusal::from_start(Errno::MFILE.into()), UringRefusal::Failed(_)));
    }

    #[test]
    fn a_probe_leaves_nothing_behind_and_takes_no_left_over_for_an_obstacle() {
        let dir = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink("/nowhere", dir.path().join(PROBE_FILE)).unwrap();
        match choose(dir.path(), Uring) {
            Ok((backend, _)) => assert_eq!(backend, Backend::Uring),
            Err(BackendError::Unsupported { reason }) => {
                println!("not run: {reason}");
                return;
            }
            Err(error) => panic!("{error:?}"),
        }
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    }

    #[test]
    fn probes_in_one_directory_at_one_time_do_not_trip_over_each_other() {
        let dir = tempfile::tempdir().unwrap();
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| match choose(dir.path(), Uring) {
                    Ok(_) => {}
                    Err(BackendError::Unsupported { reason }) => println!("not run: {reason}"),
                    Err(error) => panic!("{error:?}"),
                });
            }
        });
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_probe_in_a_directory_that_is_gone_is_an_error_with_the_path() {
        let dir = tempfile::tempdir().unwrap();
        let gone = dir.path().join("gone");
        match choose(&gone, Uring) {
            Err(BackendError::Io(error)) => {
                assert_eq!(error.path, gone.join(PROBE_FILE));
                assert_eq!(error.kind(), crate::IoErrorKind::NotFound);
            }
            Err(BackendError::Unsupported { reason }) => println!("not run: {reason}"),
            other => panic!("{other:?}"),
        }
        match choose(&gone, Auto) {
            Err(BackendError::Io(error)) => assert_eq!(error.path, gone),
            other => panic!("{other:?}"),
        }
    }
}
