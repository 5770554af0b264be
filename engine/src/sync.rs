//! Locks and atomics of this crate, from one place, so that a model checker can take their place: the unit
//! tests under `--cfg loom` get loom's, which tries every order of the threads (`loom_models`).

#[cfg(not(all(test, loom)))]
pub(crate) use parking_lot::{Mutex, RwLock};
#[cfg(not(all(test, loom)))]
pub(crate) use std::sync::{
    OnceLock,
    atomic::{AtomicBool, AtomicI64, AtomicU64, AtomicUsize, Ordering, fence},
};

#[cfg(all(test, loom))]
pub(crate) use self::modelled::{Mutex, OnceLock, RwLock};
#[cfg(all(test, loom))]
pub(crate) use loom::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, AtomicUsize, Ordering, fence};

/// loom's locks behind the names and signatures of parking_lot, and of the one std type that loom lacks.
#[cfg(all(test, loom))]
mod modelled {
    use super::{AtomicBool, Ordering};
    use loom::sync::{MutexGuard, RwLockReadGuard, RwLockWriteGuard};

    #[derive(Debug, Default)]
    pub(crate) struct Mutex<T>(loom::sync::Mutex<T>);

    impl<T> Mutex<T> {
        pub(crate) fn new(value: T) -> Mutex<T> {
            Mutex(loom::sync::Mutex::new(value))
        }

        pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
            self.0.lock().expect("a panic ends the model, so nobody finds the lock poisoned")
        }
    }

    #[derive(Debug, Default)]
    pub(crate) struct RwLock<T>(loom::sync::RwLock<T>);

    impl<T> RwLock<T> {
        pub(crate) fn new(value: T) -> RwLock<T> {
            RwLock(loom::sync::RwLock::new(value))
        }

        pub(crate) fn read(&self) -> RwLockReadGuard<'_, T> {
            self.0.read().expect("a panic ends the model, so nobody finds the lock poisoned")
        }

        pub(crate) fn write(&self) -> RwLockWriteGuard<'_, T> {
            self.0.write().expect("a panic ends the model, so nobody finds the lock poisoned")
        }
    }

    /// The value lies in std's cell, which is touched in loom's lock or behind loom's flag only: loom
    /// sees each moment at which threads can get in between.
    #[derive(Debug)]
    pub(crate) struct OnceLock<T> {
        initializing: Mutex<()>,
        is_set: AtomicBool,
        value: std::sync::OnceLock<T>,
    }

    impl<T> OnceLock<T> {
        pub(crate) fn new() -> OnceLock<T> {
            OnceLock {
                initializing: Mutex::new(()),
                is_set: AtomicBool::new(false),
                value: std::sync::OnceLock::new(),
            }
        }

        pub(crate) fn get(&self) -> Option<&T> {
            if self.is_set.load(Ordering::Acquire) { self.value.get() } else { None }
        }

        pub(crate) fn get_or_init(&self, make: impl FnOnce() -> T) -> &T {
            let _initializing = self.initializing.lock();
            let value = self.value.get_or_init(make);
            self.is_set.store(true, Ordering::Release);
            value
        }
    }
}
