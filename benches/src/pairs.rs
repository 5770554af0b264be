//! Two sides in short bursts, in turn: what disturbs the machine disturbs both, and the median of the
//! ratios of neighbours survives what disturbs only one.

use crate::clock;
use std::time::Duration;

/// What alternating bursts of two sides gave.
#[derive(Debug, Clone)]
pub struct Pairs {
    /// Time of one operation on our side: median over the bursts.
    pub ours: Duration,
    /// Time of one operation of the bare calls: median over the bursts.
    pub bare: Duration,
    /// Our time to that of the bare calls: median over the pairs.
    pub ratio: f64,
}

/// Pairs that are run whatever time they take.
const ROUNDS_MIN: usize = 6;
/// When a measurement has taken so long, it begins no further pair.
const TIME_MAX: Duration = Duration::from_secs(4);

/// Runs up to `rounds` pairs of bursts, fewer where the disk is slow; who goes first changes from pair to
/// pair. Each side says how many operations its burst was, so the two need not be of one size. What
/// `prepare` makes for our next burst is not timed: the bare side has its buffers too.
pub fn alternate<P>(
    rounds: usize,
    mut prepare: impl FnMut() -> P,
    mut ours: impl FnMut(P) -> usize,
    mut bare: impl FnMut() -> usize,
) -> Pairs {
    let mut times = Vec::with_capacity(rounds);
    // The first burst of each warms caches up and is not counted.
    ours(prepare());
    bare();
    let from = clock::now();
    while times.len() < rounds && (times.len() < ROUNDS_MIN || from.elapsed() < TIME_MAX) {
        let prepared = prepare();
        times.push(if times.len() % 2 == 0 {
            let ours = per_operation(|| ours(prepared));
            (ours, per_operation(&mut bare))
        } else {
            let bare = per_operation(&mut bare);
            (per_operation(|| ours(prepared)), bare)
        });
    }
    Pairs {
        ours: Duration::from_secs_f64(median(times.iter().map(|(ours, _)| *ours).collect())),
        bare: Duration::from_secs_f64(median(times.iter().map(|(_, bare)| *bare).collect())),
        ratio: median(times.iter().map(|(ours, bare)| ours / bare).collect()),
    }
}

fn per_operation(burst: impl FnOnce() -> usize) -> f64 {
    let from = clock::now();
    let operations = burst();
    from.elapsed().as_secs_f64() / operations as f64
}

/// The middle value; of an even number the upper one of the two. 0 if there is none.
pub fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_in_the_middle() {
        assert_eq!(median(vec![3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(vec![4.0, 1.0, 2.0, 3.0]), 3.0);
        assert_eq!(median(vec![]), 0.0);
    }

    #[test]
    fn both_sides_run_once_more_than_the_rounds_and_in_turn() {
        let order = std::cell::RefCell::new(String::new());
        let side = |name| {
            order.borrow_mut().push(name);
            1
        };
        let pairs = alternate(3, || (), |()| side('o'), || side('b'));
        assert_eq!(*order.borrow(), "obobboob");
        assert!(pairs.ratio > 0.0);
    }
}
