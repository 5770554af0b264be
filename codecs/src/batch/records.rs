//! The walk over the records of one batch, borrowed, without allocation.
//!
//! [`Records`] allows what KRaft writes and nothing else: it is stricter than Kafka's own reader
//! where that reader lets damage slip through (surplus bytes, headers that end in zero, counts and
//! deltas that disagree). It is the hot path of every start: what it needs lives in registers,
//! everything unusual is out of line, errors are one byte.
//!
//! [`GeneralRecords`] walks what any Kafka producer may have written.

use super::header::BatchHeader;
use crate::cursor::Reader;
use crate::error::DecodeError;

/// Least bytes of a KRaft record: length, attributes, two deltas, key length, value length, one
/// byte of value, header count.
const RECORD_BYTES_MIN: usize = 8;
/// Least bytes of a control record's key.
const CONTROL_KEY_BYTES_MIN: usize = 4;

/// One record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record<'a> {
    /// Its offset.
    pub offset: i64,
    /// Its timestamp in milliseconds, -1 if it has none.
    pub timestamp: i64,
    /// Its key. In a KRaft batch control records have one and data records have none.
    pub key: Option<&'a [u8]>,
    /// Its value. In a KRaft batch it is there and not empty.
    pub value: Option<&'a [u8]>,
}

impl<'a> Record<'a> {
    /// The value, or nothing; a record of a KRaft batch always has one.
    #[inline]
    pub const fn payload(&self) -> &'a [u8] {
        match self.value {
            Some(value) => value,
            None => &[],
        }
    }
}

/// Iterator over the records of a KRaft batch. The first error is the last item; when the counted
/// records are through, bytes left over are an error too.
#[derive(Clone, Debug)]
pub struct Records<'a> {
    reader: Reader<'a>,
    base_offset: i64,
    timestamp: i64,
    /// Records delivered.
    index: i32,
    /// Records there are; 0 after an error.
    count: i32,
    control: bool,
}

impl<'a> Records<'a> {
    pub(super) fn new(header: &BatchHeader, bytes: &'a [u8]) -> Result<Records<'a>, DecodeError> {
        header.check_strict()?;
        // Checked to be positive; a count that the bytes cannot hold is refused before any work.
        if header.records_count.cast_unsigned() as usize > bytes.len() / RECORD_BYTES_MIN {
            return Err(DecodeError::BadRecordCount);
        }
        let timestamp = if header.attributes.is_log_append_time() {
            header.max_timestamp
        } else if header.attributes.has_delete_horizon() {
            -1
        } else {
            header.base_timestamp
        };
        Ok(Records {
            reader: Reader::new(bytes),
            base_offset: header.base_offset,
            timestamp,
            index: 0,
            count: header.records_count,
            control: header.is_control(),
        })
    }

    /// Records not delivered yet.
    #[inline]
    pub const fn remaining(&self) -> usize {
        (self.count - self.index).cast_unsigned() as usize
    }

    /// Ends the walk. Inlined like all that touches `self`, so that a loop keeps it in registers.
    #[inline(always)]
    fn stop(&mut self) {
        self.reader = Reader::new(&[]);
        self.count = 0;
        self.index = 0;
    }
}

impl<'a> Iterator for Records<'a> {
    type Item = Result<Record<'a>, DecodeError>;

    // Left to itself the compiler makes this a call, and the state goes through memory.
    #[inline(always)]
    fn next(&mut self) -> Option<Self::Item> {
        if self.index == self.count {
            let left_over = !self.reader.is_empty();
            self.stop();
            return left_over.then_some(Err(DecodeError::TrailingBytes));
        }
        match strict_record(self.reader, self.index, self.control) {
            Ok((key, value, rest)) => {
                let offset = self.base_offset + i64::from(self.index);
                self.reader = rest;
                self.index += 1;
                Some(Ok(Record { offset, timestamp: self.timestamp, key, value: Some(value) }))
            }
            Err(error) => {
                self.stop();
                Some(Err(error))
            }
        }
    }

    #[inline]
    fn size_hint(&self) -> (usize, Option<usize>) {
        // One item more if bytes are left over, fewer after an error.
        (0, Some(self.remaining().saturating_add(1)))
    }
}

impl std::iter::FusedIterator for Records<'_> {}

type KeyValueRest<'a> = (Option<&'a [u8]>, &'a [u8], Reader<'a>);

/// Takes the reader by value, so that it stays in registers.
#[inline(always)]
fn strict_record(mut reader: Reader<'_>, index: i32, control: bool) -> Result<KeyValueRest<'_>, DecodeError> {
    let length = reader.varint()?;
    if length <= 0 {
        return Err(DecodeError::BadRecordLength);
    }
    let mut body = Reader::new(reader.take(length.cast_unsigned() as usize)?);
    // Attributes have no meaning and are ignored.
    body.u8()?;
    if body.varlong()? != 0 {
        return Err(DecodeError::BadTimestampDelta);
    }
    if body.varint()? != index {
        return Err(DecodeError::BadOffsetDelta);
    }
    let key_length = body.varint()?;
    let key = if control {
        Some(control_key(&mut body, key_length)?)
    } else if key_length == -1 {
        None
    } else {
        return Err(DecodeError::BadKey);
    };
    let value_length = body.varint()?;
    if value_length <= 0 {
        return Err(DecodeError::BadValue);
    }
    let value = body.take(value_length.cast_unsigned() as usize)?;
    match body.rest() {
        [0] => Ok((key, value, reader)),
        rest => Err(strict_end(rest)),
    }
}

#[inline]
fn control_key<'a>(body: &mut Reader<'a>, length: i32) -> Result<&'a [u8], DecodeError> {
    match usize::try_from(length) {
        Ok(length) if length >= CONTROL_KEY_BYTES_MIN => body.take(length),
        _ => Err(DecodeError::BadKey),
    }
}

/// What is wrong with the end of a record that is not the single byte of "no headers".
#[cold]
#[inline(never)]
fn strict_end(rest: &[u8]) -> DecodeError {
    match Reader::new(rest).varint() {
        Ok(0) => DecodeError::BadRecordLength,
        Ok(_) => DecodeError::HasHeaders,
        Err(error) => error,
    }
}

/// A record of any Kafka batch.
#[derive(Clone, Copy, Debug)]
pub struct GeneralRecord<'a> {
    /// Offset, timestamp, key and value.
    pub record: Record<'a>,
    /// The unused attributes byte.
    pub attributes: u8,
    /// Its headers.
    pub headers: RecordHeaders<'a>,
}

/// Iterator over the records of any Kafka batch. The first error is the last item; bytes left over
/// behind the counted records are an error too.
#[derive(Clone, Debug)]
pub struct GeneralRecords<'a> {
    reader: Reader<'a>,
    base_offset: i64,
    base_timestamp: i64,
    log_append_time: Option<i64>,
    left: i32,
}

impl<'a> GeneralRecords<'a> {
    pub(super) fn new(header: &BatchHeader, bytes: &'a [u8]) -> GeneralRecords<'a> {
        let attributes = header.attributes;
        GeneralRecords {
            reader: Reader::new(bytes),
            base_offset: header.base_offset,
            base_timestamp: header.base_timestamp,
            log_append_time: attributes.is_log_append_time().then_some(header.max_timestamp),
            left: header.records_count,
        }
    }

    fn record(&mut self) -> Result<GeneralRecord<'a>, DecodeError> {
        let length = usize::try_from(self.reader.varint()?).map_err(|_| DecodeError::BadRecordLength)?;
        let mut body = Reader::new(self.reader.take(length)?);
        let attributes = body.u8()?;
        let timestamp_delta = body.varlong()?;
        let offset_delta = body.varint()?;
        let key = nullable(&mut body)?;
        let value = nullable(&mut body)?;
        let count = body.varint()?;
        match usize::try_from(count) {
            Ok(count) if count <= body.len() => {}
            _ => return Err(DecodeError::NegativeLength),
        }
        let headers = RecordHeaders { reader: body, left: count };
        // Walk them once, so that a damaged header is this record's error.
        let mut walk = headers;
        for _ in 0..count {
            walk.header()?;
        }
        if !walk.reader.is_empty() {
            return Err(DecodeError::BadRecordLength);
        }
        let offset = self.base_offset.checked_add(i64::from(offset_delta)).ok_or(DecodeError::BadOffset)?;
        let timestamp =
            self.log_append_time.unwrap_or_else(|| self.base_timestamp.wrapping_add(timestamp_delta));
        Ok(GeneralRecord { record: Record { offset, timestamp, key, value }, attributes, headers })
    }
}

impl<'a> Iterator for GeneralRecords<'a> {
    type Item = Result<GeneralRecord<'a>, DecodeError>;

    fn next(&mut self) -> Option<Self::Item> {
        let item = match self.left {
            0 if self.reader.is_empty() => return None,
            0 => Err(DecodeError::TrailingBytes),
            ..0 => Err(DecodeError::BadRecordCount),
            1.. => self.record(),
        };
        if item.is_ok() {
            self.left -= 1;
        } else {
            self.left = 0;
            self.reader = Reader::new(&[]);
        }
        Some(item)
    }
}

impl std::iter::FusedIterator for GeneralRecords<'_> {}

/// A length-prefixed value of a record; any negative length is null, as in Kafka.
fn nullable<'a>(body: &mut Reader<'a>) -> Result<Option<&'a [u8]>, DecodeError> {
    match usize::try_from(body.varint()?) {
        Ok(length) => Ok(Some(body.take(length)?)),
        Err(_) => Ok(None),
    }
}

/// The headers of a record: key (UTF-8 by rule, bytes here) and value. Already checked, so the walk
/// cannot fail.
#[derive(Clone, Copy, Debug)]
pub struct RecordHeaders<'a> {
    reader: Reader<'a>,
    left: i32,
}

impl<'a> RecordHeaders<'a> {
    /// Headers not delivered yet.
    #[inline]
    pub const fn len(&self) -> usize {
        self.left.cast_unsigned() as usize
    }

    /// True if there are none.
    #[inline]
    pub const fn is_empty(&self) -> bool {
        self.left == 0
    }

    fn header(&mut self) -> Result<(&'a [u8], Option<&'a [u8]>), DecodeError> {
        let length = usize::try_from(self.reader.varint()?).map_err(|_| DecodeError::NegativeLength)?;
        Ok((self.reader.take(length)?, nullable(&mut self.reader)?))
    }
}

impl<'a> Iterator for RecordHeaders<'a> {
    type Item = (&'a [u8], Option<&'a [u8]>);

    fn next(&mut self) -> Option<Self::Item> {
        if self.left == 0 {
            return None;
        }
        self.left -= 1;
        self.header().ok()
    }
}

#[cfg(test)]
#[path = "records_tests.rs"]
mod tests;
