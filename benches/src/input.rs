//! Records, batches and checkpoints to work on, all made by our own writers from the same numbers.

use kraftlog_codecs::batch::{BATCH_BYTES_MAX, BatchBuilder, BatchOptions};
use kraftlog_codecs::features::MetadataVersion;
use kraftlog_codecs::metadata::{ArrayBuf, Element, MetadataRecord, PartitionRecord, TopicRecord};
use kraftlog_codecs::uuid::Uuid;

/// Sets the size of the checkpoint that is written, verified and loaded, in MiB.
pub const CHECKPOINT_MIB_ENV: &str = "KRAFTLOG_BENCH_CHECKPOINT_MIB";
/// Its size by default: small enough for a short run, far larger than any CPU's cache.
const CHECKPOINT_MIB: u64 = 128;
/// Partitions of each topic in the input.
const PARTITIONS: u64 = 10;
/// A time for all batches: input does not depend on the clock.
pub const TIMESTAMP: i64 = 1_700_000_000_000;

/// Bytes of metadata records that the checkpoint shall have.
///
/// # Panics
/// If the environment asks for something that is no number of MiB.
pub fn checkpoint_bytes() -> u64 {
    let mib = match std::env::var(CHECKPOINT_MIB_ENV) {
        Ok(text) => match text.parse::<u64>() {
            Ok(mib @ 1..=1_048_576) => mib,
            _ => panic!("{CHECKPOINT_MIB_ENV} is `{text}`, expected a number of MiB"),
        },
        Err(_) => CHECKPOINT_MIB,
    };
    mib << 20
}

/// Encoded metadata records, one behind the other.
#[derive(Debug, Default, Clone)]
pub struct Records {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl Records {
    /// Topics with ten partitions each, three replicas a partition, until `bytes` are reached.
    pub fn topics(bytes: u64) -> Records {
        let mut records = Records::default();
        let mut topic = 0;
        while (records.bytes.len() as u64) < bytes {
            records.add_topic(topic);
            topic += 1;
        }
        records
    }

    fn add_topic(&mut self, topic: u64) {
        let topic_id = Uuid::from_halves(0x6b72_6166_746c_6f67, topic);
        let name = format!("bench-topic-{topic:08}");
        self.add(0, TopicRecord { name: &name, topic_id, ..Default::default() }.into());
        for partition in 0..PARTITIONS {
            let leader = 1000 + ((topic + partition) % 5) as i32;
            let nodes = [leader, leader + 1, leader + 2];
            let replicas = array(nodes);
            let directories = array(nodes.map(|node| Uuid::from_halves(0x6469_7265_6374_6f72, node as u64)));
            let record = PartitionRecord {
                partition_id: partition as i32,
                topic_id,
                replicas: replicas.array(),
                isr: replicas.array(),
                leader,
                leader_epoch: 3,
                partition_epoch: 7,
                directories: directories.array(),
                ..Default::default()
            };
            self.add(MetadataVersion::LATEST_PRODUCTION.partition_version(), record.into());
        }
    }

    fn add(&mut self, version: i16, record: MetadataRecord<'_>) {
        if let Err(error) = record.encode(version, &mut self.bytes) {
            unreachable!("a record of the input cannot be encoded: {error}");
        }
        self.ends.push(self.bytes.len());
    }

    /// Number of records.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// True without any record.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The records' bytes, in order.
    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        starts.zip(&self.ends).map(|(start, end)| &self.bytes[start..*end])
    }

    /// The records as data batches of at most 8 MiB, back to back.
    pub fn batches(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.bytes.len() + self.bytes.len() / 4);
        let mut rest = self.iter().peekable();
        let mut offset = 0;
        while rest.peek().is_some() {
            let mut builder = BatchBuilder::new(&mut out, BatchOptions::data(offset, 1, TIMESTAMP));
            while let Some(record) = rest.peek() {
                if builder.append(None, record).is_err() {
                    break;
                }
                rest.next();
            }
            offset = builder.finish().next_offset();
        }
        out
    }
}

fn array<'a, T, I, const N: usize>(elements: [I; N]) -> ArrayBuf<T>
where
    T: Element<'static>,
    I: Element<'a, At<'static> = T>,
{
    match ArrayBuf::of(elements) {
        Ok(array) => array,
        Err(error) => unreachable!("{N} elements cannot be encoded: {error}"),
    }
}

/// A batch of `bytes` bytes, or a few less: TopicRecords with long names, the last one cut to fit.
///
/// # Panics
/// If `bytes` is below 128 or above 8 MiB.
pub fn batch_of(bytes: usize) -> Vec<u8> {
    assert!((128..=BATCH_BYTES_MAX).contains(&bytes), "no batch of {bytes} bytes");
    // Long enough that the largest batch stays below Kafka's limit of 10,000 records.
    let name = "x".repeat((bytes / 4096).max(249));
    let mut out = Vec::with_capacity(bytes);
    let mut builder =
        BatchBuilder::new(&mut out, BatchOptions { bytes_max: bytes, ..BatchOptions::data(0, 1, TIMESTAMP) });
    let mut name_bytes = name.len();
    while name_bytes > 0 {
        let topic = TopicRecord {
            name: &name[..name_bytes],
            topic_id: Uuid::from_halves(1, 1),
            ..Default::default()
        };
        if builder.append_with(None, |out| MetadataRecord::from(topic).encode(0, out)).is_err() {
            name_bytes -= 1;
        }
    }
    builder.finish();
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use kraftlog_codecs::batch::Batch;

    #[test]
    fn batches_have_the_size_asked_for_and_are_valid() {
        for bytes in [128, 512, 4096, 1 << 20, BATCH_BYTES_MAX] {
            let batch = batch_of(bytes);
            assert!(batch.len() <= bytes && batch.len() + 40 > bytes, "{} for {bytes}", batch.len());
            assert!(Batch::check(&batch).is_ok_and(|batch| batch.check_strict().is_ok()));
        }
    }

    #[test]
    fn records_come_back_out_of_their_batches() {
        let records = Records::topics(20 << 20);
        let bytes = records.batches();
        let mut count = 0;
        let mut rest = &bytes[..];
        while !rest.is_empty() {
            let Ok(batch) = Batch::check(rest) else { panic!("batch at {}", bytes.len() - rest.len()) };
            let Ok(walk) = batch.records() else { panic!("records at {}", bytes.len() - rest.len()) };
            count += walk
                .filter(|record| record.is_ok_and(|record| MetadataRecord::decode(record.payload()).is_ok()))
                .count();
            rest = &rest[batch.header().size()..];
        }
        assert_eq!(count, records.len());
        assert_eq!(records.iter().map(<[u8]>::len).sum::<usize>(), records.bytes.len());
    }
}
