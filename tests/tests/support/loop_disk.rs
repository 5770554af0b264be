//! A small file system of its own: an ext4 in a file, mounted through a loop device, or a tmpfs.
//!
//! What the file system keeps in its cache is not in the backing file: a copy of the file is what a
//! disk would have after a power cut. Needs root, loop devices and `mkfs.ext4`; where one is missing
//! [`NotRun`] says which. Every mount is undone when its value is dropped, also by a test that fails.

use std::fmt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

const UNMOUNT_TRIES: u32 = 50;
const COPY_TRIES: u32 = 200;
const PAUSE: Duration = Duration::from_millis(5);

/// Why this machine cannot run a test.
#[derive(Debug)]
pub(crate) struct NotRun(String);

impl fmt::Display for NotRun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "not run: {}", self.0)
    }
}

/// A mounted file system.
pub(crate) struct Mounted {
    at: PathBuf,
    /// The backing file, if it has one.
    image: Option<PathBuf>,
}

/// Makes an ext4 of so many MiB in the file `image`.
pub(crate) fn make_ext4(image: &Path, mib: u64) -> Result<(), NotRun> {
    needs_root()?;
    let file = std::fs::File::create(image).expect("an image file");
    file.set_len(mib << 20).expect("room for an image");
    // All of it for us: root's reserve would be used by a test that is root, and by no other.
    let made = Command::new("mkfs.ext4").args(["-q", "-F", "-m", "0"]).arg(image).output();
    match made {
        Err(error) => Err(NotRun(format!("mkfs.ext4 cannot be started: {error}"))),
        Ok(made) if !made.status.success() => {
            Err(NotRun(format!("mkfs.ext4 failed: {}", String::from_utf8_lossy(&made.stderr).trim())))
        }
        Ok(_) => Ok(()),
    }
}

fn needs_root() -> Result<(), NotRun> {
    match rustix::process::geteuid().is_root() {
        true => Ok(()),
        false => Err(NotRun("a file system can be mounted by root only".to_owned())),
    }
}

impl Mounted {
    /// Mounts the ext4 in `image`; a journal that a power cut left is replayed.
    pub(crate) fn ext4(image: &Path, at: &Path, options: &str) -> Result<Mounted, NotRun> {
        let source = image.to_str().expect("a path in UTF-8");
        let mut mounted = mount(&["-t", "ext4", "-o", &format!("loop,{options}"), source], at)?;
        mounted.image = Some(image.to_path_buf());
        Ok(mounted)
    }

    /// Mounts an empty tmpfs of so many KiB.
    pub(crate) fn tmpfs(kib: u64, at: &Path) -> Result<Mounted, NotRun> {
        mount(&["-t", "tmpfs", "-o", &format!("size={kib}k"), "tmpfs"], at)
    }

    /// Where it is mounted.
    pub(crate) fn at(&self) -> &Path {
        &self.at
    }

    /// Copies the backing file as a disk would be after a power cut now.
    ///
    /// Whoever writes in the file system must stand still. The kernel's own threads may still write
    /// back; a copy during which the loop device was written would mix two moments, which no power cut
    /// does, and is made again.
    pub(crate) fn copy_of_disk(&self, to: &Path) {
        let stat = self.loop_stat();
        let image = self.image.as_deref().expect("a backing file");
        for _ in 0..COPY_TRIES {
            let before = writes(&stat);
            let copied = Command::new("cp").arg("--sparse=always").args([image, to]).status();
            assert!(copied.expect("cp").success(), "{} cannot be copied", image.display());
            match (before, writes(&stat)) {
                (Some(before), Some(after)) if before == after => return,
                _ => std::thread::sleep(PAUSE),
            }
        }
        panic!("{} is written all the time", image.display());
    }

    /// The statistics file of the loop device.
    fn loop_stat(&self) -> PathBuf {
        let mounts = std::fs::read_to_string("/proc/mounts").expect("the mounts");
        let at = self.at.to_str().expect("a path in UTF-8");
        let device = mounts.lines().find_map(|line| {
            let (device, rest) = line.split_once(' ')?;
            (rest.split(' ').next() == Some(at)).then_some(device)
        });
        let name = device.and_then(|device| device.strip_prefix("/dev/")).expect("a loop device");
        Path::new("/sys/block").join(name).join("stat")
    }
}

/// How often a block device was written, discarded and flushed; `None` while something is on its way.
fn writes(stat: &Path) -> Option<[u64; 4]> {
    let text = std::fs::read_to_string(stat).expect("the statistics of a block device");
    let field = |at| text.split_whitespace().nth(at).and_then(|word| word.parse::<u64>().ok()).unwrap_or(0);
    // Documentation/block/stat.rst: write I/Os, write sectors, in flight, discard I/Os, flush I/Os.
    (field(8) == 0).then(|| [field(4), field(6), field(11), field(15)])
}

fn mount(arguments: &[&str], at: &Path) -> Result<Mounted, NotRun> {
    needs_root()?;
    std::fs::create_dir_all(at).expect("a mount point");
    match Command::new("mount").args(arguments).arg(at).output() {
        Err(error) => Err(NotRun(format!("mount cannot be started: {error}"))),
        Ok(done) if !done.status.success() => {
            Err(NotRun(format!("mount failed: {}", String::from_utf8_lossy(&done.stderr).trim())))
        }
        Ok(_) => Ok(Mounted { at: at.to_path_buf(), image: None }),
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let unmount = |how: &[&str]| {
            Command::new("umount").args(how).arg(&self.at).output().is_ok_and(|done| done.status.success())
        };
        // Threads of a log that was dropped may hold files for a moment.
        for _ in 0..UNMOUNT_TRIES {
            if unmount(&[]) {
                return;
            }
            std::thread::sleep(PAUSE);
        }
        println!("{} is busy and is unmounted when it no longer is", self.at.display());
        unmount(&["-l"]);
    }
}
