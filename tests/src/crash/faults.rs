//! Every step of every operation fails, in every way, and then the process or the machine dies.
//!
//! What was acknowledged before or after the fault must be there when the directory is opened again by a
//! machine without faults; what was refused must not. Twice: with the cache as the dying process left
//! it, and after a power cut.

use super::check::{self, Depth};
use super::configs;
use super::exhaustive::{self, Bounds, Moment, Scenario};
use super::expect::Expect;
use super::node::{Action, Ended, Node};
use super::plants::Mistake;
use super::report::{Tally, Violation};
use kraftlog::Role;
use kraftlog_io::Op;
use kraftlog_io::sim::{Errno, Fault, Latency, SimDisk, Step};
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

/// What a node does behind the operation that failed, if it may.
const AFTER: [Action; 2] =
    [Action::Append { batches: 1, bytes: 100 }, Action::Append { batches: 1, bytes: 2000 }];

/// What kinds of bytes a fault can change without a word; opening may then be refused, but nothing wrong
/// may be served.
const SILENT: [Fault; 2] = [Fault::BitFlip, Fault::Misdirected];

/// What came of one run with one fault.
struct Run {
    disk: SimDisk,
    expect: Arc<Expect>,
    ended: Result<(), String>,
}

/// Fails each step of a scenario in each way. `None` if all was well.
pub fn explore(scenario: &Scenario, mistake: Option<&Mistake>, tally: &mut Tally) -> Option<Violation> {
    let steps = Arc::new(Mutex::new(Vec::new()));
    let note = Arc::clone(&steps);
    run(scenario, mistake, move |step| {
        note.lock().push(step.clone());
        None
    });
    let steps = std::mem::take(&mut *steps.lock());
    for step in steps {
        for fault in faults_of(step.op) {
            if let Some(violation) = with_fault(scenario, mistake, &step, *fault, tally) {
                return Some(violation);
            }
        }
        let silent: &[Fault] = if matches!(step.op, Op::Write | Op::Read) { &SILENT } else { &[] };
        for fault in silent {
            if let Some(violation) = with_rot(scenario, mistake, &step, *fault, tally) {
                return Some(violation);
            }
        }
    }
    None
}

/// A step that fails and says so.
fn with_fault(
    scenario: &Scenario,
    mistake: Option<&Mistake>,
    step: &Step,
    fault: Fault,
    tally: &mut Tally,
) -> Option<Violation> {
    let number = step.number;
    let done = run(scenario, mistake, move |step| (step.number == number).then_some(fault));
    tally.runs += 1;
    if let Err(what) = &done.ended {
        return Some(violation(scenario, step, fault, what.clone(), &done.disk));
    }
    let config = &configs()[scenario.config()];
    // The process dies, the machine does not.
    tally.images += 1;
    let depth = Depth { crashes_in_recovery: 0, crash_after: true, go_on: true };
    if let Err(what) = check::check(&done.disk, config, &done.expect, depth, number) {
        let what = format!("after the death of the process: {what}");
        return Some(violation(scenario, step, fault, what, &done.disk));
    }
    let moment =
        Moment { step: "the end".to_owned(), disk: done.disk.fork(0), expect: Arc::clone(&done.expect) };
    let history = exhaustive::hash(&format!("{} {number} {fault:?}", scenario.name()));
    for image in exhaustive::images(&done.disk, 16, history) {
        if let Err(what) = exhaustive::judge(&image, config, &moment, history, Bounds::default(), tally) {
            return Some(violation(scenario, step, fault, what, &image));
        }
    }
    None
}

/// A step that changes bytes and says nothing. Opening may be refused and reading may fail, but nothing
/// wrong may be given out; and where a bit flipped in the log, no more than the last batch may be taken
/// for torn.
fn with_rot(
    scenario: &Scenario,
    mistake: Option<&Mistake>,
    step: &Step,
    fault: Fault,
    tally: &mut Tally,
) -> Option<Violation> {
    let number = step.number;
    let done = run(scenario, mistake, move |step| (step.number == number).then_some(fault));
    tally.runs += 1;
    tally.images += 1;
    // What a running node read wrong, it said or did not notice; what it wrote must be right or refused.
    if let (Err(what), Op::Write) = (&done.ended, step.op) {
        return Some(violation(scenario, step, fault, what.clone(), &done.disk));
    }
    let in_log = step.op == Op::Write && step.path.extension().is_some_and(|extension| extension == "log");
    let keeps = match fault {
        Fault::BitFlip if in_log && configs()[scenario.config()].role == Role::Voter => {
            done.expect.last_base()
        }
        // A write that went elsewhere leaves zeros, as a torn group does, and may have hit another file's
        // only copy.
        _ => 0,
    };
    let config = &configs()[scenario.config()];
    let served = check::served(&done.disk, config, &done.expect, keeps, number);
    served.err().map(|what| violation(scenario, step, fault, what, &done.disk))
}

fn violation(scenario: &Scenario, step: &Step, fault: Fault, what: String, disk: &SimDisk) -> Violation {
    Violation {
        what,
        replay: format!("--scenario {} --faults", scenario.name()),
        history: format!("{:?}, with {fault:?} in {step}", scenario.actions()),
        step: "the end".to_owned(),
        disk: disk.fork(0),
    }
}

/// Runs a scenario whose steps go wrong as `fault` says; what comes of it without a crash.
fn run(
    scenario: &Scenario,
    mistake: Option<&Mistake>,
    mut fault: impl FnMut(&Step) -> Option<Fault> + Send + 'static,
) -> Run {
    let disk = SimDisk::new(scenario.file_system(), 7);
    disk.make_dir(Path::new(super::NODE_DIR)).expect("an empty disk has room");
    let config = configs()[scenario.config()].clone();
    let mut node = Node::new(disk, config, Latency::None, Arc::default(), 1);
    let mut skip = mistake.and_then(Mistake::skipper);
    let armed_from = Arc::new(AtomicU64::new(u64::MAX));
    let armed = Arc::clone(&armed_from);
    node.machine.disk().on_step(move |_, step| {
        super::tell(step);
        let skipped = skip.as_mut().and_then(|skip| skip(step));
        if step.number < armed.load(Ordering::SeqCst) {
            return skipped;
        }
        fault(step).or(skipped)
    });
    let ended = check::guarded(|| {
        node.block_on(async |node| {
            node.open().await?;
            node.run(&exhaustive::BEFORE).await?;
            armed_from.store(node.machine.disk().steps() + 1, Ordering::SeqCst);
            let tried = node.run_on(scenario.actions()).await;
            if let Err(Ended::Wrong(_)) = tried {
                return tried;
            }
            // What comes after a failure meets what it left: something small, and something that rolls.
            node.run_on(&AFTER).await
        })
    });
    let disk = node.machine.disk().clone();
    disk.clear_hook();
    let expect = node.promises()();
    drop(node);
    let ended = ended.and_then(|ended| match ended {
        Err(Ended::Wrong(why)) => Err(why),
        // It failed and said so: what it promised is looked for.
        Err(Ended::Failed(_)) | Ok(()) => Ok(()),
    });
    Run { disk, expect, ended }
}
