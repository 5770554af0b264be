//! The newest batches of the log in memory, so that fetchers at its end cost no disk.
//!
//! Invariant: batches are back to back, whole and checked; the oldest go first when the bytes exceed
//! the limit. What a crash leaves of it is nothing.

use crate::types::Offset;
use bytes::Bytes;
use std::collections::VecDeque;

/// One checked batch of the log.
#[derive(Debug, Clone)]
pub(crate) struct CachedBatch {
    pub(crate) base: Offset,
    pub(crate) next: Offset,
    pub(crate) bytes: Bytes,
}

/// The newest batches, at most `bytes_max` of them.
#[derive(Debug)]
pub(crate) struct TailCache {
    batches: VecDeque<CachedBatch>,
    bytes: usize,
    bytes_max: usize,
}

impl TailCache {
    pub(crate) fn new(bytes_max: usize) -> TailCache {
        TailCache { batches: VecDeque::new(), bytes: 0, bytes_max }
    }

    /// Takes a batch that was just written behind all others.
    pub(crate) fn push(&mut self, batch: CachedBatch) {
        if self.batches.back().is_some_and(|last| last.next != batch.base) {
            self.clear();
        }
        self.bytes += batch.bytes.len();
        self.batches.push_back(batch);
        while self.bytes > self.bytes_max {
            match self.batches.pop_front() {
                Some(oldest) => self.bytes -= oldest.bytes.len(),
                None => break,
            }
        }
    }

    /// Forgets everything.
    pub(crate) fn clear(&mut self) {
        self.batches.clear();
        self.bytes = 0;
    }

    /// Whole batches from the one that holds `from`, at most `bytes_max` bytes but at least one batch,
    /// none that ends above `limit`. `None` if the cache does not reach back to `from`.
    pub(crate) fn read(&self, from: Offset, limit: Offset, bytes_max: usize) -> Option<Vec<CachedBatch>> {
        if self.batches.front()?.base > from {
            return None;
        }
        let first = self.batches.partition_point(|batch| batch.next <= from);
        let mut found = Vec::new();
        let mut bytes = 0usize;
        for batch in self.batches.range(first..) {
            bytes += batch.bytes.len();
            if batch.next > limit || (bytes > bytes_max && !found.is_empty()) {
                break;
            }
            found.push(batch.clone());
        }
        // Nothing, although there is something below the limit: the batch went out of the cache's reach.
        (!found.is_empty() || first < self.batches.len()).then_some(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn batch(base: i64, next: i64, len: usize) -> CachedBatch {
        CachedBatch { base: Offset(base), next: Offset(next), bytes: Bytes::from(vec![7; len]) }
    }

    #[test]
    fn the_oldest_batches_go_when_the_limit_is_reached() {
        let mut cache = TailCache::new(100);
        for base in 0..5 {
            cache.push(batch(base * 2, base * 2 + 2, 40));
        }
        assert!(cache.read(Offset(5), Offset(10), 1000).is_none());
        let found = cache.read(Offset(7), Offset(10), 1000).expect("cached");
        assert_eq!(found.iter().map(|batch| batch.base.0).collect::<Vec<_>>(), [6, 8]);
        assert_eq!(cache.read(Offset(6), Offset(10), 1).expect("cached").len(), 1);
        assert_eq!(cache.read(Offset(6), Offset(9), 1000).expect("cached").len(), 1);
    }
}
