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

/// Runs `rounds` pairs of bursts; who goes first changes from pair to pair. Each side does its work and
/// says how many operations it was, so the two bursts need not be of one size.
pub fn alternate(rounds: usize, mut ours: impl FnMut() -> usize, mut bare: impl FnMut() -> usize) -> Pairs {
    let mut times = Vec::with_capacity(rounds);
    // The first burst of each warms caches up and is not counted.
    ours();
    bare();
    for round in 0..rounds {
        times.push(if round % 2 == 0 {
            let ours = per_operation(&mut ours);
            (ours, per_operation(&mut bare))
        } else {
            let bare = per_operation(&mut bare);
            (per_operation(&mut ours), bare)
        });
    }
    Pairs {
        ours: Duration::from_secs_f64(median(times.iter().map(|(ours, _)| *ours).collect())),
        bare: Duration::from_secs_f64(median(times.iter().map(|(_, bare)| *bare).collect())),
        ratio: median(times.iter().map(|(ours, bare)| ours / bare).collect()),
    }
}

fn per_operation(burst: &mut impl FnMut() -> usize) -> f64 {
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
        let pairs = alternate(3, || side('o'), || side('b'));
        assert_eq!(*order.borrow(), "obobboob");
        assert!(pairs.ratio > 0.0);
    }
}
