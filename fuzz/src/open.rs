//! What must hold of the open of any directory: it answers; a refusal changes no byte and is given again; a log
//! that opened can be read, appended to and opened again, and what it acknowledged is there.

use crate::dir::Dir;
use kraftlog::codecs::batch::Batches;
use kraftlog::io::BackendReport;
use kraftlog::io::sim::{FileSystem, Latency, Machine, SimDisk};
use kraftlog::{
    DirError, Epoch, ErrorKind, Isolation, LogConfig, MetadataDir, MetadataLog, Offset, OpenError,
    Preallocation, Role,
};
use std::collections::BTreeMap;
use std::error::Error;
use std::path::{Path, PathBuf};

const NODE: &str = "/node";
/// NoOpRecord: frame version, type, version, no tagged fields.
const NO_OP: [u8; 4] = [1, 20, 0, 0];

/// Opens the directory on a simulated machine and asks all of the above.
pub fn check(dir: &Dir) {
    let disk = SimDisk::new(FileSystem::Weak, 1);
    disk.make_dir(Path::new(NODE)).expect("an empty disk takes a directory");
    for (name, content) in &dir.files {
        disk.write(&Path::new(NODE).join(name), content).expect("no file is a directory");
    }
    let found = files(&disk);
    let machine = Machine::with_disk(disk, Latency::None, 1);
    let opened = machine.block_on(open(&machine, dir));
    let log = match opened {
        Ok(log) => log,
        Err(refusal) => {
            machine.run_until_idle();
            assert_eq!(files(machine.disk()), found, "a refusal changed the directory: {refusal}");
            let again = machine.block_on(open(&machine, dir)).err().expect("refused before, opened now");
            assert_eq!(refusal, again, "refused in another way");
            return;
        }
    };
    machine.block_on(read_all(&log));
    let acknowledged = machine.block_on(append(&log));
    let last_epoch = log.last_epoch();
    let disk = if dir.choices.crashes() {
        machine.disk().crash(u64::from(dir.choices.0))
    } else {
        machine.block_on(log.clone().close()).expect("a sound disk lets a log be closed");
        machine.disk().fork(1)
    };
    drop(log);
    drop(machine);

    let machine = Machine::with_disk(disk, Latency::None, 2);
    let log = match machine.block_on(open(&machine, dir)) {
        Ok(log) => log,
        Err(refusal) => panic!("opened once, then refused: {refusal}"),
    };
    if let Some(end) = acknowledged {
        assert!(log.end_offset() >= end, "acknowledged up to {end}, {} is left", log.end_offset());
        assert_eq!(log.last_epoch(), last_epoch);
    }
    machine.block_on(read_all(&log));
}

/// Opens the log, or says why not with all causes.
async fn open(machine: &Machine, dir: &Dir) -> Result<MetadataLog, String> {
    let mut config = LogConfig::default();
    config.role = if dir.choices.observes() { Role::Observer } else { Role::Voter };
    config.check_records = !dir.choices.unchecked();
    // Megabytes of reserve would cost a simulated disk most of its time.
    config.preallocation =
        if dir.choices.reserves() { Preallocation::Extend(4096) } else { Preallocation::None };
    let backend: BackendReport = machine.backend();
    let locked = MetadataDir::with_rt(Path::new(NODE), machine.rt(), backend).await;
    let locked = locked.map_err(|error: DirError| text(&error))?;
    match MetadataLog::open(locked, config).await {
        Ok((log, report)) => {
            // Whatever it says, it can be said.
            let _ = report.to_string();
            Ok(log)
        }
        Err(error) => {
            let _: ErrorKind = OpenError::kind(&error);
            Err(text(&error))
        }
    }
}

fn text(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(": ");
        text.push_str(&error.to_string());
        cause = error.source();
    }
    text
}

/// Every file but the lock.
fn files(disk: &SimDisk) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut files = disk.files();
    files.retain(|path, _| !path.ends_with(".lock"));
    files
}

/// The borders make sense; all batches follow each other; all that is not whole says so.
async fn read_all(log: &MetadataLog) {
    let ends = log.ends();
    assert!(ends.start <= ends.end, "{ends:?}");
    assert_eq!(ends.durable_end, ends.end, "open answers when everything is durable");
    assert_eq!(ends.high_watermark, ends.start, "nobody said that anything is committed");
    let mut next = ends.start;
    while next < ends.end {
        let fetched = match log.read(next, Isolation::Uncommitted, 1 << 20).await {
            Ok(fetched) => fetched,
            // Below the durable end nothing was looked at.
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
                break;
            }
        };
        let mut batches = Batches::new(&fetched.bytes);
        let mut at = fetched.start;
        for (_, batch) in batches.by_ref() {
            let batch = batch.expect("what was read was checked");
            assert_eq!(Offset(batch.header().base_offset), at, "a gap in what was read");
            at = Offset(batch.header().next_offset());
        }
        assert_eq!(at, fetched.next);
        assert!(at > next, "a read of {next} does not get on");
        next = at;
    }
    for (id, len) in log.snapshots() {
        let Ok(mut snapshot) = log.open_snapshot(id).await else { continue };
        assert_eq!(snapshot.len(), len);
        while let Ok(Some(batch)) = snapshot.next_batch().await {
            let _ = batch.records().map(|records| records.count());
        }
    }
    let mut replay = log.replay(None);
    while let Ok(replayed) = replay.next().await {
        if matches!(replayed, kraftlog::Replayed::CaughtUp(_)) {
            break;
        }
    }
    let _ = log.quorum_state().read().await;
}

/// Leads the next epoch and appends one record; where the log ends then. `None` if the directory's epochs or
/// offsets are used up.
async fn append(log: &MetadataLog) -> Option<Offset> {
    let epoch = Epoch(log.last_epoch().0.checked_add(1)?);
    log.initialize_leader_epoch(epoch).await.ok()?;
    let ticket = log.append_records(epoch, [NO_OP]).ok()?;
    let appended = ticket.durable().await.expect("a sound disk takes an append");
    Some(Offset(appended.last.0 + 1))
}
