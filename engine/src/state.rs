//! The side file `kraftlog.state` in the part directory: what the log knew of itself when it last wrote.
//!
//! *Evidence* binds open: the intent of a truncation in progress, the durable end with offset, epoch and
//! CRC of its last batch, and min(high watermark, durable end). *Hints* only save work, and any
//! disagreement overrules them: the clean flag, the segments' lengths, where the last batch lies, the
//! epochs, which batches have control records that matter.
//!
//! The file is text with a CRC-32C over all lines before the last, replaced in one step, never removed.
//! Kafka ignores it (behaviour.md V-15). A damaged one counts as none, and that is reported.

use crate::types::{Epoch, Offset, SnapshotId};
use kraftlog_codecs::crc::crc32c;
use kraftlog_codecs::epochs::EpochEntry;
use std::fmt::Write as _;

/// Name of the file.
pub(crate) const STATE_FILE: &str = "kraftlog.state";
/// More than the largest that we write: 100,000 epochs and segments.
pub(crate) const STATE_BYTES_MAX: usize = 16 << 20;
const FIRST_LINE: &str = "kraftlog.state 1";

/// The last batch below the durable end: evidence that it was there, and a hint where.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LastBatch {
    /// Base offset of its segment.
    pub(crate) segment: Offset,
    /// Where it begins in the segment.
    pub(crate) position: u64,
    /// Its base offset.
    pub(crate) base: Offset,
    /// Its epoch.
    pub(crate) epoch: Epoch,
    /// The CRC in its header.
    pub(crate) crc: u32,
}

/// Length of one segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SegmentLen {
    pub(crate) base: Offset,
    pub(crate) bytes: u64,
}

/// The content of the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct State {
    /// The log was closed: everything is durable and trimmed.
    pub(crate) clean: bool,
    /// Everything below was on stable storage.
    pub(crate) durable_end: Offset,
    /// The batch that ends there; none in an empty log.
    pub(crate) last: Option<LastBatch>,
    /// min(high watermark, durable end): never to be cut.
    pub(crate) committed: Offset,
    /// Newest metadata.version level known to the build that looked at the records.
    pub(crate) checked_level: i16,
    /// A full truncation to this snapshot has begun.
    pub(crate) intent: Option<SnapshotId>,
    /// All segments, oldest first; the last one's length is that of its data.
    pub(crate) segments: Vec<SegmentLen>,
    /// The leader epochs below the durable end, and one that is begun and has no batch yet.
    pub(crate) epochs: Vec<EpochEntry>,
    /// Base offsets of batches with voters or kraft.version below the durable end.
    pub(crate) control: Vec<Offset>,
}

impl State {
    /// The file's content.
    pub(crate) fn encode(&self) -> String {
        let mut text = format!("{FIRST_LINE}\nclean {}\ndurable {}\n", self.clean, self.durable_end);
        // Writing to a string cannot fail.
        if let Some(last) = &self.last {
            let LastBatch { segment, position, base, epoch, crc } = last;
            let _ = writeln!(text, "last {segment} {position} {base} {epoch} {crc:08x}");
        }
        let _ = writeln!(text, "committed {}\nlevel {}", self.committed, self.checked_level);
        if let Some(id) = &self.intent {
            let _ = writeln!(text, "truncating-to {} {}", id.end_offset, id.epoch);
        }
        for segment in &self.segments {
            let _ = writeln!(text, "segment {} {}", segment.base, segment.bytes);
        }
        for entry in &self.epochs {
            let _ = writeln!(text, "epoch {} {}", entry.epoch, entry.start_offset);
        }
        for offset in &self.control {
            let _ = writeln!(text, "control {offset}");
        }
        let crc = crc32c(text.as_bytes());
        let _ = writeln!(text, "crc {crc:08x}");
        text
    }

    /// Reads the file's content; the error says what is wrong with it.
    pub(crate) fn decode(bytes: &[u8]) -> Result<State, StateFault> {
        let text = std::str::from_utf8(bytes).map_err(|_| StateFault::NotText)?;
        let body_len = text.trim_end_matches('\n').rfind('\n').ok_or(StateFault::Short)? + 1;
        let (body, last_line) = text.split_at(body_len);
        let stored = last_line
            .strip_prefix("crc ")
            .and_then(|hex| u32::from_str_radix(hex.trim_end_matches('\n'), 16).ok())
            .ok_or(StateFault::Short)?;
        let computed = crc32c(body.as_bytes());
        if stored != computed {
            return Err(StateFault::Crc { stored, computed });
        }
        let mut lines = body.lines();
        let first = lines.next().unwrap_or_default();
        if first != FIRST_LINE {
            return Err(StateFault::Version { first: first.chars().take(40).collect() });
        }
        let mut state = State {
            clean: false,
            durable_end: Offset::ZERO,
            last: None,
            committed: Offset::ZERO,
            checked_level: 0,
            intent: None,
            segments: Vec::new(),
            epochs: Vec::new(),
            control: Vec::new(),
        };
        for line in lines {
            state.take(line).ok_or_else(|| StateFault::Line { line: line.chars().take(80).collect() })?;
        }
        Ok(state)
    }

    fn take(&mut self, line: &str) -> Option<()> {
        let mut words = line.split(' ');
        let key = words.next()?;
        let mut word = || words.next();
        match key {
            "clean" => self.clean = word()?.parse().ok()?,
            "durable" => self.durable_end = offset(word()?)?,
            "last" => {
                self.last = Some(LastBatch {
                    segment: offset(word()?)?,
                    position: word()?.parse().ok()?,
                    base: offset(word()?)?,
                    epoch: epoch(word()?)?,
                    crc: u32::from_str_radix(word()?, 16).ok()?,
                });
            }
            "committed" => self.committed = offset(word()?)?,
            "level" => self.checked_level = word()?.parse().ok()?,
            "truncating-to" => {
                self.intent = Some(SnapshotId { end_offset: offset(word()?)?, epoch: epoch(word()?)? });
            }
            "segment" => {
                self.segments.push(SegmentLen { base: offset(word()?)?, bytes: word()?.parse().ok()? });
            }
            "epoch" => {
                self.epochs.push(EpochEntry { epoch: epoch(word()?)?.0, start_offset: offset(word()?)?.0 })
            }
            "control" => self.control.push(offset(word()?)?),
            // A key of a later build of ours, behind the same first line, is something we may pass over.
            _ => {}
        }
        Some(())
    }

    /// True if the epochs ascend, as the cache demands.
    pub(crate) fn epochs_ascend(&self) -> bool {
        self.epochs
            .windows(2)
            .all(|pair| pair[0].epoch < pair[1].epoch && pair[0].start_offset < pair[1].start_offset)
    }
}

fn offset(word: &str) -> Option<Offset> {
    word.parse().ok().filter(|n| *n >= 0).map(Offset)
}

fn epoch(word: &str) -> Option<Epoch> {
    word.parse().ok().filter(|n| *n >= 0).map(Epoch)
}

/// Why a side file counts as none.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StateFault {
    /// Not UTF-8.
    #[error("it is no text")]
    NotText,
    /// No CRC line at the end.
    #[error("it has no checksum line")]
    Short,
    /// The CRC does not match.
    #[error("stored checksum {stored:08x}, computed {computed:08x}")]
    Crc {
        /// In the file.
        stored: u32,
        /// Over the lines before.
        computed: u32,
    },
    /// Another first line.
    #[error("first line is `{first}`, not `{FIRST_LINE}`")]
    Version {
        /// The line found.
        first: String,
    },
    /// A line that cannot be read, although the CRC is right.
    #[error("line `{line}` cannot be read")]
    Line {
        /// The line found.
        line: String,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state() -> State {
        State {
            clean: true,
            durable_end: Offset(70),
            last: Some(LastBatch {
                segment: Offset(40),
                position: 9000,
                base: Offset(68),
                epoch: Epoch(3),
                crc: 0x00ab_cdef,
            }),
            committed: Offset(66),
            checked_level: 29,
            intent: Some(SnapshotId::new(60, 2)),
            segments: vec![
                SegmentLen { base: Offset(0), bytes: 100 },
                SegmentLen { base: Offset(40), bytes: 9100 },
            ],
            epochs: vec![EpochEntry { epoch: 1, start_offset: 0 }, EpochEntry { epoch: 3, start_offset: 50 }],
            control: vec![Offset(0), Offset(50)],
        }
    }

    #[test]
    fn what_was_written_is_read_back() {
        assert_eq!(State::decode(state().encode().as_bytes()), Ok(state()));
    }

    #[test]
    fn any_changed_byte_makes_the_file_count_as_none() {
        let good = state().encode().into_bytes();
        for at in 0..good.len() - 1 {
            let mut bad = good.clone();
            bad[at] ^= 1;
            assert!(State::decode(&bad).is_err(), "byte {at} changed and not noticed");
        }
    }

    #[test]
    fn a_cut_or_hostile_file_is_an_error() {
        let good = state().encode().into_bytes();
        for len in 0..good.len() - 1 {
            assert!(State::decode(&good[..len]).is_err(), "cut to {len} bytes and not noticed");
        }
        assert!(State::decode(&[0xff; 300]).is_err());
        assert!(State::decode(&[0; 4096]).is_err());
    }
}
