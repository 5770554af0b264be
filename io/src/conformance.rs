//! The behaviours that every back end must show, for testing one's own (feature `testing`).
//!
//! Each behaviour gets a disk and an empty directory on it, uses nothing but the disk, and panics
//! where the disk does otherwise. One that cannot be shown where it runs says so: that is no pass.
//! What a crash leaves is not in this list; it takes a disk that can crash.
//!
//! ```
//! use kraftlog_io::{PortableDisk, conformance, rt};
//!
//! for behaviour in conformance::behaviours() {
//!     let dir = tempfile::tempdir().unwrap();
//!     let outcome = rt::block_on((behaviour.run)(PortableDisk::new(), dir.path().to_path_buf()));
//!     println!("{}: {outcome:?}", behaviour.name);
//! }
//! ```

use crate::atomic;
use crate::disk::{Allocate, AppendSyncError, Disk, Entry, EntryKind, File, LocalFuture, OpenHow, read_file};
use crate::error::{IoError, IoErrorKind, Op};
use bytes::{Bytes, BytesMut};
use std::cell::Cell;
use std::fmt::Debug;
use std::future::{Future, poll_fn};
use std::path::{Path, PathBuf};
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

/// What came of a behaviour that did not panic.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum Outcome {
    /// The disk behaves so.
    Held,
    /// It could not be shown here, for this reason.
    NotRun(&'static str),
}

/// One thing that every disk does alike.
#[derive(Debug, Clone, Copy)]
pub struct Behaviour {
    /// A sentence, as the name of a test.
    pub name: &'static str,
    /// Shows it on a disk, in an empty directory; panics if the disk does otherwise.
    pub run: fn(Rc<dyn Disk>, PathBuf) -> LocalFuture<'static, Outcome>,
}

macro_rules! list {
    ($($name:ident),* $(,)?) => {
        &[$(Behaviour {
            name: stringify!($name),
            run: |disk, dir| Box::pin(async move { $name(&*disk, &dir).await }),
        }),*]
    };
}

/// All behaviours.
pub fn behaviours() -> &'static [Behaviour] {
    const ALL: &[Behaviour] = list![
        a_file_is_opened_only_as_it_was_asked_for,
        what_was_written_is_read_back_behind_what_the_buffer_held,
        a_read_stops_at_the_end_and_gives_nothing_past_it,
        a_write_behind_the_end_leaves_zeros_between,
        a_write_takes_all_its_buffers_however_many_and_however_empty,
        an_append_can_be_read_when_the_hook_is_called_and_is_done_after_it,
        an_append_that_nobody_watches_is_written_whole_and_fails_like_any_other,
        a_full_disk_fails_the_write_and_never_calls_the_hook,
        a_position_that_no_file_has_is_refused,
        a_dropped_write_disturbs_nothing_else,
        set_len_cuts_and_extends_with_zeros,
        reserved_space_extends_the_file_with_zeros,
        space_reserved_behind_the_end_keeps_the_length,
        syncs_of_files_and_directories_succeed,
        a_list_tells_names_kinds_and_lengths,
        stat_tells_what_is_there_and_that_nothing_is,
        rename_replaces_what_has_the_name_and_open_files_stay_open,
        a_removed_file_is_gone_and_removing_it_again_is_not_found,
        a_directory_is_made_once_and_only_in_a_directory,
        a_durable_directory_may_be_there_already,
        replace_makes_and_replaces_and_leaves_no_temporary,
        replace_that_cannot_make_its_temporary_leaves_the_old_content,
        replace_that_cannot_rename_removes_its_temporary,
        publish_gives_a_file_its_final_name,
        a_small_file_is_read_whole_or_refused_as_too_long,
        who_may_not_is_told_so_with_the_path,
    ];
    ALL
}

/// The value, or a panic that says what was done.
trait Must<T> {
    fn must(self, what: &str) -> T;
}

impl<T, E: Debug> Must<T> for Result<T, E> {
    #[track_caller]
    fn must(self, what: &str) -> T {
        match self {
            Ok(value) => value,
            Err(error) => panic!("{what}: {error:?}"),
        }
    }
}

/// Holds an error to its kind, operation and path.
#[track_caller]
fn must_fail<T>(result: Result<T, IoError>, kind: IoErrorKind, op: Op, path: &Path) {
    let Err(error) = result else { panic!("could {op} {}, which should be {kind:?}", path.display()) };
    assert_eq!((error.kind(), error.op, error.path.as_path()), (kind, op, path), "{error:?}");
}

async fn create(disk: &dyn Disk, path: &Path) -> Rc<dyn File> {
    disk.open(path, OpenHow::CreateNew { mode: 0o644 }).await.must("make a file")
}

async fn put(disk: &dyn Disk, path: &Path, content: &'static [u8]) -> Rc<dyn File> {
    let file = create(disk, path).await;
    file.write_at(0, vec![Bytes::from_static(content)]).await.must("write");
    file
}

async fn content(disk: &dyn Disk, path: &Path) -> Option<Vec<u8>> {
    read_file(disk, path, 1 << 20).await.must("read a file")
}

async fn all(file: &dyn File) -> Vec<u8> {
    file.read_at(0, 1 << 20, BytesMut::new()).await.must("read").to_vec()
}

async fn names(disk: &dyn Disk, dir: &Path) -> Vec<String> {
    let mut names: Vec<String> = disk.list(dir).await.must("list").into_iter().map(|e| e.name).collect();
    names.sort();
    names
}

async fn a_file_is_opened_only_as_it_was_asked_for(disk: &dyn Disk, dir: &Path) -> Outcome {
    let path = &dir.join("file");
    must_fail(disk.open(path, OpenHow::Read).await, IoErrorKind::NotFound, Op::Open, path);
    must_fail(disk.open(path, OpenHow::Write).await, IoErrorKind::NotFound, Op::Open, path);
    let file = put(disk, path, b"content").await;
    assert_eq!(file.path(), path);
    let again = disk.open(path, OpenHow::CreateNew { mode: 0o644 }).await;
    must_fail(again, IoErrorKind::AlreadyExists, Op::Create, path);
    let file = disk.open(path, OpenHow::Write).await.must("open for writing");
    assert_eq!(all(&*file).await, b"content", "opening for writing empties nothing");
    let file = disk.open(path, OpenHow::Read).await.must("open for reading");
    assert_eq!(all(&*file).await, b"content");
    let written = file.write_at(0, vec![Bytes::from_static(b"x")]).await;
    assert!(written.is_err(), "a file opened for reading took a write");
    let file = disk.open(path, OpenHow::CreateOrTruncate { mode: 0o644 }).await.must("make anew");
    assert_eq!(file.len().await.must("length"), 0);
    let below = &path.join("below");
    must_fail(disk.open(below, OpenHow::Read).await, IoErrorKind::NotADirectory, Op::Open, below);
    Outcome::Held
}

async fn what_was_written_is_read_back_behind_what_the_buffer_held(disk: &dyn Disk, dir: &Path) -> Outcome {
    let file = create(disk, &dir.join("file")).await;
    let parts = ["first ", "second ", "third"].map(|s| Bytes::from_static(s.as_bytes()));
    file.write_at(3, parts.to_vec()).await.must("write");
    assert_eq!(file.len().await.must("length"), 3 + 18);
    let read = file.read_at(9, 6, BytesMut::from("held, ")).await.must("read");
    assert_eq!(read, "held, second");
    let read = file.read_at(9, 0, read).await.must("read nothing");
    assert_eq!(read, "held, second");
    file.write_at(9, vec![Bytes::from_static(b"SECOND")]).await.must("write over it");
    assert_eq!(all(&*file).await, b"\0\0\0first SECOND third");
    Outcome::Held
}

async fn a_read_stops_at_the_end_and_gives_nothing_past_it(disk: &dyn Disk, dir: &Path) -> Outcome {
    let file = put(disk, &dir.join("file"), b"0123456789").await;
    assert_eq!(file.read_at(7, 100, BytesMut::new()).await.must("read over the end"), "789");
    assert!(file.read_at(10, 100, BytesMut::new()).await.must("read at the end").is_empty());
    assert!(file.read_at(1 << 40, 100, BytesMut::new()).await.must("read far away").is_empty());
    Outcome::Held
}

async fn a_write_behind_the_end_leaves_zeros_between(disk: &dyn Disk, dir: &Path) -> Outcome {
    let file = put(disk, &dir.join("file"), b"ab").await;
    file.write_at(5, vec![Bytes::from_static(b"c")]).await.must("write");
    assert_eq!(all(&*file).await, b"ab\0\0\0c");
    Outcome::Held
}

async fn a_write_takes_all_its_buffers_however_many_and_however_empty(
    disk: &dyn Disk,
    dir: &Path,
) -> Outcome {
    // More than one system call takes (1,024), with runs of empty buffers around that bound.
    const COUNT: u32 = 3000;
    let file = create(disk, &dir.join("file")).await;
    let mut bufs = Vec::new();
    let mut expected = Vec::new();
    for i in 0..COUNT {
        let buf = if (900..1100).contains(&i) { Bytes::new() } else { Bytes::from(i.to_be_bytes().to_vec()) };
        expected.extend_from_slice(&buf);
        bufs.push(buf);
    }
    file.write_at(0, bufs.clone()).await.must("write");
    assert!(all(&*file).await == expected, "3,000 buffers came out otherwise");
    let end = expected.len() as u64;
    file.append_and_sync(end, bufs, Some(Box::new(|| {}))).await.must("append");
    expected.extend_from_within(..);
    assert!(all(&*file).await == expected, "3,000 appended buffers came out otherwise");
    file.write_at(0, Vec::new()).await.must("write no buffers");
    file.write_at(0, vec![Bytes::new(); 2000]).await.must("write empty buffers");
    file.append_and_sync(2 * end, vec![Bytes::new()], Some(Box::new(|| {}))).await.must("append nothing");
    assert!(all(&*file).await == expected, "a write of nothing changed the file");
    Outcome::Held
}

async fn an_append_can_be_read_when_the_hook_is_called_and_is_done_after_it(
    disk: &dyn Disk,
    dir: &Path,
) -> Outcome {
    let file = put(disk, &dir.join("file"), b"old ").await;
    let calls = &Cell::new(0);
    let bufs = vec![Bytes::from_static(b"ne"), Bytes::from_static(b"w")];
    let mut append = file.append_and_sync(4, bufs, Some(Box::new(|| calls.set(calls.get() + 1))));
    assert_eq!(calls.get(), 0, "the hook was called before the append was polled");
    // A reader that starts the moment the hook is called, perhaps while the sync still runs.
    let mut reader = pin!(file.read_at(0, 100, BytesMut::new()));
    let (mut appended, mut read) = (None, None);
    poll_fn(|cx| {
        poll_into(append.as_mut(), &mut appended, cx);
        if calls.get() > 0 {
            poll_into(reader.as_mut(), &mut read, cx);
        } else {
            assert!(appended.is_none(), "the append was done before its hook was called");
        }
        if appended.is_some() && read.is_some() { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
    appended.expect("polled to its end").must("append");
    assert_eq!(read.expect("polled to its end").must("read"), "old new");
    assert_eq!(calls.get(), 1, "calls of the hook");
    Outcome::Held
}

fn poll_into<F: Future + ?Sized>(future: Pin<&mut F>, output: &mut Option<F::Output>, cx: &mut Context<'_>) {
    if output.is_none()
        && let Poll::Ready(ready) = future.poll(cx)
    {
        *output = Some(ready);
    }
}

/// Without a hook a back end may write and sync in one step: same bytes, same errors.
async fn an_append_that_nobody_watches_is_written_whole_and_fails_like_any_other(
    disk: &dyn Disk,
    dir: &Path,
) -> Outcome {
    let file = put(disk, &dir.join("file"), b"old ").await;
    let mut expected = b"old ".to_vec();
    for count in [1_u32, 2, 1024, 1025, 3000] {
        let bufs: Vec<Bytes> = (0..count).map(|i| Bytes::from(i.to_be_bytes().to_vec())).collect();
        let at = expected.len() as u64;
        expected.extend(bufs.iter().flatten());
        file.append_and_sync(at, bufs, None).await.must("append");
        assert!(all(&*file).await == expected, "{count} buffers came out otherwise");
    }
    let end = expected.len() as u64;
    for nothing in [Vec::new(), vec![Bytes::new()]] {
        file.append_and_sync(end, nothing, None).await.must("append nothing");
    }
    for position in [u64::MAX, 1 << 63] {
        let appended = file.append_and_sync(position, vec![Bytes::from_static(b"x")], None).await;
        assert!(matches!(appended, Err(AppendSyncError::Write(_))), "at {position}: {appended:?}");
    }
    assert!(all(&*file).await == expected, "an append of nothing, or a refused one, changed the file");
    if let Ok(full) = disk.open(Path::new("/dev/full"), OpenHow::Write).await {
        let appended = full.append_and_sync(0, vec![Bytes::from_static(b"too much")], None).await;
        let (AppendSyncError::Write(error) | AppendSyncError::Sync(error)) =
            appended.expect_err("a full disk");
        assert_eq!(error.kind(), IoErrorKind::NoSpace, "{error:?}");
    }
    Outcome::Held
}

async fn a_full_disk_fails_the_write_and_never_calls_the_hook(disk: &dyn Disk, _dir: &Path) -> Outcome {
    let path = Path::new("/dev/full");
    let Ok(file) = disk.open(path, OpenHow::Write).await else {
        return Outcome::NotRun("this disk has no /dev/full");
    };
    let bufs = || vec![Bytes::from_static(b"too much")];
    must_fail(file.write_at(0, bufs()).await, IoErrorKind::NoSpace, Op::Write, path);
    let called = &Cell::new(false);
    match file.append_and_sync(0, bufs(), Some(Box::new(|| called.set(true)))).await {
        Err(AppendSyncError::Write(error)) => {
            must_fail::<()>(Err(error), IoErrorKind::NoSpace, Op::Write, path);
        }
        other => panic!("an append to a full disk ended as {other:?}"),
    }
    assert!(!called.get(), "the hook was called for bytes that are not there");
    Outcome::Held
}

async fn a_position_that_no_file_has_is_refused(disk: &dyn Disk, dir: &Path) -> Outcome {
    let file = put(disk, &dir.join("file"), b"content").await;
    for position in [u64::MAX, 1 << 63] {
        let written = file.write_at(position, vec![Bytes::from_static(b"x")]).await;
        assert!(written.is_err(), "a write at {position} succeeded");
        let read = file.read_at(position, 1, BytesMut::new()).await;
        assert!(read.is_err(), "a read at {position} succeeded");
    }
    assert_eq!(all(&*file).await, b"content");
    Outcome::Held
}

async fn a_dropped_write_disturbs_nothing_else(disk: &dyn Disk, dir: &Path) -> Outcome {
    const PART: usize = 1 << 16;
    let file = create(disk, &dir.join("file")).await;
    for round in 0..20_u64 {
        let position = 2 * round * PART as u64;
        let mut dropped = file.write_at(position, vec![Bytes::from(vec![b'd'; PART])]);
        // Begun or not, it is dropped before anybody hears of its end.
        if round % 2 == 0 {
            let _ = dropped.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        }
        drop(dropped);
        let mut dropped = file.read_at(0, PART, BytesMut::new());
        let _ = dropped.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        drop(dropped);
        let kept = vec![Bytes::from(vec![b'k'; PART])];
        file.append_and_sync(position + PART as u64, kept, Some(Box::new(|| {}))).await.must("append");
    }
    let read = all_of(&*file, 40 * PART).await;
    for (i, part) in read.chunks(PART).enumerate() {
        let first = part[0];
        assert!(part.iter().all(|b| *b == first), "part {i} is mixed");
        match i % 4 {
            // Begun and dropped: there or not yet.
            0 => assert!(first == b'd' || first == 0, "part {i} begins with {first}"),
            2 => assert_eq!(first, 0, "part {i} was never begun"),
            _ => assert_eq!(first, b'k', "part {i} was acknowledged"),
        }
    }
    Outcome::Held
}

async fn all_of(file: &dyn File, len: usize) -> BytesMut {
    let read = file.read_at(0, len, BytesMut::new()).await.must("read");
    assert_eq!(read.len(), len);
    read
}

async fn set_len_cuts_and_extends_with_zeros(disk: &dyn Disk, dir: &Path) -> Outcome {
    let file = put(disk, &dir.join("file"), b"0123456789").await;
    file.set_len(4).await.must("cut");
    assert_eq!(all(&*file).await, b"0123");
    file.set_len(6).await.must("extend");
    assert_eq!(all(&*file).await, b"0123\0\0");
    file.sync_all().await.must("sync");
    Outcome::Held
}

async fn reserved_space_extends_the_file_with_zeros(disk: &dyn Disk, dir: &Path) -> Outcome {
    let path = &dir.join("file");
    let file = put(disk, path, b"ab").await;
    match file.allocate(Allocate::Extend, 2, 1000).await {
        Err(error) if error.kind() == IoErrorKind::Unsupported => {
            return Outcome::NotRun("this disk reserves no space");
        }
        reserved => reserved.must("reserve"),
    }
    assert_eq!(file.len().await.must("length"), 1002);
    let read = all(&*file).await;
    assert_eq!(&read[..2], b"ab");
    assert!(read[2..].iter().all(|b| *b == 0), "reserved space is not zero");
    file.allocate(Allocate::Extend, 0, 10).await.must("reserve what is there");
    assert_eq!(all(&*file).await, read, "reserving what is there changed it");
    must_fail(
        file.allocate(Allocate::Extend, 0, u64::MAX / 4).await,
        IoErrorKind::NoSpace,
        Op::Allocate,
        path,
    );
    Outcome::Held
}

async fn space_reserved_behind_the_end_keeps_the_length(disk: &dyn Disk, dir: &Path) -> Outcome {
    let file = put(disk, &dir.join("file"), b"ab").await;
    match file.allocate(Allocate::KeepSize, 2, 1000).await {
        Err(error) if error.kind() == IoErrorKind::Unsupported => {
            return Outcome::NotRun("this disk reserves no space");
        }
        reserved => reserved.must("reserve"),
    }
    assert_eq!(all(&*file).await, b"ab");
    file.write_at(2, vec![Bytes::from_static(b"c")]).await.must("write into it");
    assert_eq!(all(&*file).await, b"abc");
    Outcome::Held
}

async fn syncs_of_files_and_directories_succeed(disk: &dyn Disk, dir: &Path) -> Outcome {
    let path = &dir.join("file");
    let file = put(disk, path, b"content").await;
    file.sync_data().await.must("sync content");
    file.sync_all().await.must("sync all");
    disk.sync_dir(dir).await.must("sync the directory");
    let missing = &dir.join("missing");
    must_fail(disk.sync_dir(missing).await, IoErrorKind::NotFound, Op::SyncDir, missing);
    must_fail(disk.sync_dir(path).await, IoErrorKind::NotADirectory, Op::SyncDir, path);
    Outcome::Held
}

async fn a_list_tells_names_kinds_and_lengths(disk: &dyn Disk, dir: &Path) -> Outcome {
    assert_eq!(disk.list(dir).await.must("list"), []);
    let path = &dir.join("file");
    put(disk, path, b"12345").await;
    disk.create_dir(&dir.join("sub")).await.must("make a directory");
    let mut entries = disk.list(dir).await.must("list");
    entries.sort_by(|a, b| a.name.cmp(&b.name));
    let file = Entry { name: "file".into(), kind: EntryKind::File, len: 5 };
    assert_eq!(entries, [file, Entry { name: "sub".into(), kind: EntryKind::Dir, len: 0 }]);
    let missing = &dir.join("missing");
    must_fail(disk.list(missing).await, IoErrorKind::NotFound, Op::List, missing);
    must_fail(disk.list(path).await, IoErrorKind::NotADirectory, Op::List, path);
    Outcome::Held
}

async fn stat_tells_what_is_there_and_that_nothing_is(disk: &dyn Disk, dir: &Path) -> Outcome {
    let path = &dir.join("file");
    assert_eq!(disk.stat(path).await.must("stat"), None);
    put(disk, path, b"12345").await;
    let file = Entry { name: "file".into(), kind: EntryKind::File, len: 5 };
    assert_eq!(disk.stat(path).await.must("stat"), Some(file));
    let kind = disk.stat(dir).await.must("stat").map(|entry| entry.kind);
    assert_eq!(kind, Some(EntryKind::Dir));
    Outcome::Held
}

async fn rename_replaces_what_has_the_name_and_open_files_stay_open(disk: &dyn Disk, dir: &Path) -> Outcome {
    let (old, new) = (&dir.join("old"), &dir.join("new"));
    let replaced = put(disk, old, b"was there").await;
    let moved = put(disk, new, b"comes").await;
    disk.rename(new, old).await.must("rename");
    assert_eq!(names(disk, dir).await, ["old"]);
    assert_eq!(content(disk, old).await.as_deref(), Some(&b"comes"[..]));
    assert_eq!(all(&*replaced).await, b"was there", "a replaced file is there for who has it open");
    moved.write_at(0, vec![Bytes::from_static(b"COMES")]).await.must("write through the old handle");
    assert_eq!(content(disk, old).await.as_deref(), Some(&b"COMES"[..]));
    must_fail(disk.rename(new, old).await, IoErrorKind::NotFound, Op::Rename, new);
    Outcome::Held
}

async fn a_removed_file_is_gone_and_removing_it_again_is_not_found(disk: &dyn Disk, dir: &Path) -> Outcome {
    let path = &dir.join("file");
    let file = put(disk, path, b"content").await;
    disk.remove(path).await.must("remove");
    assert_eq!(content(disk, path).await, None);
    assert_eq!(all(&*file).await, b"content", "a removed file is there for who has it open");
    must_fail(disk.remove(path).await, IoErrorKind::NotFound, Op::Remove, path);
    atomic::remove_durably(disk, path).await.must("remove durably what is gone");
    put(disk, path, b"content").await;
    atomic::remove_durably(disk, path).await.must("remove durably");
    assert!(names(disk, dir).await.is_empty());
    Outcome::Held
}

async fn a_directory_is_made_once_and_only_in_a_directory(disk: &dyn Disk, dir: &Path) -> Outcome {
    let sub = &dir.join("sub");
    disk.create_dir(sub).await.must("make a directory");
    must_fail(disk.create_dir(sub).await, IoErrorKind::AlreadyExists, Op::CreateDir, sub);
    let deep = &dir.join("missing/deep");
    must_fail(disk.create_dir(deep).await, IoErrorKind::NotFound, Op::CreateDir, deep);
    put(disk, &dir.join("file"), b"").await;
    let below = &dir.join("file/below");
    must_fail(disk.create_dir(below).await, IoErrorKind::NotADirectory, Op::CreateDir, below);
    Outcome::Held
}

async fn a_durable_directory_may_be_there_already(disk: &dyn Disk, dir: &Path) -> Outcome {
    let sub = &dir.join("sub");
    for _ in 0..2 {
        atomic::create_dir_durably(disk, sub).await.must("make a directory durably");
    }
    for _ in 0..2 {
        atomic::create_dir_all_durably(disk, &sub.join("a/b")).await.must("make directories durably");
    }
    assert_eq!(names(disk, &sub.join("a")).await, ["b"]);
    let file = &dir.join("file");
    put(disk, file, b"").await;
    must_fail(atomic::create_dir_durably(disk, file).await, IoErrorKind::NotADirectory, Op::CreateDir, file);
    Outcome::Held
}

async fn replace_makes_and_replaces_and_leaves_no_temporary(disk: &dyn Disk, dir: &Path) -> Outcome {
    let path = &dir.join("file");
    atomic::replace(disk, path, b"first, and longer", 0o644).await.must("make");
    assert_eq!(content(disk, path).await.as_deref(), Some(&b"first, and longer"[..]));
    // What a crash left of an earlier replacement does not show through.
    put(disk, &atomic::temporary(path), b"left over, and longer than both").await;
    atomic::replace(disk, path, b"second", 0o644).await.must("replace");
    assert_eq!(content(disk, path).await.as_deref(), Some(&b"second"[..]));
    atomic::replace(disk, path, b"", 0o644).await.must("replace by nothing");
    assert_eq!(content(disk, path).await.as_deref(), Some(&b""[..]));
    assert_eq!(names(disk, dir).await, ["file"]);
    Outcome::Held
}

async fn replace_that_cannot_make_its_temporary_leaves_the_old_content(
    disk: &dyn Disk,
    dir: &Path,
) -> Outcome {
    let path = &dir.join("file");
    put(disk, path, b"old").await;
    let temporary = &atomic::temporary(path);
    disk.create_dir(temporary).await.must("make a directory in its way");
    let error = atomic::replace(disk, path, b"new", 0o644).await.expect_err("a directory is in its way");
    assert_eq!(&error.path, temporary, "the error names another file than the one that failed: {error:?}");
    assert_eq!(content(disk, path).await.as_deref(), Some(&b"old"[..]));
    let missing = &dir.join("missing/file");
    let temporary = &atomic::temporary(missing);
    must_fail(
        atomic::replace(disk, missing, b"new", 0o644).await,
        IoErrorKind::NotFound,
        Op::Create,
        temporary,
    );
    Outcome::Held
}

async fn replace_that_cannot_rename_removes_its_temporary(disk: &dyn Disk, dir: &Path) -> Outcome {
    let path = &dir.join("file");
    disk.create_dir(path).await.must("make a directory in its place");
    let error = atomic::replace(disk, path, b"new", 0o644).await.expect_err("a directory is in its place");
    assert_eq!((error.op, error.kind()), (Op::Rename, IoErrorKind::NotADirectory), "{error:?}");
    assert_eq!(names(disk, dir).await, ["file"]);
    Outcome::Held
}

async fn publish_gives_a_file_its_final_name(disk: &dyn Disk, dir: &Path) -> Outcome {
    let sub = &dir.join("sub");
    disk.create_dir(sub).await.must("make a directory");
    let (part, done, moved) = (&dir.join("a.part"), &dir.join("a"), &sub.join("a"));
    put(disk, part, b"content").await.sync_all().await.must("sync");
    atomic::publish(disk, part, done).await.must("publish");
    atomic::publish(disk, done, moved).await.must("publish into another directory");
    assert_eq!(names(disk, dir).await, ["sub"]);
    assert_eq!(content(disk, moved).await.as_deref(), Some(&b"content"[..]));
    must_fail(atomic::publish(disk, part, done).await, IoErrorKind::NotFound, Op::Rename, part);
    Outcome::Held
}

async fn a_small_file_is_read_whole_or_refused_as_too_long(disk: &dyn Disk, dir: &Path) -> Outcome {
    let path = &dir.join("file");
    assert_eq!(read_file(disk, path, 100).await.must("read what is missing"), None);
    put(disk, path, b"0123456789").await;
    for max in [10, 11, usize::MAX] {
        let read = read_file(disk, path, max).await.must("read");
        assert_eq!(read.as_deref(), Some(&b"0123456789"[..]), "at most {max}");
    }
    for max in [0, 9] {
        let error = read_file(disk, path, max).await.expect_err("10 bytes are too many");
        assert_eq!((error.op, error.path.as_path()), (Op::Read, path.as_path()), "at most {max}");
        assert_eq!(error.cause.kind(), std::io::ErrorKind::InvalidData, "at most {max}");
    }
    let large = &dir.join("large");
    let file = create(disk, large).await;
    let bytes: Vec<u8> = (0..300_000_u32).map(|i| (i % 251) as u8).collect();
    file.write_at(0, vec![Bytes::from(bytes.clone())]).await.must("write");
    assert!(content(disk, large).await == Some(bytes), "a file of several reads came out otherwise");
    Outcome::Held
}

async fn who_may_not_is_told_so_with_the_path(disk: &dyn Disk, dir: &Path) -> Outcome {
    if rustix::process::geteuid().is_root() {
        return Outcome::NotRun("no mode keeps root out");
    }
    let path = &dir.join("file");
    put(disk, path, b"content").await.set_mode(0o444).await.must("make it read-only");
    must_fail(disk.open(path, OpenHow::Write).await, IoErrorKind::PermissionDenied, Op::Open, path);
    assert_eq!(content(disk, path).await.as_deref(), Some(&b"content"[..]));
    let handle = disk.open(dir, OpenHow::Read).await.must("open the directory");
    handle.set_mode(0o555).await.must("make the directory read-only");
    let (other, temporary) = (&dir.join("other"), &atomic::temporary(path));
    let (denied, mode) = (IoErrorKind::PermissionDenied, 0o644);
    must_fail(disk.open(other, OpenHow::CreateNew { mode }).await, denied, Op::Create, other);
    must_fail(disk.create_dir(other).await, denied, Op::CreateDir, other);
    must_fail(disk.remove(path).await, denied, Op::Remove, path);
    must_fail(disk.rename(path, other).await, denied, Op::Rename, path);
    // What failed is the temporary file, and that is the name that helps.
    must_fail(atomic::replace(disk, path, b"new", mode).await, denied, Op::Create, temporary);
    assert_eq!(content(disk, path).await.as_deref(), Some(&b"content"[..]));
    handle.set_mode(0o755).await.must("make the directory writable");
    Outcome::Held
}
