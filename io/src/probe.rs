//! Which back end works in a directory, and why.
//!
//! `Auto` never measures: two runs on one machine take the same back end. It follows the table
//! `FILE_SYSTEMS`. Where the table says that a ring is worth it, the probe makes one, and with it a
//! linked write and sync, a fused one and a read on a file in the very directory; the file loses its
//! name before the first byte goes to it, so that no failure leaves it behind. Where it is not worth
//! it, `Auto` still asks whether a ring can be had, without touching a file, so that its reason tells
//! an operator that io_uring is forbidden before he looks for speed elsewhere.

use crate::disk::{AppendSyncError, Disk, File, OpenHow};
use crate::error::{IoError, IoErrorKind, Op};
use crate::uring::Ring;
use bytes::{Bytes, BytesMut};
use rustix::io::Errno;
use std::error::Error;
use std::ffi::OsString;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::time::Duration;

/// The environment variable that [`BackendChoice::from_env_or`] reads.
pub const BACKEND_ENV: &str = "KRAFTLOG_IO";

/// The file that a probe makes, if only for a moment.
pub const PROBE_FILE: &str = "kraftlog.probe";

/// Which back end to take.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum BackendChoice {
    /// Whatever suits the file system and can be had. Opening always works.
    #[default]
    Auto,
    /// Blocking system calls on the lane's thread.
    Portable,
    /// io_uring, or an error.
    Uring,
}

impl BackendChoice {
    /// What `KRAFTLOG_IO` says (`auto`, `portable` or `uring`), or `default` if it is unset or empty.
    ///
    /// # Errors
    /// [`BackendError::UnknownChoice`] for any other value.
    pub fn from_env_or(default: BackendChoice) -> Result<BackendChoice, BackendError> {
        BackendChoice::parse_or(std::env::var_os(BACKEND_ENV), default)
    }

    fn parse_or(value: Option<OsString>, default: BackendChoice) -> Result<BackendChoice, BackendError> {
        let Some(value) = value else { return Ok(default) };
        match value.to_str() {
            Some("") => Ok(default),
            Some("auto") => Ok(BackendChoice::Auto),
            Some("portable") => Ok(BackendChoice::Portable),
            Some("uring") => Ok(BackendChoice::Uring),
            _ => Err(BackendError::UnknownChoice { value: value.to_string_lossy().into_owned() }),
        }
    }
}

/// The back end that was taken. `Display` is one line for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BackendReport {
    /// `portable` or `uring`, as [`Disk::backend`].
    pub backend: &'static str,
    /// Why `Auto` took it; `None` if it was asked for.
    pub reason: Option<String>,
}

impl BackendReport {
    /// What opening `dir` with `choice` would take, as far as it can be told without writing there:
    /// the probe's file is left to the real opening.
    ///
    /// # Errors
    /// Those of [`ThreadRt::open`](crate::ThreadRt::open).
    pub fn expected(dir: &Path, choice: BackendChoice) -> Result<BackendReport, BackendError> {
        let (backend, reason) = match choice {
            BackendChoice::Portable => (Backend::Portable, None),
            BackendChoice::Uring => {
                answers().map_err(|reason| BackendError::Unsupported { reason })?;
                (Backend::Uring, None)
            }
            BackendChoice::Auto => {
                let (backend, reason) = decide(file_system(dir)?, answers, || Ok(Backend::Uring));
                (backend, Some(reason))
            }
        };
        Ok(report(backend, reason).1)
    }
}

impl fmt::Display for BackendReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.reason {
            Some(reason) => write!(f, "{} ({reason})", self.backend),
            None => write!(f, "{} (as asked for)", self.backend),
        }
    }
}

/// Why no back end could be had.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum BackendError {
    /// io_uring was asked for and this machine, kernel or build has none.
    #[error("the io_uring back end cannot be had; use `auto` or `portable`")]
    Unsupported {
        /// What stands in the way.
        #[source]
        reason: UringRefusal,
    },
    /// The environment asks for a back end that does not exist.
    #[error("KRAFTLOG_IO is `{value}`; it may be `auto`, `portable` or `uring`")]
    UnknownChoice {
        /// What was found.
        value: String,
    },
    /// The directory could not be looked at, or the probe could not work in it.
    #[error(transparent)]
    Io(#[from] IoError),
}

/// What stands in the way of io_uring.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum UringRefusal {
    /// Another operating system, or a build without the feature.
    #[error("this build has no io_uring (it needs Linux and the feature `uring`)")]
    NotBuilt,
    /// `EPERM` or `EACCES`.
    #[error("io_uring is forbidden here (sysctl kernel.io_uring_disabled, or a container's seccomp profile)")]
    Forbidden,
    /// `ENOSYS`.
    #[error("this kernel has no io_uring")]
    NoKernelSupport,
    /// `ENOMEM`.
    #[error("there is no memory for a ring (raise the limit on locked memory, `ulimit -l`)")]
    NoMemory,
    /// `EINVAL` or `EOPNOTSUPP`.
    #[error("this kernel's io_uring lacks what is needed (Linux 5.6 has it)")]
    TooOld,
    /// A ring was made, but what is pushed into it does not complete.
    #[error("a ring can be made but does not answer (something stands between us and the kernel's io_uring)")]
    Silent,
    /// The probe did not end.
    #[error("a write and sync through io_uring did not end within {seconds} seconds")]
    TimedOut {
        /// How long it was given.
        seconds: u64,
    },
    /// Anything else.
    #[error("io_uring failed")]
    Failed(#[source] Arc<io::Error>),
}

impl UringRefusal {
    /// The refusal that an error of the ring stands for; `None` if it is about the disk and not the ring.
    fn from_operation(error: &io::Error) -> Option<UringRefusal> {
        Some(match error.raw_os_error().map(Errno::from_raw_os_error)? {
            Errno::PERM | Errno::ACCESS => UringRefusal::Forbidden,
            Errno::NOSYS => UringRefusal::NoKernelSupport,
            Errno::NOMEM => UringRefusal::NoMemory,
            Errno::INVAL | Errno::OPNOTSUPP => UringRefusal::TooOld,
            _ => return None,
        })
    }

    /// The refusal that an error of making the ring stands for.
    fn from_start(error: io::Error) -> UringRefusal {
        UringRefusal::from_operation(&error).unwrap_or_else(|| UringRefusal::Failed(Arc::new(error)))
    }
}

/// What drives the lanes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Backend {
    Portable,
    Uring,
}

/// A kind of file system, as far as the choice of the back end goes.
#[derive(Debug, Clone, Copy)]
struct FileSystem {
    /// `f_type` of statfs(2).
    magic: u32,
    name: &'static str,
    /// Whether io_uring was measured to be worth it; `None` where nobody has measured.
    uring_gains: Option<bool>,
}

/// What `Auto` goes by. A lane has one group of appends in flight, and the kernel hands each sync to
/// a worker thread, which costs more than the system call that it saves: on ext4 a durable append
/// through a ring takes 1.3 to 1.5 times the bare calls, the portable one 1.05 to 1.15 (`benches/`).
/// Where nobody has measured, `Auto` does not guess and takes what is known to work.
#[cfg_attr(not(target_os = "linux"), expect(dead_code, reason = "file systems are told apart on Linux only"))]
const FILE_SYSTEMS: &[FileSystem] = &[
    FileSystem { magic: 0xEF53, name: "ext4", uring_gains: Some(false) },
    FileSystem { magic: 0x5846_5342, name: "xfs", uring_gains: None },
    FileSystem { magic: 0x9123_683E, name: "btrfs", uring_gains: None },
    FileSystem { magic: 0x2FC1_2FC1, name: "zfs", uring_gains: None },
    FileSystem { magic: 0xF2F5_2010, name: "f2fs", uring_gains: None },
    FileSystem { magic: 0x0102_1994, name: "tmpfs", uring_gains: None },
    FileSystem { magic: 0x794C_7630, name: "overlayfs", uring_gains: None },
    FileSystem { magic: 0x6969, name: "nfs", uring_gains: None },
];

const UNKNOWN_FILE_SYSTEM: FileSystem = FileSystem { magic: 0, name: "this file system", uring_gains: None };

#[cfg(target_os = "linux")]
fn file_system(dir: &Path) -> Result<FileSystem, IoError> {
    let stat = rustix::fs::statfs(dir).map_err(|e| IoError::new(Op::Stat, dir, e))?;
    // The field is signed or unsigned, 32 or 64 bits, by architecture; the magic numbers have 32 bits.
    let magic = stat.f_type as u32;
    Ok(FILE_SYSTEMS.iter().find(|f| f.magic == magic).copied().unwrap_or(UNKNOWN_FILE_SYSTEM))
}

#[cfg(not(target_os = "linux"))]
fn file_system(_dir: &Path) -> Result<FileSystem, IoError> {
    Ok(UNKNOWN_FILE_SYSTEM)
}

/// Why a probe did not end well.
#[derive(Debug)]
enum Trouble {
    Refused(UringRefusal),
    Disk(IoError),
}

/// Picks the back end for a directory.
pub(crate) fn choose(dir: &Path, choice: BackendChoice) -> Result<(Backend, BackendReport), BackendError> {
    match choice {
        BackendChoice::Portable => Ok(report(Backend::Portable, None)),
        BackendChoice::Uring => match uring(dir) {
            Ok(backend) => Ok(report(backend, None)),
            Err(Trouble::Refused(reason)) => Err(BackendError::Unsupported { reason }),
            Err(Trouble::Disk(error)) => Err(error.into()),
        },
        BackendChoice::Auto => {
            let (backend, reason) = decide(file_system(dir)?, answers, || uring(dir));
            Ok(report(backend, Some(reason)))
        }
    }
}

fn report(backend: Backend, reason: Option<String>) -> (Backend, BackendReport) {
    let name = match backend {
        Backend::Portable => "portable",
        Backend::Uring => "uring",
    };
    (backend, BackendReport { backend: name, reason })
}

/// The rule of `Auto`. It cannot fail: what stands in the way of io_uring becomes the reason, and
/// trouble of the disk meets the caller's own first step, which knows better what it was for.
fn decide(
    at: FileSystem,
    answers: impl FnOnce() -> Result<(), UringRefusal>,
    probe: impl FnOnce() -> Result<Backend, Trouble>,
) -> (Backend, String) {
    let name = at.name;
    let reason = match (at.uring_gains, answers()) {
        (Some(false), Ok(())) => format!("a durable append gains nothing from io_uring on {name}"),
        (Some(false), Err(refusal)) => {
            format!("{}; a durable append would gain nothing from it on {name}", with_causes(&refusal))
        }
        (None, Ok(())) => format!("the gain of io_uring on {name} has not been measured"),
        (None, Err(refusal)) => {
            format!("{}; its gain on {name} has not been measured either", with_causes(&refusal))
        }
        (Some(true), Err(refusal)) => with_causes(&refusal),
        (Some(true), Ok(())) => match probe() {
            Ok(backend) => return (backend, format!("io_uring is faster on {name}")),
            Err(Trouble::Refused(refusal)) => with_causes(&refusal),
            Err(Trouble::Disk(error)) => format!("the probe of io_uring {}", with_causes(&error)),
        },
    };
    (Backend::Portable, reason)
}

/// Whether a ring can be had at all.
fn answers() -> Result<(), UringRefusal> {
    if !Ring::BUILT {
        return Err(UringRefusal::NotBuilt);
    }
    match Ring::answers() {
        Ok(true) => Ok(()),
        Ok(false) => Err(UringRefusal::Silent),
        Err(error) => Err(UringRefusal::from_start(error)),
    }
}

/// An error and its causes on one line, for a report that has no chain.
fn with_causes(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}

/// Whether a ring can be had and works in `dir`. On a thread of its own, so that a kernel that never
/// answers does not take the caller with it.
fn uring(dir: &Path) -> Result<Backend, Trouble> {
    /// A sync on a busy disk may take seconds; a ring that hangs would take for ever.
    const TIMEOUT_SECONDS: u64 = 10;

    answers().map_err(Trouble::Refused)?;
    let path = dir.join(PROBE_FILE);
    let (answer, answered) = sync_channel(1);
    std::thread::Builder::new()
        .name("kraftlog-probe".into())
        .spawn(move || drop(answer.send(probe(path))))
        .map_err(|e| Trouble::Disk(IoError::new(Op::StartLane, dir, e)))?;
    match answered.recv_timeout(Duration::from_secs(TIMEOUT_SECONDS)) {
        Ok(answer) => answer.map(|()| Backend::Uring),
        Err(RecvTimeoutError::Timeout) => {
            Err(Trouble::Refused(UringRefusal::TimedOut { seconds: TIMEOUT_SECONDS }))
        }
        Err(RecvTimeoutError::Disconnected) => {
            Err(Trouble::Refused(UringRefusal::Failed(Arc::new(io::Error::other("the probe panicked")))))
        }
    }
}

fn probe(path: PathBuf) -> Result<(), Trouble> {
    const CONTENT: &[u8] = &[0x6B; 512];

    // An error of an operation is either one of the ring or one of the disk.
    fn told_apart(error: IoError) -> Trouble {
        match UringRefusal::from_operation(&error.cause) {
            Some(refusal) => Trouble::Refused(refusal),
            None => Trouble::Disk(error),
        }
    }

    let ring = Ring::new().map_err(|e| Trouble::Refused(UringRefusal::from_start(e)))?;
    ring.run(move |disk: Rc<dyn Disk>| async move {
        let file = nameless(&*disk, &path).await.map_err(Trouble::Disk)?;
        let len = CONTENT.len();
        // Linked, then fused.
        for (position, written) in [(0, Some(Box::new(|| {}) as Box<dyn FnOnce()>)), (len as u64, None)] {
            let content = vec![Bytes::from_static(CONTENT)];
            file.append_and_sync(position, content, written).await.map_err(|e| match e {
                AppendSyncError::Write(e) | AppendSyncError::Sync(e) => told_apart(e),
            })?;
        }
        let read = file.read_at(0, 2 * len, BytesMut::new()).await.map_err(told_apart)?;
        if read != [CONTENT, CONTENT].concat() {
            let cause = io::Error::other("the probe read back other bytes than it wrote");
            return Err(Trouble::Refused(UringRefusal::Failed(Arc::new(cause))));
        }
        Ok(())
    })
}

/// A new file that has lost its name again. Another probe may be at work in the same directory, so
/// that either may find or remove the other's name.
async fn nameless(disk: &dyn Disk, path: &Path) -> Result<Rc<dyn File>, IoError> {
    const ATTEMPTS_MAX: usize = 100;

    let mut attempt = 1;
    loop {
        let opened = disk.open(path, OpenHow::CreateNew { mode: 0o600 }).await;
        match disk.remove(path).await {
            Err(e) if e.kind() != IoErrorKind::NotFound && opened.is_ok() => return Err(e),
            _ => {}
        }
        match opened {
            Err(e) if e.kind() == IoErrorKind::AlreadyExists && attempt < ATTEMPTS_MAX => attempt += 1,
            opened => return opened,
        }
    }
}

#[cfg(test)]
#[path = "probe_tests.rs"]
mod tests;
