//! The simulated machine itself: what a crash may and may not leave, what faults do, and that a seed
//! replays a run.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use bytes::{Bytes, BytesMut};
use kraftlog_io::sim::{AllCrashes, Errno, Fault, FileSystem, Latency, Machine, SECTOR_BYTES, SimDisk};
use kraftlog_io::{AppendSyncError, Disk, IoErrorKind, Op, OpenHow, atomic};
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::path::Path;
use std::rc::Rc;
use std::sync::{Arc, Mutex};
use std::time::Duration;

const NEW: OpenHow = OpenHow::CreateNew { mode: 0o644 };

/// Does work in a lane and gives its answer.
fn lane<T: Send + 'static, F: Future<Output = T>>(
    machine: &Machine,
    work: impl FnOnce(Rc<dyn Disk>) -> F + Send + 'static,
) -> T {
    let answer = Arc::new(Mutex::new(None));
    let to = Arc::clone(&answer);
    let lane = Box::new(move |disk| {
        Box::pin(async move {
            let done = work(disk).await;
            *to.lock().unwrap() = Some(done);
        }) as kraftlog_io::LocalFuture<'static, ()>
    });
    machine.rt().spawn_lane("test", Path::new("/"), lane).unwrap();
    let sleeper = machine.rt();
    machine.block_on(async {
        while answer.lock().unwrap().is_none() {
            sleeper.sleep(Duration::from_micros(10)).await;
        }
    });
    answer.lock().unwrap().take().unwrap()
}

fn every_crash(disk: &SimDisk) -> Vec<SimDisk> {
    let mut walk = AllCrashes::default();
    let found: Vec<SimDisk> = std::iter::from_fn(|| disk.next_crash(&mut walk, 0)).collect();
    assert_eq!(found.len(), disk.crashes(usize::MAX));
    found
}

fn bytes(content: &[u8]) -> Vec<Bytes> {
    vec![Bytes::copy_from_slice(content)]
}

#[test]
fn every_unsynced_sector_length_and_name_survives_or_not_by_itself() {
    let machine = Machine::new(1);
    let path = Path::new("/file");
    lane(&machine, async |disk| {
        let file = disk.open(Path::new("/file"), NEW).await.unwrap();
        file.write_at(0, bytes(&[b'a'; 3 * SECTOR_BYTES])).await.unwrap();
    });
    let found: BTreeSet<Option<Vec<u8>>> =
        every_crash(machine.disk()).iter().map(|disk| disk.read(path)).collect();
    // No name; a name and no length; or three sectors of which each is there or zero.
    assert_eq!(found.len(), 1 + 1 + 8);
    assert!(found.contains(&None));
    assert!(found.contains(&Some(Vec::new())));
    let mut torn = vec![b'a'; 3 * SECTOR_BYTES];
    torn[SECTOR_BYTES..2 * SECTOR_BYTES].fill(0);
    assert!(found.contains(&Some(torn)), "the second sector alone may be missing");
}

#[test]
fn on_ext4_a_length_does_not_come_before_its_bytes() {
    let machine = Machine::with_disk(SimDisk::new(FileSystem::Ext4, 1), Latency::None, 1);
    let path = Path::new("/file");
    lane(&machine, async |disk| {
        let file = disk.open(Path::new("/file"), NEW).await.unwrap();
        file.write_at(0, bytes(&[b'a'; 3 * SECTOR_BYTES])).await.unwrap();
    });
    let found: BTreeSet<Option<Vec<u8>>> =
        every_crash(machine.disk()).iter().map(|disk| disk.read(path)).collect();
    let whole = vec![b'a'; 3 * SECTOR_BYTES];
    assert_eq!(found, BTreeSet::from([None, Some(Vec::new()), Some(whole)]));
}

#[test]
fn a_sync_makes_the_content_durable_and_not_the_name() {
    let machine = Machine::new(1);
    lane(&machine, async |disk| {
        let file = disk.open(Path::new("/file"), NEW).await.unwrap();
        file.append_and_sync(0, bytes(b"content"), Some(Box::new(|| {}))).await.unwrap();
    });
    let found: BTreeSet<Option<Vec<u8>>> =
        every_crash(machine.disk()).iter().map(|disk| disk.read(Path::new("/file"))).collect();
    assert_eq!(found, BTreeSet::from([None, Some(b"content".to_vec())]));
    lane(&machine, async |disk| disk.sync_dir(Path::new("/")).await.unwrap());
    assert_eq!(machine.disk().crashes(10), 1, "nothing is left to decide");
}

#[test]
fn half_a_rename_may_survive_on_a_weak_file_system_and_not_on_ext4() {
    for (file_system, ways) in [(FileSystem::Weak, 4), (FileSystem::Ext4, 2)] {
        let disk = SimDisk::new(file_system, 1);
        disk.write(Path::new("/old"), b"content").unwrap();
        let machine = Machine::with_disk(disk, Latency::None, 1);
        lane(&machine, async |disk| disk.rename(Path::new("/old"), Path::new("/new")).await.unwrap());
        let found: BTreeSet<Vec<_>> =
            every_crash(machine.disk()).iter().map(|disk| disk.files().into_keys().collect()).collect();
        assert_eq!(found.len(), ways, "{file_system:?}: {found:?}");
    }
}

#[test]
fn after_a_failed_sync_a_second_one_says_ok_and_saves_nothing() {
    for cache_keeps in [true, false] {
        let disk = SimDisk::new(FileSystem::Weak, 3);
        disk.write(Path::new("/file"), &[b'o'; 8 * SECTOR_BYTES]).unwrap();
        let machine = Machine::with_disk(disk, Latency::None, 1);
        let mut failed = false;
        machine.disk().on_step(move |_, step| {
            let fails = step.op == Op::Sync && !std::mem::replace(&mut failed, step.op == Op::Sync);
            fails.then_some(Fault::LostSync { cache_keeps })
        });
        let read = lane(&machine, async |disk| {
            let file = disk.open(Path::new("/file"), OpenHow::Write).await.unwrap();
            let new = [b'n'; 8 * SECTOR_BYTES];
            let appended = file.append_and_sync(0, bytes(&new), Some(Box::new(|| {}))).await;
            assert!(
                matches!(appended, Err(AppendSyncError::Sync(error)) if error.kind() == IoErrorKind::Failed)
            );
            file.sync_data().await.unwrap();
            file.read_at(0, 1 << 20, BytesMut::new()).await.unwrap()
        });
        let found = machine.disk().crash(1).read(Path::new("/file")).unwrap();
        assert!(found.contains(&b'o') && found.contains(&b'n'), "a part made it, a part was lost");
        match cache_keeps {
            true => assert!(read.iter().all(|byte| *byte == b'n'), "the cache shows what was written"),
            false => assert_eq!(read, found, "the cache shows what the medium has"),
        }
    }
}

#[test]
fn a_short_write_is_gone_on_with_and_a_full_disk_takes_what_fits() {
    let disk = SimDisk::new(FileSystem::Weak, 3);
    disk.set_capacity(Some(1000));
    let machine = Machine::with_disk(disk, Latency::None, 1);
    let writes = Arc::new(Mutex::new(0));
    let count = Arc::clone(&writes);
    machine.disk().on_step(move |_, step| {
        (step.op == Op::Write).then(|| *count.lock().unwrap() += 1);
        (step.op == Op::Write && step.len > 100).then_some(Fault::ShortWrite)
    });
    let full = lane(&machine, async |disk| {
        let file = disk.open(Path::new("/file"), NEW).await.unwrap();
        file.write_at(0, bytes(&[b'a'; 900])).await.unwrap();
        file.write_at(900, bytes(&[b'b'; 200])).await.unwrap_err().kind()
    });
    assert_eq!(full, IoErrorKind::NoSpace);
    assert!(*writes.lock().unwrap() > 3);
    let content = machine.disk().read(Path::new("/file")).unwrap();
    assert!(content.starts_with(&[b'a'; 900]));
    assert_eq!(content.len(), 1000, "what fits is there");
}

#[test]
fn flips_and_misdirections_change_what_is_read_and_nobody_is_told() {
    for fault in [Fault::BitFlip, Fault::Misdirected] {
        for op in [Op::Read, Op::Write] {
            let disk = SimDisk::new(FileSystem::Weak, 5);
            let sectors: Vec<u8> = (0..16_u8).flat_map(|sector| [sector; SECTOR_BYTES]).collect();
            disk.write(Path::new("/file"), &sectors).unwrap();
            let machine = Machine::with_disk(disk, Latency::None, 1);
            machine.disk().on_step(move |_, step| (step.op == op).then_some(fault));
            let (at, new) = (3 * SECTOR_BYTES, [b'n'; SECTOR_BYTES]);
            let read = lane(&machine, async move |disk| {
                let file = disk.open(Path::new("/file"), OpenHow::Write).await.unwrap();
                file.write_at(at as u64, bytes(&new)).await.unwrap();
                file.read_at(at as u64, SECTOR_BYTES, BytesMut::new()).await.unwrap()
            });
            assert_ne!(&read[..], &new[..], "{fault:?} of {op:?}");
        }
    }
}

#[test]
fn a_closed_sector_behind_a_cut_reads_as_zeros_when_the_file_grows_again_also_after_a_crash() {
    let machine = Machine::new(1);
    lane(&machine, async |disk| {
        let file = disk.open(Path::new("/file"), NEW).await.unwrap();
        file.write_at(0, bytes(&[b'a'; 700])).await.unwrap();
        file.sync_all().await.unwrap();
        disk.sync_dir(Path::new("/")).await.unwrap();
        file.set_len(600).await.unwrap();
        file.set_len(700).await.unwrap();
    });
    for found in every_crash(machine.disk()) {
        let content = found.read(Path::new("/file")).unwrap();
        assert!(content.len() == 600 || content.len() == 700);
        assert!(content[..600].iter().all(|byte| *byte == b'a'));
        let tail = &content[600..];
        assert!(tail.iter().all(|byte| *byte == b'a') || tail.iter().all(|byte| *byte == 0));
    }
}

#[test]
fn a_directory_that_was_not_synced_takes_all_that_is_in_it_along() {
    let machine = Machine::new(1);
    lane(&machine, async |disk| {
        disk.create_dir(Path::new("/dir")).await.unwrap();
        atomic::replace(&*disk, Path::new("/dir/file"), b"content", 0o644).await.unwrap();
    });
    let found: BTreeSet<_> =
        every_crash(machine.disk()).iter().map(|disk| disk.read(Path::new("/dir/file"))).collect();
    assert_eq!(found, BTreeSet::from([None, Some(b"content".to_vec())]));
}

/// Three clients that write and sync files of their own, with everything that happened as text.
fn history(seed: u64) -> (Vec<String>, u64, u64) {
    let machine = Machine::with_disk(SimDisk::new(FileSystem::Weak, seed), Latency::Between(1, 100), seed);
    let seen = Arc::new(Mutex::new(Vec::new()));
    let note = Arc::clone(&seen);
    machine.disk().on_step(move |disk, step| {
        note.lock().unwrap().push(format!("{step} on {:x}", disk.fingerprint()));
        (step.number % 7 == 0 && step.op == Op::Write).then_some(Fault::Fails(Errno::IO))
    });
    let left = Rc::new(RefCell::new(3));
    for client in 0..3 {
        let rt = machine.rt();
        rt.spawn_lane(
            "client",
            Path::new("/"),
            Box::new(move |disk| {
                Box::pin(async move {
                    let path = format!("/client-{client}");
                    let file = disk.open(Path::new(&path), NEW).await.unwrap();
                    for round in 0..10 {
                        let _ = file
                            .append_and_sync(round * 600, bytes(&[client; 600]), Some(Box::new(|| {})))
                            .await;
                    }
                })
            }),
        )
        .unwrap();
        let (left, rt) = (Rc::clone(&left), machine.rt());
        machine.spawn(async move {
            rt.sleep(Duration::from_millis(50 + rt.random() % 50)).await;
            *left.borrow_mut() -= 1;
        });
    }
    let rt = machine.rt();
    machine.block_on(rt.sleep(Duration::from_secs(1)));
    assert_eq!(*left.borrow(), 0, "all clients had their turns");
    let text = seen.lock().unwrap().clone();
    assert!(text.len() > 50, "{} steps", text.len());
    (text, machine.disk().crash(seed).fingerprint(), rt.random())
}

#[test]
fn the_same_seed_is_the_same_history_byte_for_byte_and_another_seed_another_one() {
    for seed in [1, 2, 77] {
        assert_eq!(history(seed), history(seed), "seed {seed}");
    }
    assert_ne!(history(1), history(2));
}

#[test]
fn a_machine_that_can_never_go_on_says_so_instead_of_hanging() {
    let stands_still = std::panic::catch_unwind(|| {
        let machine = Machine::new(9);
        machine.block_on(std::future::pending::<()>());
    });
    let text = *stands_still.unwrap_err().downcast::<String>().unwrap();
    assert!(text.contains("stands still") && text.contains("seed 9"), "{text}");
}

#[test]
fn locks_are_the_machines_and_go_with_it() {
    let disk = SimDisk::new(FileSystem::Weak, 1);
    disk.make_dir(Path::new("/dir")).unwrap();
    let machine = Machine::with_disk(disk.clone(), Latency::None, 1);
    let lock = machine.rt().lock_dir(Path::new("/dir")).unwrap();
    assert!(lock.is_intact());
    assert!(machine.rt().lock_dir(Path::new("/dir/../dir")).is_err(), "two paths, one directory");
    let found = disk.crash(1);
    let after = Machine::with_disk(found, Latency::None, 1);
    after.rt().lock_dir(Path::new("/dir")).unwrap();
    drop(lock);
    machine.rt().lock_dir(Path::new("/dir")).unwrap();
}
