//! What an exploration saw.

use kraftlog_io::sim::SimDisk;
use std::collections::HashSet;
use std::fmt;
use std::io;
use std::path::Path;

/// Something that a crash must not do, with what it takes to see it again.
pub struct Violation {
    /// What is wrong.
    pub what: String,
    /// Which run, as the arguments of the `crash` binary that replay it.
    pub replay: String,
    /// What the node had been told to do.
    pub history: String,
    /// Before which step the power failed.
    pub step: String,
    /// The disk as it was found.
    pub disk: SimDisk,
}

impl fmt::Debug for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "violation: {}", self.what)?;
        writeln!(f, "  history: {}", self.history)?;
        writeln!(f, "  crashed before {}", self.step)?;
        write!(f, "  replay: crash {}", self.replay)
    }
}

impl Violation {
    /// Puts the directory as it was found under a directory of this machine.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn save(&self, to: &Path) -> io::Result<()> {
        for (path, content) in self.disk.files() {
            let path = to.join(path.strip_prefix("/").unwrap_or(&path));
            if let Some(above) = path.parent() {
                std::fs::create_dir_all(above)?;
            }
            io::Write::write_all(
                &mut std::fs::File::options().create(true).write(true).truncate(true).open(&path)?,
                &content,
            )?;
        }
        Ok(())
    }
}

/// How much was tried.
#[derive(Debug, Default)]
pub struct Tally {
    /// Disks that a crash could have left.
    pub images: u64,
    /// Moments at which the power failed.
    pub moments: u64,
    /// Runs of a node.
    pub runs: u64,
    /// Different disks with different promises, by fingerprint: only these are opened.
    pub(crate) seen: HashSet<(u64, u64)>,
}

impl Tally {
    /// Disks that differ in content or in what was promised of them; only these were opened.
    pub fn distinct(&self) -> usize {
        self.seen.len()
    }

    /// Puts what another worker tried to this.
    pub fn add(&mut self, other: Tally) {
        self.images += other.images;
        self.moments += other.moments;
        self.runs += other.runs;
        self.seen.extend(other.seen);
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} runs, {} moments, {} images tried, {} distinct states",
            self.runs,
            self.moments,
            self.images,
            self.distinct()
        )
    }
}
