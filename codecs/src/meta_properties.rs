//! `meta.properties`: whose directory this is.
//!
//! Strict by version: 0 has an optional `broker.id`, 1 needs `node.id` and `cluster.id`, 2 (KIP-1262,
//! read only, in no release) needs `node.id`. Values are not trimmed, except the version as in Kafka:
//! a blank at the end of an id is shown, not dropped. A file without any key is damage, not version 0
//! as Kafka reads it: some file systems leave it after a power cut.
//!
//! This module knows one file. That the directories of a node agree is checked elsewhere.

use crate::properties::{self, Properties, PropertiesError};
use crate::quoted::Quoted;
use crate::uuid::Uuid;

const VERSION: &str = "version";
const CLUSTER_ID: &str = "cluster.id";
const NODE_ID: &str = "node.id";
const BROKER_ID: &str = "broker.id";
const DIRECTORY_ID: &str = "directory.id";

/// Version of a `meta.properties` file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum MetaVersion {
    /// Of ZooKeeper's time: `broker.id`, nothing required.
    V0,
    /// What every release writes.
    V1,
    /// KIP-1262: the cluster id may still be unknown. Read, never chosen by us.
    V2,
}

impl MetaVersion {
    /// The number in the file.
    pub const fn number(self) -> i32 {
        match self {
            MetaVersion::V0 => 0,
            MetaVersion::V1 => 1,
            MetaVersion::V2 => 2,
        }
    }

    const fn node_id_key(self) -> &'static str {
        match self {
            MetaVersion::V0 => BROKER_ID,
            MetaVersion::V1 | MetaVersion::V2 => NODE_ID,
        }
    }
}

/// Content of a `meta.properties` file. Keys that Kafka does not know are lost, as in Kafka.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MetaProperties {
    /// Version of the file.
    pub version: MetaVersion,
    /// Any text, usually a UUID. Absent only in versions 0 and 2.
    pub cluster_id: Option<String>,
    /// `node.id`, or `broker.id` in version 0, where it may be absent.
    pub node_id: Option<i32>,
    /// Id of this directory; a start completes a file without it.
    pub directory_id: Option<Uuid>,
}

/// Why a `meta.properties` file cannot be used. Reserved directory ids are not its business.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MetaPropertiesError {
    /// No bytes, or comments only.
    #[error("no entry in the file; it may have been lost in a power cut, this is no unformatted directory")]
    EmptyMetaProperties,
    /// A version above those we know, or below zero.
    #[error("version {version} is not known, known are 0 to 2; a newer build may have written it")]
    UnsupportedMetaVersion {
        /// The version found.
        version: i32,
    },
    /// A value that cannot be.
    #[error("{key} is {}, expected {expected}", Quoted(.value))]
    MetaPropertiesInvalid {
        /// The key.
        key: &'static str,
        /// Its value in the file.
        value: String,
        /// What should stand there.
        expected: &'static str,
    },
    /// A key that this version must have is not there.
    #[error("{key} is missing, version {version} must have it")]
    MissingKey {
        /// The key.
        key: &'static str,
        /// Version of the file.
        version: i32,
    },
    /// Version 1 without a cluster id.
    #[error("cluster.id is missing, version 1 must have it")]
    ClusterIdMissing,
    /// The file is no properties file.
    #[error("not a properties file: {cause}")]
    NotProperties {
        /// What is wrong with it.
        #[source]
        cause: PropertiesError,
    },
}

impl MetaPropertiesError {
    /// The text that Kafka 4.4 has for the same fault.
    pub fn kafka_text(&self) -> String {
        match self {
            MetaPropertiesError::UnsupportedMetaVersion { version } => {
                format!("Unknown meta.properties version number {version}")
            }
            MetaPropertiesError::MetaPropertiesInvalid { key, value, .. } if *key == VERSION => {
                format!("Invalid meta.properties version string '{value}'")
            }
            MetaPropertiesError::MetaPropertiesInvalid { key, value, .. } if *key == DIRECTORY_ID => {
                format!("Unable to read directory.id as a Uuid: {}", Quoted(value))
            }
            MetaPropertiesError::MetaPropertiesInvalid { key, .. } => {
                format!("Unable to read {key} as a base-10 number.")
            }
            MetaPropertiesError::MissingKey { key, .. } => format!("Failed to find {key}"),
            MetaPropertiesError::ClusterIdMissing => "cluster.id was not found.".to_owned(),
            MetaPropertiesError::NotProperties { .. } => "Malformed \\uxxxx encoding.".to_owned(),
            MetaPropertiesError::EmptyMetaProperties => self.to_string(),
        }
    }
}

impl MetaProperties {
    /// Reads the bytes of a file.
    ///
    /// # Errors
    /// [`MetaPropertiesError`]; values are shown in quotes.
    pub fn parse(bytes: &[u8]) -> Result<MetaProperties, MetaPropertiesError> {
        let properties =
            Properties::parse(bytes).map_err(|cause| MetaPropertiesError::NotProperties { cause })?;
        MetaProperties::from_properties(&properties)
    }

    /// Takes the values out of a file that is read already.
    ///
    /// # Errors
    /// As [`MetaProperties::parse`].
    pub fn from_properties(properties: &Properties) -> Result<MetaProperties, MetaPropertiesError> {
        if properties.is_empty() {
            return Err(MetaPropertiesError::EmptyMetaProperties);
        }
        let version = version(properties)?;
        let node_id_key = version.node_id_key();
        let node_id = number(properties, node_id_key)?;
        if node_id.is_none() && version > MetaVersion::V0 {
            return Err(MetaPropertiesError::MissingKey { key: node_id_key, version: version.number() });
        }
        let cluster_id = properties.get(CLUSTER_ID).map(str::to_owned);
        if cluster_id.is_none() && version == MetaVersion::V1 {
            return Err(MetaPropertiesError::ClusterIdMissing);
        }
        let directory_id = match properties.get(DIRECTORY_ID) {
            None => None,
            Some(text) => {
                Some(text.parse().map_err(|_| invalid(DIRECTORY_ID, text, "a base64 id of 22 characters"))?)
            }
        };
        Ok(MetaProperties { version, cluster_id, node_id, directory_id })
    }

    /// The bytes of the file, in the order of a Kafka on JDK 17; `date` is the text of the second line
    /// (see [`properties::java_date_utc`]).
    pub fn encode(&self, date: &str) -> Vec<u8> {
        let node_id = self.node_id.map(|id| id.to_string());
        let directory_id = self.directory_id.map(|id| id.to_string());
        let version = self.version.number().to_string();
        let entries = [
            (self.version.node_id_key(), node_id.as_deref()),
            (DIRECTORY_ID, directory_id.as_deref()),
            (VERSION, Some(version.as_str())),
            (CLUSTER_ID, self.cluster_id.as_deref()),
        ];
        properties::store("", date, entries.into_iter().filter_map(|(key, value)| Some((key, value?))))
    }
}

fn invalid(key: &'static str, value: &str, expected: &'static str) -> MetaPropertiesError {
    MetaPropertiesError::MetaPropertiesInvalid { key, value: value.to_owned(), expected }
}

fn version(properties: &Properties) -> Result<MetaVersion, MetaPropertiesError> {
    let Some(text) = properties.get(VERSION) else { return Ok(MetaVersion::V0) };
    // Java's `String.trim` takes everything up to the space for white.
    match text.trim_matches(|c| c <= ' ').parse::<i32>() {
        Ok(0) => Ok(MetaVersion::V0),
        Ok(1) => Ok(MetaVersion::V1),
        Ok(2) => Ok(MetaVersion::V2),
        Ok(version) => Err(MetaPropertiesError::UnsupportedMetaVersion { version }),
        Err(_) => Err(invalid(VERSION, text, "a number")),
    }
}

fn number(properties: &Properties, key: &'static str) -> Result<Option<i32>, MetaPropertiesError> {
    let Some(text) = properties.get(key) else { return Ok(None) };
    text.parse().map(Some).map_err(|_| invalid(key, text, "a number"))
}

#[cfg(test)]
mod tests {
    use super::*;

    macro_rules! fixture {
        ($name:literal) => {
            &include_bytes!(concat!("../../tests/fixtures/control-files/meta.properties/", $name))[..]
        };
    }

    fn date_line(bytes: &[u8]) -> &str {
        std::str::from_utf8(bytes).unwrap().lines().nth(1).unwrap().strip_prefix('#').unwrap()
    }

    #[test]
    fn files_of_real_kafkas_read_and_write_back_byte_for_byte() {
        for (bytes, version, node_id) in [
            (fixture!("nodir-given"), MetaVersion::V1, 1),
            (fixture!("nodir-rewritten-by-4.4.0"), MetaVersion::V1, 1),
            (fixture!("v0-rewritten-by-4.4.0"), MetaVersion::V0, 1),
            (fixture!("v1-broker-4.4.0"), MetaVersion::V1, 4),
            (fixture!("v1-formatted-4.0.2"), MetaVersion::V1, 1),
            (fixture!("v1-formatted-4.2.1"), MetaVersion::V1, 1),
            (fixture!("v1-formatted-4.3.1"), MetaVersion::V1, 1),
            (fixture!("v1-formatted-4.4.0"), MetaVersion::V1, 1),
        ] {
            let meta = MetaProperties::parse(bytes).unwrap();
            assert_eq!((meta.version, meta.node_id), (version, Some(node_id)));
            assert_eq!(meta.cluster_id.as_deref(), Some("Q3Bu0TqZTxKyZfXkL9b2Hg"));
            let written = meta.encode(date_line(bytes));
            assert_eq!(String::from_utf8_lossy(&written), String::from_utf8_lossy(bytes));
        }
    }

    #[test]
    fn completing_a_version_0_file_writes_what_kafka_wrote() {
        let mut meta = MetaProperties::parse(fixture!("v0-given")).unwrap();
        assert_eq!(meta.directory_id, None);
        meta.directory_id = Some("8eXma7bhS14I4REbOO302g".parse().unwrap());
        let rewritten = fixture!("v0-rewritten-by-4.4.0");
        assert_eq!(meta.encode(date_line(rewritten)), rewritten);
    }

    #[test]
    fn after_a_power_cut_an_empty_file_is_damage_not_an_old_format() {
        for bytes in [&b""[..], b"#\n#Mon Nov 30 20:47:25 UTC 2026\n", b"\n \n! x", b"# a\\\n"] {
            let error = MetaProperties::parse(bytes).unwrap_err();
            assert_eq!(error, MetaPropertiesError::EmptyMetaProperties);
        }
    }

    #[test]
    fn which_keys_may_lack_depends_on_the_version_alone() {
        let parse = |text: &str| MetaProperties::parse(text.as_bytes());
        assert_eq!(parse("version=1\nnode.id=1"), Err(MetaPropertiesError::ClusterIdMissing));
        let v2 = parse("version=2\nnode.id=1").unwrap();
        assert_eq!((v2.version, v2.cluster_id, v2.node_id), (MetaVersion::V2, None, Some(1)));
        let error = parse("version=3\nnode.id=1\ncluster.id=Jk01gj4RQRegVl2GLqYuTg").unwrap_err();
        assert_eq!(error, MetaPropertiesError::UnsupportedMetaVersion { version: 3 });
        assert!(error.to_string().contains("version 3 is not known, known are 0 to 2"), "{error}");
        let error = parse("version=2\ncluster.id=Jk01gj4RQRegVl2GLqYuTg").unwrap_err();
        assert_eq!(error, MetaPropertiesError::MissingKey { key: "node.id", version: 2 });
        let error = parse("version=1\ncluster.id=x\nbroker.id=1").unwrap_err();
        assert_eq!(error.kafka_text(), "Failed to find node.id");
        let error = parse("version=one\nnode.id=1\ncluster.id=x").unwrap_err();
        assert_eq!(error.to_string(), "version is \"one\", expected a number");
        assert_eq!(error.kafka_text(), "Invalid meta.properties version string 'one'");
        assert_eq!(
            parse("version=-1").unwrap_err().kafka_text(),
            "Unknown meta.properties version number -1"
        );
        let v0 = parse("cluster.id=x").unwrap();
        assert_eq!((v0.version, v0.node_id), (MetaVersion::V0, None));
        assert_eq!(parse("version= 1 \nnode.id=1\ncluster.id=").unwrap().version, MetaVersion::V1);
    }

    #[test]
    fn hand_edited_files_keep_no_carriage_return_and_show_their_blanks() {
        let crlf = MetaProperties::parse(include_bytes!("../../tests/cases/meta-crlf.properties")).unwrap();
        assert_eq!(crlf.cluster_id.as_deref(), Some("Jk01gj4RQRegVl2GLqYuTg"));
        assert_eq!(crlf.node_id, Some(1));
        let error =
            MetaProperties::parse(include_bytes!("../../tests/cases/meta-trailing-nodeid.properties"))
                .unwrap_err();
        assert_eq!(error.to_string(), "node.id is \"1 \", expected a number");
        assert_eq!(error.kafka_text(), "Unable to read node.id as a base-10 number.");
        let blank =
            MetaProperties::parse(include_bytes!("../../tests/cases/meta-trailing-clusterid.properties"))
                .unwrap();
        assert_eq!(blank.cluster_id.as_deref(), Some("Jk01gj4RQRegVl2GLqYuTg "), "not trimmed");
    }

    #[test]
    fn a_bad_directory_id_or_escape_is_named() {
        let error =
            MetaProperties::parse(b"version=1\nnode.id=1\ncluster.id=x\ndirectory.id=a\\tb").unwrap_err();
        assert_eq!(error.to_string(), "directory.id is \"a\\tb\", expected a base64 id of 22 characters");
        let error = MetaProperties::parse(b"version=1\nnode.id=\\u00g1\n").unwrap_err();
        assert_eq!(
            error,
            MetaPropertiesError::NotProperties { cause: PropertiesError::BadEscape { line: 2 } }
        );
    }
}
