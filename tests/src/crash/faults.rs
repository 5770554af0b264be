//! Every step of every operation fails, in every way, and then the process or the machine dies.
//!
//! What was acknowledged before or after the fault must be there when the directory is opened again by a
//! machine without faults; what was refused must not. Twice: with the cache as the dying process left
//! it, and after a power cut.

use super::check::{self, Depth};
use super::configs;
use super::exhaustive::{self, Bounds, Moment, Scenario};
use super::expect::Expect;
use super::node::{Ended, Node};
use super::plants::Mistake;
use super::report::{Tally, Violation};
use kraftlog_io::Op;
use kraftlog_io::sim::{Errno, Fault, FileSystem, Latency, SimDisk, Step};
use parking_lot::Mutex;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// How a step can fail, by what it is.
fn faults_of(op: Op) -> &'static [Fault] {
    const EIO: Fault = Fault::Fails(Errno::IO);
    const FULL: Fault = Fault::Fails(Errno::NOSPC);
    match op {
        Op::Sync | Op::SyncDir => {
            &[EIO, Fault::LostSync { cache_keeps: true }, Fault::LostSync { cache_keeps: false }]
        }
        Op::Write => &[EIO, FULL, Fault::ShortWrite],
        Op::Create | Op::CreateDir | Op::Allocate | Op::Rename => &[EIO, FULL],
        _ => &[EIO],
    }
}

/// What kinds of bytes a fault can change without a word; opening may then be refused, but nothing wrong
/// may be served.
const SILENT: [Fault; 2] = [Fault::BitFlip, Fault::Misdirected];

/// What came of one run with one fault.
struct Run {
    disk: SimDisk,
    expect: Arc<Expect>,
    ended: Result<(), String>,
    step: String,
}

/// Fails each step of a scenario in each way. `None` if all was well.
pub fn explore(scenario: &Scenario, mistake: Option<&Mistake>, tally: &mut Tally) -> Option<Violation> {
    let steps = Arc::new(Mutex::new(Vec::new()));
    let note = Arc::clone(&steps);
    run(scenario, mistake, move |step| {
        note.lock().push((step.number, step.op));
        None
    });
    let steps = std::mem::take(&mut *steps.lock());
    for (number, op) in steps {
        let silent: &[Fault] = if matches!(op, Op::Write | Op::Read) { &SILENT } else { &[] };
        for fault in faults_of(op).iter().chain(silent) {
            if let Some(violation) = with_fault(scenario, mistake, number, *fault, tally) {
                return Some(violation);
            }
        }
    }
    None
}

fn with_fault(
    scenario: &Scenario,
    mistake: Option<&Mistake>,
    number: u64,
    fault: Fault,
    tally: &mut Tally,
) -> Option<Violation> {
    let done = run(scenario, mistake, move |step| (step.number == number).then_some(fault));
    tally.runs += 1;
    let is_silent = SILENT.contains(&fault);
    let violation = |what: String, disk: &SimDisk| Violation {
        what,
        replay: format!("--scenario {} --faults", scenario.name()),
        history: format!("{:?}, with {fault:?} in {}", scenario.name(), done.step),
        step: "the end".to_owned(),
        disk: disk.fork(0),
    };
    if let Err(what) = &done.ended
        && !is_silent
    {
        return Some(violation(what.clone(), &done.disk));
    }
    let config = &configs()[scenario.config()];
    let depth = Depth { crashes_in_recovery: 0, crash_after: true, go_on: !is_silent, may_refuse: is_silent };
    if is_silent {
        // What rot may take cannot be told from what was torn: only that nothing wrong is served.
        let rot = Expect { durable_end: 0, vote_asked: None, ..Expect::clone(&done.expect) };
        return silent_rot(&done.disk, config, rot, number, tally).map(|what| violation(what, &done.disk));
    }
    // The process dies, the machine does not.
    tally.images += 1;
    if let Err(what) = check::check(&done.disk, config, &done.expect, depth, number) {
        return Some(violation(format!("after the death of the process: {what}"), &done.disk));
    }
    let moment =
        Moment { step: "the end".to_owned(), disk: done.disk.fork(0), expect: Arc::clone(&done.expect) };
    let history = exhaustive::hash(&scenario.name()) ^ number;
    for image in exhaustive::images(&done.disk, 16, history) {
        let bounds = Bounds::default();
        if let Err(what) = exhaustive::judge(
            &image,
            config,
            &moment,
            history ^ exhaustive::hash(&format!("{fault:?}")),
            bounds,
            tally,
        ) {
            return Some(violation(what, &image));
        }
    }
    None
}

/// Opens a disk on which something rotted.
fn silent_rot(
    disk: &SimDisk,
    config: &kraftlog::LogConfig,
    expect: Expect,
    seed: u64,
    tally: &mut Tally,
) -> Option<String> {
    tally.images += 1;
    let served = check::served(disk, config, &expect, seed);
    served.err()
}

/// Runs a scenario whose steps go wrong as `fault` says; what comes of it without a crash.
fn run(
    scenario: &Scenario,
    mistake: Option<&Mistake>,
    mut fault: impl FnMut(&Step) -> Option<Fault> + Send + 'static,
) -> Run {
    let disk = SimDisk::new(FileSystem::Weak, 7);
    disk.make_dir(Path::new(super::NODE_DIR)).expect("an empty disk has room");
    let config = configs()[scenario.config()].clone();
    let mut node = Node::new(disk, config, Latency::None, Arc::default(), 1);
    let mut skip = mistake.and_then(Mistake::skipper);
    let armed_from = Arc::new(AtomicU64::new(u64::MAX));
    let (armed, at) = (Arc::clone(&armed_from), Arc::new(Mutex::new(String::new())));
    let note = Arc::clone(&at);
    node.machine.disk().on_step(move |_, step| {
        let skipped = skip.as_mut().and_then(|skip| skip(step));
        if step.number < armed.load(Ordering::SeqCst) {
            return skipped;
        }
        let fault = fault(step);
        if fault.is_some() {
            *note.lock() = step.to_string();
        }
        fault.or(skipped)
    });
    let ended = check::guarded(|| {
        node.block_on(async |node| {
            node.open().await?;
            node.run(&exhaustive::BEFORE).await?;
            armed_from.store(node.machine.disk().steps() + 1, Ordering::SeqCst);
            node.run(scenario.actions()).await
        })
    });
    let disk = node.machine.disk().clone();
    disk.clear_hook();
    let expect = Arc::clone(&node.expect.lock());
    drop(node);
    let ended = ended.and_then(|ended| match ended {
        Err(Ended::Wrong(why)) => Err(why),
        // It failed and said so: what it promised is looked for.
        Err(Ended::Failed(_)) | Ok(()) => Ok(()),
    });
    let step = at.lock().clone();
    Run { disk, expect, ended, step }
}
