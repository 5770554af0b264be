//! FeatureLevelRecord, api key 12.

use super::schema::schema;

schema! {
    /// Finalized level of one feature. The first record of every log and every metadata checkpoint is the
    /// one for `metadata.version`; this record can never move past version 0. Up to 3.2 the same key and
    /// version had two int16 level fields (min, max): such logs cannot be read by 3.3+.
    FeatureLevelRecord<'a> = 12, FEATURE_LEVEL_RECORD, versions 0..=0 {
        /// Name of the feature, e.g. `metadata.version`; never `kraft.version`.
        name: &'a str,
        /// 0 = feature off, drop it.
        feature_level: i16,
    }
}
