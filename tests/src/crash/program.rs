//! Lives of a node written down in bytes, for a fuzzer: any bytes are a program. One byte chooses the machine,
//! then each is something that the node does or that befalls it; whatever comes of it is held against
//! `Expect` as everywhere here.

use super::check::{self, Depth};
use super::configs;
use super::expect::Expect;
use super::node::{ACTIONS, Action, Ended, Node};
use kraftlog::LogConfig;
use kraftlog_io::Op;
use kraftlog_io::sim::{Errno, Fault, FileSystem, Latency, SimDisk};
use parking_lot::Mutex;
use std::path::Path;
use std::sync::Arc;

/// Steps of a program beyond which nothing new is to be expected.
const STEPS_MAX: usize = 40;
/// Of a crash, so many questions are answered by bytes of the program, each on its own.
const ANSWERS: usize = 12;

/// What a byte stands for, behind [`ACTIONS`].
#[derive(Debug, Clone, Copy)]
enum Event {
    /// The node does it.
    Does(Action),
    /// Several clients at once, by a seed.
    AtOnce(u64),
    /// The so manieth step from here fails in this way.
    Faulty { step: u8, how: u8 },
    /// The power fails before the so manieth change of the disk from here.
    PowerFailsAt(u8),
    /// The power fails now.
    PowerFails,
    /// The process dies: the page cache stays.
    Dies,
}

struct Program<'a> {
    rest: &'a [u8],
}

impl Program<'_> {
    fn next(&mut self) -> Option<u8> {
        let (&first, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(first)
    }

    fn argument(&mut self) -> u8 {
        self.next().unwrap_or(0)
    }

    fn event(&mut self) -> Option<Event> {
        let kind = usize::from(self.next()?) % (ACTIONS.len() + 5);
        Some(match kind.checked_sub(ACTIONS.len()) {
            None => Event::Does(ACTIONS[kind]),
            Some(0) => Event::AtOnce(u64::from(self.argument())),
            Some(1) => Event::Faulty { step: self.argument(), how: self.argument() },
            Some(2) => Event::PowerFailsAt(self.argument()),
            Some(3) => Event::PowerFails,
            Some(_) => Event::Dies,
        })
    }

    /// The disk after a power cut: one byte for its kind, and for some kinds more for what survives.
    fn crash(&mut self, disk: &SimDisk) -> SimDisk {
        match self.argument() {
            0 => disk.crash_choosing(0, &mut |_| 0),
            1 => disk.crash_choosing(0, &mut |of| of - 1),
            seed @ 2..64 => disk.crash(u64::from(seed)),
            rest => {
                let answers: Vec<u8> = (0..ANSWERS).map(|_| self.argument()).collect();
                let mut answers = answers.into_iter();
                let newest = rest & 1 == 0;
                disk.crash_choosing(0, &mut |of| match answers.next() {
                    Some(answer) => usize::from(answer) % of,
                    None if newest => of - 1,
                    None => 0,
                })
            }
        }
    }
}

/// What the hook on the disk's steps has in hand.
#[derive(Default)]
struct Fate {
    /// Steps until one fails, and how.
    fault: Option<(u8, u8)>,
    /// A step has failed in this life.
    failed: bool,
    /// Changes until the power fails.
    power: Option<u8>,
    /// How the disk stood when it failed, and what was expected then.
    cut: Option<(SimDisk, Arc<Expect>)>,
}

/// Runs a program; the error says what is wrong, and with which events.
///
/// # Errors
/// If something promised does not hold.
pub fn run(bytes: &[u8]) -> Result<(), String> {
    let mut program = Program { rest: bytes };
    let machine = program.argument();
    let config = configs()[usize::from(machine & 3)].clone();
    let file_system = if machine & 4 == 0 { FileSystem::Weak } else { FileSystem::Ext4 };
    let latency = if machine & 8 == 0 { Latency::None } else { Latency::Between(1, 300) };
    let disk = SimDisk::new(file_system, u64::from(machine));
    disk.make_dir(Path::new(super::NODE_DIR)).map_err(|error| error.to_string())?;
    let mut told = Vec::new();
    let mut next = Some((disk, Arc::default()));
    while let Some((disk, expect)) = next.take() {
        let seed = u64::from(machine) + told.len() as u64;
        let lived = live(&mut program, &mut told, disk, &config, latency, expect, seed);
        next = lived.map_err(|why| format!("{why}\nafter {told:?} on {file_system:?}, {latency:?}"))?;
    }
    Ok(())
}

/// One life; gives the disk on which the next one begins, and what must be on it.
fn live(
    program: &mut Program<'_>,
    told: &mut Vec<Event>,
    disk: SimDisk,
    config: &LogConfig,
    latency: Latency,
    expect: Arc<Expect>,
    seed: u64,
) -> Result<Option<(SimDisk, Arc<Expect>)>, String> {
    let mut node = Node::new(disk.clone(), config.clone(), latency, expect, seed);
    let fate = Arc::new(Mutex::new(Fate::default()));
    watch(&node, &fate);
    let mut ended = node.block_on(async |node| node.open().await);
    let after = loop {
        if let Some((cut, expect)) = fate.lock().cut.take() {
            break Some((program.crash(&cut), expect));
        }
        let now = |node: &Node| node.promises()();
        match ended {
            Ok(()) => {}
            Err(Ended::Wrong(why)) => return Err(why),
            Err(Ended::Failed(why)) if !fate.lock().failed => {
                return Err(format!("nothing failed, and yet: {why}"));
            }
            // What becomes of it after a failure: the process ends, with the power or alone.
            Err(Ended::Failed(_)) if program.argument() & 1 == 0 => {
                break Some((disk.fork(seed), now(&node)));
            }
            Err(Ended::Failed(_)) => break Some((program.crash(&disk), now(&node))),
        }
        let event = if told.len() < STEPS_MAX { program.event() } else { None };
        let Some(event) = event else { break None };
        told.push(event);
        ended = match event {
            Event::Does(action) => node.block_on(async |node| node.act(action).await),
            Event::AtOnce(seed) => node.block_on(async |node| node.act_at_once(seed).await),
            Event::Faulty { step, how } => {
                fate.lock().fault = Some((step, how));
                Ok(())
            }
            Event::PowerFailsAt(change) => {
                fate.lock().power = Some(change);
                Ok(())
            }
            Event::PowerFails => break Some((program.crash(&disk), now(&node))),
            Event::Dies => break Some((disk.fork(seed), now(&node))),
        };
    };
    disk.clear_hook();
    let expect = Arc::clone(&node.expect.lock());
    drop(node);
    let (found, expect, go_on) = match &after {
        Some((found, expect)) => (found, expect, told.len().is_multiple_of(4)),
        None => (&disk, &expect, true),
    };
    let depth = Depth { crashes_in_recovery: 0, crash_after: go_on, go_on };
    check::check(found, config, expect, depth, seed)?;
    Ok(after)
}

/// Lets a step fail or the power go when the program says so.
fn watch(node: &Node, fate: &Arc<Mutex<Fate>>) {
    let (fate, promises) = (Arc::clone(fate), node.promises());
    node.machine.disk().on_step(move |disk, step| {
        let mut fate = fate.lock();
        if step.changes() && fate.cut.is_none() {
            match fate.power {
                Some(0) => {
                    fate.power = None;
                    fate.cut = Some((disk.fork(0), promises()));
                }
                Some(left) => fate.power = Some(left - 1),
                None => {}
            }
        }
        let (left, how) = fate.fault?;
        if left > 0 {
            fate.fault = Some((left - 1, how));
            return None;
        }
        fate.fault = None;
        fate.failed = true;
        Some(match (step.op, how % 4) {
            (Op::Sync | Op::SyncDir, 0) => Fault::Fails(Errno::IO),
            (Op::Sync | Op::SyncDir, any) => Fault::LostSync { cache_keeps: any < 3 },
            (Op::Write, 0) => Fault::ShortWrite,
            (_, 1) => Fault::Fails(Errno::IO),
            _ => Fault::Fails(Errno::NOSPC),
        })
    });
}

/// Programs to begin with.
pub fn examples() -> Vec<Vec<u8>> {
    let (append, group, roll, follow, epoch, vote, snapshot, reopen) = (0, 3, 4, 5, 6, 7, 8, 10);
    let event = |number: usize| u8::try_from(ACTIONS.len() + number).expect("few events");
    let (at_once, faulty, power_at, power, dies) = (event(0), event(1), event(2), event(3), event(4));
    vec![
        vec![0, append, group, roll, vote, snapshot, reopen, append],
        vec![1, follow, follow, epoch, append, power, 0, append, power, 1, group, power, 9],
        vec![2, append, power_at, 3, group, 100, 1, 0, 1, 2, 0, 1, 0, 1, 3, 0, 1, 1, vote],
        vec![4, at_once, 5, dies, at_once, 6, snapshot, power_at, 9, at_once, 7, 20, append],
        vec![8, append, faulty, 4, 1, group, 1, 3, append, faulty, 0, 0, vote, 0, append],
        vec![
            9, roll, roll, snapshot, faulty, 12, 2, reopen, 1, 99, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, append,
        ],
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_programs_that_a_fuzzer_begins_with_hold() {
        for program in examples() {
            run(&program).unwrap_or_else(|wrong| panic!("{program:?}: {wrong}"));
        }
    }

    #[test]
    fn any_bytes_are_a_program() {
        for byte in 0..=u8::MAX {
            let program: Vec<u8> = (0..20).map(|at: u8| byte.wrapping_mul(at).wrapping_add(at)).collect();
            run(&program).unwrap_or_else(|wrong| panic!("{program:?}: {wrong}"));
        }
    }
}
