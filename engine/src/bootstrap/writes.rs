//! Bootstrap records into batches.
//!
//! From metadata.version 3.6-IV1 on they stand between Begin and End, in one batch whenever that
//! fits. When it does not, the MV record and End go into the last batch: a Kafka cannot start on a
//! bootstrap that was cut behind its MV record (B-81), and without one it starts over. Below that
//! version everything is one atomic batch or nothing.

use kraftlog_codecs::batch::{BATCH_BYTES_MAX, BatchBuilder, BatchOptions};
use kraftlog_codecs::features::{METADATA_VERSION, MetadataVersion};
use kraftlog_codecs::metadata::{BeginTransactionRecord, EndTransactionRecord, MetadataRecord};

/// Most records of one batch, Kafka's bound for what a controller writes at once (B-82).
pub const WRITE_RECORDS_MAX: usize = 10_000;

/// Kafka's name for the transaction.
const TRANSACTION_NAME: &str = "Bootstrap records";

/// Bootstrap records that cannot be written as they must be. Nothing was written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BootstrapTooLarge {
    /// Without transactions all records must fit into one batch.
    #[error(
        "{records} bootstrap records of {bytes} bytes do not fit into one batch of at most \
         {WRITE_RECORDS_MAX} records and {BATCH_BYTES_MAX} bytes, and metadata.version {version} has no \
         transactions"
    )]
    Atomic {
        /// How many records.
        records: usize,
        /// Bytes of their values.
        bytes: usize,
        /// The metadata.version.
        version: MetadataVersion,
    },
    /// One record alone is larger than a batch may be.
    #[error(
        "bootstrap record {record} of {bytes} bytes does not fit into a batch of {BATCH_BYTES_MAX} bytes"
    )]
    Record {
        /// Which, from 0.
        record: usize,
        /// Its size.
        bytes: usize,
    },
}

/// The batches to append, in order, each a list of encoded records that fits into one batch of
/// [`BATCH_BYTES_MAX`] bytes and [`WRITE_RECORDS_MAX`] records.
///
/// # Errors
/// [`BootstrapTooLarge`].
pub fn bootstrap_writes(
    records: &[Vec<u8>],
    version: MetadataVersion,
) -> Result<Vec<Vec<Vec<u8>>>, BootstrapTooLarge> {
    for (number, record) in records.iter().enumerate() {
        if !fits([record.as_slice()]) {
            return Err(BootstrapTooLarge::Record { record: number, bytes: record.len() });
        }
    }
    if !version.has_transactions() {
        if records.is_empty() {
            return Ok(Vec::new());
        }
        return match fits(records.iter().map(Vec::as_slice)) {
            true => Ok(vec![records.to_vec()]),
            false => Err(BootstrapTooLarge::Atomic {
                records: records.len(),
                bytes: records.iter().map(Vec::len).sum(),
                version,
            }),
        };
    }
    let begin = BeginTransactionRecord { name: Some(TRANSACTION_NAME), ..BeginTransactionRecord::default() };
    let (begin, end) = (value(begin.into()), value(EndTransactionRecord::default().into()));
    let mut whole: Vec<Vec<u8>> = vec![begin.clone()];
    whole.extend_from_slice(records);
    whole.push(end.clone());
    if fits(whole.iter().map(Vec::as_slice)) {
        return Ok(vec![whole]);
    }

    let (last, early): (Vec<_>, Vec<_>) = records.iter().cloned().partition(|record| sets_version(record));
    let mut batches: Vec<Vec<Vec<u8>>> = Vec::new();
    let mut packer = Packer::default();
    for record in std::iter::once(begin).chain(early) {
        if !packer.takes(&record) {
            batches.push(packer.take_all());
        }
        packer.push(record);
    }
    let tail: Vec<Vec<u8>> = last.into_iter().chain([end]).collect();
    if !packer.takes_all(&tail) {
        batches.push(packer.take_all());
    }
    tail.into_iter().for_each(|record| packer.push(record));
    batches.push(packer.take_all());
    Ok(batches)
}

/// Encodes a record of version 0 whose values are ours.
pub(super) fn value(record: MetadataRecord<'_>) -> Vec<u8> {
    let mut out = Vec::new();
    let encoded = record.encode(0, &mut out);
    assert!(encoded.is_ok(), "a record of constants cannot be encoded: {encoded:?}");
    out
}

fn sets_version(record: &[u8]) -> bool {
    matches!(
        MetadataRecord::decode(record).map(|framed| framed.record),
        Ok(MetadataRecord::FeatureLevel(feature)) if feature.name == METADATA_VERSION
    )
}

/// Whether these records fit into one batch. Offsets and times do not change a batch's size.
fn fits<'a>(records: impl IntoIterator<Item = &'a [u8]>) -> bool {
    let mut out = Vec::new();
    let mut builder = BatchBuilder::new(&mut out, BatchOptions::data(0, 0, 0));
    records
        .into_iter()
        .all(|record| builder.count() < WRITE_RECORDS_MAX && builder.append(None, record).is_ok())
}

/// Records of the batch that is being filled, by an upper bound of its size.
#[derive(Default)]
struct Packer {
    records: Vec<Vec<u8>>,
    bytes: usize,
}

impl Packer {
    /// Prefix and header count of a record are at most this long.
    const RECORD_OVERHEAD: usize = 20;

    fn takes(&self, record: &[u8]) -> bool {
        self.takes_all(std::slice::from_ref(&record))
    }

    fn takes_all<R: AsRef<[u8]>>(&self, records: &[R]) -> bool {
        let more: usize = records.iter().map(|r| r.as_ref().len() + Self::RECORD_OVERHEAD).sum();
        let bytes = kraftlog_codecs::batch::HEADER_BYTES + self.bytes + more;
        self.records.len() + records.len() <= WRITE_RECORDS_MAX && bytes <= BATCH_BYTES_MAX
    }

    fn push(&mut self, record: Vec<u8>) {
        self.bytes += record.len() + Self::RECORD_OVERHEAD;
        self.records.push(record);
    }

    fn take_all(&mut self) -> Vec<Vec<u8>> {
        self.bytes = 0;
        std::mem::take(&mut self.records)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kraftlog_codecs::metadata::{FeatureLevelRecord, NoOpRecord, TopicRecord};

    fn version_record(level: i16) -> Vec<u8> {
        let record = FeatureLevelRecord {
            name: METADATA_VERSION,
            feature_level: level,
            ..FeatureLevelRecord::default()
        };
        value(record.into())
    }

    fn kinds(batch: &[Vec<u8>]) -> Vec<&'static str> {
        batch.iter().filter_map(|r| MetadataRecord::decode(r).unwrap().record.type_name()).collect()
    }

    #[test]
    fn a_small_bootstrap_is_one_transaction_in_one_batch() {
        let records = [version_record(33), value(NoOpRecord::default().into())];
        let writes = bootstrap_writes(&records, MetadataVersion(33)).unwrap();
        assert_eq!(writes.len(), 1);
        assert_eq!(
            kinds(&writes[0]),
            ["BEGIN_TRANSACTION_RECORD", "FEATURE_LEVEL_RECORD", "NO_OP_RECORD", "END_TRANSACTION_RECORD"]
        );
    }

    #[test]
    fn a_large_bootstrap_has_its_version_and_its_end_in_the_last_batch() {
        let name = "x".repeat(30_000);
        let topic = TopicRecord { name: &name, ..TopicRecord::default() };
        let mut records = vec![version_record(33)];
        records.extend(std::iter::repeat_n(value(topic.into()), 700));
        let writes = bootstrap_writes(&records, MetadataVersion(33)).unwrap();
        assert_eq!(writes.len(), 3, "21 MB need three batches");
        assert_eq!(kinds(&writes[0])[0], "BEGIN_TRANSACTION_RECORD");
        let last = kinds(writes.last().unwrap());
        assert_eq!(last[last.len() - 2..], ["FEATURE_LEVEL_RECORD", "END_TRANSACTION_RECORD"]);
        assert!(writes[..2].iter().all(|batch| !kinds(batch).contains(&"FEATURE_LEVEL_RECORD")));
        assert!(writes.iter().all(|batch| fits(batch.iter().map(Vec::as_slice))));
        assert_eq!(writes.iter().map(Vec::len).sum::<usize>(), 703);
    }

    #[test]
    fn without_transactions_everything_is_one_batch_or_nothing() {
        let records = [version_record(11), value(NoOpRecord::default().into())];
        let writes = bootstrap_writes(&records, MetadataVersion(11)).unwrap();
        assert_eq!(kinds(&writes[0]), ["FEATURE_LEVEL_RECORD", "NO_OP_RECORD"]);
        let many = vec![version_record(11); WRITE_RECORDS_MAX + 1];
        assert!(matches!(
            bootstrap_writes(&many, MetadataVersion(11)),
            Err(BootstrapTooLarge::Atomic { records: 10_001, .. })
        ));
        assert_eq!(bootstrap_writes(&many, MetadataVersion(13)).unwrap().len(), 2);
    }
}
