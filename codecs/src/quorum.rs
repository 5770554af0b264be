//! `quorum-state`: a node's leader, leader epoch and vote, as one line of JSON without a line end.
//!
//! Two versions exist. Which one is written follows kraft.version (0 writes 0, 1 writes 1); both are
//! read at either. The order of members is Kafka's when written and free when read, unknown members
//! and text behind the JSON value are ignored. Stricter than Kafka: ids and epochs below their
//! smallest meaning are refused, as is a file of another version.
//!
//! The file is a promise to other nodes: one that cannot be read is refused, never rebuilt or guessed.

use crate::text_lines;
use crate::uuid::Uuid;
use serde_json::{Map, Value};
use std::fmt::Write as _;

/// What a node remembers of elections over a restart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QuorumState {
    /// The leader of `leader_epoch`, if known; not negative.
    pub leader_id: Option<i32>,
    /// The newest epoch that this node has seen; not negative.
    pub leader_epoch: i32,
    /// Whom this node voted for in `leader_epoch`.
    pub voted: Option<Vote>,
    /// The version, with what only it holds.
    pub version_data: VersionData,
}

/// A vote. It is bound to the directory too: after a loss of the disk, it counts for nobody.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Vote {
    /// Id of the node voted for; not negative.
    pub id: i32,
    /// Its directory, or [`Uuid::ZERO`] for "not known" (always so in version 0).
    pub directory_id: Uuid,
}

/// What the two versions do not share.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum VersionData {
    /// Version 0, for kraft.version 0.
    V0 {
        /// Always empty when Kafka writes it.
        cluster_id: String,
        /// Always 0 when Kafka writes it.
        applied_offset: i64,
        /// Ids of the voters, as configured.
        current_voters: Vec<i32>,
    },
    /// Version 1, for kraft.version 1.
    V1,
}

impl VersionData {
    /// `data_version` in the file.
    pub const fn version(&self) -> i16 {
        match self {
            VersionData::V0 { .. } => 0,
            VersionData::V1 => 1,
        }
    }
}

/// Why the text is no quorum state.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum QuorumStateError {
    /// Written by a build that we do not know.
    #[error("quorum-state version {version} is not known, known are 0 to 1; a newer build wrote it")]
    UnsupportedVersion {
        /// The version found.
        version: i16,
    },
    /// Not what any Kafka writes.
    #[error("{what}")]
    Invalid {
        /// What is wrong with it.
        what: QuorumStateFault,
    },
}

impl From<QuorumStateFault> for QuorumStateError {
    fn from(what: QuorumStateFault) -> Self {
        QuorumStateError::Invalid { what }
    }
}

/// What is wrong with a quorum state.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum QuorumStateFault {
    /// The file has no bytes.
    #[error("the file is empty")]
    Empty,
    /// The first line is not JSON.
    #[error("not JSON: {detail}")]
    NotJson {
        /// What the JSON reader says.
        detail: String,
    },
    /// The first line is JSON but no object.
    #[error("not a JSON object")]
    NotAnObject,
    /// A member is missing.
    #[error("no member {member}")]
    Missing {
        /// Its name.
        member: &'static str,
    },
    /// A member has a value of another type or outside its range.
    #[error("{member} is {found}, expected {expected}")]
    BadMember {
        /// Its name.
        member: &'static str,
        /// The value found, as JSON.
        found: String,
        /// What should stand there.
        expected: &'static str,
    },
}

impl QuorumState {
    /// Reads the file's content.
    ///
    /// # Errors
    /// [`QuorumStateError::UnsupportedVersion`] for another version, else `Invalid`.
    pub fn parse(bytes: &[u8]) -> Result<QuorumState, QuorumStateError> {
        if bytes.is_empty() {
            return Err(QuorumStateFault::Empty.into());
        }
        let not_json = |detail: String| QuorumStateFault::NotJson { detail };
        let text = std::str::from_utf8(bytes).map_err(|error| not_json(error.to_string()))?;
        let line = text_lines::lines(text).next().unwrap_or_default();
        let value = serde_json::Deserializer::from_str(line).into_iter::<Value>().next();
        let members = match value {
            Some(Ok(Value::Object(members))) => members,
            Some(Ok(_)) | None => return Err(QuorumStateFault::NotAnObject.into()),
            Some(Err(error)) => return Err(not_json(error.to_string()).into()),
        };
        let version = data_version(&members)?;
        if !(0..=1).contains(&version) {
            return Err(QuorumStateError::UnsupportedVersion { version });
        }
        let leader_id = id_or_none(&members, "leaderId")?;
        let leader_epoch = int(&members, "leaderEpoch", 0)?;
        let voted_id = id_or_none(&members, "votedId")?;
        let (directory_id, version_data) = if version == 1 {
            (uuid(&members, "votedDirectoryId")?, VersionData::V1)
        } else {
            let cluster_id = string(&members, "clusterId")?.to_owned();
            let applied_offset = long(&members, "appliedOffset")?;
            let current_voters = voters(&members)?;
            (Uuid::ZERO, VersionData::V0 { cluster_id, applied_offset, current_voters })
        };
        let voted = voted_id.map(|id| Vote { id, directory_id });
        Ok(QuorumState { leader_id, leader_epoch, voted, version_data })
    }

    /// The file's content, byte for byte as Kafka writes it. Version 0 has no place for the voted
    /// directory.
    pub fn format(&self) -> String {
        let leader_id = self.leader_id.unwrap_or(-1);
        let leader_epoch = self.leader_epoch;
        let voted_id = self.voted.map_or(-1, |vote| vote.id);
        let mut out = String::from("{");
        // Writing to a string cannot fail.
        let _ = match &self.version_data {
            VersionData::V0 { cluster_id, applied_offset, current_voters } => {
                let cluster_id = Value::from(cluster_id.as_str());
                let voters: Vec<String> =
                    current_voters.iter().map(|id| format!("{{\"voterId\":{id}}}")).collect();
                write!(
                    out,
                    "\"clusterId\":{cluster_id},\"leaderId\":{leader_id},\"leaderEpoch\":{leader_epoch},\
                     \"votedId\":{voted_id},\"appliedOffset\":{applied_offset},\"currentVoters\":[{}],\
                     \"data_version\":0}}",
                    voters.join(",")
                )
            }
            VersionData::V1 => {
                let directory_id = self.voted.map_or(Uuid::ZERO, |vote| vote.directory_id);
                write!(
                    out,
                    "\"leaderId\":{leader_id},\"leaderEpoch\":{leader_epoch},\"votedId\":{voted_id},\
                     \"votedDirectoryId\":\"{directory_id}\",\"data_version\":1}}"
                )
            }
        };
        out
    }
}

type Members = Map<String, Value>;

fn member<'a>(members: &'a Members, member: &'static str) -> Result<&'a Value, QuorumStateFault> {
    members.get(member).ok_or(QuorumStateFault::Missing { member })
}

fn bad(member: &'static str, found: &Value, expected: &'static str) -> QuorumStateFault {
    let mut found = found.to_string();
    if let Some((cut, _)) = found.char_indices().nth(200) {
        found.truncate(cut);
        found.push_str("...");
    }
    QuorumStateFault::BadMember { member, found, expected }
}

/// As lenient as Kafka (`JsonNode.shortValue`): numbers are cut to 16 bits, anything else is 0.
#[expect(clippy::cast_possible_truncation, reason = "Java cuts to 16 bits, through 32 from a double")]
fn data_version(members: &Members) -> Result<i16, QuorumStateFault> {
    Ok(match member(members, "data_version")? {
        Value::Number(number) => match (number.as_i64(), number.as_u64(), number.as_f64()) {
            (Some(integer), _, _) => integer as i16,
            (None, Some(integer), _) => integer as i16,
            (None, None, float) => float.unwrap_or_default() as i32 as i16,
        },
        _ => 0,
    })
}

fn long(members: &Members, name: &'static str) -> Result<i64, QuorumStateFault> {
    let value = member(members, name)?;
    value.as_i64().ok_or_else(|| bad(name, value, "a 64-bit number"))
}

/// A 32-bit number that is `min` or higher.
fn int_from(value: &Value, name: &'static str, min: i32) -> Result<i32, QuorumStateFault> {
    let number = value.as_i64().and_then(|number| i32::try_from(number).ok()).filter(|n| *n >= min);
    let expected = if min < 0 { "a 32-bit number from -1 on" } else { "a 32-bit number from 0 on" };
    number.ok_or_else(|| bad(name, value, expected))
}

fn int(members: &Members, name: &'static str, min: i32) -> Result<i32, QuorumStateFault> {
    int_from(member(members, name)?, name, min)
}

fn id_or_none(members: &Members, name: &'static str) -> Result<Option<i32>, QuorumStateFault> {
    Ok(Some(int(members, name, -1)?).filter(|id| *id >= 0))
}

fn string<'a>(members: &'a Members, name: &'static str) -> Result<&'a str, QuorumStateFault> {
    let value = member(members, name)?;
    value.as_str().ok_or_else(|| bad(name, value, "a string"))
}

fn uuid(members: &Members, name: &'static str) -> Result<Uuid, QuorumStateFault> {
    let text = string(members, name)?;
    text.parse().map_err(|_| bad(name, &Value::from(text), "a base64 id of 22 characters"))
}

fn voters(members: &Members) -> Result<Vec<i32>, QuorumStateFault> {
    let value = member(members, "currentVoters")?;
    let list = value.as_array().ok_or_else(|| bad("currentVoters", value, "an array"))?;
    let id = |voter: &Value| match voter.get("voterId") {
        Some(id) => int_from(id, "voterId", 0),
        None => Err(QuorumStateFault::Missing { member: "voterId" }),
    };
    list.iter().map(id).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    macro_rules! fixtures {
        ($($name:literal),* $(,)?) => {
            [$(($name, include_str!(concat!("../../tests/fixtures/control-files/quorum-state/", $name)))),*]
        };
    }

    #[test]
    fn files_of_real_kafkas_read_and_write_back_byte_for_byte() {
        for (name, text) in fixtures![
            "v0-single-voter-leader-4.4.0",
            "v0-three-voters-broker-4.4.0",
            "v0-three-voters-follower-that-voted-4.4.0",
            "v0-three-voters-old-leader-4.4.0",
            "v1-broker-observer-4.3.1",
            "v1-broker-observer-4.4.0",
            "v1-first-start-no-leader-4.4.0",
            "v1-follower-that-voted-4.4.0-b",
            "v1-follower-that-voted-for-the-leader-4.4.0",
            "v1-leader-4.0.2",
            "v1-leader-4.2.1",
            "v1-leader-4.4.0",
            "v1-no-leader-4.4.0",
            "v1-observer-that-knows-no-voters-4.4.0",
            "v1-resigned-leader-4.4.0",
        ] {
            let state = QuorumState::parse(text.as_bytes()).unwrap();
            assert_eq!(state.format(), text, "{name}");
            assert_eq!(state.version_data.version(), if name.starts_with("v0") { 0 } else { 1 });
            assert_eq!(state.voted.is_some(), name.contains("voted"), "{name}");
        }
    }

    #[test]
    fn values_are_where_the_examples_have_them() {
        let v1 = "{\"leaderId\":-1,\"leaderEpoch\":7,\"votedId\":3,\
                  \"votedDirectoryId\":\"ESIzRFVmd4iZqrvM3e7_AA\",\"data_version\":1}";
        let directory_id = "ESIzRFVmd4iZqrvM3e7_AA".parse().unwrap();
        let state = QuorumState {
            leader_id: None,
            leader_epoch: 7,
            voted: Some(Vote { id: 3, directory_id }),
            version_data: VersionData::V1,
        };
        assert_eq!(QuorumState::parse(v1.as_bytes()).unwrap(), state);
        assert_eq!(state.format(), v1);
        let v0 = "{\"clusterId\":\"\",\"leaderId\":3,\"leaderEpoch\":7,\"votedId\":-1,\"appliedOffset\":0,\
                  \"currentVoters\":[{\"voterId\":3},{\"voterId\":4}],\"data_version\":0}";
        let state = QuorumState {
            leader_id: Some(3),
            leader_epoch: 7,
            voted: None,
            version_data: VersionData::V0 {
                cluster_id: String::new(),
                applied_offset: 0,
                current_voters: vec![3, 4],
            },
        };
        assert_eq!(QuorumState::parse(v0.as_bytes()).unwrap(), state);
        assert_eq!(state.format(), v0);
    }

    #[test]
    fn what_kafka_reads_with_leniency_is_read() {
        let plain = QuorumState::parse(
            br#"{"leaderId":1,"leaderEpoch":2,"votedId":-1,"votedDirectoryId":"AAAAAAAAAAAAAAAAAAAAAA","data_version":1}"#,
        );
        for text in [
            // Free order, blanks, a member nobody knows, text behind, further lines.
            r#" { "data_version" : 1, "votedDirectoryId":"AAAAAAAAAAAAAAAAAAAAAA","votedId":-1,"leaderEpoch":2,"leaderId":1,"x":[{}]} trailing"#,
            "{\"leaderId\":1,\"leaderEpoch\":2,\"votedId\":-1,\"votedDirectoryId\":\"AAAAAAAAAAAAAAAAAAAAAA\",\"data_version\":65537}\nsecond line",
        ] {
            assert_eq!(QuorumState::parse(text.as_bytes()), plain, "{text}");
        }
        let v0 = br#"{"clusterId":"","leaderId":1,"leaderEpoch":2,"votedId":-1,"appliedOffset":0,"currentVoters":[{"voterId":1}],"data_version":"7","extra":1}"#;
        assert_eq!(QuorumState::parse(v0).unwrap().version_data.version(), 0, "no number is version 0");
    }

    #[test]
    fn an_unknown_version_is_refused_and_named() {
        let text = br#"{"leaderId":-1,"leaderEpoch":2,"votedId":-1,"data_version":2}"#;
        let error = QuorumState::parse(text).unwrap_err();
        assert_eq!(error, QuorumStateError::UnsupportedVersion { version: 2 });
        assert!(error.to_string().contains("version 2 is not known, known are 0 to 1"), "{error}");
    }

    #[test]
    fn damage_is_named() {
        for (text, shown) in [
            ("", "the file is empty"),
            ("\n{}", "not a JSON object"),
            ("[]", "not a JSON object"),
            (r#"{"leaderId":-1,"leaderEpoch":2,"votedId":-1}"#, "no member data_version"),
            (r#"{"leaderEpoch":2,"votedId":-1,"data_version":1}"#, "no member leaderId"),
            (
                r#"{"leaderId":-1,"leaderEpoch":-5,"votedId":-1,"votedDirectoryId":"AAAAAAAAAAAAAAAAAAAAAA","data_version":1}"#,
                "leaderEpoch is -5, expected a 32-bit number from 0 on",
            ),
            (
                r#"{"leaderId":-2,"leaderEpoch":5,"votedId":-1,"data_version":1}"#,
                "leaderId is -2, expected a 32-bit number from -1 on",
            ),
            (
                r#"{"leaderId":"1","leaderEpoch":5,"votedId":-1,"data_version":1}"#,
                "leaderId is \"1\", expected a 32-bit number from -1 on",
            ),
            (
                r#"{"leaderId":1,"leaderEpoch":2147483648,"votedId":-1,"data_version":1}"#,
                "leaderEpoch is 2147483648, expected a 32-bit number from 0 on",
            ),
            (
                r#"{"leaderId":1,"leaderEpoch":1.0,"votedId":-1,"data_version":1}"#,
                "leaderEpoch is 1.0, expected a 32-bit number from 0 on",
            ),
            (
                r#"{"leaderId":1,"leaderEpoch":1,"votedId":-1,"votedDirectoryId":"x","data_version":1}"#,
                "votedDirectoryId is \"x\", expected a base64 id of 22 characters",
            ),
            (
                r#"{"clusterId":"","leaderId":1,"leaderEpoch":1,"votedId":-1,"appliedOffset":0,"currentVoters":null,"data_version":0}"#,
                "currentVoters is null, expected an array",
            ),
            (
                r#"{"clusterId":"","leaderId":1,"leaderEpoch":1,"votedId":-1,"appliedOffset":0,"currentVoters":[{}],"data_version":0}"#,
                "no member voterId",
            ),
        ] {
            let error = QuorumState::parse(text.as_bytes()).unwrap_err();
            assert!(matches!(error, QuorumStateError::Invalid { .. }), "{text}");
            assert_eq!(error.to_string(), shown, "{text}");
        }
        for bytes in [&b"{\"leaderId\":1,"[..], &[0; 16], &[0xff, b'{'], "[".repeat(100_000).as_bytes()] {
            let error = QuorumState::parse(bytes).unwrap_err();
            assert!(
                matches!(error, QuorumStateError::Invalid { what: QuorumStateFault::NotJson { .. } }),
                "{error}"
            );
        }
    }
}
