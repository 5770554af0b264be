//! A node on the simulated machine and what it is told to do. Every call and every answer goes into the
//! [`Expect`] that the crashes are judged by.

use super::check::{self, Wrong};
use super::expect::{Expect, Outcome, Snapshot};
use super::{batch, part_dir};
use kraftlog::snapshot::SnapshotError;
use kraftlog::{Epoch, ErrorKind, LogConfig, MetadataLog, Offset, Preallocation, SnapshotId, Ticket, Watch};
use kraftlog_codecs::batch::{BatchHeader, patch_offset_and_epoch};
use kraftlog_codecs::quorum::{QuorumState, VersionData, Vote};
use kraftlog_codecs::uuid::Uuid;
use kraftlog_io::sim::{Latency, Machine, SimDisk};
use parking_lot::Mutex;
use std::rc::Rc;
use std::sync::Arc;

/// One thing that a node does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Action {
    /// Appends so many batches of so many bytes at once, so that they share a group.
    Append { batches: u8, bytes: u16 },
    /// Appends what a leader sent.
    Follow { batches: u8 },
    /// Begins the next epoch as leader.
    BeginEpoch,
    /// Votes in the next epoch.
    Vote,
    /// Writes a snapshot of everything durable.
    Snapshot { records: u8 },
    /// Begins one and thinks better of it.
    AbandonSnapshot,
    /// Closes the log and opens it again.
    Reopen,
    /// Drops all handles, waits for the lanes, and opens again.
    DropAndOpen,
}

/// Every action, in the sizes that matter: within a sector, over sectors, a group, a roll.
pub(crate) const ACTIONS: [Action; 12] = [
    Action::Append { batches: 1, bytes: 100 },
    Action::Append { batches: 1, bytes: 1000 },
    Action::Append { batches: 3, bytes: 100 },
    Action::Append { batches: 4, bytes: 600 },
    // Larger than what a segment of these tests has left: rolls.
    Action::Append { batches: 1, bytes: 2300 },
    Action::Follow { batches: 2 },
    Action::BeginEpoch,
    Action::Vote,
    Action::Snapshot { records: 20 },
    Action::AbandonSnapshot,
    Action::Reopen,
    Action::DropAndOpen,
];

/// Shared with the hook that looks at every step.
pub(crate) type Shared = Arc<Mutex<Arc<Expect>>>;

/// A machine with a node on it.
pub(crate) struct Node {
    pub(crate) machine: Rc<Machine>,
    pub(crate) config: LogConfig,
    pub(crate) expect: Shared,
    log: Live,
    leading: Option<Epoch>,
    /// Held by every other node: while somebody watches, write and sync of an append are apart.
    watch: Option<Watch>,
}

/// The open log, if there is one.
type Live = Arc<Mutex<Option<MetadataLog>>>;

/// What one client does.
type Client = std::pin::Pin<Box<dyn Future<Output = Result<(), Ended>>>>;

/// Why a life ended before its time.
#[derive(Debug)]
pub(crate) enum Ended {
    /// The directory is fenced, or an operation failed as it may after a fault.
    Failed(String),
    /// Something is wrong.
    Wrong(String),
}

impl Node {
    pub(crate) fn new(
        disk: SimDisk,
        config: LogConfig,
        latency: Latency,
        expect: Arc<Expect>,
        seed: u64,
    ) -> Node {
        let machine = Rc::new(Machine::with_disk(disk, latency, seed));
        let expect = Arc::new(Mutex::new(expect));
        Node { machine, config, expect, log: Live::default(), leading: None, watch: None }
    }

    /// What is promised now, for a hook to ask at any step. A durable end that can be read is a promise:
    /// a leader counts itself there.
    pub(crate) fn promises(&self) -> impl Fn() -> Arc<Expect> + Send + 'static {
        let (expect, log) = (Arc::clone(&self.expect), Arc::clone(&self.log));
        move || {
            let mut now = Arc::clone(&expect.lock());
            let readable = log.lock().as_ref().map_or(0, |log| log.durable_end().0);
            if readable > now.durable_end {
                let now = Arc::make_mut(&mut now);
                now.durable_end = readable;
                now.version ^= readable.cast_unsigned() << 32;
            }
            now
        }
    }

    /// Runs the machine until the node has done it.
    pub(crate) fn block_on<T>(&mut self, work: impl AsyncFnOnce(&mut Node) -> T) -> T {
        let machine = Rc::clone(&self.machine);
        machine.block_on(work(self))
    }

    /// Opens the log and takes what it has for promised.
    pub(crate) async fn open(&mut self) -> Result<(), Ended> {
        let expect = Arc::clone(&self.expect.lock());
        let (log, found) = match check::open_and_look(&self.machine, &self.config, &expect).await {
            Ok(opened) => opened,
            Err(Wrong::Failed(why)) => return Err(Ended::Failed(why)),
            Err(Wrong::Broken(why)) => return Err(Ended::Wrong(why)),
        };
        self.change(|expect| expect.opened(found.end, found.vote, &found.snapshots));
        let is_watched = !matches!(self.config.preallocation, Preallocation::None);
        self.watch = is_watched.then(|| log.watch());
        *self.log.lock() = Some(log);
        self.leading = None;
        Ok(())
    }

    fn change<T>(&self, change: impl FnOnce(&mut Expect) -> T) -> T {
        change_shared(&self.expect, change)
    }

    fn log(&self) -> MetadataLog {
        match &*self.log.lock() {
            Some(log) => log.clone(),
            None => unreachable!("the node is open while it acts"),
        }
    }

    /// Does one thing after another.
    pub(crate) async fn run(&mut self, actions: &[Action]) -> Result<(), Ended> {
        for action in actions {
            self.act(*action).await?;
        }
        Ok(())
    }

    /// The same, and goes on when something failed, as a node does that may: to see what that left. Gives
    /// the first failure.
    pub(crate) async fn run_on(&mut self, actions: &[Action]) -> Result<(), Ended> {
        let mut first = Ok(());
        for action in actions {
            match self.act(*action).await {
                Err(wrong @ Ended::Wrong(_)) => return Err(wrong),
                Err(failed) if first.is_ok() => first = Err(failed),
                _ => {}
            }
        }
        first
    }

    pub(crate) async fn act(&mut self, action: Action) -> Result<(), Ended> {
        super::tell(&format_args!("{action:?}"));
        if self.log.lock().is_none() {
            // What was to open it failed.
            self.open().await?;
        }
        match action {
            Action::Append { batches, bytes } => {
                let epoch = self.lead().await?;
                append(self.log(), Arc::clone(&self.expect), epoch, batches, usize::from(bytes)).await
            }
            Action::Follow { batches } => self.follow(batches).await,
            Action::BeginEpoch => {
                self.leading = None;
                self.lead().await.map(|_| ())
            }
            Action::Vote => vote(self.log(), Arc::clone(&self.expect)).await,
            Action::Snapshot { records } => {
                snapshot(self.log(), self.machine.disk().clone(), Arc::clone(&self.expect), records, true)
                    .await
            }
            Action::AbandonSnapshot => {
                snapshot(self.log(), self.machine.disk().clone(), Arc::clone(&self.expect), 5, false).await
            }
            Action::Reopen => {
                self.watch = None;
                let log = self.log.lock().take();
                if let Some(log) = log {
                    let report = log
                        .close()
                        .await
                        .map_err(|error| Ended::Failed(format!("close: {}", check::chain(&error))))?;
                    let durable_end = self.expect.lock().durable_end;
                    if report.durable_end.0 < durable_end {
                        return Err(Ended::Wrong(format!(
                            "closed at {}, acknowledged {durable_end}",
                            report.durable_end
                        )));
                    }
                }
                self.open().await
            }
            Action::DropAndOpen => {
                self.watch = None;
                let log = self.log.lock().take();
                drop(log);
                self.open().await
            }
        }
    }

    /// Several appenders, a voter and a snapshot at the same time.
    pub(crate) async fn act_at_once(&mut self, seed: u64) -> Result<(), Ended> {
        if self.log.lock().is_none() {
            self.open().await?;
        }
        let epoch = self.lead().await?;
        let mut rng = fastrand::Rng::with_seed(seed);
        let mut clients: Vec<Client> = Vec::new();
        for _ in 0..rng.usize(2..5) {
            let (log, expect) = (self.log(), Arc::clone(&self.expect));
            let (rounds, batches, bytes) = (rng.u8(1..4), rng.u8(1..4), rng.usize(80..900));
            clients.push(Box::pin(async move {
                for _ in 0..rounds {
                    append(log.clone(), Arc::clone(&expect), epoch, batches, bytes).await?;
                }
                Ok(())
            }));
        }
        if rng.bool() {
            clients.push(Box::pin(vote(self.log(), Arc::clone(&self.expect))));
        }
        if rng.bool() {
            let (log, disk) = (self.log(), self.machine.disk().clone());
            clients.push(Box::pin(snapshot(
                log,
                disk,
                Arc::clone(&self.expect),
                rng.u8(1..60),
                rng.u8(..5) > 0,
            )));
        }
        all(clients).await
    }

    /// Begins a new epoch as leader unless one is led.
    async fn lead(&mut self) -> Result<Epoch, Ended> {
        if let Some(epoch) = self.leading {
            return Ok(epoch);
        }
        let log = self.log();
        let voted = self.expect.lock().vote.as_ref().map_or(0, |vote| vote.leader_epoch);
        let epoch = Epoch(log.last_epoch().0.max(voted) + 1);
        log.initialize_leader_epoch(epoch)
            .await
            .map_err(|error| Ended::Failed(format!("epoch: {}", check::chain(&error))))?;
        self.leading = Some(epoch);
        Ok(epoch)
    }

    async fn follow(&mut self, batches: u8) -> Result<(), Ended> {
        self.leading = None;
        let log = self.log();
        let epoch = Epoch(log.last_epoch().0 + 1);
        let mut base = log.end_offset().0;
        let mut sent = Vec::new();
        let mut bases = Vec::new();
        for at in 0..batches {
            let mut bytes = batch(epoch, usize::from(at) + 1, 150);
            patch_offset_and_epoch(&mut bytes, base, epoch.0);
            sent.extend_from_slice(&bytes);
            bases.push((base, bytes));
            base += i64::from(at) + 1;
        }
        let failed =
            |error: kraftlog::AppendError| Ended::Failed(format!("follow: {}", check::chain(&error)));
        let Some(ticket) = log.append_as_follower(epoch, sent).map_err(failed)?.ticket() else {
            return Err(Ended::Wrong("a follower's append was skipped".to_owned()));
        };
        let attempts: Vec<(i64, usize)> = self.change(|expect| {
            bases.into_iter().map(|(base, bytes)| (base, expect.queued(base, bytes))).collect()
        });
        let answer = ticket.durable().await;
        let outcome = outcome(&answer);
        self.change(|expect| {
            attempts.iter().for_each(|(at, attempt)| expect.answered(*at, *attempt, base, outcome));
        });
        answer.map(|_| ()).map_err(failed)
    }
}

fn change_shared<T>(expect: &Shared, change: impl FnOnce(&mut Expect) -> T) -> T {
    change(Arc::make_mut(&mut expect.lock()))
}

/// Notes a batch that was queued, as it will be in the log.
pub(crate) fn queue(expect: &mut Expect, ticket: &Ticket, epoch: Epoch, mut bytes: Vec<u8>) -> usize {
    let base = *ticket.offsets().start();
    patch_offset_and_epoch(&mut bytes, base, epoch.0);
    expect.queued(base, bytes)
}

fn outcome<T>(answer: &Result<T, kraftlog::AppendError>) -> Outcome {
    match answer {
        Ok(_) => Outcome::Durable,
        // The outcome of a sync, or of what the end of the lane interrupted, is not known.
        Err(error) if error.kind() == ErrorKind::Fenced => Outcome::Open,
        Err(_) => Outcome::Refused,
    }
}

async fn append(
    log: MetadataLog,
    expect: Shared,
    epoch: Epoch,
    batches: u8,
    bytes: usize,
) -> Result<(), Ended> {
    let failed = |error: &kraftlog::AppendError| Ended::Failed(format!("append: {}", check::chain(error)));
    let mut tickets = Vec::new();
    let mut end = None;
    for at in 0..batches {
        let batch = batch(epoch, 1 + usize::from(at) % 2, bytes);
        match log.append_as_leader(epoch, batch.clone()) {
            Ok(ticket) => {
                let attempt = change_shared(&expect, |expect| queue(expect, &ticket, epoch, batch));
                tickets.push((ticket, attempt));
            }
            Err(error) => {
                end = Some(failed(&error));
                break;
            }
        }
    }
    for (ticket, attempt) in tickets {
        let answer = ticket.durable().await;
        let outcome = outcome(&answer);
        let (base, next) = (*ticket.offsets().start(), *ticket.offsets().end() + 1);
        super::tell(&format_args!("append at {base}: {answer:?}"));
        change_shared(&expect, |expect| expect.answered(base, attempt, next, outcome));
        if let (Err(error), None) = (&answer, &end) {
            end = Some(failed(error));
        }
    }
    end.map_or(Ok(()), Err)
}

async fn vote(log: MetadataLog, expect: Shared) -> Result<(), Ended> {
    let epoch = {
        let now = expect.lock();
        let last = now.votes_asked.last().or(now.vote.as_ref()).map_or(0, |vote| vote.leader_epoch);
        last.max(log.last_epoch().0) + 1
    };
    let voted = Some(Vote { id: epoch % 3, directory_id: Uuid([7; 16]) });
    let state = QuorumState { leader_id: None, leader_epoch: epoch, voted, version_data: VersionData::V1 };
    change_shared(&expect, |expect| expect.voting(&state));
    match log.quorum_state().write(&state).await {
        Ok(()) => {
            change_shared(&expect, Expect::voted);
            Ok(())
        }
        Err(error) => {
            if error.kind() != ErrorKind::Fenced {
                change_shared(&expect, Expect::not_voted);
            }
            Err(Ended::Failed(format!("vote: {}", check::chain(&error))))
        }
    }
}

async fn snapshot(
    log: MetadataLog,
    disk: SimDisk,
    expect: Shared,
    records: u8,
    freeze: bool,
) -> Result<(), Ended> {
    let failed = |error: &dyn std::error::Error| Ended::Failed(format!("snapshot: {}", check::chain(error)));
    let end = log.durable_end();
    if end == Offset(0) {
        return Ok(());
    }
    log.update_high_watermark(end).map_err(|error| failed(&error))?;
    let below = kraftlog::Isolation::Committed;
    let last = log.read(Offset(end.0 - 1), below, 1).await.map_err(|error| failed(&error))?;
    let header = BatchHeader::parse(&last.bytes).map_err(|error| failed(&error))?;
    let id = SnapshotId { end_offset: end, epoch: Epoch(header.leader_epoch) };
    if expect.lock().snapshots.contains_key(&id) {
        return Ok(());
    }
    change_shared(&expect, |expect| expect.snapshot(id, Snapshot::Begun));
    let mut writer = log.create_snapshot(id).await.map_err(|error| failed(&error))?;
    for _ in 0..records {
        writer.append(&[super::record(60)]).await.map_err(|error| failed(&error))?;
    }
    if freeze {
        writer.freeze().await.map_err(|error| failed(&error))?;
        let file = disk.read(&part_dir().join(format!("{id}.checkpoint")));
        let file = file.ok_or_else(|| Ended::Wrong(format!("snapshot {id} was frozen and has no file")))?;
        let broken = |error: SnapshotError| match error {
            SnapshotError::Io(_) => failed(&error),
            _ => Ended::Wrong(format!("snapshot {id} was frozen and is not whole: {}", check::chain(&error))),
        };
        let mut reader = log.open_snapshot(id).await.map_err(broken)?;
        while reader.next_batch().await.map_err(broken)?.is_some() {}
        change_shared(&expect, |expect| expect.snapshot(id, Snapshot::Frozen(file.into())));
    }
    Ok(())
}

/// Waits for all of them; the first that ended badly, the wrong ones before the failed ones.
async fn all(mut clients: Vec<Client>) -> Result<(), Ended> {
    let mut bad: Option<Ended> = None;
    std::future::poll_fn(|context| {
        clients.retain_mut(|client| match client.as_mut().poll(context) {
            std::task::Poll::Pending => true,
            std::task::Poll::Ready(Ok(())) => false,
            std::task::Poll::Ready(Err(ended)) => {
                if bad.is_none() || matches!(ended, Ended::Wrong(_)) {
                    bad = Some(ended);
                }
                false
            }
        });
        if clients.is_empty() { std::task::Poll::Ready(()) } else { std::task::Poll::Pending }
    })
    .await;
    bad.map_or(Ok(()), Err)
}
