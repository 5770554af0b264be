//! Feature levels: metadata.version with what it gates, and the features beside it.
//!
//! The tables are those of Kafka 4.4 (`MetadataVersion`, `Feature`); levels 1 to 6 are kept for old logs
//! although no 4.x starts on them. A level above the table is "written by a newer build", not damage.

use std::fmt;

/// Name of the feature in FeatureLevelRecords.
pub const METADATA_VERSION: &str = "metadata.version";

/// One level of metadata.version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Level {
    level: i16,
    name: &'static str,
    /// The format or meaning of records changed: no downgrade across it.
    changed: bool,
    /// The release whose last production level this is.
    release: Option<&'static str>,
}

const fn level(level: i16, name: &'static str, changed: bool, release: Option<&'static str>) -> Level {
    Level { level, name, changed, release }
}

static LEVELS: [Level; 34] = [
    level(1, "3.0-IV1", true, None),
    level(2, "3.1-IV0", false, None),
    level(3, "3.2-IV0", true, None),
    level(4, "3.3-IV0", false, None),
    level(5, "3.3-IV1", true, None),
    level(6, "3.3-IV2", true, None),
    level(7, "3.3-IV3", true, Some("3.3")),
    level(8, "3.4-IV0", true, Some("3.4")),
    level(9, "3.5-IV0", false, None),
    level(10, "3.5-IV1", false, None),
    level(11, "3.5-IV2", true, Some("3.5")),
    level(12, "3.6-IV0", false, None),
    level(13, "3.6-IV1", true, None),
    level(14, "3.6-IV2", true, Some("3.6")),
    level(15, "3.7-IV0", true, None),
    level(16, "3.7-IV1", false, None),
    level(17, "3.7-IV2", true, None),
    level(18, "3.7-IV3", false, None),
    level(19, "3.7-IV4", false, Some("3.7")),
    level(20, "3.8-IV0", false, Some("3.8")),
    level(21, "3.9-IV0", false, Some("3.9")),
    level(22, "4.0-IV0", false, None),
    level(23, "4.0-IV1", true, None),
    level(24, "4.0-IV2", false, None),
    level(25, "4.0-IV3", false, Some("4.0")),
    level(26, "4.1-IV0", false, None),
    level(27, "4.1-IV1", false, Some("4.1")),
    level(28, "4.2-IV0", false, None),
    level(29, "4.2-IV1", false, Some("4.2")),
    level(30, "4.3-IV0", true, Some("4.3")),
    level(31, "4.4-IV0", false, None),
    level(32, "4.4-IV1", true, None),
    level(33, "4.4-IV2", true, Some("4.4")),
    level(34, "4.5-IV0", false, None),
];

/// A level of metadata.version. Any number is representable; [`MetadataVersion::is_known`] tells those
/// of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MetadataVersion(pub i16);

impl MetadataVersion {
    /// The lowest level that a 4.x runs at: 3.3-IV3.
    pub const MINIMUM: MetadataVersion = MetadataVersion(7);
    /// The highest level in production: 4.4-IV2.
    pub const LATEST_PRODUCTION: MetadataVersion = MetadataVersion(33);
    /// The highest level in the table, not stable yet: 4.5-IV0.
    pub const LATEST_TESTING: MetadataVersion = MetadataVersion(34);

    /// All levels that a 4.x knows, ascending, the unstable one included.
    pub fn all() -> impl DoubleEndedIterator<Item = MetadataVersion> {
        (Self::MINIMUM.0..=Self::LATEST_TESTING.0).map(MetadataVersion)
    }

    fn entry(self) -> Option<&'static Level> {
        usize::try_from(self.0).ok()?.checked_sub(1).and_then(|index| LEVELS.get(index))
    }

    /// The name, such as `4.0-IV3`; `None` for levels that are not in the table.
    pub fn name(self) -> Option<&'static str> {
        self.entry().map(|entry| entry.name)
    }

    /// True for levels that 4.x runs at or knows as unstable.
    pub fn is_known(self) -> bool {
        (Self::MINIMUM..=Self::LATEST_TESTING).contains(&self)
    }

    /// True for levels that 4.x may be formatted at without asking for unstable ones.
    pub fn is_production(self) -> bool {
        (Self::MINIMUM..=Self::LATEST_PRODUCTION).contains(&self)
    }

    /// True when going from `self` down to `to` would lose what the records mean: a level in
    /// `(to, self]` changed them, or is not known.
    pub fn downgrade_loses_metadata(self, to: MetadataVersion) -> bool {
        (to.0..self.0)
            .map(|below| MetadataVersion(below.saturating_add(1)))
            .any(|level| level.entry().is_none_or(|entry| entry.changed))
    }

    /// Reads a release (`4.0`), a level's name (`3.9-IV0`), or either with a patch level behind it
    /// (`4.0.2`): only what stands before the second dot counts (`MetadataVersion.fromVersionString`).
    /// Unstable levels are found by their full name; the caller decides whether to take them.
    ///
    /// # Errors
    /// [`UnknownRelease`], which shows the range that is known.
    pub fn from_release(text: &str) -> Result<Release, UnknownRelease> {
        let mut parts = text.splitn(3, '.');
        let key = match (parts.next(), parts.next(), parts.next()) {
            // As `String.split`, which drops empty parts at the end: `4.0.` stays as it is.
            (Some(major), Some(minor), Some(patch)) if patch.bytes().any(|b| b != b'.') => {
                text.get(..major.len() + 1 + minor.len()).unwrap_or(text)
            }
            _ => text,
        };
        let mut levels = MetadataVersion::all().filter_map(MetadataVersion::entry);
        match levels.find(|entry| entry.name == key || entry.release == Some(key)) {
            Some(entry) => {
                Ok(Release { version: MetadataVersion(entry.level), patch_dropped: key.len() < text.len() })
            }
            None => Err(UnknownRelease { text: text.to_owned() }),
        }
    }

    /// Names of all levels from [`MetadataVersion::MINIMUM`] to `last`, as in Kafka's messages.
    pub fn names_up_to(last: MetadataVersion) -> String {
        let names: Vec<&str> =
            MetadataVersion::all().filter(|version| *version <= last).filter_map(Self::name).collect();
        names.join(", ")
    }
}

impl fmt::Display for MetadataVersion {
    /// The name, or the number of an unknown level.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.write_str(name),
            None => write!(f, "{}", self.0),
        }
    }
}

/// What a text for a release stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Release {
    /// The level.
    pub version: MetadataVersion,
    /// A patch level stood behind the release and was dropped: say which level is used.
    pub patch_dropped: bool,
}

/// The text is no release and no level's name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "unknown release version {}, known are {} to {}",
    crate::quoted::Quoted(.text),
    MetadataVersion::MINIMUM,
    MetadataVersion::LATEST_PRODUCTION
)]
pub struct UnknownRelease {
    /// The text.
    pub text: String,
}

macro_rules! gates {
    ($($(#[$doc:meta])* $name:ident: $level:literal;)*) => {
        /// What a level allows a writer to put into the log.
        impl MetadataVersion {
            $($(#[$doc])* pub const fn $name(self) -> bool { self.0 >= $level })*
        }
    };
}

gates! {
    /// LeaderRecoveryState other than 0.
    has_leader_recovery_state: 3;
    /// NoOpRecord.
    has_no_op: 5;
    /// BrokerRegistrationChangeRecord instead of FenceBrokerRecord and UnfenceBrokerRecord.
    has_broker_registration_change: 6;
    /// Controlled shutdown in broker registrations.
    has_controlled_shutdown: 7;
    /// UserScramCredentialRecord and its removal.
    has_scram: 11;
    /// BeginTransactionRecord, EndTransactionRecord, AbortTransactionRecord.
    has_transactions: 13;
    /// DelegationTokenRecord and its removal.
    has_delegation_tokens: 14;
    /// RegisterControllerRecord.
    has_controller_registration: 15;
    /// Log directories of brokers and directories of replicas.
    has_directory_assignment: 17;
    /// Eligible leader replicas and ClearElrRecord (with eligible.leader.replicas.version 1).
    has_elr: 23;
    /// Cordoned log directories.
    has_cordoned_log_dirs: 30;
    /// CIDR patterns as hosts of ACLs.
    has_cidr_acls: 32;
    /// UnregisterControllerRecord.
    has_controller_unregistration: 33;
}

/// Record versions that a writer uses at this level. Every other record has version 0 only, and
/// BrokerRegistrationChangeRecord is versioned by its content.
impl MetadataVersion {
    /// Version of RegisterBrokerRecord.
    pub const fn register_broker_version(self) -> i16 {
        match self.0 {
            ..7 => 0,
            7 => 1,
            8..17 => 2,
            17..30 => 3,
            30.. => 4,
        }
    }

    /// Version of PartitionRecord and of PartitionChangeRecord.
    pub const fn partition_version(self) -> i16 {
        match self.0 {
            ..17 => 0,
            17..23 => 1,
            23.. => 2,
        }
    }

    /// Version of RegisterControllerRecord; `None` below 3.7-IV0, which has no such record.
    pub const fn register_controller_version(self) -> Option<i16> {
        if self.has_controller_registration() { Some(0) } else { None }
    }
}

/// The features beside metadata.version, in the order of Kafka's listings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Feature {
    /// Voters and version of the Raft layer. Kept in control records, never in FeatureLevelRecords; its
    /// level at format follows the kind of quorum, not [`Feature::default_level`].
    KRaftVersion,
    /// Transactions, KIP-890.
    TransactionVersion,
    /// Consumer groups, KIP-848.
    GroupVersion,
    /// KIP-966.
    EligibleLeaderReplicasVersion,
    /// Share groups, KIP-932.
    ShareVersion,
    /// Streams groups, KIP-1071.
    StreamsVersion,
}

impl Feature {
    /// All of them, in the order of `kafka-storage version-mapping`.
    pub const ALL: [Feature; 6] = [
        Feature::KRaftVersion,
        Feature::TransactionVersion,
        Feature::GroupVersion,
        Feature::EligibleLeaderReplicasVersion,
        Feature::ShareVersion,
        Feature::StreamsVersion,
    ];

    /// Its name in records and on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Feature::KRaftVersion => "kraft.version",
            Feature::TransactionVersion => "transaction.version",
            Feature::GroupVersion => "group.version",
            Feature::EligibleLeaderReplicasVersion => "eligible.leader.replicas.version",
            Feature::ShareVersion => "share.version",
            Feature::StreamsVersion => "streams.version",
        }
    }

    /// The feature of that name; metadata.version is none of them.
    pub fn from_name(name: &str) -> Option<Feature> {
        Feature::ALL.into_iter().find(|feature| feature.name() == name)
    }

    /// For each level from 1 on, the metadata.version from which it is the default.
    const fn bootstrap_versions(self) -> &'static [i16] {
        match self {
            Feature::KRaftVersion => &[21],
            Feature::TransactionVersion => &[24, 24],
            Feature::GroupVersion => &[22],
            Feature::EligibleLeaderReplicasVersion => &[26],
            Feature::ShareVersion => &[28, 31],
            Feature::StreamsVersion => &[29],
        }
    }

    /// The highest level, in production since 4.4 for all features. The lowest is 0.
    pub fn level_max(self) -> i16 {
        // The lists above have one or two elements.
        i16::try_from(self.bootstrap_versions().len()).unwrap_or(i16::MAX)
    }

    /// True for a level that this build knows.
    pub fn has_level(self, level: i16) -> bool {
        (0..=self.level_max()).contains(&level)
    }

    /// The highest level whose metadata.version is at or below `version`.
    pub fn default_level(self, version: MetadataVersion) -> i16 {
        let reached = self.bootstrap_versions().iter().take_while(|level| **level <= version.0).count();
        i16::try_from(reached).unwrap_or(i16::MAX)
    }

    /// The metadata.version that `level` of this feature needs, beyond
    /// [`MetadataVersion::MINIMUM`] that every level from 1 on needs.
    pub fn dependency(self, level: i16) -> Option<MetadataVersion> {
        match (self, level) {
            (Feature::EligibleLeaderReplicasVersion, 1) => Some(MetadataVersion(23)),
            _ => None,
        }
    }

    /// The names of all features, sorted and joined, as in Kafka's messages.
    pub fn names_sorted() -> String {
        let mut names = Feature::ALL.map(Feature::name);
        names.sort_unstable();
        names.join(", ")
    }
}

impl fmt::Display for Feature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Kafka's own tables; see `codecs/tests/vectors/ORIGIN.md`.
    const KAFKA: &str = include_str!("../tests/vectors/features-4.4.0.txt");

    #[test]
    fn the_tables_are_those_of_kafka_4_4_0() {
        let mut lines = 0;
        for line in KAFKA.lines() {
            lines += 1;
            let fields: Vec<&str> = line.split('\t').collect();
            let number = |at: usize| fields[at].parse::<i16>().unwrap();
            match fields[0] {
                "level" => {
                    let version = MetadataVersion(number(1));
                    assert_eq!(version.name(), Some(fields[2]), "{line}");
                    assert!(version.is_known(), "{line}");
                    assert_eq!(version.is_production().to_string(), fields[4], "{line}");
                    if fields[5] != "-" {
                        let below = MetadataVersion(version.0 - 1);
                        assert_eq!(version.downgrade_loses_metadata(below).to_string(), fields[5], "{line}");
                    }
                    assert_eq!(version.register_broker_version(), number(6), "{line}");
                    assert_eq!(version.partition_version(), number(7), "{line}");
                    assert_eq!(version.partition_version(), number(8), "{line}");
                    assert_eq!(version.register_controller_version().unwrap_or(-1), number(9), "{line}");
                    let gates = [
                        version.has_scram(),
                        version.has_transactions(),
                        version.has_delegation_tokens(),
                        version.has_directory_assignment(),
                        version.has_elr(),
                        version.has_cordoned_log_dirs(),
                        version.has_cidr_acls(),
                        version.has_controller_unregistration(),
                    ];
                    assert_eq!(gates.map(|gate| gate.to_string())[..], fields[10..], "{line}");
                    assert_eq!(
                        MetadataVersion::from_release(fields[2]),
                        Ok(Release { version, patch_dropped: false })
                    );
                }
                "default" => {
                    let feature = Feature::from_name(fields[2]).unwrap();
                    assert_eq!(feature.default_level(MetadataVersion(number(1))), number(3), "{line}");
                }
                "feature" => {
                    let feature = Feature::from_name(fields[1]).unwrap();
                    assert_eq!((0, feature.level_max()), (number(2), number(3)), "{line}");
                }
                "depends" => {
                    let feature = Feature::from_name(fields[1]).unwrap();
                    assert!(feature.has_level(number(2)), "{line}");
                    let needed = feature.dependency(number(2));
                    let shown = needed.map(|version| format!("{METADATA_VERSION}={}", version.0));
                    assert_eq!(format!("{{{}}}", shown.unwrap_or_default()), fields[3], "{line}");
                }
                "latest" => {
                    assert_eq!(MetadataVersion::LATEST_PRODUCTION.0, number(1));
                    assert_eq!(MetadataVersion::LATEST_TESTING.0, number(3));
                    assert_eq!(MetadataVersion::MINIMUM.0, number(4));
                }
                _ => panic!("{line}"),
            }
        }
        assert_eq!(lines, 28 + 28 * 6 + 6 + 14 + 1);
    }

    #[test]
    fn rows_of_the_table_stand_at_their_level() {
        for (index, entry) in LEVELS.iter().enumerate() {
            assert_eq!(usize::try_from(entry.level), Ok(index + 1));
        }
        assert_eq!(MetadataVersion(1).name(), Some("3.0-IV1"));
        for level in [i16::MIN, -1, 0, 35, i16::MAX] {
            assert_eq!(MetadataVersion(level).name(), None, "{level}");
            assert!(!MetadataVersion(level).is_known(), "{level}");
        }
        assert_eq!(MetadataVersion(99).to_string(), "99");
        assert_eq!(MetadataVersion(33).to_string(), "4.4-IV2");
    }

    #[test]
    fn a_pasted_product_version_is_taken_and_reported() {
        let read =
            |text| MetadataVersion::from_release(text).map(|found| (found.version.0, found.patch_dropped));
        assert_eq!(read("3.9"), Ok((21, false)));
        assert_eq!(read("3.9-IV0"), Ok((21, false)));
        assert_eq!(read("3.9.1"), Ok((21, true)));
        assert_eq!(read("4.0.2"), Ok((25, true)));
        assert_eq!(read("4.0"), Ok((25, false)));
        assert_eq!(read("3.3"), Ok((7, false)));
        // Seen with kafka-storage 4.4.0 too.
        assert_eq!(read("3.9-IV0.7"), Ok((21, true)));
        assert_eq!(read("4.5-IV0"), Ok((34, false)));
    }

    #[test]
    fn a_mistyped_release_version_names_what_is_known() {
        for text in ["3.99", "4", "latest", "", "3.9-IV7", "3.3-IV2", "3.2", "4.5", "4.0.", " 4.0", "4.0-iv3"]
        {
            let error = MetadataVersion::from_release(text).unwrap_err();
            let shown = format!("unknown release version \"{text}\", known are 3.3-IV3 to 4.4-IV2");
            assert_eq!(error.to_string(), shown);
        }
        let names = MetadataVersion::names_up_to(MetadataVersion::LATEST_PRODUCTION);
        assert!(names.starts_with("3.3-IV3, 3.4-IV0, 3.5-IV0,") && names.ends_with(", 4.4-IV1, 4.4-IV2"));
        assert_eq!(
            Feature::names_sorted(),
            "eligible.leader.replicas.version, group.version, kraft.version, share.version, \
             streams.version, transaction.version"
        );
    }

    #[test]
    fn a_downgrade_is_lossy_across_any_change() {
        let lossy = |from, to| MetadataVersion(from).downgrade_loses_metadata(MetadataVersion(to));
        assert!(!lossy(22, 17) && !lossy(29, 23) && !lossy(33, 33) && !lossy(7, 33));
        assert!(lossy(23, 22) && lossy(33, 31) && lossy(99, 34) && lossy(i16::MAX, i16::MIN));
    }
}
