//! NoOpRecord, api key 20.

use super::schema::schema;

schema! {
    /// No content. Written by the active controller as a periodic task, every
    /// `metadata.max.idle.interval.ms` (500 ms by default; 0 = off), and once with a kraft.version upgrade.
    /// Never applied to state.
    NoOpRecord<'a> = 20, NO_OP_RECORD, versions 0..=0 {}
}
