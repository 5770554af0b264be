//! The child process that is killed in the middle of its appends, from both sides.
//!
//! The child leads an epoch and writes a line to its standard output for each append that is durable.
//! The parent counts lines, sends SIGKILL, and reads on until the pipe ends: every whole line is an
//! acknowledgement that a client may have seen.

use super::node;
use super::workload::{self, Ack};
use kraftlog::{Epoch, Voter};
use std::error::Error;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, Stdio};

type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

/// SIGKILL.
const KILLED: i32 = 9;

/// What the child acknowledged.
pub(crate) struct Killed {
    /// By offset.
    pub(crate) acks: Vec<Ack>,
}

/// Starts the child on a closed directory, kills it after so many acknowledgements, collects them all.
pub(crate) fn run_and_kill(
    dir: &Path,
    epoch: Epoch,
    voter: &Voter,
    tasks: u64,
    acks_before_kill: usize,
) -> Result<Killed> {
    let mut child = Command::new(std::env::current_exe()?)
        .arg("demo-child")
        .arg(format!("--epoch={epoch}"))
        .arg(format!("--tasks={tasks}"))
        .arg(format!("--directory-id={}", voter.directory_id))
        .arg("--dir")
        .arg(dir)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()?;
    let pipe = child.stdout.take().ok_or("the child has no output")?;
    let mut acks = Vec::new();
    for line in BufReader::new(pipe).lines() {
        acks.extend(parse(&line?));
        if acks.len() == acks_before_kill {
            child.kill()?;
        }
    }
    let status = child.wait()?;
    if status.signal() != Some(KILLED) {
        return Err(format!("the child ended by itself, {status}, after {} appends", acks.len()).into());
    }
    acks.sort_unstable();
    Ok(Killed { acks })
}

/// A line that the kill cut short is no acknowledgement.
fn parse(line: &str) -> Option<Ack> {
    let mut numbers = line.strip_suffix('.')?.split(' ').map(str::parse::<i64>);
    let mut next = || numbers.next()?.ok();
    Some(Ack {
        offset: next()?,
        epoch: i32::try_from(next()?).ok()?,
        task: u64::try_from(next()?).ok()?,
        number: u64::try_from(next()?).ok()?,
    })
}

/// The child: appends until it is killed.
pub(crate) fn be_killed(dir: &Path, epoch: Epoch, voter: &Voter, tasks: u64) -> Result<()> {
    let (log, _) = node::open(dir)?;
    node::lead(&log, epoch, voter)?;
    workload::append(&log, epoch, tasks, |_| u64::MAX, &|ack| {
        let line = format!("{} {} {} {}.\n", ack.offset, ack.epoch, ack.task, ack.number);
        let mut out = std::io::stdout().lock();
        // One write a line, below the size up to which a pipe keeps it whole.
        out.write_all(line.as_bytes()).and_then(|()| out.flush()).is_ok()
    })?;
    Err("nobody killed this process".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_was_cut_is_no_acknowledgement() {
        let ack = Ack { offset: 120, epoch: 2, task: 3, number: 4 };
        assert_eq!(parse("120 2 3 4."), Some(ack));
        for cut in ["", "120", "120 2 3 4", "120 2 3 ", "12x 2 3 4."] {
            assert_eq!(parse(cut), None, "{cut}");
        }
    }
}
