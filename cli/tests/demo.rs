//! `kraftlog demo`: on every back end that this machine has, and where it must not work.
#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "tests prepare files and fail loudly")]

mod support;

use support::Place;

#[test]
fn every_check_holds_on_every_back_end() {
    for backend in ["portable", "uring", "auto"] {
        let place = Place::new("");
        let ran: support::Ran = place
            .command(&["demo", "--records", "5000", "--tasks", "16", "--output", "json"])
            .env("KRAFTLOG_IO", backend)
            .env("TMPDIR", place.root.path())
            .output()
            .unwrap()
            .into();
        if backend == "uring" && ran.err.contains("io_uring") && ran.code == 3 {
            println!("not run: {}", ran.err);
            continue;
        }
        assert_eq!(ran.code, 0, "{backend}: {}{}", ran.out, ran.err);
        let report: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
        assert_eq!(report["ok"], true, "{report}");
        let names: Vec<&str> =
            report["steps"].as_array().unwrap().iter().map(|step| step["name"].as_str().unwrap()).collect();
        assert_eq!(names, ["format", "open", "lead", "append", "freeze", "kill", "recover", "load", "close"]);
        assert!(report["steps"][5]["acknowledged"].as_u64().unwrap() >= 100, "{report}");
        assert_eq!(report["steps"][6]["missing"], 0, "{report}");
        assert!(!place.tree().keys().any(|name| name.starts_with("kraftlog-demo-")), "files are left");
    }
}

#[test]
fn a_directory_given_is_kept_and_one_with_content_refused() {
    let place = Place::new("");
    let args = ["demo", "--records", "1000", "--tasks", "4", "--dir", "here"];
    let ran = place.run(&args);
    assert_eq!(ran.code, 0, "{}{}", ran.out, ran.err);
    assert!(ran.out.ends_with("The directory stays: try `kraftlog dump here`.\n"), "{}", ran.out);
    assert!(place.path("here/__cluster_metadata-0/00000000000000000000.log").exists());
    let before = place.tree();
    let ran = place.run(&args);
    assert_eq!(ran.code, 5, "{}", ran.err);
    assert!(ran.err.starts_with("here is not empty"), "{}", ran.err);
    assert_eq!(place.tree(), before);
    assert_eq!(place.run(&["demo", "--records", "x"]).code, 2, "usage");
}

/// "The disk was full, and the demo left a half-made directory behind."
#[test]
fn a_disk_that_is_full_from_the_first_write_on_is_told_and_nothing_is_left() {
    let place = Place::new("");
    let before = place.tree();
    let ran: support::Ran = std::process::Command::new("sh")
        .args(["-c", "trap '' XFSZ; ulimit -f 0; exec \"$0\" demo --dir here"])
        .arg(env!("CARGO_BIN_EXE_kraftlog"))
        .env("KRAFTLOG_IO", "portable")
        .current_dir(place.root.path())
        .output()
        .unwrap()
        .into();
    assert_eq!(ran.code, 3, "{}{}", ran.out, ran.err);
    assert!(
        ran.err.contains("could not write here/") && ran.err.contains("free some space there"),
        "{}",
        ran.err
    );
    assert_eq!(place.tree(), before, "something is left");
}
