//! The table of design goals: kraftlog beside the bare system calls, in one run, for each back end.
//!
//! `cargo bench -p kraftlog-benches --bench summary`; `benches/README.md` says how to read it. Without
//! the `--bench` that cargo passes (as under `cargo test --all-targets`) nothing is measured.

use kraftlog_benches::bare::{self, BareLog, Layout};
use kraftlog_benches::guard::{Guard, MOVED};
use kraftlog_benches::input::{self, Records};
use kraftlog_benches::pairs::{self, Pairs};
use kraftlog_benches::subject::{self, BACKENDS, Subject, Swapper};
use kraftlog_benches::{clients, place};
use kraftlog_io::BackendChoice;
use std::cell::RefCell;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Concurrent clients of the group commit.
const CLIENTS: usize = 64;
/// What a swap writes: the size of a `meta.properties`.
const SMALL_FILE: &[u8] = &[b'k'; 122];

/// What a ratio should be.
#[derive(Clone, Copy)]
enum Goal {
    AtMost(f64),
    AtLeast(f64),
    None,
}

/// How a row shows the two sides.
#[derive(Clone, Copy)]
enum Unit {
    /// Time of one operation; the ratio is our time to theirs.
    Time,
    /// Operations a second; the ratio is our rate to theirs.
    Rate,
    /// MB a second, at so many bytes an operation; the ratio is our rate to theirs.
    Bytes(u64),
}

fn main() {
    if !std::env::args().any(|argument| argument == "--bench") {
        println!("nothing measured: run `cargo bench -p kraftlog-benches --bench summary`");
        return;
    }
    let dir = place::fresh(env!("CARGO_TARGET_TMPDIR"));
    let base = dir.path();
    let mut table = Table { guard: Guard::new(base), moved: 0 };
    println!("files in {}", base.display());
    println!("guard: one bare 4 KiB sync takes {}", time(table.guard.last()));
    let backends: Vec<_> = BACKENDS
        .into_iter()
        .filter(|(name, choice)| match subject::refusal(base, *choice) {
            None => true,
            Some(reason) => {
                println!("{name}: skipped, {reason}");
                false
            }
        })
        .collect();
    Table::head();
    for &(name, choice) in &backends {
        one_client(&mut table, base, name, choice);
    }
    for &(name, choice) in &backends {
        many_clients(&mut table, base, name, choice);
    }
    for &(name, choice) in &backends {
        swaps(&mut table, base, name, choice);
    }
    checkpoints(&mut table, base, &backends);
    if table.moved > 0 {
        println!("{} rows are marked: their guard moved by more than {MOVED}; run again", table.moved);
    }
}

fn one_client(table: &mut Table, base: &Path, backend: &str, choice: BackendChoice) {
    let is_uring = choice == BackendChoice::Uring;
    let goals = [(512, if is_uring { 1.55 } else { 1.15 }), (4096, if is_uring { 1.4 } else { 1.15 })];
    for (bytes, goal) in goals {
        let what = format!("append {bytes} B, 1 client, same layout");
        let pairs = table.guarded(|| appends(base, choice, Layout::Extended, bytes, 16, 100));
        table.row(&what, backend, pairs, Unit::Time, Goal::AtMost(goal));
    }
    for (bytes, goal) in [(512, 0.75), (4096, 0.9)] {
        let what = format!("append {bytes} B, 1 client, to a growing file");
        let pairs = table.guarded(|| appends(base, choice, Layout::Growing, bytes, 16, 100));
        // The goal is for what `Auto` takes on such a file system.
        let goal = if is_uring { Goal::None } else { Goal::AtMost(goal) };
        table.row(&what, backend, pairs, Unit::Time, goal);
    }
    for (bytes, burst, rounds) in [(1 << 20, 4, 24), (8 << 20, 1, 16)] {
        let what = format!("append {} MiB, 1 client, same layout", bytes >> 20);
        let pairs = table.guarded(|| appends(base, choice, Layout::Extended, bytes, burst, rounds));
        table.row(&what, backend, pairs, Unit::Bytes(bytes as u64), Goal::AtLeast(0.9));
    }
}

/// Our default layout against a bare file of `layout`.
fn appends(
    base: &Path,
    choice: BackendChoice,
    layout: Layout,
    bytes: usize,
    burst: usize,
    rounds: usize,
) -> Pairs {
    let batch = input::batch_of(bytes);
    let dir = place::must(tempfile::tempdir_in(base), base);
    let ours = Subject::create(dir.path(), "ours", choice, Layout::Extended);
    let mut bare = BareLog::create(&dir.path().join("bare"), layout);
    let pairs = pairs::alternate(
        rounds,
        || vec![batch.clone(); burst],
        |batches| {
            batches.into_iter().for_each(|batch| ours.append_durably(batch));
            burst
        },
        || {
            (0..burst).for_each(|_| bare.append(&batch));
            burst
        },
    );
    ours.close();
    pairs
}

fn many_clients(table: &mut Table, base: &Path, backend: &str, choice: BackendChoice) {
    let goal = if choice == BackendChoice::Uring { 4.0 } else { 5.0 };
    for (bytes, goal) in [(512, Goal::AtLeast(goal)), (4096, Goal::None)] {
        let batch = input::batch_of(bytes);
        for as_threads in [false, true] {
            let kind = if as_threads { "threads" } else { "tasks" };
            let what = format!("append {bytes} B, {CLIENTS} {kind} to 1 bare client");
            let pairs = table.guarded(|| together(base, choice, &batch, as_threads));
            table.row(&what, backend, pairs, Unit::Rate, if as_threads { Goal::None } else { goal });
        }
    }
}

fn together(base: &Path, choice: BackendChoice, batch: &[u8], as_threads: bool) -> Pairs {
    /// Appends of each client in one burst.
    const EACH: usize = 32;
    let dir = place::must(tempfile::tempdir_in(base), base);
    let ours = Subject::create(dir.path(), "ours", choice, Layout::Extended);
    let mut bare = BareLog::create(&dir.path().join("bare"), Layout::Extended);
    let pairs = pairs::alternate(
        24,
        || vec![vec![batch.to_vec(); EACH]; CLIENTS],
        |batches| {
            if as_threads {
                let batches: Vec<_> = batches.into_iter().map(Mutex::new).collect();
                clients::threads(CLIENTS, |client| {
                    let batches =
                        std::mem::take(&mut *batches[client].lock().unwrap_or_else(PoisonError::into_inner));
                    batches.into_iter().for_each(|batch| ours.append_durably(batch));
                });
            } else {
                let (ours, mut batches) = (&ours, batches.into_iter());
                clients::tasks(CLIENTS, |_| {
                    let batches = batches.next().unwrap_or_default();
                    async move {
                        for batch in batches {
                            ours.append_durably_as_task(batch).await;
                        }
                    }
                });
            }
            CLIENTS * EACH
        },
        || {
            (0..128).for_each(|_| bare.append(batch));
            128
        },
    );
    ours.close();
    pairs
}

fn swaps(table: &mut Table, base: &Path, backend: &str, choice: BackendChoice) {
    let goal = if choice == BackendChoice::Uring { 1.3 } else { 1.1 };
    let dir = place::must(tempfile::tempdir_in(base), base);
    let swapper = Swapper::start(&dir.path().join("ours"), SMALL_FILE, choice);
    let bare_path = dir.path().join("bare");
    let pairs = table.guarded(|| {
        pairs::alternate(
            60,
            || (),
            |()| {
                swapper.replace(4);
                4
            },
            || {
                (0..4).for_each(|_| bare::replace(&bare_path, SMALL_FILE));
                4
            },
        )
    });
    table.row("swap of a 122 B file", backend, pairs, Unit::Time, Goal::AtMost(goal));
}

fn checkpoints(table: &mut Table, base: &Path, backends: &[(&str, BackendChoice)]) {
    let records = Records::topics(input::checkpoint_bytes());
    let batch = input::batch_of(512);
    // The bare side writes what the first writer made.
    let content = RefCell::new(Vec::new());
    for &(backend, choice) in backends {
        let ours = Subject::create(base, &format!("checkpoint-{backend}"), choice, Layout::Extended);
        let bare_path = base.join("bare.checkpoint");
        let last = RefCell::new(None);
        let write = |()| {
            // One more record, so that it is another checkpoint.
            ours.append_durably(batch.clone());
            let checkpoint = ours.write_checkpoint(&records);
            if content.borrow().is_empty() {
                *content.borrow_mut() = place::must(std::fs::read(&checkpoint.path), &checkpoint.path);
            }
            if let Some(before) = last.replace(Some(checkpoint)) {
                place::must(std::fs::remove_file(&before.path), &before.path);
            }
            1
        };
        let pairs = table.guarded(|| {
            pairs::alternate(
                2,
                || (),
                write,
                || {
                    bare::write_and_publish(&bare_path, content.borrow().chunks(8 << 20));
                    1
                },
            )
        });
        let Some(checkpoint) = last.take() else { unreachable!("a checkpoint was written") };
        let unit = Unit::Bytes(checkpoint.bytes);
        let what = |what: &str| format!("checkpoint of {} MB: {what}", checkpoint.bytes / 1_000_000);
        table.row(&what("write and verify"), backend, pairs, unit, Goal::None);

        let (path, mut buf) = (&checkpoint.path, Vec::new());
        let mut read = |cold: bool| {
            if cold {
                bare::forget(path);
            }
            assert!(bare::read(path, &mut buf) == checkpoint.bytes, "the file has another length");
            1
        };
        let pairs = table.guarded(|| {
            pairs::alternate(10, || (), |()| usize::from(ours.load_ahead(&checkpoint) > 0), || read(false))
        });
        table.row(&what("load, read ahead by a lane"), backend, pairs, unit, Goal::AtLeast(0.35));
        if choice == BackendChoice::Portable {
            let pairs = table.guarded(|| {
                pairs::alternate(10, || (), |()| usize::from(subject::load(path) > 0), || read(false))
            });
            table.row(&what("load on one thread"), "-", pairs, unit, Goal::AtLeast(0.22));
            let verify = |cold: bool| {
                if cold {
                    bare::forget(path);
                }
                assert!(subject::verify(path) == checkpoint.bytes, "verified another length");
                1
            };
            let pairs = table.guarded(|| pairs::alternate(10, || (), |()| verify(false), || read(false)));
            table.row(&what("verify, warm"), "-", pairs, unit, Goal::AtLeast(0.75));
            let pairs = table.guarded(|| pairs::alternate(4, || (), |()| verify(true), || read(true)));
            table.row(&what("verify, cold"), "-", pairs, unit, Goal::AtLeast(0.95));
        }
        ours.close();
    }
}

/// Prints rows as they are measured, each between two readings of the guard.
struct Table {
    guard: Guard,
    moved: usize,
}

impl Table {
    fn head() {
        println!(
            "{:<48} {:<9} {:>12} {:>12} {:>7} {:>8}",
            "what", "back end", "kraftlog", "bare", "ratio", "goal"
        );
    }

    fn guarded(&mut self, work: impl FnOnce() -> Pairs) -> (Pairs, f64) {
        self.guard.watch(work)
    }

    fn row(&mut self, what: &str, backend: &str, (pairs, moved): (Pairs, f64), unit: Unit, goal: Goal) {
        let ratio = match unit {
            Unit::Time => pairs.ratio,
            Unit::Rate | Unit::Bytes(_) => 1.0 / pairs.ratio,
        };
        let shown = |side: Duration| match unit {
            Unit::Time => time(side),
            Unit::Rate => format!("{:.0} /s", 1.0 / side.as_secs_f64()),
            Unit::Bytes(bytes) => format!("{:.0} MB/s", bytes as f64 / side.as_secs_f64() / 1e6),
        };
        let (goal, verdict) = match goal {
            Goal::AtMost(goal) => (format!("<= {goal}"), if ratio <= goal { "met" } else { "missed" }),
            Goal::AtLeast(goal) => (format!(">= {goal}"), if ratio >= goal { "met" } else { "missed" }),
            Goal::None => ("-".to_owned(), ""),
        };
        let note =
            if moved > MOVED { format!(" (guard moved {moved:.1}x: says nothing)") } else { String::new() };
        self.moved += usize::from(moved > MOVED);
        let (ours, bare) = (shown(pairs.ours), shown(pairs.bare));
        println!("{what:<48} {backend:<9} {ours:>12} {bare:>12} {ratio:>7.2} {goal:>8} {verdict}{note}");
    }
}

fn time(time: Duration) -> String {
    let us = time.as_secs_f64() * 1e6;
    if us < 10_000.0 { format!("{us:.0} us") } else { format!("{:.1} ms", us / 1000.0) }
}
