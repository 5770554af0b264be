//! A metadata directory as a fuzzer's input: a byte of choices, then files, each a byte for its name, two for
//! its length, and its content.

use crate::mend;

/// Names below the directory, those of the metadata log in `__cluster_metadata-0`. What no name stands for
/// leaves its place to another: the input's byte is taken modulo their number.
pub const NAMES: [&str; 30] = [
    "__cluster_metadata-0/00000000000000000000.log",
    "__cluster_metadata-0/00000000000000000005.log",
    "__cluster_metadata-0/00000000000000000040.log",
    "__cluster_metadata-0/00000000000000000000.index",
    "__cluster_metadata-0/00000000000000000005.index",
    "__cluster_metadata-0/00000000000000000040.index",
    "__cluster_metadata-0/00000000000000000000.timeindex",
    "__cluster_metadata-0/00000000000000000005.timeindex",
    "__cluster_metadata-0/00000000000000000000-0000000000.checkpoint",
    "__cluster_metadata-0/00000000000000000005-0000000001.checkpoint",
    "__cluster_metadata-0/00000000000000000040-0000000002.checkpoint",
    "__cluster_metadata-0/00000000000000000005-0000000001-18446744073709551615.checkpoint.part",
    "__cluster_metadata-0/00000000000000000005-0000000001.checkpoint.deleted",
    "__cluster_metadata-0/00000000000000000000.log.deleted",
    "__cluster_metadata-0/00000000000000000000.index.deleted",
    "__cluster_metadata-0/00000000000000000005.snapshot",
    "__cluster_metadata-0/leader-epoch-checkpoint",
    "__cluster_metadata-0/leader-epoch-checkpoint.tmp",
    "__cluster_metadata-0/partition.metadata",
    "__cluster_metadata-0/quorum-state",
    "__cluster_metadata-0/quorum-state.tmp",
    "__cluster_metadata-0/kraftlog.state",
    "__cluster_metadata-0/kraftlog.state.tmp",
    "__cluster_metadata-0/09223372036854775807.log",
    "__cluster_metadata-0/09223372036854775807-2147483647.checkpoint",
    "__cluster_metadata-0/a stranger",
    "meta.properties",
    "bootstrap.checkpoint",
    ".kafka_cleanshutdown",
    "kraftlog.cut/0.bytes",
];

/// What an input says beside the files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Choices(pub u8);

impl Choices {
    /// Checksums are made right.
    pub fn mends(self) -> bool {
        self.0 & 1 != 0
    }

    /// The node is an observer.
    pub fn observes(self) -> bool {
        self.0 & 2 != 0
    }

    /// The records are not looked at.
    pub fn unchecked(self) -> bool {
        self.0 & 4 != 0
    }

    /// The segment gets a reserve of zeros.
    pub fn reserves(self) -> bool {
        self.0 & 16 != 0
    }

    /// The power fails before the log is closed.
    pub fn crashes(self) -> bool {
        self.0 & 8 != 0
    }
}

/// A directory's files, by name, with their content.
#[derive(Debug)]
pub struct Dir {
    pub choices: Choices,
    pub files: Vec<(&'static str, Vec<u8>)>,
}

impl Dir {
    /// Any bytes are a directory.
    pub fn decode(bytes: &[u8]) -> Dir {
        let (&choices, mut rest) = bytes.split_first().unwrap_or((&0, &[]));
        let choices = Choices(choices);
        let mut files = Vec::new();
        while let Some((&[name, high, low], behind)) = rest.split_first_chunk() {
            let len = usize::from(u16::from_be_bytes([high, low])).min(behind.len());
            let (content, behind) = behind.split_at(len);
            let name = NAMES[usize::from(name) % NAMES.len()];
            let content = match name {
                _ if !choices.mends() => content.to_vec(),
                _ if name.contains("kraftlog.state") => mend::state(content),
                _ if name.contains(".log") || name.contains(".checkpoint") => mend::batches(content),
                _ => content.to_vec(),
            };
            files.push((name, content));
            rest = behind;
        }
        Dir { choices, files }
    }

    /// The bytes that stand for these files.
    ///
    /// # Panics
    /// If there is no number for a name, or a file is longer than 65,535 bytes.
    pub fn encode(choices: Choices, files: &[(&str, &[u8])]) -> Vec<u8> {
        let mut bytes = vec![choices.0];
        for (name, content) in files {
            let number = NAMES.iter().position(|known| known == name).unwrap_or_else(|| panic!("no {name}"));
            bytes.push(u8::try_from(number).expect("few names"));
            bytes.extend_from_slice(&u16::try_from(content.len()).expect("a short file").to_be_bytes());
            bytes.extend_from_slice(content);
        }
        bytes
    }
}
