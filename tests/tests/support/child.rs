//! The parent's grip on a node: it starts this very test binary again, hears what it says, stops it, lets
//! it go on, kills it. However the test ends, the node ends with it.

use super::acknowledged::Acknowledged;
use super::node::{NODE_BACKEND, NODE_DIR};
use rustix::fs::OFlags;
use rustix::process::{Pid, Signal};
use std::io::{ErrorKind, Read};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Duration;

/// How often the pipe is looked at.
const LOOK_EVERY: Duration = Duration::from_micros(200);
/// A node that is silent for so many looks hangs.
const LOOKS_MAX: u32 = 300_000;
const STOP_LOOKS_MAX: u32 = 100;

/// A running node. `heard` has everything that it acknowledged.
pub(crate) struct Node {
    child: Child,
    out: ChildStdout,
    /// What came of a line that is not whole yet.
    begun: Vec<u8>,
    /// The last line that says what the node is about.
    doing: String,
    /// What `hear_until` waits for; empty when it was heard.
    awaited: String,
}

impl Node {
    /// Starts the node of this test binary; its test must have the name `node`.
    pub(crate) fn start(dir: &Path, backend: &str) -> Node {
        Node::start_with(Command::new(std::env::current_exe().expect("this test")), dir, backend)
    }

    /// Starts it with a command that hands its last arguments on to this test binary.
    pub(crate) fn start_with(mut command: Command, dir: &Path, backend: &str) -> Node {
        let mut child = command
            .args(["--exact", "node", "--nocapture", "--test-threads=1"])
            .env(NODE_DIR, dir)
            .env(NODE_BACKEND, backend)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the node starts");
        let out = child.stdout.take().expect("a pipe");
        let flags = rustix::fs::fcntl_getfl(&out).expect("the flags of a pipe");
        rustix::fs::fcntl_setfl(&out, flags | OFlags::NONBLOCK).expect("a pipe need not block");
        Node { child, out, begun: Vec::new(), doing: "starting".to_owned(), awaited: String::new() }
    }

    /// Takes what is in the pipe now; a last line that is cut waits for its rest. False at its end.
    pub(crate) fn hear(&mut self, acknowledged: &mut Acknowledged) -> bool {
        let mut piece = [0; 64 << 10];
        let open = loop {
            match self.out.read(&mut piece) {
                Ok(0) => break false,
                Ok(n) => self.begun.extend_from_slice(&piece[..n]),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => break true,
                Err(error) => panic!("the pipe cannot be read: {error}"),
            }
        };
        let Some(end) = self.begun.iter().rposition(|byte| *byte == b'\n') else { return open };
        let rest = self.begun.split_off(end + 1);
        let whole = std::mem::replace(&mut self.begun, rest);
        for line in String::from_utf8_lossy(&whole).lines() {
            acknowledged.hear(line);
            match line.split(' ').next() {
                Some("appended" | "refused" | "") | None => {}
                Some(word) => {
                    word.clone_into(&mut self.doing);
                    if word == self.awaited {
                        self.awaited.clear();
                    }
                }
            }
        }
        open
    }

    /// Hears for some time. A node that ends meanwhile fails the test.
    pub(crate) fn hear_for(&mut self, time: Duration, acknowledged: &mut Acknowledged) {
        for _ in 0..=time.as_micros() / LOOK_EVERY.as_micros() {
            self.look(acknowledged);
        }
    }

    /// Hears until the node says that it is about this.
    pub(crate) fn hear_until(&mut self, doing: &str, acknowledged: &mut Acknowledged) {
        if self.doing == doing {
            return;
        }
        doing.clone_into(&mut self.awaited);
        for _ in 0..LOOKS_MAX {
            self.look(acknowledged);
            if self.awaited.is_empty() {
                return;
            }
        }
        panic!("the node hangs while {}, it was to come to {doing}", self.doing);
    }

    fn look(&mut self, acknowledged: &mut Acknowledged) {
        if !self.hear(acknowledged) {
            panic!("the node ended by itself: {}", self.stderr());
        }
        std::thread::sleep(LOOK_EVERY);
    }

    /// What it said last that it is about: `opening`, `opened`, `vote`, `freezing`, `frozen`, `closing`.
    pub(crate) fn doing(&self) -> &str {
        &self.doing
    }

    /// SIGKILL, and what it had said by then.
    pub(crate) fn kill(mut self, acknowledged: &mut Acknowledged) -> String {
        self.child.kill().expect("SIGKILL");
        self.child.wait().expect("it is dead");
        while self.hear(acknowledged) {}
        std::mem::take(&mut self.doing)
    }

    /// SIGSTOP; on return its threads stand still, as far as they can be seen to.
    ///
    /// A thread on its way out may wait in the kernel for one that is stopped, and is never seen stopped
    /// itself; so the wait has an end. Whoever needs more must look at the disk.
    pub(crate) fn stop(&mut self) {
        self.signal(Signal::STOP);
        let tasks = format!("/proc/{}/task", self.child.id());
        for _ in 0..STOP_LOOKS_MAX {
            if std::fs::read_dir(&tasks).expect("its threads").flatten().all(|task| is_stopped(&task.path()))
            {
                return;
            }
            std::thread::sleep(LOOK_EVERY);
        }
    }

    /// SIGCONT.
    pub(crate) fn go_on(&mut self) {
        self.signal(Signal::CONT);
    }

    fn signal(&self, signal: Signal) {
        let id = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw).expect("a process id");
        rustix::process::kill_process(id, signal).expect("the node is there");
    }

    fn stderr(&mut self) -> String {
        let mut text = String::new();
        if let Some(pipe) = &mut self.child.stderr {
            let _ = pipe.read_to_string(&mut text);
        }
        text
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        // Nothing to do for one that is dead already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Whether a thread of a stopped process stands still; one that ended meanwhile does.
fn is_stopped(task: &Path) -> bool {
    let Ok(stat) = std::fs::read_to_string(task.join("stat")) else { return true };
    // The name in parentheses may hold anything; the state follows the last of them.
    let state = stat.rsplit_once(") ").and_then(|(_, rest)| rest.chars().next());
    matches!(state, Some('T' | 't' | 'Z' | 'X'))
}
