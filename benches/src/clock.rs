//! The one place that asks for the time. A bench measures the machine, so it may.

use std::time::{Duration, Instant};

/// Now, by the clock that never goes back.
#[expect(clippy::disallowed_methods, reason = "a bench measures the time of the real machine")]
pub fn now() -> Instant {
    Instant::now()
}

/// How long `work` takes.
pub fn time(work: impl FnOnce()) -> Duration {
    let from = now();
    work();
    from.elapsed()
}
