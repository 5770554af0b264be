//! What the tests of the engine share: each test runs on every back end, in a directory of its own.
#![allow(dead_code, unused_imports, reason = "no test file uses all of it")]
#![allow(clippy::disallowed_methods, reason = "tests prepare files without the engine")]

mod answer;
mod batches;
pub(crate) mod faulty;
mod files;
mod place;

pub(crate) use batches::{NO_OP, append, batch, batch_at, big_batch, case, lead};
pub(crate) use place::{Client, Place};

use kraftlog_io::BackendChoice;
use kraftlog_io::sim::Latency;
use std::path::{Path, PathBuf};

/// Makes three tests of each function, one for each back end, in the modules `portable`, `uring` and `sim`.
///
/// `#[not_on_sim = "reason"]` is for what a simulated machine cannot have; the test is reported as ignored
/// there, for that reason. `tests/backends` counts them.
#[macro_export]
macro_rules! on_every_backend {
    ($($(#[not_on_sim = $reason:literal])? fn $name:ident($place:ident: &Place) $body:block)*) => {
        $(fn $name($place: &$crate::support::Place) $body)*

        mod portable {
            $(#[test]
            fn $name() {
                $crate::support::run_on(kraftlog_io::BackendChoice::Portable, super::$name);
            })*
        }

        mod uring {
            $(#[test]
            fn $name() {
                $crate::support::run_on(kraftlog_io::BackendChoice::Uring, super::$name);
            })*
        }

        mod sim {
            $(#[test]
            $(#[ignore = $reason])?
            fn $name() {
                $crate::support::run_on_sim(super::$name);
            })*
        }
    };
}

/// Runs a test on a back end of this machine. One that it lacks is said to be not run, in words that
/// `tests/backends` looks for, because the test harness knows no other answer than passed.
pub(crate) fn run_on(choice: BackendChoice, test: fn(&Place)) {
    match Place::new(choice) {
        Ok(place) => test(&place),
        Err(reason) => println!("not run: {choice:?} cannot be had: {reason}"),
    }
}

/// Runs a test on a simulated machine: once where operations take no time, so that others run between
/// two of them only, and once where they do, so that lanes and clients interleave.
pub(crate) fn run_on_sim(test: fn(&Place)) {
    let seed = seed();
    for latency in [Latency::None, Latency::Between(1, 200)] {
        println!("KRAFTLOG_SEED={seed}, latency {latency:?}");
        let place = Place::simulated(seed, latency);
        test(&place);
        place.run_until_idle();
    }
}

/// The seed of everything that chance decides in a test, from `KRAFTLOG_SEED`.
pub(crate) fn seed() -> u64 {
    std::env::var("KRAFTLOG_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(20_261_201)
}

/// An error with its causes.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        next = cause.source();
    }
    text
}

/// Where the files of real Kafkas are.
pub(crate) fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/fixtures")
}
