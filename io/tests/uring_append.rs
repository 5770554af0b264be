//! Durable appends through a ring: linked, fused, in many parts, to full disks, dropped half-way.

#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use bytes::{Bytes, BytesMut};
use kraftlog_io::{
    AppendSyncError, BackendChoice, BackendError, Disk, IoErrorKind, LocalFuture, Op, OpenHow,
};
use kraftlog_io::{Rt, ThreadRt};
use std::cell::Cell;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::task::{Context, Waker};

const NEW: OpenHow = OpenHow::CreateNew { mode: 0o644 };

/// Runs a test in a lane with a ring, and waits until it has ended; `None`, said aloud, without io_uring.
fn in_a_lane<T: Send + 'static>(
    dir: &Path,
    test: impl FnOnce(Rc<dyn Disk>, PathBuf) -> LocalFuture<'static, T> + Send + 'static,
) -> Option<T> {
    let (rt, answer): (Arc<dyn Rt>, _) = match ThreadRt::open(dir, BackendChoice::Uring) {
        Ok((rt, _)) => (rt, channel()),
        Err(BackendError::Unsupported { reason }) => {
            println!("not run: {reason}");
            return None;
        }
        Err(error) => panic!("{error:?}"),
    };
    let (tell, told) = answer;
    let path = dir.join("file");
    let lane = move |disk| -> LocalFuture<'static, ()> {
        Box::pin(async move { tell.send(test(disk, path).await).unwrap() })
    };
    rt.spawn_lane("test", dir, Box::new(lane)).unwrap();
    Some(told.recv().expect("the lane panicked"))
}

#[test]
fn an_append_of_many_buffers_is_whole_with_and_without_a_hook() {
    // More than a write takes at once, empty ones in between, at a position that no sector begins at.
    let bufs: Vec<Bytes> =
        (0..2500_u32).map(|i| Bytes::from(i.to_be_bytes()[..i as usize % 5].to_vec())).collect();
    let whole = bufs.concat();
    for hook in [true, false] {
        let dir = tempfile::tempdir().unwrap();
        let (bufs, whole) = (bufs.clone(), whole.clone());
        in_a_lane(dir.path(), move |disk, path| {
            Box::pin(async move {
                let file = disk.open(&path, NEW).await.unwrap();
                let calls = Cell::new(0);
                let written = hook.then(|| Box::new(|| calls.set(calls.get() + 1)) as Box<dyn FnOnce()>);
                file.append_and_sync(7, bufs, written).await.unwrap();
                assert_eq!(calls.get(), u32::from(hook));
                let read = file.read_at(0, whole.len() + 100, BytesMut::new()).await.unwrap();
                assert!(read[..7] == [0; 7] && read[7..] == whole, "hook {hook}: {} bytes", read.len());
                file.append_and_sync(0, Vec::new(), None).await.unwrap();
            })
        });
    }
}

/// A full disk is no failed sync: the log cuts back and goes on.
#[test]
fn an_append_to_a_full_disk_is_a_failed_write_with_and_without_a_hook() {
    let dir = tempfile::tempdir().unwrap();
    in_a_lane(dir.path(), |disk, _| {
        Box::pin(async move {
            let file = disk.open(Path::new("/dev/full"), OpenHow::Write).await.unwrap();
            for hook in [true, false] {
                let written =
                    hook.then(|| Box::new(|| unreachable("nothing was written")) as Box<dyn FnOnce()>);
                match file.append_and_sync(0, vec![Bytes::from_static(b"too much")], written).await {
                    Err(AppendSyncError::Write(error)) => assert_eq!(error.kind(), IoErrorKind::NoSpace),
                    other => panic!("hook {hook}: {other:?}"),
                }
            }
        })
    });
}

/// A file that knows no fsync: the write is done, the sync is not.
#[test]
fn a_sync_that_fails_behind_a_write_that_did_not_is_a_failed_sync() {
    let dir = tempfile::tempdir().unwrap();
    in_a_lane(dir.path(), |disk, _| {
        Box::pin(async move {
            let file = disk.open(Path::new("/dev/null"), OpenHow::Write).await.unwrap();
            let called = Cell::new(false);
            let written: Box<dyn FnOnce() + '_> = Box::new(|| called.set(true));
            match file.append_and_sync(0, vec![Bytes::from_static(b"gone")], Some(written)).await {
                Err(AppendSyncError::Sync(error)) => assert_eq!(error.op, Op::Sync, "{error:?}"),
                other => panic!("{other:?}"),
            }
            assert!(called.get(), "the hook was not called for bytes that were written");
        })
    });
}

/// Begins an append, drops it and the file, and says so; the lane then ends.
async fn drop_an_append(disk: Rc<dyn Disk>, path: PathBuf, bytes: Bytes, hook: bool) {
    let file = disk.open(&path, NEW).await.unwrap();
    let written = hook.then(|| Box::new(|| unreachable("it was dropped before")) as Box<dyn FnOnce()>);
    let mut append = file.append_and_sync(0, vec![bytes], written);
    assert!(append.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
}

#[test]
fn an_append_that_began_is_written_although_its_future_file_and_lane_are_gone() {
    for hook in [true, false] {
        let dir = tempfile::tempdir().unwrap();
        let bytes = Bytes::from(vec![7_u8; 8 << 20]);
        let kept = bytes.clone();
        let ran = in_a_lane(dir.path(), move |disk, path| Box::pin(drop_an_append(disk, path, bytes, hook)));
        if ran.is_none() {
            return;
        }
        // The buffer is given back when kernel and lane are done with it, and not before.
        while !kept.is_unique() {
            std::thread::yield_now();
        }
        assert!(
            std::fs::read(dir.path().join("file")).unwrap() == kept,
            "hook {hook}: the write was cut off"
        );
    }
}

#[test]
fn more_appends_at_once_than_the_ring_has_entries_are_all_whole() {
    const APPENDS: usize = 200;
    let dir = tempfile::tempdir().unwrap();
    in_a_lane(dir.path(), |disk, path| {
        Box::pin(async move {
            let file = disk.open(&path, NEW).await.unwrap();
            let mut appends: Vec<_> = (0..APPENDS)
                .map(|i| {
                    let bytes = vec![Bytes::from(vec![i as u8; 1000])];
                    file.append_and_sync(i as u64 * 1000, bytes, Some(Box::new(|| {})))
                })
                .collect();
            // All are pushed before any is waited for: those that find no room for a pair go one by one.
            for append in &mut appends {
                let _ = append.as_mut().poll(&mut Context::from_waker(Waker::noop()));
            }
            for append in appends {
                append.await.unwrap();
            }
            let read = file.read_at(0, APPENDS * 1000, BytesMut::new()).await.unwrap();
            for (i, part) in read.chunks(1000).enumerate() {
                assert!(part.iter().all(|b| *b == i as u8), "append {i}");
            }
            assert_eq!(read.len(), APPENDS * 1000);
        })
    });
}

/// A hook that must not be called.
fn unreachable(why: &str) {
    panic!("{why}");
}
