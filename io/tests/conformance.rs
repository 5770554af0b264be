//! Every back end shows the same behaviours. A back end or a behaviour that cannot be had here is
//! reported as not run, never as passed.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use kraftlog_io::conformance::{Outcome, behaviours};
use kraftlog_io::rt::block_on;
use kraftlog_io::sim::{FileSystem, Latency, Machine, SimDisk};
use kraftlog_io::{BackendChoice, BackendError, LaneFn, OpenHow, PortableDisk, ThreadRt, atomic};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;
use std::sync::mpsc::{TryRecvError, channel};
use std::time::Duration;

/// Runs the whole list on one back end, each behaviour on a lane of its own.
fn run(choice: BackendChoice, backend: &str) {
    let mut held = 0;
    for behaviour in behaviours() {
        let dir = tempfile::tempdir().unwrap();
        let rt = match ThreadRt::open(dir.path(), choice) {
            Ok((rt, report)) => {
                assert_eq!(report.backend, backend);
                rt
            }
            Err(BackendError::Unsupported { reason }) => {
                println!("not run: back end {backend}: {reason}");
                return;
            }
            Err(error) => panic!("{backend}: {error:?}"),
        };
        let (answer, answered) = channel();
        let (run, path) = (behaviour.run, dir.path().to_path_buf());
        rt.spawn_lane(
            "conformance",
            dir.path(),
            Box::new(move |disk| {
                Box::pin(async move {
                    let backend = disk.backend();
                    let _ = answer.send((backend, run(disk, path).await));
                })
            }),
        )
        .unwrap();
        match answered.recv() {
            Ok((on, Outcome::Held)) => {
                assert_eq!(on, backend);
                held += 1;
            }
            Ok((_, Outcome::NotRun(reason))) => println!("not run: {backend}: {}: {reason}", behaviour.name),
            Err(_) => panic!("{backend} does not hold: {} (its panic is above)", behaviour.name),
        }
    }
    println!("{backend}: {held} of {} behaviours held", behaviours().len());
}

#[test]
fn portable_shows_every_behaviour() {
    run(BackendChoice::Portable, "portable");
}

#[test]
fn uring_shows_every_behaviour() {
    run(BackendChoice::Uring, "uring");
}

#[test]
fn sim_shows_every_behaviour() {
    let mut held = 0;
    for file_system in [FileSystem::Weak, FileSystem::Ext4] {
        for latency in [Latency::None, Latency::Between(1, 50)] {
            for behaviour in behaviours() {
                let disk = SimDisk::new(file_system, 1);
                let dir = Path::new("/conformance");
                disk.make_dir(dir).unwrap();
                let machine = Machine::with_disk(disk, latency, 1);
                let (answer, answered) = channel();
                let run = behaviour.run;
                let lane: LaneFn = Box::new(move |disk| {
                    Box::pin(async move {
                        assert_eq!(disk.backend(), "sim");
                        let _ = answer.send(run(disk, dir.to_path_buf()).await);
                    })
                });
                machine.rt().spawn_lane("conformance", dir, lane).unwrap();
                machine.block_on(async {
                    // The lane is done when its sender is gone, also if it waits for the clock.
                    while answered.try_recv().map(|outcome| told(behaviour.name, outcome, &mut held))
                        == Err(TryRecvError::Empty)
                    {
                        machine.rt().sleep(Duration::from_millis(1)).await;
                    }
                });
            }
        }
    }
    println!("sim: {held} of {} behaviours held", 4 * behaviours().len());
    assert!(held >= 4 * (behaviours().len() - 2), "only {held} held");
}

fn told(name: &str, outcome: Outcome, held: &mut usize) {
    match outcome {
        Outcome::Held => *held += 1,
        Outcome::NotRun(reason) => println!("not run: sim: {name}: {reason}"),
    }
}

/// A disk cannot tell a mode, so this looks at the files themselves.
#[test]
fn files_have_the_mode_that_was_asked_for_whatever_was_left_over() {
    let dir = tempfile::tempdir().unwrap();
    let disk = PortableDisk::new();
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let path = dir.path().join("file");
    block_on(async {
        let left_over = atomic::temporary(&path);
        let file = disk.open(&left_over, OpenHow::CreateNew { mode: 0o640 }).await.unwrap();
        assert_eq!(mode(&left_over), 0o640);
        file.set_mode(0o400).await.unwrap();
        assert_eq!(mode(&left_over), 0o400);
        atomic::replace(&*disk, &path, b"content", 0o600).await.unwrap();
        assert_eq!(mode(&path), 0o600);
    });
}

/// Root may do everything, so the behaviours about permissions need another user.
#[test]
fn every_behaviour_holds_for_a_user_who_may_not_do_everything() {
    if !rustix::process::geteuid().is_root() {
        // The tests above ran as such a user.
        return;
    }
    const NOBODY: u32 = 65534;
    let exe = std::env::current_exe().unwrap();
    let home = tempfile::tempdir().unwrap();
    std::fs::set_permissions(home.path(), PermissionsExt::from_mode(0o777)).unwrap();
    // A copy, because a build directory below root's home is closed to others.
    let copy = home.path().join("conformance");
    std::fs::copy(&exe, &copy).unwrap();
    let output = Command::new(&copy)
        .args(["shows_every_behaviour", "--nocapture", "--test-threads=1"])
        .env("TMPDIR", home.path())
        .current_dir(home.path())
        .uid(NOBODY)
        .gid(NOBODY)
        .output();
    match output {
        Ok(output) => {
            let text = String::from_utf8_lossy(&output.stdout);
            println!("{text}");
            assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
            assert!(!text.contains("no mode keeps root out"), "the child still is root");
            assert!(text.contains("3 passed"), "the child ran something else: {text}");
        }
        Err(error) => println!("not run: the list as another user than root: {error}"),
    }
}
