//! The directories that this process holds the lock of.
//!
//! A POSIX record lock belongs to the process, and closing *any* descriptor of its file gives it up. So
//! whoever opens or closes a lock file does it in here, under one mutex, and nobody opens the lock file
//! of a directory that is held.

#[cfg(all(test, loom))]
use loom::sync::{Mutex, MutexGuard};
#[cfg(not(all(test, loom)))]
use parking_lot::{Mutex, MutexGuard};
use std::collections::BTreeSet;

/// Who is held. Tells directories apart by `K`.
pub(crate) struct Registry<K> {
    held: Mutex<BTreeSet<K>>,
}

impl<K: Ord + Copy> Registry<K> {
    pub(crate) fn new() -> Registry<K> {
        Registry { held: Mutex::new(BTreeSet::new()) }
    }

    /// Runs `take`, which opens the lock file and locks it, unless `id` is held: then `None`. If it
    /// succeeds, `id` is held from then on.
    pub(crate) fn acquire<T, E>(&self, id: K, take: impl FnOnce() -> Result<T, E>) -> Option<Result<T, E>> {
        let mut held = self.lock();
        if held.contains(&id) {
            return None;
        }
        let taken = take();
        if taken.is_ok() {
            held.insert(id);
        }
        Some(taken)
    }

    /// Runs `look`, which opens and closes the lock file, unless `id` is held: then `None`.
    pub(crate) fn unless_held<T>(&self, id: K, look: impl FnOnce() -> T) -> Option<T> {
        let held = self.lock();
        (!held.contains(&id)).then(look)
    }

    /// Runs `let_go`, which closes the lock file; `id` is free from then on.
    pub(crate) fn release(&self, id: K, let_go: impl FnOnce()) {
        let mut held = self.lock();
        let_go();
        held.remove(&id);
    }

    #[cfg(not(all(test, loom)))]
    fn lock(&self) -> MutexGuard<'_, BTreeSet<K>> {
        self.held.lock()
    }

    #[cfg(all(test, loom))]
    fn lock(&self) -> MutexGuard<'_, BTreeSet<K>> {
        self.held.lock().expect("a panic ends the model, so nobody finds the lock poisoned")
    }
}

/// The registry in every order that threads can come in:
/// `RUSTFLAGS="--cfg loom" cargo test -p kraftlog-io --no-default-features --lib loom_models`.
#[cfg(all(test, loom))]
mod loom_models {
    use super::Registry;
    use loom::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
    use loom::thread;
    use std::sync::Arc;

    /// What a process has of POSIX locks: it never excludes itself, and any close gives the lock up.
    struct Process {
        registry: Registry<u32>,
        locked: AtomicBool,
        holders: AtomicUsize,
    }

    impl Process {
        fn new() -> Process {
            let (locked, holders) = (AtomicBool::new(false), AtomicUsize::new(0));
            Process { registry: Registry::new(), locked, holders }
        }

        fn acquire(&self) -> bool {
            let taken = self.registry.acquire(7, || {
                self.locked.store(true, Ordering::SeqCst);
                Ok::<_, ()>(())
            });
            if taken.is_some() {
                assert_eq!(self.holders.fetch_add(1, Ordering::SeqCst), 0, "two hold one directory");
            }
            taken.is_some()
        }

        /// Opens and closes the file, as a look at who holds it does.
        fn probe(&self) {
            self.registry.unless_held(7, || self.locked.store(false, Ordering::SeqCst));
        }

        fn release(&self) {
            assert!(self.locked.load(Ordering::SeqCst), "a lock was given up under its holder");
            self.holders.fetch_sub(1, Ordering::SeqCst);
            self.registry.release(7, || self.locked.store(false, Ordering::SeqCst));
        }
    }

    #[test]
    fn of_two_who_want_one_directory_exactly_one_has_it() {
        loom::model(|| {
            let process = Arc::new(Process::new());
            let other = {
                let process = Arc::clone(&process);
                thread::spawn(move || process.acquire())
            };
            let ours = process.acquire();
            assert_ne!(ours, other.join().expect("no panic"));
            // And whoever had it, it is free again once it is let go of.
            process.release();
            assert!(process.acquire());
        });
    }

    #[test]
    fn a_release_and_a_new_lock_do_not_get_into_each_other() {
        loom::model(|| {
            let process = Arc::new(Process::new());
            assert!(process.acquire());
            let other = {
                let process = Arc::clone(&process);
                thread::spawn(move || {
                    if process.acquire() {
                        process.release();
                    }
                })
            };
            process.release();
            other.join().expect("no panic");
            assert!(process.acquire());
        });
    }

    #[test]
    fn a_look_at_the_holder_never_gives_up_a_lock() {
        loom::model(|| {
            let process = Arc::new(Process::new());
            let other = {
                let process = Arc::clone(&process);
                thread::spawn(move || process.probe())
            };
            assert!(process.acquire());
            other.join().expect("no panic");
            process.release();
        });
    }
}
