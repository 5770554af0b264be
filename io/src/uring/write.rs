//! Writes to their end, and the three ways to a durable append.
//!
//! What the kernel may answer to the linked pair of a write and a sync, and what follows:
//!
//! | write | sync | then |
//! | --- | --- | --- |
//! | all | `Ok` | durable |
//! | all | `ECANCELED` | the sync never began: sync, once |
//! | all | any other error | the sync failed |
//! | a part, or `EINTR` | `ECANCELED` or `Ok` | the rest, with a sync of its own |
//! | an error | `ECANCELED` or `Ok` | the write failed, nothing was synced |
//! | not all | any other error | the sync failed |
//!
//! A fused write has one answer for both. If the file does not reach behind the position, no byte was
//! written and the kernel did not come to the sync: the write failed. Else the outcome is unknown, and
//! that is a failed sync.

use super::op::Target;
use crate::portable::sys;
use bytes::{Buf, Bytes};
use rustix::io::Errno;
use std::cell::Cell;
use std::io;
use std::rc::Rc;

/// Where an append failed; the caller adds the path.
#[derive(Debug)]
pub(super) enum Failure {
    Write(io::Error),
    Sync(io::Error),
}

/// Writes all of `bufs`, going on after short and interrupted writes.
pub(super) async fn write_all(target: Target, position: u64, bufs: Vec<Bytes>) -> io::Result<()> {
    let mut rest = Rest::new(position, bufs);
    while let Some(now) = rest.take() {
        let (answer, now) = target.write(rest.at, now).await;
        rest.put_back(answer, now.into_bufs())?;
    }
    Ok(())
}

/// Writes all of `bufs`, sets `written`, and makes them durable.
pub(super) async fn append_split(
    target: Target,
    position: u64,
    bufs: Vec<Bytes>,
    written: Rc<Cell<bool>>,
) -> Result<(), Failure> {
    let mut rest = Rest::new(position, bufs);
    while let Some(now) = rest.take() {
        let (write, sync) = match rest.is_last_write() {
            true => match target.linked(rest.at, now) {
                Ok((write, sync)) => (write, Some(sync)),
                Err(now) => (target.write(rest.at, now), None),
            },
            false => (target.write(rest.at, now), None),
        };
        let (answer, now) = write.await;
        let put_back = rest.put_back(answer, now.into_bufs());
        if rest.is_done() {
            written.set(true);
        }
        if let Some(sync) = sync {
            match sync.await.0 {
                Ok(_) if rest.is_done() => return Ok(()),
                Ok(_) => {}
                Err(error) if is(&error, Errno::CANCELED) => {}
                Err(error) => return Err(Failure::Sync(error)),
            }
        }
        put_back.map_err(Failure::Write)?;
    }
    written.set(true);
    target.sync(true).await.0.map(drop).map_err(Failure::Sync)
}

/// Writes all of `bufs` so that each write is durable when it ends.
pub(super) async fn append_fused(target: Target, position: u64, bufs: Vec<Bytes>) -> Result<(), Failure> {
    let mut rest = Rest::new(position, bufs);
    if rest.is_done() {
        return target.sync(true).await.0.map(drop).map_err(Failure::Sync);
    }
    while let Some(now) = rest.take() {
        let (answer, now) = target.write_durably(rest.at, now).await;
        if let Err(error) = answer {
            let unwritten = target.file.metadata().is_ok_and(|file| file.len() <= rest.at);
            if !unwritten {
                return Err(Failure::Sync(error));
            }
            rest.put_back(Err(error), now.into_bufs()).map_err(Failure::Write)?;
        } else {
            rest.put_back(answer, now.into_bufs()).map_err(Failure::Write)?;
        }
    }
    Ok(())
}

pub(super) fn is(error: &io::Error, errno: Errno) -> bool {
    error.raw_os_error() == Some(errno.raw_os_error())
}

/// What is left of a write.
struct Rest {
    at: u64,
    bufs: Vec<Bytes>,
    /// Behind what one write takes.
    later: Vec<Bytes>,
}

impl Rest {
    fn new(position: u64, mut bufs: Vec<Bytes>) -> Rest {
        bufs.retain(|buf| !buf.is_empty());
        Rest { at: position, bufs, later: Vec::new() }
    }

    fn is_done(&self) -> bool {
        self.bufs.is_empty() && self.later.is_empty()
    }

    /// Whether what was taken is all that is left.
    fn is_last_write(&self) -> bool {
        self.later.is_empty()
    }

    /// The buffers of the next write, to be put back with its answer.
    fn take(&mut self) -> Option<Vec<Bytes>> {
        if self.bufs.is_empty() {
            return None;
        }
        self.later = self.bufs.split_off(self.bufs.len().min(sys::BUFFERS_PER_WRITE_MAX));
        Some(std::mem::take(&mut self.bufs))
    }

    /// Drops what was written of `now`. An interrupted write has written nothing and is no error.
    fn put_back(&mut self, answer: io::Result<usize>, mut now: Vec<Bytes>) -> io::Result<()> {
        let outcome = match answer {
            Ok(0) => Err(io::ErrorKind::WriteZero.into()),
            Ok(n) => {
                self.at += n as u64;
                advance(&mut now, n);
                Ok(())
            }
            Err(e) if e.kind() == io::ErrorKind::Interrupted => Ok(()),
            Err(e) => Err(e),
        };
        self.bufs = now;
        self.bufs.append(&mut self.later);
        outcome
    }
}

/// Takes the first `n` bytes off a list of buffers, none of them empty.
fn advance(bufs: &mut Vec<Bytes>, n: usize) {
    let mut left = n;
    let mut done = 0;
    for buf in bufs.iter_mut() {
        if left < buf.len() {
            buf.advance(left);
            left = 0;
            break;
        }
        left -= buf.len();
        done += 1;
    }
    assert!(left == 0, "a write of fewer bytes reported {n}");
    bufs.drain(..done);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bufs(parts: &[&'static str]) -> Vec<Bytes> {
        parts.iter().map(|p| Bytes::from_static(p.as_bytes())).collect()
    }

    #[test]
    fn a_short_write_leaves_exactly_the_bytes_behind_it() {
        for (n, left) in [(1, vec!["b", "cde"]), (2, vec!["cde"]), (4, vec!["e"]), (5, vec![])] {
            let mut rest = Rest::new(7, bufs(&["", "ab", "", "cde"]));
            let now = rest.take().unwrap_or_default();
            rest.put_back(Ok(n), now).expect("a short write is no error");
            assert_eq!((rest.at, rest.bufs), (7 + n as u64, bufs(&left)), "after {n} bytes");
        }
    }

    #[test]
    fn a_write_of_nothing_is_an_error_and_an_interrupted_one_is_done_again() {
        let mut rest = Rest::new(7, bufs(&["ab"]));
        let now = rest.take().unwrap_or_default();
        assert_eq!(rest.put_back(Ok(0), now).map_err(|e| e.kind()), Err(io::ErrorKind::WriteZero));
        let now = rest.take().unwrap_or_default();
        rest.put_back(Err(Errno::INTR.into()), now).expect("an interrupted write is no error");
        assert_eq!((rest.at, rest.take()), (7, Some(bufs(&["ab"]))));
    }
}
