//! A checkpoint file: the reader that hands out its batches, the check that keeps none, and the one that reads
//! through a disk agree on whether it is whole and on what is in it.
#![no_main]

use kraftlog::io::OpenHow;
use kraftlog::io::sim::Machine;
use kraftlog::snapshot::{
    SnapshotError, SnapshotFault, SnapshotFile, SnapshotSummary, inspect, verify, verify_file,
};
use kraftlog_fuzz::{mend, scratch};
use libfuzzer_sys::fuzz_target;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

/// Reads a checkpoint batch by batch; what it says must be what its batches showed.
fn walk(path: &Path) -> Result<SnapshotSummary, SnapshotError> {
    let mut file = SnapshotFile::open(path)?;
    let (mut batches, mut at) = (0, 0);
    while let Some(batch) = file.next_batch()? {
        at += batch.bytes().len() as u64;
        batches += 1;
        batch.check_crc().expect("what is handed out was checked");
    }
    let summary = file.summary().expect("whole");
    assert_eq!((summary.batches, at), (batches, file.len()));
    Ok(summary)
}

fn fault(error: SnapshotError) -> SnapshotFault {
    match error {
        SnapshotError::Invalid { fault, .. } => fault,
        other => panic!("a file that can be read: {other}"),
    }
}

fn check(bytes: &[u8]) {
    let file = scratch::file(bytes);
    let path = PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()));
    let walked = walk(&path).map_err(fault);
    let verified = verify_file(&path).map_err(fault);
    assert_eq!(walked.is_ok(), verified.is_ok(), "{walked:?} or {verified:?}");
    if let (Ok(walked), Ok(verified)) = (&walked, &verified) {
        assert_eq!(walked, verified);
    }
    let machine = Machine::new(1);
    let here = Path::new("/checkpoint");
    machine.disk().write(here, bytes).expect("an empty disk takes a file");
    let (tell, told) = std::sync::mpsc::channel();
    let len = bytes.len() as u64;
    let lane = move |disk: std::rc::Rc<dyn kraftlog::io::Disk>| {
        Box::pin(async move {
            let file = disk.open(here, OpenHow::Read).await.expect("it is there");
            let whole = verify(&*file, len).await.expect("a sound disk");
            let head = inspect(&*disk, here, len).await.expect("a sound disk");
            tell.send((whole, head)).expect("somebody asks");
        }) as kraftlog::io::LocalFuture<'static, ()>
    };
    machine.rt().spawn_lane("look", Path::new("/"), Box::new(lane)).expect("the machine is on");
    machine.run_until_idle();
    let (whole, head) = told.recv().expect("an answer");
    assert_eq!(whole, verified);
    // The ends alone may look right where the middle is not. The other way round a header may be at fault that
    // nobody can read or use though its checksum is right: the check of the whole looks into no record.
    let missing = matches!(head, Err(SnapshotFault::NoHeader { .. } | SnapshotFault::Cut { .. }));
    assert!(whole.is_err() || !missing, "whole, but {head:?}");
}

fuzz_target!(|bytes: &[u8]| {
    check(bytes);
    check(&mend::batches(bytes));
});
