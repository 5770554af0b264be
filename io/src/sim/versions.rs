//! One thing that a crash decides about: a sector, a length, a name.

/// A value as programs see it, as the medium has it, and what is on its way between the two.
#[derive(Debug, Clone)]
pub(super) struct Versions<T> {
    live: T,
    durable: T,
    /// What was set since the last sync, oldest first, with the moment it was set. Any of them may be
    /// what the medium has after a crash.
    pending: Vec<(u64, T)>,
}

impl<T: Clone + PartialEq> Versions<T> {
    /// A value that is on the medium.
    pub(super) fn durable(value: T) -> Versions<T> {
        Versions { live: value.clone(), durable: value, pending: Vec::new() }
    }

    /// A value that has never been set: `before` until the first sync.
    pub(super) fn fresh(before: T) -> Versions<T> {
        Versions::durable(before)
    }

    pub(super) fn live(&self) -> &T {
        &self.live
    }

    pub(super) fn on_medium(&self) -> &T {
        &self.durable
    }

    /// Sets the value at a moment. Setting what is there already counts: it is how a lost write is
    /// written again.
    pub(super) fn set(&mut self, moment: u64, value: T) {
        self.live = value.clone();
        let newest = self.pending.last().map_or(&self.durable, |(_, value)| value);
        if *newest != value {
            self.pending.push((moment, value));
        }
    }

    /// Changes medium and cache behind everybody's back.
    pub(super) fn rot(&mut self, value: T) {
        *self = Versions::durable(value);
    }

    /// Whether a crash has anything to decide here.
    pub(super) fn is_dirty(&self) -> bool {
        !self.pending.is_empty()
    }

    /// What was set up to a moment, and is not on the medium, is there now.
    pub(super) fn sync(&mut self, upto: u64) {
        let arrived = self.pending.iter().take_while(|(moment, _)| *moment <= upto).count();
        if let Some((_, value)) = self.pending.drain(..arrived).next_back() {
            self.durable = value;
        }
    }

    /// A sync failed: `arrived` of the pending versions made it, the rest never will. The cache goes on
    /// showing the new value if `cache_keeps`, else it goes back.
    pub(super) fn lose(&mut self, arrived: bool, cache_keeps: bool) {
        if let Some((_, value)) = self.pending.drain(..).next_back()
            && arrived
        {
            self.durable = value;
        }
        if !cache_keeps {
            self.live = self.durable.clone();
        }
    }

    /// What may be on the medium after a crash: what is there, then each pending version, oldest first,
    /// each value once.
    pub(super) fn candidates(&self) -> Vec<&T> {
        let mut all = vec![&self.durable];
        for (_, value) in &self.pending {
            if !all.contains(&value) {
                all.push(value);
            }
        }
        all
    }

    /// The newest that was set at or before a moment; what the medium has if nothing was.
    pub(super) fn at(&self, moment: u64) -> &T {
        self.pending.iter().rev().find(|(set, _)| *set <= moment).map_or(&self.durable, |(_, value)| value)
    }

    /// When the pending versions were set.
    pub(super) fn moments(&self) -> impl Iterator<Item = u64> {
        self.pending.iter().map(|(moment, _)| *moment)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_crash_may_find_any_version_since_the_last_sync() {
        let mut value = Versions::durable(0);
        value.set(1, 1);
        value.set(2, 2);
        assert_eq!(value.candidates(), [&0, &1, &2]);
        value.sync(1);
        assert_eq!((value.on_medium(), value.live()), (&1, &2));
        assert_eq!(value.candidates(), [&1, &2]);
        value.sync(9);
        assert_eq!(value.candidates(), [&2]);
        assert!(!value.is_dirty());
    }

    #[test]
    fn what_a_failed_sync_lost_is_only_saved_by_being_written_again() {
        let mut value = Versions::durable(0);
        value.set(1, 1);
        value.lose(false, true);
        value.sync(9);
        assert_eq!((value.live(), value.on_medium()), (&1, &0), "a second sync saves nothing");
        value.set(10, 1);
        value.sync(11);
        assert_eq!(value.on_medium(), &1);
        value.set(12, 2);
        value.lose(false, false);
        assert_eq!((value.live(), value.on_medium()), (&1, &1), "the page went back");
    }
}
