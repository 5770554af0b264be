//! A directory of one test, on one back end, and the ways to run something there.

use super::answer::answer;
use super::chain;
use kraftlog::{DirError, LogConfig, MetadataDir, MetadataLog, OpenError, OpenReport};
use kraftlog_io::sim::{FileSystem, Latency, Machine, SimDisk};
use kraftlog_io::{BackendChoice, BackendError, BackendReport, Disk, Rt, ThreadRt};
use std::cell::Cell;
use std::future::Future;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

/// Something that is to run beside others.
pub(crate) type Client = Pin<Box<dyn Future<Output = ()> + Send>>;

/// A directory of one test, on one back end.
pub(crate) struct Place {
    pub(crate) rt: Arc<dyn Rt>,
    pub(crate) backend: BackendReport,
    /// The directory.
    pub(super) dir: PathBuf,
    /// What is kept for as long as a place is on it.
    pub(super) ground: Rc<Ground>,
    count: Rc<Cell<u32>>,
}

/// What a directory lies on.
pub(super) enum Ground {
    Real(tempfile::TempDir),
    Sim(Machine),
}

impl Place {
    /// Fails with the reason where this machine lacks the back end.
    pub(super) fn new(choice: BackendChoice) -> Result<Place, String> {
        let temporary = tempfile::tempdir().expect("a temporary directory");
        match ThreadRt::open(temporary.path(), choice) {
            Ok((rt, backend)) => {
                let root = temporary.path().to_path_buf();
                Ok(Place::on(Ground::Real(temporary), rt, backend, &root))
            }
            Err(BackendError::Unsupported { reason }) => Err(reason.to_string()),
            Err(error) => panic!("{error}"),
        }
    }

    pub(super) fn simulated(seed: u64, latency: Latency) -> Place {
        let machine = Machine::with_disk(SimDisk::new(FileSystem::Weak, seed), latency, seed);
        let (rt, backend) = (machine.rt(), machine.backend());
        Place::on(Ground::Sim(machine), rt, backend, Path::new("/"))
    }

    fn on(ground: Ground, rt: Arc<dyn Rt>, backend: BackendReport, root: &Path) -> Place {
        let dir = root.join("node");
        let place = Place { rt, backend, dir, ground: Rc::new(ground), count: Rc::default() };
        place.make_dir(&place.dir);
        place
    }

    /// An empty directory beside the others on the same back end.
    pub(crate) fn another(&self) -> Place {
        self.count.set(self.count.get() + 1);
        let dir = self.dir.with_file_name(format!("node-{}", self.count.get()));
        let place = self.at(dir);
        place.make_dir(&place.dir);
        place
    }

    /// Another directory of the same back end that may be there.
    pub(crate) fn at(&self, dir: PathBuf) -> Place {
        Place {
            rt: Arc::clone(&self.rt),
            backend: self.backend.clone(),
            dir,
            ground: Rc::clone(&self.ground),
            count: Rc::clone(&self.count),
        }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.dir
    }

    pub(crate) fn part(&self) -> PathBuf {
        self.dir.join("__cluster_metadata-0")
    }

    pub(crate) fn segment(&self, base: i64) -> PathBuf {
        self.part().join(format!("{base:020}.log"))
    }

    // ---- running something

    /// Runs a future to its end. On a simulated machine nothing runs but in here.
    pub(crate) fn run<T>(&self, future: impl Future<Output = T>) -> T {
        let mut answer = None;
        self.rt.block_on(Box::pin(async { answer = Some(future.await) }));
        answer.expect("a runtime returns when the future is done")
    }

    /// Runs clients beside each other until all are done: each on a thread of its own, or as tasks of the
    /// simulated machine, whose order the seed decides.
    pub(crate) fn together(&self, clients: Vec<Client>) {
        let (started, answers): (Vec<Client>, Vec<_>) = clients
            .into_iter()
            .map(|client| {
                let (done, is_done) = answer();
                let client: Client = Box::pin(async {
                    client.await;
                    done.give(());
                });
                (client, is_done)
            })
            .unzip();
        match &*self.ground {
            Ground::Real(_) => std::thread::scope(|scope| {
                for client in started {
                    scope.spawn(|| kraftlog_io::rt::block_on(client));
                }
            }),
            Ground::Sim(machine) => started.into_iter().for_each(|client| machine.spawn(client)),
        }
        self.run(async {
            for is_done in answers {
                is_done.get().await;
            }
        });
    }

    /// Runs work on a lane of its own, with the lane's disk.
    pub(crate) fn on_disk<T, F>(&self, work: impl FnOnce(Rc<dyn Disk>) -> F + Send + 'static) -> T
    where
        T: Send + 'static,
        F: Future<Output = T> + 'static,
    {
        let (done, is_done) = answer();
        let lane = self.rt.spawn_lane(
            "test",
            &self.dir,
            Box::new(move |disk| Box::pin(async move { done.give(work(disk).await) })),
        );
        lane.expect("a lane");
        self.run(is_done.get())
    }

    /// Waits for something that only shows on the disk.
    pub(crate) fn wait_until(&self, is_so: impl Fn() -> bool) {
        while !is_so() {
            self.run(self.rt.sleep(Duration::from_millis(1)));
        }
    }

    /// Lets a simulated machine do what is left to do.
    pub(super) fn run_until_idle(&self) {
        if let Ground::Sim(machine) = &*self.ground {
            machine.run_until_idle();
        }
    }

    // ---- the log

    pub(crate) fn try_lock(&self) -> Result<MetadataDir, DirError> {
        self.run(MetadataDir::with_rt(&self.dir, Arc::clone(&self.rt), self.backend.clone()))
    }

    pub(crate) fn lock(&self) -> MetadataDir {
        self.try_lock().expect("the directory is free")
    }

    pub(crate) fn try_open(&self, config: LogConfig) -> Result<(MetadataLog, OpenReport), OpenError> {
        MetadataLog::open_blocking(self.lock(), config)
    }

    /// Waits until a log that was dropped has drained.
    pub(crate) fn settle(&self) {
        drop(self.lock());
    }

    pub(crate) fn open_with(&self, config: LogConfig) -> (MetadataLog, OpenReport) {
        self.try_open(config).unwrap_or_else(|error| panic!("{}", chain(&error)))
    }

    pub(crate) fn open(&self) -> (MetadataLog, OpenReport) {
        self.open_with(LogConfig::default())
    }

    pub(crate) fn refused(&self) -> OpenError {
        match self.try_open(LogConfig::default()) {
            Ok((_, report)) => panic!("opened: {report}"),
            Err(error) => error,
        }
    }
}
