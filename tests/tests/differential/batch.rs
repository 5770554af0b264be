//! One batch through two codecs that know nothing of each other: ours, and that of the crate
//! `kafka-protocol`. Used by a test and by the fuzz target `differential`.

use bytes::{Bytes, BytesMut};
use kafka_protocol::protocol::StrBytes;
use kafka_protocol::records::{
    Compression as TheirCompression, Record as TheirRecord, RecordBatchDecoder, RecordBatchEncoder,
    RecordEncodeOptions, TimestampType,
};
use kraftlog_codecs::batch::{Batch, BatchBuilder, BatchOptions};
use kraftlog_codecs::compress::{Compression, decompress};

/// More than any batch of a test unpacks to.
const UNPACKED_BYTES_MAX: usize = 64 << 20;

/// A header of a record: key and value.
pub(crate) type Header = (String, Option<Vec<u8>>);

/// A record, and what its batch says of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Flat {
    pub(crate) offset: i64,
    pub(crate) timestamp: i64,
    pub(crate) key: Option<Vec<u8>>,
    pub(crate) value: Option<Vec<u8>>,
    pub(crate) headers: Vec<Header>,
    pub(crate) epoch: i32,
    pub(crate) producer_id: i64,
    pub(crate) producer_epoch: i16,
    pub(crate) sequence: i32,
    pub(crate) transactional: bool,
    pub(crate) control: bool,
}

/// A batch to be written.
#[derive(Debug, Clone)]
pub(crate) struct Input {
    /// 0 to 4, as in the attributes.
    pub(crate) compression: u8,
    pub(crate) base_offset: i64,
    pub(crate) epoch: i32,
    pub(crate) producer_id: i64,
    pub(crate) producer_epoch: i16,
    pub(crate) base_sequence: i32,
    pub(crate) transactional: bool,
    pub(crate) control: bool,
    pub(crate) records: Vec<InputRecord>,
}

/// A record to be written.
#[derive(Debug, Clone)]
pub(crate) struct InputRecord {
    /// Offsets left out before this one, as compaction leaves them out.
    pub(crate) gap: u16,
    pub(crate) timestamp: i64,
    pub(crate) key: Option<Vec<u8>>,
    pub(crate) value: Option<Vec<u8>>,
    /// Keys differ: `kafka-protocol` keeps headers in a map.
    pub(crate) headers: Vec<Header>,
}

impl Input {
    /// What both codecs must read.
    pub(crate) fn flat(&self) -> Vec<Flat> {
        let mut delta = 0;
        let mut flat = Vec::new();
        for (at, record) in self.records.iter().enumerate() {
            // The first record is where the batch begins.
            delta += if at == 0 { 0 } else { 1 + i32::from(record.gap) };
            flat.push(Flat {
                offset: self.base_offset + i64::from(delta),
                timestamp: record.timestamp,
                key: record.key.clone(),
                value: record.value.clone(),
                headers: record.headers.clone(),
                epoch: self.epoch,
                producer_id: self.producer_id,
                producer_epoch: self.producer_epoch,
                sequence: self.base_sequence.wrapping_add(delta),
                transactional: self.transactional,
                control: self.control,
            });
        }
        flat
    }

    /// The batch as `kafka-protocol` writes it.
    pub(crate) fn written_by_them(&self) -> Vec<u8> {
        let records: Vec<TheirRecord> = self.flat().into_iter().map(their_record).collect();
        let compression = match self.compression {
            0 => TheirCompression::None,
            1 => TheirCompression::Gzip,
            2 => TheirCompression::Snappy,
            3 => TheirCompression::Lz4,
            4 => TheirCompression::Zstd,
            other => panic!("no compression {other}"),
        };
        let mut bytes = BytesMut::new();
        RecordBatchEncoder::encode(&mut bytes, &records, &RecordEncodeOptions { version: 2, compression })
            .expect("a valid batch is written");
        bytes.to_vec()
    }
}

fn their_record(flat: Flat) -> TheirRecord {
    TheirRecord {
        transactional: flat.transactional,
        control: flat.control,
        delete_horizon: false,
        partition_leader_epoch: flat.epoch,
        producer_id: flat.producer_id,
        producer_epoch: flat.producer_epoch,
        timestamp_type: TimestampType::Creation,
        offset: flat.offset,
        sequence: flat.sequence,
        timestamp: flat.timestamp,
        key: flat.key.map(Bytes::from),
        value: flat.value.map(Bytes::from),
        headers: flat
            .headers
            .into_iter()
            .map(|(key, value)| (StrBytes::from_string(key), value.map(Bytes::from)))
            .collect(),
    }
}

/// A batch of data records as our builder writes it, which is the one kind that KRaft has: one
/// timestamp, values only.
pub(crate) fn written_by_us(base_offset: i64, epoch: i32, timestamp: i64, values: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut builder = BatchBuilder::new(&mut bytes, BatchOptions::data(base_offset, epoch, timestamp));
    for value in values {
        builder.append(None, value).expect("it fits");
    }
    builder.finish();
    bytes
}

/// The same batch as an input for their encoder.
pub(crate) fn kraft_input(base_offset: i64, epoch: i32, timestamp: i64, values: &[Vec<u8>]) -> Input {
    Input {
        compression: 0,
        base_offset,
        epoch,
        producer_id: -1,
        producer_epoch: -1,
        base_sequence: -1,
        transactional: false,
        control: false,
        records: values
            .iter()
            .map(|value| InputRecord {
                gap: 0,
                timestamp,
                key: None,
                value: Some(value.clone()),
                headers: Vec::new(),
            })
            .collect(),
    }
}

/// What we read in a batch.
pub(crate) fn read_by_us(bytes: &[u8]) -> Vec<Flat> {
    let batch = Batch::check(bytes).expect("a valid batch");
    assert_eq!(batch.bytes().len(), bytes.len(), "one batch");
    let header = *batch.header();
    let mut unpacked = Vec::new();
    let records = match header.compression().expect("a codec that there is") {
        Compression::None => batch.records_bytes(),
        codec => {
            decompress(codec, batch.records_bytes(), UNPACKED_BYTES_MAX, &mut unpacked).expect("it unpacks");
            &unpacked
        }
    };
    let flat: Vec<Flat> = batch
        .records_general(records)
        .map(|record| {
            let record = record.expect("a valid record");
            let delta = i32::try_from(record.record.offset - header.base_offset).expect("an offset delta");
            Flat {
                offset: record.record.offset,
                timestamp: record.record.timestamp,
                key: record.record.key.map(<[u8]>::to_vec),
                value: record.record.value.map(<[u8]>::to_vec),
                headers: record
                    .headers
                    .map(|(key, value)| {
                        let key = String::from_utf8(key.to_vec()).expect("a header's key is text");
                        (key, value.map(<[u8]>::to_vec))
                    })
                    .collect(),
                epoch: header.leader_epoch,
                producer_id: header.producer_id,
                producer_epoch: header.producer_epoch,
                sequence: header.base_sequence.wrapping_add(delta),
                transactional: header.is_transactional(),
                control: header.is_control(),
            }
        })
        .collect();
    assert_eq!(flat.len(), usize::try_from(header.records_count).expect("a count"));
    assert_eq!(flat.last().map(|last| last.offset), Some(header.last_offset()));
    assert_eq!(flat.iter().map(|record| record.timestamp).max(), Some(header.max_timestamp));
    flat
}

/// What `kafka-protocol` reads in a batch.
pub(crate) fn read_by_them(bytes: &[u8]) -> Vec<Flat> {
    let mut bytes = Bytes::copy_from_slice(bytes);
    let set = RecordBatchDecoder::decode(&mut bytes).expect("a valid batch");
    assert!(bytes.is_empty(), "{} bytes left over", bytes.len());
    set.records
        .into_iter()
        .map(|record| Flat {
            offset: record.offset,
            timestamp: record.timestamp,
            key: record.key.map(|key| key.to_vec()),
            value: record.value.map(|value| value.to_vec()),
            headers: record
                .headers
                .into_iter()
                .map(|(key, value)| (key.to_string(), value.map(|value| value.to_vec())))
                .collect(),
            epoch: record.partition_leader_epoch,
            producer_id: record.producer_id,
            producer_epoch: record.producer_epoch,
            sequence: record.sequence,
            transactional: record.transactional,
            control: record.control,
        })
        .collect()
}
