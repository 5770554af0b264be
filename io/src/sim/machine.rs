//! The simulated machine: one thread on which lanes and clients take turns in an order that the seed
//! decides, and a clock that jumps to the next deadline when nobody can run.
//!
//! Lanes are not `Send`, so a machine stays on the thread that made it; its [`Rt`] may be held anywhere,
//! but only that thread can drive it. Nothing happens between two calls of
//! [`block_on`](Machine::block_on).

use super::disk::SimDisk;
use super::{FileSystem, Latency};
use crate::disk::LocalFuture;
use crate::error::{IoError, Op, Result};
use crate::lock::{DirId, HeldLock, LockError};
use crate::probe::BackendReport;
use crate::rt::{BoxFuture, LaneFn, Rt};
use parking_lot::Mutex;
use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::future::Future;
use std::marker::PhantomData;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::ThreadId;
use std::time::Duration;

/// When a simulated machine is switched on, since the Unix epoch.
const SWITCHED_ON: Duration = Duration::from_secs(1_700_000_000);

/// How many turns a machine takes before it is called hung. A turn is much less than a microsecond of
/// real work; nothing that ends takes so many.
const TURNS_MAX: u64 = 50_000_000;

type TaskId = u64;
type Tasks = BTreeMap<TaskId, LocalFuture<'static, ()>>;

thread_local! {
    /// The tasks of this thread's machines. Taken out while they run.
    static TASKS: RefCell<HashMap<u64, Tasks>> = RefCell::new(HashMap::new());
}

/// A machine that is switched off when this is dropped: whatever runs on it is gone, unfinished. Its
/// disk is left as it was then, cache and all; [`SimDisk::crash`] is what a power cut does to it.
pub struct Machine {
    rt: Arc<SimRt>,
    /// Bound to its thread.
    _here: PhantomData<*const ()>,
}

/// Clock, randomness and turns.
pub(super) struct Clock {
    state: Mutex<ClockState>,
}

struct ClockState {
    now: Duration,
    rng: fastrand::Rng,
    sleepers: BTreeMap<(Duration, u64), Waker>,
    next_sleeper: u64,
}

struct SimRt {
    id: u64,
    seed: u64,
    home: ThreadId,
    disk: SimDisk,
    latency: Latency,
    clock: Arc<Clock>,
    /// Tasks that can run; each at most once.
    ready: Arc<Mutex<Vec<TaskId>>>,
    next_task: AtomicU64,
    /// Lanes that wait for their first turn: they may be spawned from inside of a turn.
    new_lanes: Mutex<Vec<(TaskId, LaneFn)>>,
    is_on: Mutex<Power>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Power {
    Idle,
    Driven,
    Off,
}

impl Machine {
    /// A machine with an empty disk of a weak file system, and no latency.
    pub fn new(seed: u64) -> Machine {
        Machine::with_disk(SimDisk::new(FileSystem::Weak, seed), Latency::None, seed)
    }

    /// A machine that is switched on with this disk in it.
    pub fn with_disk(disk: SimDisk, latency: Latency, seed: u64) -> Machine {
        static NEXT_ID: AtomicU64 = AtomicU64::new(1);
        let state = ClockState {
            now: Duration::ZERO,
            rng: fastrand::Rng::with_seed(seed),
            sleepers: BTreeMap::new(),
            next_sleeper: 0,
        };
        let rt = SimRt {
            id: NEXT_ID.fetch_add(1, Ordering::Relaxed),
            seed,
            home: std::thread::current().id(),
            disk,
            latency,
            clock: Arc::new(Clock { state: Mutex::new(state) }),
            ready: Arc::default(),
            next_task: AtomicU64::new(1),
            new_lanes: Mutex::default(),
            is_on: Mutex::new(Power::Idle),
        };
        Machine { rt: Arc::new(rt), _here: PhantomData }
    }

    /// What a node on this machine gets from outside.
    pub fn rt(&self) -> Arc<dyn Rt> {
        Arc::clone(&self.rt) as Arc<dyn Rt>
    }

    /// What a node's reports say of this back end.
    pub fn backend(&self) -> BackendReport {
        BackendReport { backend: "sim", reason: Some(format!("simulated, seed {}", self.rt.seed)) }
    }

    /// Its disk.
    pub fn disk(&self) -> &SimDisk {
        &self.rt.disk
    }

    /// Lets a client take turns with the others.
    pub fn spawn(&self, client: impl Future<Output = ()> + 'static) {
        let id = self.rt.new_task();
        with_tasks(self.rt.id, |tasks| tasks.insert(id, Box::pin(client)));
        self.rt.ready.lock().push(id);
    }

    /// Runs the machine until `future` is done.
    ///
    /// # Panics
    /// If nobody can run any more and nobody sleeps, if it does not end, inside of itself, and when a
    /// task panics.
    pub fn block_on<T>(&self, future: impl Future<Output = T>) -> T {
        let mut answer = None;
        self.rt.drive(Box::pin(async { answer = Some(future.await) }));
        let Some(answer) = answer else { unreachable!("the machine runs until the future is done") };
        answer
    }

    /// Runs the machine until nobody can run, sleepers aside.
    pub fn run_until_idle(&self) {
        self.rt.turns(None, &mut || false);
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        *self.rt.is_on.lock() = Power::Off;
        let lanes = std::mem::take(&mut *self.rt.new_lanes.lock());
        drop(lanes);
        // Dropping a task may look for the others; they are gone by then.
        let tasks = TASKS.with_borrow_mut(|all| all.remove(&self.rt.id));
        drop(tasks);
        let sleepers = std::mem::take(&mut self.rt.clock.state.lock().sleepers);
        drop(sleepers);
    }
}

fn with_tasks<T>(machine: u64, work: impl FnOnce(&mut Tasks) -> T) -> T {
    TASKS.with_borrow_mut(|all| work(all.entry(machine).or_default()))
}

/// Puts a task into the ready list.
struct TaskWaker {
    id: TaskId,
    ready: Arc<Mutex<Vec<TaskId>>>,
}

impl Wake for TaskWaker {
    fn wake(self: Arc<Self>) {
        let mut ready = self.ready.lock();
        if !ready.contains(&self.id) {
            ready.push(self.id);
        }
    }
}

impl SimRt {
    fn new_task(&self) -> TaskId {
        self.next_task.fetch_add(1, Ordering::Relaxed)
    }

    /// Takes turns until `future` is done.
    fn drive<'a>(&self, mut future: Pin<Box<dyn Future<Output = ()> + 'a>>) {
        let id = self.new_task();
        self.ready.lock().push(id);
        let waker = self.waker(id);
        self.turns(Some(id), &mut || future.as_mut().poll(&mut Context::from_waker(&waker)).is_ready());
    }

    fn waker(&self, id: TaskId) -> Waker {
        Waker::from(Arc::new(TaskWaker { id, ready: Arc::clone(&self.ready) }))
    }

    /// Takes turns. `poll` is the turn of `main` and says when to stop; without one it goes on until
    /// nobody can run.
    fn turns(&self, main: Option<TaskId>, poll: &mut dyn FnMut() -> bool) {
        assert!(
            std::thread::current().id() == self.home,
            "a simulated machine runs on the thread that made it; blocking calls must come from there"
        );
        let _driven = Driven::begin(self);
        for _ in 0..TURNS_MAX {
            self.start_lanes();
            let Some(id) = self.next_turn() else {
                if main.is_none() {
                    return;
                }
                assert!(
                    self.clock.jump(),
                    "the simulated machine stands still: nobody can run and nobody sleeps (seed {})",
                    self.seed
                );
                continue;
            };
            if Some(id) == main {
                if poll() {
                    return;
                }
            } else if let Some(mut task) = with_tasks(self.id, |tasks| tasks.remove(&id)) {
                let waker = self.waker(id);
                if task.as_mut().poll(&mut Context::from_waker(&waker)).is_pending() {
                    with_tasks(self.id, |tasks| tasks.insert(id, task));
                }
            }
        }
        panic!("the simulated machine hangs: {TURNS_MAX} turns and no end (seed {})", self.seed);
    }

    fn start_lanes(&self) {
        loop {
            let Some((id, lane)) = self.new_lanes.lock().pop() else { return };
            let disk = self.disk.for_lane(&self.clock, self.latency);
            let lane: LocalFuture<'static, ()> = Box::pin(async move { lane(disk).await });
            with_tasks(self.id, |tasks| tasks.insert(id, lane));
            self.ready.lock().push(id);
        }
    }

    /// Whose turn it is.
    fn next_turn(&self) -> Option<TaskId> {
        self.clock.wake_due();
        let mut ready = self.ready.lock();
        let count = ready.len();
        (count > 0).then(|| {
            let chosen = self.clock.turn(count);
            ready.swap_remove(chosen)
        })
    }
}

/// While it lives, the machine takes turns.
struct Driven<'a>(&'a SimRt);

impl<'a> Driven<'a> {
    #[track_caller]
    fn begin(rt: &'a SimRt) -> Driven<'a> {
        let mut power = rt.is_on.lock();
        assert!(
            *power != Power::Driven,
            "blocking inside an async context of the same machine; await instead"
        );
        assert!(*power == Power::Idle, "the simulated machine is switched off");
        *power = Power::Driven;
        Driven(rt)
    }
}

impl Drop for Driven<'_> {
    fn drop(&mut self) {
        *self.0.is_on.lock() = Power::Idle;
    }
}

impl Rt for SimRt {
    fn spawn_lane(&self, _name: &str, dir: &Path, lane: LaneFn) -> Result<()> {
        if *self.is_on.lock() == Power::Off {
            let cause = std::io::Error::other("the simulated machine is switched off");
            return Err(IoError::new(Op::StartLane, dir, cause));
        }
        self.new_lanes.lock().push((self.new_task(), lane));
        Ok(())
    }

    fn sleep(&self, time: Duration) -> BoxFuture<()> {
        self.clock.sleep(time)
    }

    fn now(&self) -> Duration {
        SWITCHED_ON + self.clock.state.lock().now
    }

    fn monotonic(&self) -> Duration {
        self.clock.state.lock().now
    }

    fn random(&self) -> u64 {
        self.clock.state.lock().rng.u64(..)
    }

    fn block_on<'a>(&self, future: Pin<Box<dyn Future<Output = ()> + 'a>>) {
        self.drive(future);
    }

    fn dir_id(&self, dir: &Path) -> Result<DirId> {
        self.disk.dir_id(dir)
    }

    fn lock_dir(&self, dir: &Path) -> std::result::Result<Box<dyn HeldLock>, LockError> {
        self.disk.lock_dir(dir)
    }
}

impl Clock {
    /// How long an operation takes, if it takes time.
    pub(super) fn latency(&self, latency: Latency, op: Op) -> Option<Duration> {
        let (min, max) = latency.range(op)?;
        let micros = self.state.lock().rng.u64(min..=max);
        Some(Duration::from_micros(micros))
    }

    pub(super) fn sleep(self: &Arc<Clock>, time: Duration) -> BoxFuture<()> {
        let deadline = self.state.lock().now.checked_add(time);
        Box::pin(SimSleep { clock: Arc::clone(self), deadline, id: None })
    }

    /// Chooses among those who can run. A turn takes a microsecond.
    fn turn(&self, count: usize) -> usize {
        let mut state = self.state.lock();
        state.now += Duration::from_micros(1);
        state.rng.usize(..count)
    }

    /// Goes to the next deadline and wakes who waits for it; `false` if nobody does.
    fn jump(&self) -> bool {
        let mut state = self.state.lock();
        let Some((&(deadline, _), _)) = state.sleepers.first_key_value() else { return false };
        state.now = state.now.max(deadline);
        drop(state);
        self.wake_due();
        true
    }

    /// Wakes those whose deadline has passed.
    fn wake_due(&self) {
        let mut state = self.state.lock();
        let now = state.now;
        if state.sleepers.first_key_value().is_none_or(|(&(deadline, _), _)| deadline > now) {
            return;
        }
        let later = state.sleepers.split_off(&(now, u64::MAX));
        let due = std::mem::replace(&mut state.sleepers, later);
        drop(state);
        due.into_values().for_each(Waker::wake);
    }
}

struct SimSleep {
    clock: Arc<Clock>,
    /// `None` for one that the clock cannot name.
    deadline: Option<Duration>,
    id: Option<u64>,
}

impl Future for SimSleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let Some(deadline) = self.deadline else { return Poll::Pending };
        let clock = Arc::clone(&self.clock);
        let mut state = clock.state.lock();
        if state.now >= deadline {
            return Poll::Ready(());
        }
        let id = *self.id.get_or_insert_with(|| {
            state.next_sleeper += 1;
            state.next_sleeper
        });
        let old = state.sleepers.insert((deadline, id), context.waker().clone());
        drop(state);
        drop(old);
        Poll::Pending
    }
}

impl Drop for SimSleep {
    fn drop(&mut self) {
        if let (Some(deadline), Some(id)) = (self.deadline, self.id) {
            let waker = self.clock.state.lock().sleepers.remove(&(deadline, id));
            drop(waker);
        }
    }
}
