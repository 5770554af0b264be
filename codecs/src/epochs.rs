//! `leader-epoch-checkpoint`: which leader epoch began at which offset, as text.
//!
//! Lines: version `0`, number of entries, then `<epoch> <start offset>` each, strictly ascending in
//! both. A file of zero length or with the version line alone is an empty list; a new log has it.
//! The file is derived from the batches: whoever finds it damaged rebuilds it, except that an
//! unknown version was written by a newer build and is left alone.

use crate::quoted::Quoted;
use std::fmt::Write as _;

/// The only version that Kafka has.
const VERSION: i32 = 0;

/// One leader epoch of the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct EpochEntry {
    /// The leader epoch, not negative.
    pub epoch: i32,
    /// The first offset written in it, not negative.
    pub start_offset: i64,
}

/// Why the text is no list of epochs.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EpochsError {
    /// Written by a build that we do not know; must not be rebuilt without being asked.
    #[error("line 1: unknown version {version}, known is 0; a newer build wrote it")]
    UnknownVersion {
        /// The version found.
        version: i32,
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
    /// An entry does not lie above the one before it.
    #[error("line {line}: {} does not ascend from epoch {} at offset {}", Quoted(.text), .before.epoch, .before.start_offset)]
    NotAscending {
        /// Number of the line, from 1.
        line: usize,
        /// The line as found.
        text: String,
        /// The entry before it.
        before: EpochEntry,
    },
    /// More or fewer entries than line 2 says.
    #[error("line 2: {declared} entries declared, {found} found")]
    Count {
        /// The number in line 2.
        declared: i32,
        /// The entries in the file.
        found: usize,
    },
}

/// Reads the file's content.
///
/// # Errors
/// [`EpochsError`] names the line and shows its text.
pub fn parse(bytes: &[u8]) -> Result<Vec<EpochEntry>, EpochsError> {
    let text = String::from_utf8_lossy(bytes);
    let mut lines = crate::text_lines::lines(&text).zip(1usize..);
    let Some((text, line)) = lines.next() else { return Ok(Vec::new()) };
    let version = text.parse::<i32>().map_err(|_| bad_line(line, text, "a version number"))?;
    if version != VERSION {
        return Err(EpochsError::UnknownVersion { version });
    }
    let Some((text, line)) = lines.next() else { return Ok(Vec::new()) };
    let declared = text
        .parse::<i32>()
        .ok()
        .filter(|count| *count >= 0)
        .ok_or_else(|| bad_line(line, text, "a number of entries"))?;
    // Grown entry by entry: the declared count is only compared in the end.
    let mut entries: Vec<EpochEntry> = Vec::new();
    for (text, line) in lines {
        let entry =
            parse_entry(text).ok_or_else(|| bad_line(line, text, "an epoch and an offset with a space"))?;
        if let Some(before) = entries.last().copied()
            && (entry.epoch <= before.epoch || entry.start_offset <= before.start_offset)
        {
            return Err(EpochsError::NotAscending { line, text: text.to_owned(), before });
        }
        entries.push(entry);
    }
    if usize::try_from(declared) != Ok(entries.len()) {
        return Err(EpochsError::Count { declared, found: entries.len() });
    }
    Ok(entries)
}

fn parse_entry(text: &str) -> Option<EpochEntry> {
    let mut parts = text.split_ascii_whitespace();
    let epoch = parts.next()?.parse().ok().filter(|epoch| *epoch >= 0)?;
    let start_offset = parts.next()?.parse().ok().filter(|offset| *offset >= 0)?;
    parts.next().is_none().then_some(EpochEntry { epoch, start_offset })
}

fn bad_line(line: usize, text: &str, expected: &'static str) -> EpochsError {
    EpochsError::BadLine { line, text: text.to_owned(), expected }
}

/// The file's content for `entries`, as Kafka writes it.
pub fn format(entries: &[EpochEntry]) -> String {
    let mut out = String::with_capacity(16 + entries.len() * 16);
    // Writing to a string cannot fail.
    let _ = write!(out, "{VERSION}\n{}\n", entries.len());
    for entry in entries {
        let _ = writeln!(out, "{} {}", entry.epoch, entry.start_offset);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(epoch: i32, start_offset: i64) -> EpochEntry {
        EpochEntry { epoch, start_offset }
    }

    #[test]
    fn files_of_a_real_kafka_read_and_write_back_byte_for_byte() {
        let files: [(&[u8], usize, EpochEntry); 3] = [
            (
                include_bytes!(
                    "../../tests/fixtures/control-files/leader-epoch-checkpoint/cut-at-log-start-4.4.0"
                ),
                4,
                entry(10, 778),
            ),
            (
                include_bytes!(
                    "../../tests/fixtures/control-files/leader-epoch-checkpoint/many-epochs-4.4.0"
                ),
                8,
                entry(2, 0),
            ),
            (
                include_bytes!("../../tests/fixtures/control-files/leader-epoch-checkpoint/two-epochs-4.0.2"),
                2,
                entry(1, 0),
            ),
        ];
        for (bytes, count, first) in files {
            let entries = parse(bytes).unwrap();
            assert_eq!((entries.len(), entries[0]), (count, first));
            assert_eq!(format(&entries).as_bytes(), bytes);
        }
    }

    #[test]
    fn a_new_log_has_an_empty_list() {
        let zero_length = include_bytes!(
            "../../tests/fixtures/control-files/leader-epoch-checkpoint/zero-length-new-log-4.4.0"
        );
        assert_eq!(parse(zero_length), Ok(vec![]));
        assert_eq!(parse(include_bytes!("../../tests/cases/epoch-b.txt")), Ok(vec![]));
        assert_eq!(parse(b"0\n0\n"), Ok(vec![]));
        assert_eq!(format(&[]), "0\n0\n");
    }

    #[test]
    fn after_a_power_cut_the_error_names_line_and_text() {
        let shown = |bytes: &[u8]| parse(bytes).unwrap_err().to_string();
        assert_eq!(
            shown(include_bytes!("../../tests/cases/epoch-c.txt")),
            "line 2: 3 entries declared, 2 found"
        );
        assert_eq!(
            shown(include_bytes!("../../tests/cases/epoch-d.txt")),
            "line 4: \"aa\" is not an epoch and an offset with a space"
        );
        assert_eq!(
            shown(include_bytes!("../../tests/cases/epoch-e.txt")),
            "line 4: \"1 0\" does not ascend from epoch 2 at offset 3"
        );
        let nul = shown(&[0; 16]);
        assert!(nul.starts_with("line 1: \"\\u{0}") && nul.ends_with("is not a version number"), "{nul}");
        assert_eq!(
            parse(include_bytes!("../../tests/cases/epoch-f.txt")),
            Ok(vec![entry(1, 0), entry(5, 900)]),
            "that offset 900 does not exist only the log can tell"
        );
    }

    #[test]
    fn an_unknown_version_is_no_damage() {
        let error = parse(include_bytes!("../../tests/cases/epoch-h.txt")).unwrap_err();
        assert_eq!(error, EpochsError::UnknownVersion { version: 9 });
    }

    #[test]
    fn numbers_out_of_range_and_odd_lines_are_refused() {
        for text in [
            "0\n1\n-1 0\n",
            "0\n1\n1 -5\n",
            "0\n1\n2147483648 0\n",
            "0\n1\n1 9223372036854775808\n",
            "0\n1\n1\n",
            "0\n1\n1 2 3\n",
            "0\n1\n1 2\n\n",
            "0\n-1\n",
            "0\n2147483647\n",
            "0\n2\n1 5\n2 5\n",
            "0\n2\n1 5\n1 6\n",
        ] {
            assert!(parse(text.as_bytes()).is_err(), "{text:?}");
        }
        assert_eq!(parse(b"0\r\n1\r\n1 2\r\n"), Ok(vec![entry(1, 2)]), "line ends of another system");
    }
}
