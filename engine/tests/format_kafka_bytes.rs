//! What our format writes equals what `kafka-storage format` of Kafka 4.4.0 wrote, byte for byte:
//! the clocks and random numbers that Kafka had are read back from its files and given to ours.
#![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]

mod support;

use kraftlog::format::{FormatPlan, FormatRequest, Layout, QuorumArgument};
use kraftlog::node::NodeConfig;
use kraftlog_codecs::batch::Batches;
use kraftlog_codecs::meta_properties::MetaProperties;
use kraftlog_codecs::properties::Properties;
use kraftlog_io::rt::{BoxFuture, LaneFn, Rt, block_on};
use kraftlog_io::{DirId, HeldLock, LockError};
use std::collections::VecDeque;
use std::future::Future;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use support::{Place, fixtures};

/// A machine whose clock and dice follow a script.
struct Script {
    machine: Arc<dyn Rt>,
    now_ms: Mutex<VecDeque<i64>>,
}

impl Rt for Script {
    fn spawn_lane(&self, _: &str, _: &Path, _: LaneFn) -> kraftlog_io::error::Result<()> {
        unreachable!("format needs no lane")
    }
    fn sleep(&self, _: Duration) -> BoxFuture<()> {
        unreachable!("format does not sleep")
    }
    fn now(&self) -> Duration {
        let ms = self.now_ms.lock().unwrap().pop_front().expect("one more clock reading than Kafka's");
        Duration::from_millis(u64::try_from(ms).unwrap())
    }
    fn monotonic(&self) -> Duration {
        Duration::ZERO
    }
    fn random(&self) -> u64 {
        7
    }
    fn block_on<'a>(&self, future: Pin<Box<dyn Future<Output = ()> + 'a>>) {
        block_on(future);
    }
    fn dir_id(&self, dir: &Path) -> kraftlog_io::error::Result<DirId> {
        self.machine.dir_id(dir)
    }
    fn lock_dir(&self, dir: &Path) -> Result<Box<dyn HeldLock>, LockError> {
        self.machine.lock_dir(dir)
    }
}

/// Splits a command line at blanks; single quotes group.
fn words(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    for (i, part) in line.trim().split('\'').enumerate() {
        match i % 2 {
            1 => words.push(part.to_owned()),
            _ => words.extend(part.split_whitespace().map(str::to_owned)),
        }
    }
    words
}

fn read_request(case: &Path, root: &Path) -> FormatRequest {
    let text = std::fs::read(case.join("config.properties")).unwrap();
    let mut properties = Properties::parse(&text).unwrap();
    let dirs = properties.get("log.dirs").unwrap();
    let dirs: Vec<String> = dirs.split(',').map(|dir| root.join(dir).to_str().unwrap().to_owned()).collect();
    properties.set("log.dirs", dirs.join(","));
    let config = NodeConfig::from_properties(&properties).unwrap();
    let mut args = words(&std::fs::read_to_string(case.join("args.txt")).unwrap()).into_iter().skip(1);
    let mut request = FormatRequest::new(config, "");
    while let Some(option) = args.next() {
        let mut value = || args.next().unwrap();
        match option.as_str() {
            "-c" => drop(value()),
            "-t" => request.cluster_id = value(),
            "-r" => request.release_version = Some(value()),
            "-f" => request.features.push(value()),
            "-S" => request.scram.push(value()),
            "--standalone" => request.quorum = QuorumArgument::Standalone,
            "--no-initial-controllers" => request.quorum = QuorumArgument::NoInitialControllers,
            "--initial-controllers" => request.quorum = QuorumArgument::InitialControllers(value()),
            other => panic!("{other}"),
        }
    }
    request
}

/// Dates of `meta.properties` files, by trying the seconds around the checkpoint's time.
fn date_ms(line: &str) -> i64 {
    let noon = 1_796_000_000_000;
    (0..200_000)
        .map(|second| noon + second * 1000)
        .find(|&ms| format!("#{}", kraftlog_codecs::properties::java_date_utc(ms)) == line)
        .unwrap_or_else(|| panic!("no second has the date {line}"))
}

fn checkpoint_of(dir: &Path) -> PathBuf {
    dir.join("__cluster_metadata-0/00000000000000000000-0000000000.checkpoint")
}

fn files_below(root: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(root).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => files.extend(files_below(&path)),
            false => files.push(path),
        }
    }
    files.sort();
    files
}

fn format_like_kafka(place: &Place, case: &Path, layout: Layout) {
    let name = case.file_name().unwrap().to_str().unwrap().to_owned();
    let place = place.another();
    let root = place.path().to_path_buf();
    let mut request = read_request(case, &root);
    request.layout = layout;
    if layout == Layout::V4_3 {
        // Its latest level, which was its default.
        request.release_version.get_or_insert_with(|| "4.3".to_owned());
    }
    if name == "scram" {
        // Kafka drew a salt of 25 characters for alice, we draw 26; hers is given here, in base64.
        let salt = match layout {
            Layout::V4_4 => "OWhhYm9hcHV0djlzbHZicGtvOTY2d3ptcw==",
            Layout::V4_3 => "ejJ6YnpkcHNxZmN2Nm14cHJlbjF0eGFydQ==",
        };
        request.scram[0] = request.scram[0].replace(']', &format!(",salt={salt}]"));
    }

    // Directories in the order in which a plan draws their ids and execution writes them.
    let metadata_dir = request.config.metadata_dir().file_name().unwrap().to_owned();
    let mut dirs: Vec<PathBuf> =
        request.config.all_dirs().iter().map(|dir| case.join(dir.file_name().unwrap())).collect();
    let own_first = request.quorum == QuorumArgument::Standalone;
    let id_of = |dir: &Path| {
        let bytes = std::fs::read(dir.join("meta.properties")).unwrap();
        MetaProperties::parse(&bytes).unwrap().directory_id.unwrap()
    };
    let mut ids: Vec<_> = dirs.iter().map(|dir| id_of(dir)).collect();
    if own_first {
        let at = dirs.iter().position(|dir| dir.file_name() == Some(&metadata_dir)).unwrap();
        let own = ids.remove(at);
        ids.insert(0, own);
    }
    let mut dice: VecDeque<u64> = match request.quorum {
        QuorumArgument::InitialControllers(_) => VecDeque::new(),
        _ => ids.iter().flat_map(|id| [id.msb(), id.lsb()]).collect(),
    };

    let script = Script { machine: Arc::clone(&place.rt), now_ms: Mutex::default() };
    dirs.sort_by_key(|dir| dir.file_name() == Some(&metadata_dir));
    for dir in &dirs {
        let mut now = script.now_ms.lock().unwrap();
        for path in [dir.join("bootstrap.checkpoint"), checkpoint_of(dir)] {
            let Ok(bytes) = std::fs::read(&path) else { continue };
            let mut batches = Batches::new(&bytes);
            let mut times = Vec::new();
            for batch in &mut batches {
                let batch = batch.1.unwrap();
                if batch.header().base_offset == 0 && path.ends_with(checkpoint_of(Path::new(""))) {
                    let header = batch.records().unwrap().next().unwrap().unwrap();
                    let value = header.value.unwrap();
                    times.push(i64::from_be_bytes(value[2..10].try_into().unwrap()));
                }
                times.push(batch.header().base_timestamp);
            }
            // A checkpoint without records has no batch for them, but its clock is read.
            if layout == Layout::V4_3 && times.len() == 3 && !path.ends_with("bootstrap.checkpoint") {
                times.insert(2, 0);
            }
            now.extend(times);
        }
        let meta = std::fs::read_to_string(dir.join("meta.properties")).unwrap();
        now.push_back(date_ms(meta.lines().nth(1).unwrap()));
    }

    let script = place.on_disk(|disk| async move {
        let mut random = || dice.pop_front().expect("one more random number than Kafka's");
        let plan = FormatPlan::make(&*disk, &request, &mut random).await.unwrap();
        plan.execute(&*disk, &script, |_| {}).await.unwrap();
        script
    });
    assert!(script.now_ms.lock().unwrap().is_empty(), "{name}: Kafka read its clock more often");

    for dir in &dirs {
        let ours = place.at(root.join(dir.file_name().unwrap()));
        let theirs: Vec<_> =
            files_below(dir).iter().map(|f| f.strip_prefix(dir).unwrap().to_owned()).collect();
        let all = ours.everything();
        let found: Vec<_> =
            all.iter().map(|(f, _)| f.strip_prefix(ours.path()).unwrap().to_owned()).collect();
        assert_eq!(found, theirs, "{name}");
        for (file, (path, got)) in theirs.iter().zip(&all) {
            assert_eq!(got, &std::fs::read(dir.join(file)).unwrap(), "{name}: {}", file.display());
            let expected_mode =
                if file.ends_with(checkpoint_of(Path::new("")).file_name().unwrap()) { 0o400 } else { 0o644 };
            // A simulated disk has no modes.
            assert_eq!(
                place.mode(path).unwrap_or(expected_mode),
                expected_mode,
                "{name}: {}",
                file.display()
            );
        }
        assert_eq!(place.mode(ours.path()).unwrap_or(0o755), 0o755, "{name}");
    }
}

on_every_backend! {
    fn every_kind_of_node_gets_the_bytes_that_kafka_4_4_gave_it(place: &Place) {
        let mut count = 0;
        for entry in std::fs::read_dir(fixtures().join("formatted-4.4.0")).unwrap() {
            let case = entry.unwrap().path();
            if case.is_dir() {
                format_like_kafka(place, &case, Layout::V4_4);
                count += 1;
            }
        }
        assert_eq!(count, 11, "fixtures are missing");
    }

    fn the_older_layout_has_the_bytes_that_kafka_4_3_gave(place: &Place) {
        let mut count = 0;
        for entry in std::fs::read_dir(fixtures().join("formatted-4.3.1")).unwrap() {
            let case = entry.unwrap().path();
            if case.is_dir() {
                format_like_kafka(place, &case, Layout::V4_3);
                count += 1;
            }
        }
        assert_eq!(count, 9, "fixtures are missing");
    }
}
