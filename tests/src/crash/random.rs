//! Long seeded histories: lives of a node with many clients at once, on a disk that takes its time and
//! sometimes fails; each life ends by a close, by the death of its process or by a power cut, and the next
//! one begins with what is found.

use super::check::{self, Depth};
use super::configs;
use super::exhaustive::{self, Moment, hash};
use super::expect::Expect;
use super::node::{ACTIONS, Action, Ended, Node};
use super::report::{Tally, Violation};
use kraftlog_io::Op;
use kraftlog_io::sim::{Errno, Fault, FileSystem, Latency, SimDisk};
use parking_lot::Mutex;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Lives of one history.
const LIVES: usize = 6;
/// Moments of one life that are crashed.
const MOMENTS_PER_LIFE: usize = 24;
/// Crashes at each of them.
const CRASHES: usize = 3;

/// Runs history `number` of a seed.
pub fn history(seed: u64, number: u64, tally: &mut Tally) -> Option<Violation> {
    let mut rng = fastrand::Rng::with_seed(seed ^ hash(&format!("history {number}")));
    let file_system = if rng.u8(..4) == 0 { FileSystem::Ext4 } else { FileSystem::Weak };
    let configs = configs();
    let config = configs[rng.usize(..configs.len())].clone();
    let mut disk = SimDisk::new(file_system, rng.u64(..));
    disk.make_dir(Path::new(super::NODE_DIR)).expect("an empty disk has room");
    let mut expect: Arc<Expect> = Arc::default();
    let mut told = Vec::new();
    for life in 0..LIVES {
        let lived = live(disk.clone(), &config, expect, &mut rng);
        tally.runs += 1;
        told.push(lived.told);
        let violation = |what: String, step: &str, disk: &SimDisk| Violation {
            what,
            replay: format!("--seed {seed} --history {number}"),
            history: format!("life {life} of {told:?} on {file_system:?}"),
            step: step.to_owned(),
            disk: disk.fork(0),
        };
        if let Err(what) = lived.ended {
            return Some(violation(what, "its end, without a crash", &lived.disk));
        }
        for moment in &lived.moments {
            tally.moments += 1;
            if rng.u8(..4) == 0
                && let Err(what) = exhaustive::judge_death(&config, moment, tally)
            {
                return Some(violation(what, &moment.step, &moment.disk));
            }
            for _ in 0..CRASHES {
                let image = moment.disk.crash(rng.u64(..));
                let key = hash(&format!("{seed} {number} {life}")) ^ moment.expect.version;
                tally.images += 1;
                if !tally.seen.insert((image.fingerprint(), key)) {
                    continue;
                }
                let depth = Depth {
                    crashes_in_recovery: usize::from(rng.u8(..16) == 0),
                    crash_after: rng.u8(..4) == 0,
                    go_on: rng.u8(..4) == 0,
                };
                if let Err(what) = check::check(&image, &config, &moment.expect, depth, rng.u64(..)) {
                    return Some(violation(what, &moment.step, &image));
                }
            }
        }
        // How it ends: as it stands (closed, or its process died), or by a power cut at some moment.
        (disk, expect) = match lived.moments.is_empty() || rng.bool() {
            true => (lived.disk.fork(rng.u64(..)), lived.expect),
            false => {
                let moment = &lived.moments[rng.usize(..lived.moments.len())];
                (moment.disk.crash(rng.u64(..)), Arc::clone(&moment.expect))
            }
        };
    }
    None
}

struct Lived {
    disk: SimDisk,
    expect: Arc<Expect>,
    moments: Vec<Moment>,
    ended: Result<(), String>,
    told: String,
}

/// One life of a node.
fn live(disk: SimDisk, config: &kraftlog::LogConfig, expect: Arc<Expect>, rng: &mut fastrand::Rng) -> Lived {
    let latency = if rng.bool() { Latency::None } else { Latency::Between(1, 300) };
    let mut node = Node::new(disk.clone(), config.clone(), latency, expect, rng.u64(..));
    let moments = Arc::new(Mutex::new(Vec::new()));
    let fails = rng.u8(..3) == 0;
    let failed = Arc::new(AtomicBool::new(false));
    watch(&node, &moments, fails, &failed, rng.u64(..));
    let plan: Vec<Option<Action>> = (0..rng.usize(2..9))
        .map(|_| (rng.u8(..3) > 0).then(|| ACTIONS[rng.usize(..ACTIONS.len())]))
        .collect();
    let close = rng.bool();
    let seeds: Vec<u64> = plan.iter().map(|_| rng.u64(..)).collect();
    let ended = check::guarded(|| {
        node.block_on(async |node| {
            node.open().await?;
            let mut first = Ok(());
            for (action, seed) in plan.iter().zip(seeds) {
                let done = match action {
                    Some(action) => node.act(*action).await,
                    None => node.act_at_once(seed).await,
                };
                // What failed is no reason to stop: what it left may be in the way of what comes.
                match done {
                    Err(wrong @ Ended::Wrong(_)) => return Err(wrong),
                    Err(failed) if first.is_ok() => first = Err(failed),
                    _ => {}
                }
            }
            first?;
            if close { node.act(Action::Reopen).await } else { Ok(()) }
        })
    });
    disk.clear_hook();
    let expect = node.promises()();
    drop(node);
    let ended = ended.and_then(|ended| match ended {
        Err(Ended::Wrong(why)) => Err(why),
        Err(Ended::Failed(why)) if !failed.load(Ordering::SeqCst) => {
            Err(format!("nothing failed, and yet: {why}"))
        }
        _ => Ok(()),
    });
    let moments = std::mem::take(&mut *moments.lock());
    Lived { disk, expect, moments, ended, told: format!("{plan:?}") }
}

/// Forks the disk at some steps, spread over the life, and lets one step go wrong if asked to.
fn watch(node: &Node, moments: &Arc<Mutex<Vec<Moment>>>, fails: bool, failed: &Arc<AtomicBool>, seed: u64) {
    let failed = Arc::clone(failed);
    let mut rng = fastrand::Rng::with_seed(seed);
    let mut to_fault = if fails { rng.u32(1..150) } else { 0 };
    let (moments, promises) = (Arc::clone(moments), node.promises());
    let mut seen = 0;
    node.machine.disk().on_step(move |disk, step| {
        super::tell(&step);
        if step.changes() {
            seen += 1;
            // Each step of a life is as likely as any other to be among those that are kept.
            let mut kept = moments.lock();
            let place = if kept.len() < MOMENTS_PER_LIFE { kept.len() } else { rng.usize(..seen) };
            if place < MOMENTS_PER_LIFE {
                let expect = promises();
                let moment = Moment { step: step.to_string(), disk: disk.fork(0), expect };
                match kept.get_mut(place) {
                    Some(old) => *old = moment,
                    None => kept.push(moment),
                }
            }
        }
        if to_fault == 0 {
            return None;
        }
        to_fault -= 1;
        let fault = (to_fault == 0).then(|| match (step.op, rng.u8(..4)) {
            (Op::Sync | Op::SyncDir, 0) => Fault::Fails(Errno::IO),
            (Op::Sync | Op::SyncDir, any) => Fault::LostSync { cache_keeps: any < 3 },
            (Op::Write, 0) => Fault::ShortWrite,
            (_, 1) => Fault::Fails(Errno::IO),
            _ => Fault::Fails(Errno::NOSPC),
        });
        fault.inspect(|fault| {
            super::tell(&format_args!("-> {fault:?}"));
            failed.store(true, Ordering::SeqCst);
        })
    });
}
