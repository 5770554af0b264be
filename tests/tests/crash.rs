//! What `cargo test` explores of crashes: every operation alone, every step of it failed in every way, every
//! story of an identity, and a few random histories. Pairs, threes and the planted mistakes are the
//! `crash` binary's.

use kraftlog_tests::crash::exhaustive::{self, Bounds, Scenario};
use kraftlog_tests::crash::identity::{self, STORIES};
use kraftlog_tests::crash::{Tally, Violation, faults, random};

fn held(what: &str, tally: &Tally, violation: Option<Violation>) {
    println!("{what}: {tally}");
    if let Some(violation) = violation {
        let at = std::env::temp_dir().join(format!("kraftlog-violation-{}", std::process::id()));
        let saved = violation.save(&at).is_ok();
        panic!("{violation}\n  the directory as it was found: {} ({saved})", at.display());
    }
    assert!(tally.images > 0, "nothing was explored");
}

#[test]
fn every_operation_alone_survives_a_power_cut_before_every_step() {
    let scenarios: Vec<Scenario> = (0..=1).flat_map(Scenario::all).collect();
    let (tally, violation) = exhaustive::explore_all(&scenarios, Bounds::default(), 2, &|| false);
    held("operations alone", &tally, violation);
}

#[test]
fn every_operation_survives_the_failure_of_every_step() {
    let mut tally = Tally::default();
    let violation = Scenario::all(1).iter().find_map(|scenario| faults::explore(scenario, None, &mut tally));
    held("failed steps", &tally, violation);
}

#[test]
fn an_identity_is_whole_or_not_there_and_never_changes() {
    let mut tally = Tally::default();
    let violation = (0..STORIES.len()).find_map(|story| identity::explore(story, None, &mut tally));
    held("identities", &tally, violation);
}

#[test]
fn random_histories_keep_what_was_acknowledged() {
    let seed = std::env::var("KRAFTLOG_SEED").ok().and_then(|text| text.parse().ok());
    let seed = seed.unwrap_or_else(|| u64::from(std::process::id()));
    println!("seed {seed} (set KRAFTLOG_SEED to repeat it)");
    let mut tally = Tally::default();
    let violation = (0..20).find_map(|history| random::history(seed, history, &mut tally));
    held("random histories", &tally, violation);
}
