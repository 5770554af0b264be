//! Every operation alone, in pairs and in threes, with a power cut before every step and everything that
//! it may leave.
//!
//! A scenario is a few `Action`s on a node that has led an epoch and appended. At each step that changes
//! something the disk is forked, with a copy of what was promised by then; afterwards each fork is
//! crashed in every possible way if there are few enough of them, else in a sample.

use super::check::{self, Depth};
use super::configs;
use super::expect::Expect;
use super::node::{ACTIONS, Action, Ended, Node};
use super::plants::Mistake;
use super::report::{Tally, Violation};
use kraftlog_io::sim::{AllCrashes, FileSystem, Latency, SimDisk};
use parking_lot::Mutex;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// What comes before the operations that are explored, so that there is something to lose.
pub(crate) const BEFORE: [Action; 2] = [Action::BeginEpoch, Action::Append { batches: 1, bytes: 300 }];

/// One run: a number of its own, from which it can be made again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scenario {
    config: usize,
    file_system: FileSystem,
    actions: Vec<Action>,
    /// Crash from the very first open on, on an empty directory.
    from_nothing: bool,
}

impl Scenario {
    /// All with so many actions.
    pub fn all(length: usize) -> Vec<Scenario> {
        let mut tuples = vec![Vec::new()];
        for _ in 0..length {
            let longer = |tuple: &Vec<Action>| ACTIONS.map(|action| [tuple.clone(), vec![action]].concat());
            tuples = tuples.iter().flat_map(longer).collect();
        }
        let mut all = Vec::new();
        for file_system in [FileSystem::Weak, FileSystem::Ext4] {
            for config in 0..configs().len() {
                all.extend(tuples.iter().map(|actions| Scenario {
                    config,
                    file_system,
                    actions: actions.clone(),
                    from_nothing: length == 0,
                }));
            }
        }
        all
    }

    pub(crate) fn config(&self) -> usize {
        self.config
    }

    pub(crate) fn file_system(&self) -> FileSystem {
        self.file_system
    }

    pub(crate) fn actions(&self) -> &[Action] {
        &self.actions
    }

    /// The argument that names it: `config.file system.actions`.
    pub fn name(&self) -> String {
        let file_system = if self.file_system == FileSystem::Weak { "weak" } else { "ext4" };
        let place = |action: &Action| ACTIONS.iter().position(|known| known == action).unwrap_or_default();
        let actions: Vec<String> = self.actions.iter().map(|action| place(action).to_string()).collect();
        format!("{}.{file_system}.{}", self.config, actions.join("-"))
    }

    /// The scenario of that name.
    pub fn named(name: &str) -> Option<Scenario> {
        let mut parts = name.split('.');
        let config = parts.next()?.parse().ok().filter(|config| *config < configs().len())?;
        let file_system = match parts.next()? {
            "weak" => FileSystem::Weak,
            "ext4" => FileSystem::Ext4,
            _ => return None,
        };
        let actions: Option<Vec<Action>> = match parts.next()? {
            "" => Some(Vec::new()),
            list => list.split('-').map(|at| ACTIONS.get(at.parse::<usize>().ok()?).copied()).collect(),
        };
        let actions = actions?;
        Some(Scenario { config, file_system, from_nothing: actions.is_empty(), actions })
    }
}

/// How much is tried at a moment.
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    /// All ways of a crash are tried if they are no more than this, else so many by seed.
    pub crashes_max: usize,
    /// One in so many different states is crashed again during its recovery.
    pub recovery_every: u64,
}

impl Default for Bounds {
    fn default() -> Bounds {
        Bounds { crashes_max: 96, recovery_every: 24 }
    }
}

/// A moment at which the power may fail.
pub(crate) struct Moment {
    pub(crate) step: String,
    pub(crate) disk: SimDisk,
    pub(crate) expect: Arc<Expect>,
}

/// Runs a scenario and looks at all that its crashes may leave.
pub fn explore(
    scenario: &Scenario,
    bounds: Bounds,
    mistake: Option<&Mistake>,
    tally: &mut Tally,
) -> Option<Violation> {
    let (moments, ended) = run(scenario, mistake);
    tally.runs += 1;
    let violation = |what: String, step: &str, disk: SimDisk| Violation {
        what,
        replay: format!("--scenario {}", scenario.name()),
        history: format!(
            "{:?} on {:?}, {:?}",
            scenario.actions,
            scenario.file_system,
            configs()[scenario.config].preallocation
        ),
        step: step.to_owned(),
        disk,
    };
    if let Err(what) = ended {
        let disk = moments.last().map_or(SimDisk::new(scenario.file_system, 0), |moment| moment.disk.fork(0));
        return Some(violation(what, "its end, without a crash", disk));
    }
    let history = hash(&scenario.name());
    let config = &configs()[scenario.config];
    for moment in &moments {
        tally.moments += 1;
        if let Err(what) = judge_death(config, moment, tally) {
            return Some(violation(what, &moment.step, moment.disk.fork(0)));
        }
        for image in images(&moment.disk, bounds.crashes_max, history) {
            if let Err(what) = judge(&image, config, moment, history, bounds, tally) {
                return Some(violation(what, &moment.step, image));
            }
        }
    }
    None
}

/// The process dies at a moment, the machine does not: another one opens what is in the cache, and only
/// then the power fails. What the first left unsynced must not cost what the second promised.
pub(crate) fn judge_death(
    config: &kraftlog::LogConfig,
    moment: &Moment,
    tally: &mut Tally,
) -> Result<(), String> {
    tally.images += 1;
    let depth = Depth { crashes_in_recovery: 0, crash_after: true, go_on: false };
    let seed = moment.expect.version;
    check::check(&moment.disk, config, &moment.expect, depth, seed)
        .map_err(|what| format!("after the death of the process: {what}"))
}

/// Looks at one found disk, unless its like was seen.
pub(crate) fn judge(
    image: &SimDisk,
    config: &kraftlog::LogConfig,
    moment: &Moment,
    history: u64,
    bounds: Bounds,
    tally: &mut Tally,
) -> Result<(), String> {
    tally.images += 1;
    let print = image.fingerprint();
    if !tally.seen.insert((print, history ^ moment.expect.version)) {
        return Ok(());
    }
    let depth = Depth {
        crashes_in_recovery: usize::from(print.is_multiple_of(bounds.recovery_every)),
        crash_after: print % 4 == 1,
        go_on: print % 4 == 2,
    };
    check::check(image, config, &moment.expect, depth, print)
}

/// The disks that a power cut may leave: all, or a sample.
pub(crate) fn images(disk: &SimDisk, most: usize, seed: u64) -> Vec<SimDisk> {
    if disk.crashes(most + 1) <= most {
        let mut walk = AllCrashes::default();
        return std::iter::from_fn(|| disk.next_crash(&mut walk, seed)).collect();
    }
    let mut rng = fastrand::Rng::with_seed(seed ^ disk.fingerprint());
    (0..most).map(|_| disk.crash(rng.u64(..))).collect()
}

/// The moments of a scenario, and whether it went as it should without a crash.
fn run(scenario: &Scenario, mistake: Option<&Mistake>) -> (Vec<Moment>, Result<(), String>) {
    let disk = SimDisk::new(scenario.file_system, 1);
    disk.make_dir(Path::new(super::NODE_DIR)).expect("an empty disk has room");
    let config = configs()[scenario.config].clone();
    let mut node = Node::new(disk, config, Latency::None, Arc::default(), 1);
    let moments = Arc::new(Mutex::new(Vec::new()));
    let armed = Arc::new(AtomicBool::new(scenario.from_nothing));
    watch(&node, &moments, &armed, mistake);
    let ended = check::guarded(|| {
        let disk = node.machine.disk().clone();
        let result = drive(&mut node, scenario, &armed);
        let expect = node.promises()();
        moments.lock().push(Moment { step: "the end".to_owned(), disk: disk.fork(0), expect });
        result
    });
    node.machine.disk().clear_hook();
    let ended = ended.and_then(|ended| match ended {
        // Without faults nothing has a reason to fail.
        Err(Ended::Failed(why) | Ended::Wrong(why)) => Err(why),
        Ok(()) => Ok(()),
    });
    drop(node);
    let moments = std::mem::take(&mut *moments.lock());
    (moments, ended)
}

fn drive(node: &mut Node, scenario: &Scenario, armed: &AtomicBool) -> Result<(), Ended> {
    node.block_on(async |node| {
        node.open().await?;
        if !scenario.from_nothing {
            node.run(&BEFORE).await?;
        }
        armed.store(true, Ordering::SeqCst);
        node.run(&scenario.actions).await
    })
}

/// Forks the disk at every step while armed.
pub(crate) fn watch(
    node: &Node,
    moments: &Arc<Mutex<Vec<Moment>>>,
    armed: &Arc<AtomicBool>,
    mistake: Option<&Mistake>,
) {
    let (moments, armed, promises) = (Arc::clone(moments), Arc::clone(armed), node.promises());
    let mut skip = mistake.and_then(Mistake::skipper);
    node.machine.disk().on_step(move |disk, step| {
        super::tell(&step);
        if armed.load(Ordering::SeqCst) && step.changes() {
            let expect = promises();
            moments.lock().push(Moment { step: step.to_string(), disk: disk.fork(0), expect });
        }
        skip.as_mut().and_then(|skip| skip(step))
    });
}

pub(crate) fn hash(text: &str) -> u64 {
    text.bytes()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

/// Explores all of them on as many threads; `stop` ends it early. Gives the violation of the first
/// scenario in the list that has one.
pub fn explore_all(
    scenarios: &[Scenario],
    bounds: Bounds,
    threads: usize,
    stop: &(dyn Fn() -> bool + Sync),
) -> (Tally, Option<Violation>) {
    let next = AtomicUsize::new(0);
    let outcome: Mutex<(Tally, Option<(usize, Violation)>)> = Mutex::default();
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                let mut tally = Tally::default();
                let mut found = None;
                while found.is_none() && !stop() {
                    let at = next.fetch_add(1, Ordering::SeqCst);
                    let Some(scenario) = scenarios.get(at) else { break };
                    found = explore(scenario, bounds, None, &mut tally).map(|violation| (at, violation));
                    if found.is_some() {
                        // The others finish what they have begun.
                        next.store(scenarios.len(), Ordering::SeqCst);
                    }
                }
                let mut outcome = outcome.lock();
                outcome.0.add(tally);
                if let Some((at, violation)) = found
                    && outcome.1.as_ref().is_none_or(|(first, _)| at < *first)
                {
                    outcome.1 = Some((at, violation));
                }
            });
        }
    });
    let (tally, violation) = outcome.into_inner();
    (tally, violation.map(|(_, violation)| violation))
}
