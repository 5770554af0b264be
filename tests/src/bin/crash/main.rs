//! Crashes simulated nodes and says what is lost.
//!
//! ```text
//! crash [--seed N] [--seconds N] [--threads N] [--save DIR]   single operations and pairs, then random histories
//! crash --exhaustive                                    threes as well, however long it takes
//! crash --planted                                       every planted mistake must be found (feature `planted`)
//! crash --scenario NAME [--faults]                      one scenario, as a violation names it
//! crash --identity N                                    one story of format and start, likewise
//! crash --seed N --history N                            one random history, likewise
//! ... --trace                                           tells every step of it
//! ```
//!
//! Exit code 0: no violation (with `--planted`: every mistake was found); 1 otherwise; 2: usage.

use kraftlog_tests::crash::exhaustive::{self, Bounds, Scenario};
use kraftlog_tests::crash::{Tally, Violation, faults, identity, plants, random};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

struct Args {
    seed: u64,
    seconds: u64,
    threads: usize,
    exhaustive: bool,
    planted: bool,
    faults: bool,
    scenario: Option<Scenario>,
    history: Option<u64>,
    identity: Option<usize>,
    save: PathBuf,
}

fn main() -> ExitCode {
    let args = match parse(std::env::args().skip(1)) {
        Ok(args) => args,
        Err(message) => {
            eprintln!(
                "{message}\nusage: crash [--seed N] [--seconds N] [--threads N] [--save DIR] [--exhaustive | --planted | --scenario NAME [--faults] | --identity N | --history N]"
            );
            return ExitCode::from(2);
        }
    };
    // What panics inside of a simulated machine is a violation and told as one.
    std::panic::set_hook(Box::new(|_| {}));
    if args.planted {
        return planted();
    }
    let mut tally = Tally::default();
    let violation = if let Some(scenario) = &args.scenario {
        match args.faults {
            true => faults::explore(scenario, None, &mut tally),
            false => exhaustive::explore(scenario, Bounds::default(), None, &mut tally),
        }
    } else if let Some(story) = args.identity {
        identity::explore(story, None, &mut tally)
    } else if let Some(history) = args.history {
        random::history(args.seed, history, &mut tally)
    } else {
        explore(&args, &mut tally)
    };
    println!("{tally}");
    match violation {
        None => {
            println!("no violation");
            ExitCode::SUCCESS
        }
        Some(violation) => {
            println!("{violation}");
            match violation.save(&args.save) {
                Ok(()) => println!("  the directory as it was found: {}", args.save.display()),
                Err(error) => {
                    println!("  the directory could not be saved to {}: {error}", args.save.display())
                }
            }
            ExitCode::FAILURE
        }
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "how long to search is the caller's wall clock, no part of what is found"
)]
fn now() -> Instant {
    Instant::now()
}

/// Singles, pairs, faults, threes by seed, then random histories for what is left of the time.
fn explore(args: &Args, tally: &mut Tally) -> Option<Violation> {
    // What is countable is done whole, however long it takes; the random part gets what is left of the
    // time, and a tenth of it in any case.
    let begun = now();
    let late = || false;
    let say = |what: &str, tally: &Tally| eprintln!("{:>4} s  {what}: {tally}", begun.elapsed().as_secs());
    let small: Vec<Scenario> = (0..=2).flat_map(Scenario::all).collect();
    let (tried, mut violation) = exhaustive::explore_all(&small, Bounds::default(), args.threads, &late);
    tally.add(tried);
    say("operations alone and in pairs", tally);
    if violation.is_none() {
        violation = on_threads(args, tally, &late, |at, tally| {
            let scenario = Scenario::all(1).into_iter().nth(usize::try_from(at).ok()?)?;
            Some(faults::explore(&scenario, None, tally))
        });
        say("every step fails in every way", tally);
    }
    if violation.is_none() {
        violation = on_threads(args, tally, &late, |at, tally| {
            let story = usize::try_from(at).ok().filter(|story| *story < identity::STORIES.len())?;
            Some(identity::explore(story, None, tally))
        });
        say("format, start, learning the cluster id", tally);
    }
    if violation.is_none() && args.exhaustive {
        let (tried, found) =
            exhaustive::explore_all(&Scenario::all(3), Bounds::default(), args.threads, &late);
        tally.add(tried);
        violation = found;
        say("threes", tally);
    }
    if violation.is_none() {
        let threes = Scenario::all(3);
        let asked = Duration::from_secs(args.seconds);
        let end = (begun + asked).max(now() + asked / 10);
        let late = || now() >= end;
        violation = on_threads(args, tally, &late, |at, tally| {
            // A three, chosen by the seed, for every eight histories.
            if at % 8 == 7 {
                let mut rng = fastrand::Rng::with_seed(args.seed.wrapping_add(at));
                let scenario = &threes[rng.usize(..threes.len())];
                let found = exhaustive::explore(
                    scenario,
                    Bounds { crashes_max: 16, ..Bounds::default() },
                    None,
                    tally,
                );
                return Some(found);
            }
            Some(random::history(args.seed, at, tally))
        });
        say("random histories and threes", tally);
    }
    violation
}

/// Calls `work` with 0, 1, 2... on several threads, until it says that there is no more, finds
/// something, or it is late. Of several violations the one with the lowest number is given.
fn on_threads(
    args: &Args,
    tally: &mut Tally,
    late: &(dyn Fn() -> bool + Sync),
    work: impl Fn(u64, &mut Tally) -> Option<Option<Violation>> + Sync,
) -> Option<Violation> {
    let (next, stop) = (AtomicU64::new(0), AtomicBool::new(false));
    let outcome: Mutex<(Tally, Option<(u64, Violation)>)> = Mutex::default();
    std::thread::scope(|scope| {
        for _ in 0..args.threads {
            scope.spawn(|| {
                let mut tally = Tally::default();
                let mut found = None;
                while found.is_none() && !stop.load(Ordering::SeqCst) && !late() {
                    let at = next.fetch_add(1, Ordering::SeqCst);
                    let Some(outcome) = work(at, &mut tally) else { break };
                    found = outcome.map(|violation| (at, violation));
                    stop.fetch_or(found.is_some(), Ordering::SeqCst);
                }
                let mut outcome = outcome.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
                outcome.0.add(tally);
                if let Some((at, violation)) = found
                    && outcome.1.as_ref().is_none_or(|(first, _)| at < *first)
                {
                    outcome.1 = Some((at, violation));
                }
            });
        }
    });
    let (tried, violation) = outcome.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    tally.add(tried);
    violation.map(|(_, violation)| violation)
}

/// Every planted mistake, with what found it.
fn planted() -> ExitCode {
    if !cfg!(feature = "planted") {
        eprintln!(
            "this build has nothing planted: cargo run --release -p kraftlog-tests --features planted --bin crash -- --planted"
        );
        return ExitCode::from(2);
    }
    let mut missed = 0;
    for (name, mistake) in plants::MISTAKES {
        let mut tally = Tally::default();
        let begun = now();
        let found = plants::find(mistake, &mut tally);
        let seconds = begun.elapsed().as_secs_f32();
        match found {
            Some(violation) => {
                println!(
                    "found   {name}: {} ({seconds:.1} s, {tally}; crash {})",
                    violation.what, violation.replay
                );
            }
            None => {
                missed += 1;
                println!("MISSED  {name} ({seconds:.1} s, {tally})");
            }
        }
    }
    println!("{} mistakes, {missed} missed", plants::MISTAKES.len());
    if missed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn parse(mut words: impl Iterator<Item = String>) -> Result<Args, String> {
    let mut args = Args {
        seed: 1,
        seconds: 60,
        threads: std::thread::available_parallelism().map_or(1, usize::from),
        exhaustive: false,
        planted: false,
        faults: false,
        scenario: None,
        history: None,
        identity: None,
        save: PathBuf::from("target/crash-violation"),
    };
    while let Some(word) = words.next() {
        let mut value = || words.next().ok_or(format!("{word} needs a value"));
        let number = |text: String| text.parse::<u64>().map_err(|error| format!("{text}: {error}"));
        match word.as_str() {
            "--seed" => args.seed = number(value()?)?,
            "--seconds" => args.seconds = number(value()?)?,
            "--threads" => args.threads = usize::try_from(number(value()?)?.max(1)).unwrap_or(1),
            "--identity" => {
                let story = usize::try_from(number(value()?)?).ok();
                let known = story.filter(|story| *story < identity::STORIES.len());
                args.identity = Some(known.ok_or(format!("there are {} stories", identity::STORIES.len()))?);
            }
            "--history" => args.history = Some(number(value()?)?),
            "--scenario" => {
                let name = value()?;
                args.scenario = Some(Scenario::named(&name).ok_or(format!("there is no scenario {name}"))?);
            }
            "--save" => args.save = PathBuf::from(value()?),
            "--exhaustive" => args.exhaustive = true,
            "--trace" => kraftlog_tests::crash::trace(),
            "--planted" => args.planted = true,
            "--faults" => args.faults = true,
            other => return Err(format!("unknown argument {other}")),
        }
    }
    Ok(args)
}
