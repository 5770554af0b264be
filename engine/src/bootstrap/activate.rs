//! What a new leader appends before anything else (B-76 to B-81).
//!
//! A pure decision over what was replayed. Kafka takes a metadata.version inside of an open
//! transaction for the truth, aborts, and stops for ever (W-31); here only what is committed counts,
//! so such a log is bootstrapped again.

use super::find::Bootstrap;
use super::replayed::ReplayedState;
use super::writes::{BootstrapTooLarge, bootstrap_writes, value};
use crate::error::ErrorKind;
use crate::handle::{MetadataLog, block_on};
use crate::ticket::AppendError;
use crate::types::{Epoch, Offset};
use kraftlog_codecs::features::MetadataVersion;
use kraftlog_codecs::metadata::{AbortTransactionRecord, ConfigRecord};

const ELR: &str = "eligible.leader.replicas.version";
/// `ConfigResource.Type.BROKER`.
const BROKER_RESOURCE: i8 = 4;

/// What is to be appended, in order, and what to say about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Activation {
    /// Batches of encoded records; empty if there is nothing to append.
    pub writes: Vec<Vec<Vec<u8>>>,
    /// Kafka's message.
    pub message: String,
    /// True if bootstrap records are among them.
    pub bootstraps: bool,
}

/// Why a leader cannot become active. Nothing is to be appended.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ActivationError {
    /// The bootstrap records want a level that this build does not know.
    #[error(
        "metadata.version {level} of the bootstrap records from '{source_name}' is not known, known are {lowest} to \
         {highest}; use a newer build"
    )]
    UnsupportedMetadataVersion {
        /// The level.
        level: i16,
        /// Where the records come from.
        source_name: String,
        /// Lowest level known.
        lowest: i16,
        /// Highest level known.
        highest: i16,
    },
    /// An open transaction in a log whose metadata.version has none.
    #[error(
        "Detected in-progress transaction at offset {offset}, but the metadata.version {version} does not support \
         transactions. Cannot continue."
    )]
    TransactionWithoutSupport {
        /// Where it began.
        offset: Offset,
        /// The metadata.version.
        version: MetadataVersion,
    },
    /// The same while the log is to be bootstrapped.
    #[error(
        "Detected partial bootstrap records transaction at {offset}, but the metadata.version {version} does not \
         support transactions. Cannot continue."
    )]
    PartialBootstrapWithoutSupport {
        /// Where it began.
        offset: Offset,
        /// The metadata.version of the bootstrap records.
        version: MetadataVersion,
    },
    /// The bootstrap records cannot be written.
    #[error(transparent)]
    TooLarge(#[from] BootstrapTooLarge),
}

/// Decides. `min_insync_replicas` is the static default that goes into the log where ELR is on.
///
/// # Errors
/// [`ActivationError`]; the leader must resign.
pub fn activate(
    replayed: &ReplayedState,
    bootstrap: &Bootstrap,
    min_insync_replicas: i32,
) -> Result<Activation, ActivationError> {
    let abort = replayed.open_transaction();
    if replayed.metadata_version().is_some() {
        return abort_only(replayed, abort);
    }
    let version = bootstrap.metadata_version();
    if !version.is_known() {
        return Err(ActivationError::UnsupportedMetadataVersion {
            level: version.0,
            source_name: bootstrap.source().to_string(),
            lowest: MetadataVersion::MINIMUM.0,
            highest: MetadataVersion::LATEST_TESTING.0,
        });
    }
    if let Some(offset) = abort
        && !version.has_transactions()
    {
        return Err(ActivationError::PartialBootstrapWithoutSupport { offset, version });
    }
    let mut records = bootstrap.records().to_vec();
    if bootstrap.feature_level(ELR) > 0 {
        let value_text = min_insync_replicas.to_string();
        let record = ConfigRecord {
            resource_type: BROKER_RESOURCE,
            resource_name: "",
            name: "min.insync.replicas",
            value: Some(&value_text),
            ..ConfigRecord::default()
        };
        records.push(value(record.into()));
    }
    let mut writes = bootstrap_writes(&records, version)?;
    if abort.is_some() {
        // In the batch of Begin, as Kafka does it, if there is room for it.
        match writes.first_mut() {
            Some(first) if first.len() < super::WRITE_RECORDS_MAX && writes_small(first) => {
                first.insert(0, abort_record());
            }
            _ => writes.insert(0, vec![abort_record()]),
        }
    }
    let count = bootstrap.records().len();
    let transaction = match (abort, version.has_transactions()) {
        (Some(offset), _) => format!(
            "Aborting partial bootstrap records transaction at offset {offset}. Re-appending {count} bootstrap \
             record(s) in new metadata transaction"
        ),
        (None, true) => format!("Appending {count} bootstrap record(s) in metadata transaction"),
        (None, false) => format!("Appending {count} bootstrap record(s)"),
    };
    let message = format!(
        "Performing controller activation. The metadata log appears to be empty. {transaction} at \
         metadata.version {version} from bootstrap source '{}'.",
        bootstrap.source()
    );
    tracing::warn!("{message}");
    Ok(Activation { writes, message, bootstraps: true })
}

/// What [`MetadataLog::activate`] wrote.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Activated {
    /// Kafka's message.
    pub message: String,
    /// Offset behind the last record that was written; the log end where nothing was.
    pub end_offset: Offset,
    /// True if bootstrap records were written.
    pub bootstrapped: bool,
}

/// Why [`MetadataLog::activate`] failed. The leader must resign.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ActivateError {
    /// Nothing was appended.
    #[error(transparent)]
    Refused(#[from] ActivationError),
    /// An append failed; of several batches earlier ones may be durable, and the next leader starts over.
    #[error(transparent)]
    Append(#[from] AppendError),
}

impl ActivateError {
    /// What the caller can do.
    pub fn kind(&self) -> ErrorKind {
        match self {
            ActivateError::Refused(ActivationError::TooLarge(_)) => ErrorKind::Invalid,
            ActivateError::Refused(ActivationError::UnsupportedMetadataVersion { .. }) => {
                ErrorKind::Unsupported
            }
            ActivateError::Refused(_) => ErrorKind::Refused,
            ActivateError::Append(error) => error.kind(),
        }
    }
}

impl MetadataLog {
    /// Appends what a new leader of `epoch` must write first, as [`activate()`] decides it. Call it when
    /// the leader change is committed and everything before it is in `replayed`.
    ///
    /// On return it is durable; whether it is committed is the quorum's business.
    ///
    /// # Errors
    /// [`ActivateError`].
    ///
    /// # Cancel safety
    /// Dropping the future undoes nothing: batches queued so far become durable, the others are never
    /// queued. The next leader aborts and writes again.
    pub async fn activate(
        &self,
        epoch: Epoch,
        replayed: &ReplayedState,
        bootstrap: &Bootstrap,
        min_insync_replicas: i32,
    ) -> Result<Activated, ActivateError> {
        let Activation { writes, message, bootstraps } = activate(replayed, bootstrap, min_insync_replicas)?;
        let mut end_offset = self.end_offset();
        let mut tickets = Vec::with_capacity(writes.len());
        for records in &writes {
            tickets.push(self.append_records(epoch, records)?);
        }
        for ticket in tickets {
            end_offset = Offset(ticket.durable().await?.last.0 + 1);
        }
        Ok(Activated { message, end_offset, bootstrapped: bootstraps })
    }

    /// As [`activate`](MetadataLog::activate), blocking this thread.
    ///
    /// # Errors
    /// Those of [`activate`](MetadataLog::activate).
    ///
    /// # Panics
    /// Inside an async context, if the runtime can tell.
    pub fn activate_blocking(
        &self,
        epoch: Epoch,
        replayed: &ReplayedState,
        bootstrap: &Bootstrap,
        min_insync_replicas: i32,
    ) -> Result<Activated, ActivateError> {
        let rt = std::sync::Arc::clone(self.dir().rt());
        block_on(&*rt, self.activate(epoch, replayed, bootstrap, min_insync_replicas))
    }
}

fn abort_only(replayed: &ReplayedState, abort: Option<Offset>) -> Result<Activation, ActivationError> {
    let begin = "Performing controller activation.";
    let Some(offset) = abort else {
        return Ok(Activation { writes: Vec::new(), message: begin.to_owned(), bootstraps: false });
    };
    if let Some(version) = replayed.version_in_force()
        && !version.has_transactions()
    {
        return Err(ActivationError::TransactionWithoutSupport { offset, version });
    }
    let message = format!("{begin} Aborting in-progress metadata transaction at offset {offset}.");
    tracing::warn!("{message}");
    Ok(Activation { writes: vec![vec![abort_record()]], message, bootstraps: false })
}

fn abort_record() -> Vec<u8> {
    let record =
        AbortTransactionRecord { reason: Some("Controller failover"), ..AbortTransactionRecord::default() };
    value(record.into())
}

/// Well below a batch's limit, so that one record more fits.
fn writes_small(batch: &[Vec<u8>]) -> bool {
    batch.iter().map(Vec::len).sum::<usize>() < (1 << 20)
}

#[cfg(test)]
mod tests {
    use super::*;
    use kraftlog_codecs::features::METADATA_VERSION;
    use kraftlog_codecs::metadata::{
        BeginTransactionRecord, EndTransactionRecord, FeatureLevelRecord, MetadataRecord, NoOpRecord,
    };

    fn version_record(level: i16) -> MetadataRecord<'static> {
        FeatureLevelRecord { name: METADATA_VERSION, feature_level: level, ..FeatureLevelRecord::default() }
            .into()
    }

    fn replay(records: &[MetadataRecord<'_>]) -> ReplayedState {
        let mut replayed = ReplayedState::new();
        for (offset, record) in (3..).zip(records) {
            replayed.apply(Offset(offset), record).unwrap();
        }
        replayed
    }

    fn kinds(activation: &Activation) -> Vec<Vec<&'static str>> {
        let kind = |r: &Vec<u8>| MetadataRecord::decode(r).unwrap().record.type_name().unwrap();
        activation.writes.iter().map(|batch| batch.iter().map(kind).collect()).collect()
    }

    #[test]
    fn an_empty_log_gets_the_bootstrap_transaction_and_kafkas_message() {
        let bootstrap = Bootstrap::default_records();
        // A log with leader changes and no-ops only counts as empty.
        let activation = activate(&replay(&[NoOpRecord::default().into()]), &bootstrap, 1).unwrap();
        assert_eq!(
            kinds(&activation),
            [["BEGIN_TRANSACTION_RECORD", "FEATURE_LEVEL_RECORD", "END_TRANSACTION_RECORD"]]
        );
        assert_eq!(
            activation.message,
            "Performing controller activation. The metadata log appears to be empty. Appending 1 bootstrap \
             record(s) in metadata transaction at metadata.version 4.4-IV2 from bootstrap source 'the default \
             bootstrap'."
        );
    }

    #[test]
    fn a_bootstrap_that_was_cut_is_aborted_and_written_again() {
        let begin = || BeginTransactionRecord::default().into();
        let bootstrap = Bootstrap::default_records();
        // Behind Begin, and behind the MV record: the case that Kafka never recovers from.
        for records in [vec![begin()], vec![begin(), version_record(33)]] {
            let activation = activate(&replay(&records), &bootstrap, 1).unwrap();
            assert_eq!(
                kinds(&activation),
                [[
                    "ABORT_TRANSACTION_RECORD",
                    "BEGIN_TRANSACTION_RECORD",
                    "FEATURE_LEVEL_RECORD",
                    "END_TRANSACTION_RECORD"
                ]]
            );
            assert!(activation.message.contains("at offset 3. Re-appending 1 bootstrap record(s)"));
        }
    }

    #[test]
    fn a_log_with_a_version_gets_at_most_an_abort() {
        let bootstrap = Bootstrap::default_records();
        let done = replay(&[
            BeginTransactionRecord::default().into(),
            version_record(33),
            EndTransactionRecord::default().into(),
        ]);
        let activation = activate(&done, &bootstrap, 1).unwrap();
        assert_eq!(activation.message, "Performing controller activation.");
        assert!(activation.writes.is_empty() && !activation.bootstraps);

        let open = replay(&[version_record(33), BeginTransactionRecord::default().into()]);
        let activation = activate(&open, &bootstrap, 1).unwrap();
        assert_eq!(kinds(&activation), [["ABORT_TRANSACTION_RECORD"]]);
        assert_eq!(
            activation.message,
            "Performing controller activation. Aborting in-progress metadata transaction at offset 4."
        );
        let old = replay(&[version_record(10), BeginTransactionRecord::default().into()]);
        assert_eq!(
            activate(&old, &bootstrap, 1).map_err(|e| e.to_string()),
            Err("Detected in-progress transaction at offset 4, but the metadata.version 3.5-IV1 does not support \
                 transactions. Cannot continue."
                .to_owned())
        );
    }
}
