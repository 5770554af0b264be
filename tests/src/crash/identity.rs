//! Who a node is, over crashes: format, start and learning the cluster id.
//!
//! What may be found: a directory that is not formatted at all, or one that is formatted whole; ids that
//! were given out once and never others; a cluster id that was learned, once that was answered.

use super::check::{chain, guarded};
use super::exhaustive::{hash, images};
use super::plants::Mistake;
use super::report::{Tally, Violation};
use kraftlog::format::{FormatPlan, FormatRequest, Layout, QuorumArgument};
use kraftlog::node::{Node, NodeConfig, StartOptions};
use kraftlog_codecs::batch::Batches;
use kraftlog_codecs::properties::Properties;
use kraftlog_codecs::uuid::Uuid;
use kraftlog_io::Disk;
use kraftlog_io::Op;
use kraftlog_io::sim::{Errno, Fault, FileSystem, Latency, Machine, SimDisk, Step};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

const METADATA_DIR: &str = "/srv/metadata";
const DATA_DIR: &str = "/srv/data";
const CLUSTER_ID: &str = "Jk01gj4RQRegVl2GLqYuTg";

/// What is done to the directories of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Story {
    /// Formatted as the first voter of a cluster, in the layout of 4.4 or the older one.
    Format {
        /// With a `bootstrap.checkpoint`.
        old_layout: bool,
    },
    /// Formatted, then started.
    FormatAndStart,
    /// Started with a directory whose `meta.properties` has no `directory.id`.
    Complete,
    /// Started without a cluster id, which it then learns.
    Discover,
}

/// All of them.
pub const STORIES: [Story; 5] = [
    Story::Format { old_layout: false },
    Story::Format { old_layout: true },
    Story::FormatAndStart,
    Story::Complete,
    Story::Discover,
];

/// What was answered.
#[derive(Debug, Clone, Default)]
struct Promise {
    formatted: bool,
    ids: BTreeMap<PathBuf, Uuid>,
    cluster_id: Option<String>,
    version: u64,
}

type Shared = Arc<Mutex<Arc<Promise>>>;

fn change(promise: &Shared, change: impl FnOnce(&mut Promise)) {
    let mut promise = promise.lock();
    let promise = Arc::make_mut(&mut promise);
    promise.version += 1;
    change(promise);
}

impl Story {
    fn config(self) -> NodeConfig {
        let (roles, listeners) = match self {
            Story::Discover => ("broker", "PLAINTEXT://h:9092"),
            _ => ("broker,controller", "PLAINTEXT://h:9092,CONTROLLER://h:9093"),
        };
        let properties: Properties = [
            ("process.roles", roles),
            ("node.id", "1"),
            ("listeners", listeners),
            ("controller.listener.names", "CONTROLLER"),
            ("controller.quorum.bootstrap.servers", "h:9093"),
            ("log.dirs", DATA_DIR),
            ("metadata.log.dir", METADATA_DIR),
        ]
        .into_iter()
        .collect();
        NodeConfig::from_properties(&properties).expect("a sound configuration")
    }

    fn disk(self, file_system: FileSystem) -> SimDisk {
        let disk = SimDisk::new(file_system, 1);
        disk.make_dir(Path::new("/srv")).expect("room");
        let put = |dir: &str, text: &str| {
            disk.write(&Path::new(dir).join("meta.properties"), text.as_bytes()).expect("room");
        };
        match self {
            Story::Complete => {
                let props = format!("version=1\ncluster.id={CLUSTER_ID}\nnode.id=1\n");
                put(METADATA_DIR, &props);
                put(DATA_DIR, &format!("{props}directory.id=FNu1jmuxSF2vc8q95hCkCQ\n"));
            }
            Story::Discover => {
                disk.make_dir(Path::new(METADATA_DIR)).expect("room");
            }
            Story::Format { .. } | Story::FormatAndStart => {}
        }
        disk
    }

    async fn tell(self, machine: &Machine, promise: &Shared) -> Result<(), String> {
        if let Story::Format { .. } | Story::FormatAndStart = self {
            let ids = format(machine, self, false).await?;
            change(promise, |promise| {
                // A directory that could not be looked at is left out, as Kafka does.
                promise.formatted = ids.len() == 2;
                promise.ids = ids;
                promise.cluster_id = Some(CLUSTER_ID.to_owned());
            });
        }
        if let Story::Format { .. } = self {
            return Ok(());
        }
        let node = start(machine, self).await?;
        let ids = node.identity().directories().map(|(path, id)| (path.to_path_buf(), id)).collect();
        let cluster_id = node.cluster_id().get().map(|id| id.to_string());
        change(promise, |promise| {
            promise.formatted = true;
            promise.ids = ids;
            promise.cluster_id = cluster_id;
        });
        if self == Story::Discover {
            node.learn_cluster_id(CLUSTER_ID).await.map_err(|error| chain(&error))?;
            change(promise, |promise| promise.cluster_id = Some(CLUSTER_ID.to_owned()));
        }
        Ok(())
    }
}

/// Formats what is not formatted yet; gives the ids of what it formatted.
async fn format(machine: &Machine, story: Story, again: bool) -> Result<BTreeMap<PathBuf, Uuid>, String> {
    let mut request = FormatRequest::new(story.config(), CLUSTER_ID);
    request.quorum = QuorumArgument::Standalone;
    request.ignore_formatted = again;
    if story == (Story::Format { old_layout: true }) {
        request.layout = Layout::V4_3;
    }
    let rt = machine.rt();
    in_lane(machine, async move |disk| {
        let plan = FormatPlan::make(&*disk, &request, &mut || rt.random()).await;
        let plan = plan.map_err(|error| format!("the plan of a format: {}", chain(&error)))?;
        let executed = plan.execute(&*disk, &*rt, |_| {}).await;
        executed.map_err(|failure| format!("format: {}", chain(&failure)))?;
        Ok(plan.dirs().iter().map(|dir| (dir.path.clone(), dir.directory_id)).collect())
    })
    .await
}

async fn start(machine: &Machine, story: Story) -> Result<Node, String> {
    let mut options = StartOptions::default();
    options.discover_cluster_id = story == Story::Discover;
    let started = Node::start_with_rt(story.config(), options, machine.rt(), machine.backend()).await;
    started.map_err(|error| format!("start: {}", chain(&error)))
}

/// Does work that needs the disk itself.
async fn in_lane<T: Send + 'static, F: Future<Output = Result<T, String>>>(
    machine: &Machine,
    work: impl FnOnce(Rc<dyn Disk>) -> F + Send + 'static,
) -> Result<T, String> {
    let (answer, answered) = std::sync::mpsc::channel();
    let lane = Box::new(move |disk| {
        Box::pin(async move { drop(answer.send(work(disk).await)) }) as kraftlog_io::LocalFuture<'static, ()>
    });
    machine.rt().spawn_lane("format", Path::new("/"), lane).map_err(|error| chain(&error))?;
    loop {
        match answered.try_recv() {
            Ok(answer) => return answer,
            Err(std::sync::mpsc::TryRecvError::Empty) => machine.rt().sleep(Duration::from_micros(5)).await,
            Err(error) => return Err(error.to_string()),
        }
    }
}

/// Holds what a crash left against what was answered.
fn check(disk: &SimDisk, story: Story, promise: &Promise) -> Result<(), String> {
    for dir in [METADATA_DIR, DATA_DIR].map(PathBuf::from) {
        let meta = disk.read(&dir.join("meta.properties"));
        if let (Some(_), true, Story::Format { .. } | Story::FormatAndStart) =
            (&meta, dir == Path::new(METADATA_DIR), story)
        {
            // The file is the commit point: with it everything else is there.
            let zero = "__cluster_metadata-0/00000000000000000000-0000000000.checkpoint";
            let bytes = disk.read(&dir.join(zero)).ok_or("formatted, and without its checkpoint")?;
            let batches: Vec<_> = Batches::new(&bytes).map(|(_, batch)| batch).collect();
            let is_whole = |batch: &Result<kraftlog_codecs::batch::Batch<'_>, _>| batch.is_ok();
            let last_is_control =
                batches.last().is_some_and(|last| last.as_ref().is_ok_and(|b| b.header().is_control()));
            if batches.len() < 2 || !batches.iter().all(is_whole) || !last_is_control {
                return Err("formatted, and its checkpoint is not whole".to_owned());
            }
            if story == (Story::Format { old_layout: true })
                && disk.read(&dir.join("bootstrap.checkpoint")).is_none()
            {
                return Err("formatted in the old layout, and without bootstrap.checkpoint".to_owned());
            }
        }
    }
    let machine = Machine::with_disk(disk.fork(1), Latency::None, 3);
    guarded(|| {
        machine.block_on(async {
            if !promise.formatted && matches!(story, Story::Format { .. } | Story::FormatAndStart) {
                format(&machine, story, true).await.map_err(|error| format!("formatting again: {error}"))?;
            }
            let node = start(&machine, story).await?;
            let ids: BTreeMap<PathBuf, Uuid> =
                node.identity().directories().map(|(path, id)| (path.to_path_buf(), id)).collect();
            for (path, id) in &promise.ids {
                if ids.get(path) != Some(id) {
                    return Err(format!("{} was {id} and is {:?}", path.display(), ids.get(path)));
                }
            }
            let cluster_id = node.cluster_id().get().map(|id| id.to_string());
            if cluster_id != promise.cluster_id
                && (promise.cluster_id.is_some() || cluster_id.as_deref() != Some(CLUSTER_ID))
            {
                return Err(format!("the cluster id was {:?} and is {cluster_id:?}", promise.cluster_id));
            }
            if story == Story::Discover {
                node.learn_cluster_id(CLUSTER_ID)
                    .await
                    .map_err(|error| format!("learning again: {}", chain(&error)))?;
            }
            drop(node);
            let again = start(&machine, story).await.map_err(|error| format!("the second {error}"))?;
            let same: BTreeMap<PathBuf, Uuid> =
                again.identity().directories().map(|(path, id)| (path.to_path_buf(), id)).collect();
            if same != ids {
                return Err(format!("ids changed from one start to the next: {ids:?}, {same:?}"));
            }
            match again.cluster_id().get().as_deref() {
                Some(CLUSTER_ID) => Ok(()),
                other => Err(format!("the cluster id is {other:?} in the end")),
            }
        })
    })?
}

/// A moment, and what had been answered by then.
type Moment = (Step, SimDisk, Arc<Promise>);

/// Runs a story to its end, or to where a fault stops it.
fn run(
    story: Story,
    file_system: FileSystem,
    mistake: Option<&Mistake>,
    fault: Option<(u64, Fault)>,
) -> (Vec<Moment>, SimDisk, Arc<Promise>, Result<(), String>) {
    let machine = Machine::with_disk(story.disk(file_system), Latency::None, 2);
    let promise = Shared::default();
    let (note, moments) = std::sync::mpsc::channel();
    let (seen, mut skip) = (Arc::clone(&promise), mistake.and_then(Mistake::skipper));
    machine.disk().on_step(move |disk, step| {
        super::tell(&step);
        let moment: Moment = (step.clone(), disk.fork(0), Arc::clone(&seen.lock()));
        let _ = note.send(moment);
        let now = fault.filter(|(number, _)| *number == step.number).map(|(_, fault)| fault);
        now.or_else(|| skip.as_mut().and_then(|skip| skip(step)))
    });
    let ended = guarded(|| machine.block_on(story.tell(&machine, &promise)));
    let disk = machine.disk().clone();
    disk.clear_hook();
    let promise = Arc::clone(&promise.lock());
    (moments.try_iter().collect(), disk, promise, ended.and_then(|ended| ended))
}

/// Crashes a story everywhere and fails each of its steps.
pub fn explore(number: usize, mistake: Option<&Mistake>, tally: &mut Tally) -> Option<Violation> {
    let story = *STORIES.get(number)?;
    let violation = |what: String, step: &dyn std::fmt::Display, disk: &SimDisk| Violation {
        what,
        replay: format!("--identity {number}"),
        history: format!("{story:?}"),
        step: step.to_string(),
        disk: disk.fork(0),
    };
    for file_system in [FileSystem::Weak, FileSystem::Ext4] {
        let (moments, disk, promise, ended) = run(story, file_system, mistake, None);
        tally.runs += 1;
        if let Err(what) = ended {
            return Some(violation(what, &"its end, without a crash", &disk));
        }
        let end = ("the end", disk.fork(0), promise);
        // A directory that cannot be looked at is offline, and the node starts without it, as Kafka's does.
        let steps: Vec<Step> = moments.iter().map(|(step, ..)| step.clone()).filter(Step::changes).collect();
        let changes = moments.into_iter().filter(|(step, ..)| step.changes());
        let all = changes.map(|(step, disk, promise)| (step.to_string(), disk, promise));
        for (step, disk, promise) in all.chain([(end.0.to_owned(), end.1, end.2)]) {
            tally.moments += 1;
            for image in images(&disk, 128, hash(&step)) {
                tally.images += 1;
                let key = hash(&format!("{story:?} {file_system:?} {}", promise.version));
                if tally.seen.insert((image.fingerprint(), key))
                    && let Err(what) = check(&image, story, &promise)
                {
                    return Some(violation(what, &step, &image));
                }
            }
        }
        for step in steps {
            for fault in faults_of(step.op) {
                let (_, disk, promise, ended) = run(story, file_system, mistake, Some((step.number, *fault)));
                tally.runs += 1;
                if let Err(what) = ended
                    && what.starts_with("panic")
                {
                    return Some(violation(what, &format!("its end, with {fault:?} in {step}"), &disk));
                }
                for image in std::iter::once(disk.fork(0)).chain((0..3).map(|seed| disk.crash(seed))) {
                    tally.images += 1;
                    if let Err(what) = check(&image, story, &promise) {
                        return Some(violation(what, &format!("the end, after {fault:?} in {step}"), &image));
                    }
                }
            }
        }
    }
    None
}

fn faults_of(op: Op) -> &'static [Fault] {
    match op {
        Op::Sync | Op::SyncDir => {
            &[Fault::LostSync { cache_keeps: true }, Fault::LostSync { cache_keeps: false }]
        }
        Op::Write => &[Fault::Fails(Errno::IO), Fault::Fails(Errno::NOSPC), Fault::ShortWrite],
        _ => &[Fault::Fails(Errno::IO)],
    }
}
