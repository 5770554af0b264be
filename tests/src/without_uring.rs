//! Runs a command where io_uring cannot be had, in the ways that machines and containers have.
//!
//! The obstacle is put up in this process, which then becomes the command: a seccomp filter and a limit
//! outlive an exec. A filter cannot be taken off again, so a test starts a process of its own for it.

use std::convert::Infallible;
use std::io;
use std::process::Command;

/// What stands in the way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Obstacle {
    /// `io_uring_setup` answers `EPERM`, as under the seccomp profile of a container.
    Forbidden,
    /// `io_uring_setup` answers `ENOSYS`, as on a kernel without io_uring.
    NoKernelSupport,
    /// `io_uring_setup` answers `ENOMEM`, as on an old kernel that counts rings as locked memory.
    NoMemory,
    /// A ring can be made, but the kernel takes nothing out of it.
    Silent,
    /// A ring does nothing as soon as two entries are pushed at once.
    SilentLinks,
    /// No locked memory, as another user than root, whom the limit does not bind.
    NoLockedMemory,
}

impl Obstacle {
    /// All of them.
    pub const ALL: [Obstacle; 6] = [
        Obstacle::Forbidden,
        Obstacle::NoKernelSupport,
        Obstacle::NoMemory,
        Obstacle::Silent,
        Obstacle::SilentLinks,
        Obstacle::NoLockedMemory,
    ];

    /// As the binary `without-uring` takes it.
    pub fn name(self) -> &'static str {
        match self {
            Obstacle::Forbidden => "eperm",
            Obstacle::NoKernelSupport => "enosys",
            Obstacle::NoMemory => "enomem",
            Obstacle::Silent => "silent",
            Obstacle::SilentLinks => "silent-links",
            Obstacle::NoLockedMemory => "memlock",
        }
    }

    /// The obstacle of that name.
    pub fn named(name: &str) -> Option<Obstacle> {
        Obstacle::ALL.into_iter().find(|obstacle| obstacle.name() == name)
    }
}

/// Puts up the obstacle and becomes the command; comes back only if that failed. `Unsupported` says
/// that this machine cannot put it up.
///
/// # Errors
/// What the kernel says.
pub fn exec(obstacle: Obstacle, command: &mut Command) -> io::Result<Infallible> {
    imp::exec(obstacle, command)
}

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod imp {
    use super::Obstacle;
    use rustix::process::{Resource, Rlimit, geteuid, setrlimit};
    use seccompiler::{
        BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
        SeccompRule, TargetArch, apply_filter,
    };
    use std::collections::BTreeMap;
    use std::convert::Infallible;
    use std::io;
    use std::os::unix::process::CommandExt;
    use std::process::Command;

    // Numbers of the architecture.
    const IO_URING_SETUP: i64 = 425;
    const IO_URING_ENTER: i64 = 426;
    const NOBODY: u32 = 65534;

    pub(super) fn exec(obstacle: Obstacle, command: &mut Command) -> io::Result<Infallible> {
        let errno = |errno: rustix::io::Errno| errno.raw_os_error() as u32;
        match obstacle {
            Obstacle::Forbidden => answer(IO_URING_SETUP, errno(rustix::io::Errno::PERM), None)?,
            Obstacle::NoKernelSupport => answer(IO_URING_SETUP, errno(rustix::io::Errno::NOSYS), None)?,
            Obstacle::NoMemory => answer(IO_URING_SETUP, errno(rustix::io::Errno::NOMEM), None)?,
            // No error and nothing done: zero entries taken.
            Obstacle::Silent => answer(IO_URING_ENTER, 0, None)?,
            Obstacle::SilentLinks => answer(IO_URING_ENTER, 0, Some(2))?,
            Obstacle::NoLockedMemory => {
                if !geteuid().is_root() {
                    return Err(io::Error::new(io::ErrorKind::Unsupported, "only root becomes another user"));
                }
                setrlimit(Resource::Memlock, Rlimit { current: Some(0), maximum: Some(0) })?;
                command.uid(NOBODY).gid(NOBODY);
            }
        }
        Err(command.exec())
    }

    /// The system call answers `errno` from now on; with `entries_min`, if it submits so many.
    fn answer(call: i64, errno: u32, entries_min: Option<u64>) -> io::Result<()> {
        const SUBMITTED: u8 = 1;

        let failed = |error: String| io::Error::new(io::ErrorKind::Unsupported, error);
        let mut rules = Vec::new();
        if let Some(min) = entries_min {
            let (len, op) = (SeccompCmpArgLen::Dword, SeccompCmpOp::Ge);
            let condition = SeccompCondition::new(SUBMITTED, len, op, min);
            let rule = condition.and_then(|condition| SeccompRule::new(vec![condition]));
            rules.push(rule.map_err(|e| failed(e.to_string()))?);
        }
        let filter = SeccompFilter::new(
            BTreeMap::from([(call, rules)]),
            SeccompAction::Allow,
            SeccompAction::Errno(errno),
            TargetArch::x86_64,
        );
        let program: BpfProgram = filter.and_then(TryInto::try_into).map_err(|e| failed(e.to_string()))?;
        apply_filter(&program).map_err(|e| failed(e.to_string()))
    }
}

#[cfg(not(all(target_os = "linux", target_arch = "x86_64")))]
mod imp {
    use super::Obstacle;
    use std::convert::Infallible;
    use std::io;
    use std::process::Command;

    pub(super) fn exec(_: Obstacle, _: &mut Command) -> io::Result<Infallible> {
        Err(io::Error::new(io::ErrorKind::Unsupported, "obstacles are put up on Linux on x86_64 only"))
    }
}
