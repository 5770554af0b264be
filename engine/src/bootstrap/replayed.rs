//! What a controller has replayed from its log, as far as bootstrap needs it.
//!
//! Records between Begin and End count only once End is seen, and an Abort takes them back: so a
//! bootstrap transaction that was cut behind its MV record leaves "no metadata.version", where Kafka
//! takes the record for the truth and dies (B-81, W-31).

use crate::types::Offset;
use kraftlog_codecs::features::{METADATA_VERSION, MetadataVersion};
use kraftlog_codecs::metadata::MetadataRecord;

/// State after replaying a log or a checkpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ReplayedState {
    committed: Option<MetadataVersion>,
    /// Offset of Begin, and the metadata.version set since.
    open: Option<(Offset, Option<MetadataVersion>)>,
}

/// Transaction records that make no sense (B-84).
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TransactionOrderError {
    /// Begin inside of a transaction.
    #[error("transaction begins at offset {at} inside the one that began at {open}")]
    BeginInside {
        /// Where.
        at: Offset,
        /// Begin of the open one.
        open: Offset,
    },
    /// End or Abort outside of one.
    #[error("transaction ends at offset {at}, but none is open")]
    EndOutside {
        /// Where.
        at: Offset,
    },
}

impl ReplayedState {
    /// Nothing replayed yet.
    pub fn new() -> ReplayedState {
        ReplayedState::default()
    }

    /// Takes in the record at `offset`.
    ///
    /// # Errors
    /// A transaction record that does not fit; the state is as before.
    pub fn apply(
        &mut self,
        offset: Offset,
        record: &MetadataRecord<'_>,
    ) -> Result<(), TransactionOrderError> {
        match (record, &mut self.open) {
            (MetadataRecord::BeginTransaction(_), None) => self.open = Some((offset, None)),
            (MetadataRecord::BeginTransaction(_), Some((open, _))) => {
                return Err(TransactionOrderError::BeginInside { at: offset, open: *open });
            }
            (MetadataRecord::EndTransaction(_), Some((_, version))) => {
                self.committed = version.or(self.committed);
                self.open = None;
            }
            (MetadataRecord::AbortTransaction(_), Some(_)) => self.open = None,
            (MetadataRecord::EndTransaction(_) | MetadataRecord::AbortTransaction(_), None) => {
                return Err(TransactionOrderError::EndOutside { at: offset });
            }
            (MetadataRecord::FeatureLevel(feature), open) if feature.name == METADATA_VERSION => {
                let version = Some(MetadataVersion(feature.feature_level));
                match open {
                    Some((_, in_transaction)) => *in_transaction = version,
                    None => self.committed = version,
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// The metadata.version, records of an open transaction left out. "Bootstrapped" means that there
    /// is one (B-76).
    pub fn metadata_version(&self) -> Option<MetadataVersion> {
        self.committed
    }

    /// Where the open transaction began, if one is open.
    pub fn open_transaction(&self) -> Option<Offset> {
        self.open.map(|(offset, _)| offset)
    }

    /// The metadata.version that counts inside the open transaction, which is what Kafka goes by.
    pub(super) fn version_in_force(&self) -> Option<MetadataVersion> {
        self.open.and_then(|(_, version)| version).or(self.committed)
    }
}
