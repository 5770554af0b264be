//! The index files of one segment, as open finds them.
//!
//! They are caches: what is not sound in itself counts as missing, and is rebuilt.

use crate::recover::found::small_file;
use crate::types::Offset;
use kraftlog_codecs::index::{
    INDEX_BYTES_MAX, OffsetEntry, OffsetIndex, TIME_INDEX_BYTES_MAX, TimeEntry, TimeIndex,
};
use kraftlog_codecs::names;
use kraftlog_io::{Disk, IoError};
use std::path::Path;

/// The index files of one segment, as far as they are sound in themselves.
#[derive(Default)]
pub(crate) struct IndexFiles {
    pub(crate) offsets: Option<Vec<OffsetEntry>>,
    pub(crate) times: Option<Vec<TimeEntry>>,
    pub(crate) offset_fault: Option<String>,
    pub(crate) time_fault: Option<String>,
    /// Lengths of the files.
    pub(crate) offset_bytes: Option<usize>,
    pub(crate) time_bytes: Option<usize>,
}

impl IndexFiles {
    pub(crate) async fn read(disk: &dyn Disk, part_dir: &Path, base: Offset) -> Result<IndexFiles, IoError> {
        let mut files = IndexFiles::default();
        let path = part_dir.join(names::offset_index_name(base.0));
        if let Some(bytes) = small_file(disk, &path, INDEX_BYTES_MAX).await? {
            files.offset_bytes = Some(bytes.len());
            match OffsetIndex::check(&bytes) {
                Ok(index) => files.offsets = Some(index.entries().collect()),
                Err(fault) => files.offset_fault = Some(fault.to_string()),
            }
        }
        let path = part_dir.join(names::time_index_name(base.0));
        if let Some(bytes) = small_file(disk, &path, TIME_INDEX_BYTES_MAX).await? {
            files.time_bytes = Some(bytes.len());
            match TimeIndex::check(&bytes) {
                Ok(index) => files.times = Some(index.entries().collect()),
                Err(fault) => files.time_fault = Some(fault.to_string()),
            }
        }
        Ok(files)
    }
}
