//! What a file is, by its name alone, as kafka-dump-log decides it; names it would ignore or stumble
//! over are dumped too.

use std::ffi::OsStr;
use std::path::Path;

/// What a file holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A segment, with its base offset if the name says it; also one that awaits deletion.
    Log(Option<i64>),
    /// A checkpoint with end offset and epoch; also one that awaits deletion.
    Checkpoint(i64, i32),
    /// A checkpoint that is still being written or fetched.
    Part(i64, i32),
    /// `bootstrap.checkpoint`.
    Bootstrap,
    /// An offset index.
    Index,
    /// A time index.
    TimeIndex,
    /// Any other name: decoded as batches if the user asks for it.
    Foreign,
}

impl Kind {
    pub(crate) fn of(path: &Path) -> Kind {
        let name = path.file_name().and_then(OsStr::to_str).unwrap_or_default();
        let name = name.strip_suffix(".deleted").unwrap_or(name);
        if name == "bootstrap.checkpoint" {
            return Kind::Bootstrap;
        }
        let Some((stem, suffix)) = name.split_once('.') else { return Kind::Foreign };
        match suffix {
            "log" => Kind::Log(digits(stem)),
            "index" => Kind::Index,
            "timeindex" => Kind::TimeIndex,
            "checkpoint" => match id(stem) {
                Some((offset, epoch)) => Kind::Checkpoint(offset, epoch),
                None => Kind::Foreign,
            },
            // <id>-<random>.checkpoint.part
            "checkpoint.part" => match stem.rsplit_once('-').and_then(|(stem, _)| id(stem)) {
                Some((offset, epoch)) => Kind::Part(offset, epoch),
                None => Kind::Foreign,
            },
            _ => Kind::Foreign,
        }
    }

    /// True for what a dump of a directory shows.
    pub(crate) fn has_records(self) -> bool {
        matches!(self, Kind::Log(_) | Kind::Checkpoint(..) | Kind::Part(..) | Kind::Bootstrap)
    }

    /// True for indexes.
    pub(crate) fn is_index(self) -> bool {
        matches!(self, Kind::Index | Kind::TimeIndex)
    }
}

fn id(stem: &str) -> Option<(i64, i32)> {
    let (offset, epoch) = stem.split_once('-')?;
    Some((digits(offset)?, i32::try_from(digits(epoch)?).ok()?))
}

/// ASCII digits only: Java's parser takes a sign and other scripts too, no Kafka writes them.
fn digits(text: &str) -> Option<i64> {
    if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    text.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_told_apart_by_their_names() {
        for (name, kind) in [
            ("00000000000000000760.log", Kind::Log(Some(760))),
            ("00000000000000000760.log.deleted", Kind::Log(Some(760))),
            ("copy.log", Kind::Log(None)),
            ("00000000000000000485-0000000001.checkpoint", Kind::Checkpoint(485, 1)),
            ("00000000000000000485-0000000001.checkpoint.deleted", Kind::Checkpoint(485, 1)),
            ("00000000000000056159-0000000003-16487183439475514746.checkpoint.part", Kind::Part(56159, 3)),
            ("bootstrap.checkpoint", Kind::Bootstrap),
            ("short.checkpoint", Kind::Foreign),
            ("-1-1.checkpoint", Kind::Foreign),
            ("00000000000000000000.index", Kind::Index),
            ("00000000000000000000.timeindex", Kind::TimeIndex),
            ("00000000000000000000.snapshot", Kind::Foreign),
            ("x.bin", Kind::Foreign),
            ("quorum-state", Kind::Foreign),
        ] {
            assert_eq!(Kind::of(&Path::new("/some.where").join(name)), kind, "{name}");
        }
    }
}
