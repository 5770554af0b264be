//! `partition.metadata`: the topic id of a partition, as two lines of text without a line end behind.

use crate::quoted::Quoted;
use crate::text_lines;
use crate::uuid::Uuid;

/// Content of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PartitionMetadata {
    /// Version of the file; Kafka writes 0 and reads any that is not negative.
    pub version: i32,
    /// Id of the topic, not zero. The metadata partition's is [`Uuid::METADATA_TOPIC`].
    pub topic_id: Uuid,
}

/// Why the text is no `partition.metadata`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PartitionMetadataError {
    /// A line is missing.
    #[error("line {line} is missing, expected {expected}")]
    MissingLine {
        /// Number of the line, from 1.
        line: usize,
        /// What should stand there.
        expected: &'static str,
    },
    /// A line has not the form it should have.
    #[error("line {line}: {} is not {expected}", Quoted(.text))]
    BadLine {
        /// Number of the line, from 1.
        line: usize,
        /// The line as found.
        text: String,
        /// What should stand there.
        expected: &'static str,
    },
}

impl PartitionMetadata {
    /// What the metadata partition has.
    pub const CLUSTER_METADATA: PartitionMetadata =
        PartitionMetadata { version: 0, topic_id: Uuid::METADATA_TOPIC };

    /// Reads the file's content; lines behind the second are ignored, as Kafka does.
    ///
    /// # Errors
    /// [`PartitionMetadataError`] names the line and shows its text.
    pub fn parse(bytes: &[u8]) -> Result<PartitionMetadata, PartitionMetadataError> {
        const VERSION: &str = "`version: <number>`";
        const TOPIC_ID: &str = "`topic_id: <id other than zero>`";
        let text = String::from_utf8_lossy(bytes);
        let mut lines = text_lines::lines(&text);
        let mut field = |line, name, expected| {
            let text = lines.next().ok_or(PartitionMetadataError::MissingLine { line, expected })?;
            let value = text.split_once(':').filter(|(found, _)| *found == name).map(|(_, rest)| rest);
            let value = value.and_then(|rest| {
                let trimmed = rest.trim_start_matches([' ', '\t']);
                (trimmed.len() < rest.len()).then_some(trimmed)
            });
            Ok((value.unwrap_or_default().to_owned(), bad_line(line, text, expected)))
        };
        let (version, bad) = field(1, "version", VERSION)?;
        let version = version.parse().ok().filter(|version| *version >= 0).ok_or(bad)?;
        let (topic_id, bad) = field(2, "topic_id", TOPIC_ID)?;
        let topic_id = topic_id.parse().ok().filter(|id| *id != Uuid::ZERO).ok_or(bad)?;
        Ok(PartitionMetadata { version, topic_id })
    }

    /// The file's content, as Kafka writes it.
    pub fn format(&self) -> String {
        format!("version: {}\ntopic_id: {}", self.version, self.topic_id)
    }
}

fn bad_line(line: usize, text: &str, expected: &'static str) -> PartitionMetadataError {
    PartitionMetadataError::BadLine { line, text: text.to_owned(), expected }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_of_a_real_kafka_reads_and_writes_back_byte_for_byte() {
        let bytes = include_bytes!("../../tests/fixtures/control-files/other/partition.metadata");
        let read = PartitionMetadata::parse(bytes).unwrap();
        assert_eq!(read, PartitionMetadata::CLUSTER_METADATA);
        assert_eq!(read.format().as_bytes(), bytes);
    }

    #[test]
    fn damage_is_named() {
        for (text, shown) in [
            ("", "line 1 is missing, expected `version: <number>`"),
            ("version: 0\n", "line 2 is missing, expected `topic_id: <id other than zero>`"),
            ("version: x", "line 1: \"version: x\" is not `version: <number>`"),
            ("version:0\ntopic_id: A", "line 1: \"version:0\" is not `version: <number>`"),
            ("version: -1", "line 1: \"version: -1\" is not `version: <number>`"),
            (
                "version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAA",
                "line 2: \"topic_id: AAAAAAAAAAAAAAAAAAAAAA\" is not `topic_id: <id other than zero>`",
            ),
            (
                "version: 0\ntopic_id: AAAA",
                "line 2: \"topic_id: AAAA\" is not `topic_id: <id other than zero>`",
            ),
        ] {
            assert_eq!(PartitionMetadata::parse(text.as_bytes()).unwrap_err().to_string(), shown, "{text:?}");
        }
    }
}
