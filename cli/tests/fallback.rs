//! Where io_uring cannot be had, `auto` works without it and says why; an explicit `uring` is refused.
#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "tests prepare files and fail loudly")]

mod support;

use kraftlog_tests::without_uring::{Obstacle, exec};
use std::os::unix::fs::PermissionsExt;
use std::process::Command;
use support::{Place, Ran};

/// Set for the process that puts up the obstacle and becomes the command: the obstacle's name.
const OBSTACLE: &str = "KRAFTLOG_TEST_OBSTACLE";
/// And the command's arguments, a line each.
const ARGUMENTS: &str = "KRAFTLOG_TEST_ARGUMENTS";
/// What it says before, behind the lines of the harness.
const BEGIN: &str = "\nthe command begins\n";
const NOT_RUN: i32 = 125;

/// Not a test by itself: the process that `run` starts.
#[test]
fn behind_an_obstacle() {
    use std::io::Write;

    let (Ok(name), Ok(arguments)) = (std::env::var(OBSTACLE), std::env::var(ARGUMENTS)) else { return };
    let mut out = std::io::stdout().lock();
    out.write_all(BEGIN.as_bytes()).and_then(|()| out.flush()).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_kraftlog"));
    command.args(arguments.lines()).env_remove(OBSTACLE).env_remove(ARGUMENTS);
    let error = exec(Obstacle::named(&name).unwrap(), &mut command).unwrap_err();
    eprintln!("not run: {name}: {error}");
    std::process::exit(NOT_RUN);
}

/// Runs the binary behind the obstacle; `None`, said aloud, where this machine has no such thing.
fn run(place: &Place, obstacle: Obstacle, backend: &str, args: &[&str]) -> Option<Ran> {
    let mut ran: Ran = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "behind_an_obstacle", "--nocapture"])
        .current_dir(place.root.path())
        .env(OBSTACLE, obstacle.name())
        .env(ARGUMENTS, args.join("\n"))
        .env("KRAFTLOG_IO", backend)
        .env("TMPDIR", place.root.path())
        .output()
        .unwrap()
        .into();
    if ran.code == NOT_RUN {
        println!("{}", ran.err);
        return None;
    }
    ran.out = ran.out.split_once(BEGIN).unwrap().1.to_owned();
    Some(ran)
}

/// A directory in which also another user may write.
fn place() -> Place {
    let place = Place::new(
        "process.roles=controller\nnode.id=1\nlisteners=CONTROLLER://localhost:9093\n\
        controller.listener.names=CONTROLLER\ncontroller.quorum.bootstrap.servers=localhost:9093\nlog.dirs=.\n",
    );
    std::fs::set_permissions(place.root.path(), std::fs::Permissions::from_mode(0o777)).unwrap();
    place
}

/// The obstacles that refuse a ring, and what is said of each.
const REFUSED: [(Obstacle, &str); 4] = [
    (Obstacle::Forbidden, "io_uring is forbidden here"),
    (Obstacle::NoKernelSupport, "this kernel has no io_uring"),
    (Obstacle::NoMemory, "there is no memory for a ring"),
    (Obstacle::Silent, "a ring can be made but does not answer"),
];

#[test]
fn the_demo_holds_behind_every_obstacle_and_tells_the_reason_in_text_and_json() {
    const DEMO: [&str; 5] = ["demo", "--records", "1000", "--tasks", "4"];

    for obstacle in Obstacle::ALL {
        let place = place();
        let Some(text) = run(&place, obstacle, "auto", &DEMO) else { continue };
        assert_eq!(text.code, 0, "{obstacle:?}: {}{}", text.out, text.err);
        let line = text.out.lines().find(|line| line.contains("back end")).unwrap();
        assert!(line.contains("portable (") || line.contains("uring (io_uring is faster"), "{line}");
        let json = run(&place, obstacle, "auto", &[&DEMO[..], &["--output", "json"]].concat()).unwrap();
        assert_eq!(json.code, 0, "{obstacle:?}: {}{}", json.out, json.err);
        let report: serde_json::Value = serde_json::from_str(&json.out).unwrap();
        let open = &report["steps"][1];
        assert_eq!(open["name"], "open");
        let reason = open["reason"].as_str().unwrap();
        assert!(line.contains(reason), "{line:?} and {reason:?} differ");
        if let Some((_, words)) = REFUSED.iter().find(|(refused, _)| *refused == obstacle) {
            assert!(reason.contains(words), "{obstacle:?}: {reason}");
            assert_eq!(open["backend"], "portable");
        }
        println!("{obstacle:?}: {reason}");
    }
}

#[test]
fn an_explicit_uring_is_refused_with_the_reason() {
    let timed_out = (Obstacle::SilentLinks, "did not end within 10 seconds");
    for (obstacle, words) in REFUSED.into_iter().chain([timed_out]) {
        let place = place();
        let args = ["demo", "--records", "1000", "--tasks", "4"];
        let Some(ran) = run(&place, obstacle, "uring", &args) else { continue };
        assert_eq!(ran.code, 3, "{obstacle:?}: {}{}", ran.out, ran.err);
        assert!(ran.err.contains("the io_uring back end cannot be had"), "{obstacle:?}: {}", ran.err);
        assert!(ran.err.contains(words), "{obstacle:?}: {}", ran.err);
    }
}

#[test]
fn info_tells_the_back_end_and_its_reason_and_writes_nothing() {
    for (obstacle, words) in REFUSED {
        let place = place();
        let before = place.tree();
        let Some(text) = run(&place, obstacle, "auto", &["info", "-c", "F"]) else { continue };
        assert!(text.err.contains(words), "{obstacle:?}: {}", text.err);
        let json = run(&place, obstacle, "auto", &["info", "-c", "F", "--output", "json"]).unwrap();
        let report: serde_json::Value = serde_json::from_str(&json.out).unwrap();
        assert_eq!(report["backend"]["backend"], "portable", "{report}");
        assert!(report["backend"]["reason"].as_str().unwrap().contains(words), "{report}");
        assert_eq!(place.tree(), before);
    }
}
