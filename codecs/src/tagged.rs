//! The tag section that ends every flexible struct, and the tagged fields nobody here knows.
//!
//! Unknown fields are kept as the bytes that were read and are written back bit for bit. Stricter
//! than Kafka, whose own writer never produces such data: tags must ascend, and the declared size
//! of a known field must be the size of its content.
//!
//! In every schema of Kafka's metadata the known tags are `0..n` without a hole, so that unknown
//! fields always stand behind the known ones, as one run of bytes. [`UnknownTags`] relies on it.

use crate::cursor::{Put, Reader};
use crate::error::{DecodeError, EncodeError};
use crate::varint;

/// Tagged fields that the schema does not know: a borrowed run of whole fields in ascending order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct UnknownTags<'a> {
    raw: &'a [u8],
    count: u32,
}

impl<'a> UnknownTags<'a> {
    /// No unknown fields.
    pub const EMPTY: UnknownTags<'static> = UnknownTags { raw: &[], count: 0 };

    /// Takes fields as they stand on disk (`tag size data`, back to back, without the count).
    ///
    /// # Errors
    /// [`DecodeError::TagOrder`] if the tags do not ascend, other errors if the bytes are not whole
    /// fields.
    pub fn from_raw(raw: &'a [u8]) -> Result<UnknownTags<'a>, DecodeError> {
        let mut reader = Reader::new(raw);
        let (mut count, mut last) = (0u32, None);
        while !reader.is_empty() {
            let (tag, _) = field(&mut reader)?;
            check_order(&mut last, tag)?;
            count = count.checked_add(1).ok_or(DecodeError::ArrayTooLong)?;
        }
        Ok(UnknownTags { raw, count })
    }

    /// True if there are none.
    #[inline]
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Number of fields.
    #[inline]
    pub const fn len(&self) -> u32 {
        self.count
    }

    /// The fields as they stand on disk, without the count.
    #[inline]
    pub const fn raw(&self) -> &'a [u8] {
        self.raw
    }

    /// Tag and data of each field, in ascending order of tags.
    pub fn iter(&self) -> UnknownTagsIter<'a> {
        UnknownTagsIter { reader: Reader::new(self.raw) }
    }

    /// Checks that every tag is at least `known_end`, the first tag that the schema does not use.
    ///
    /// # Errors
    /// [`EncodeError::TagOrder`] if one is below.
    #[inline]
    pub fn check_above(&self, known_end: u32) -> Result<(), EncodeError> {
        if self.is_empty() {
            return Ok(());
        }
        match self.iter().next() {
            Some((tag, _)) if tag < known_end => Err(EncodeError::TagOrder),
            _ => Ok(()),
        }
    }
}

impl<'a> IntoIterator for &UnknownTags<'a> {
    type Item = (u32, &'a [u8]);
    type IntoIter = UnknownTagsIter<'a>;

    fn into_iter(self) -> UnknownTagsIter<'a> {
        self.iter()
    }
}

/// [`UnknownTags`] with its own copy of the bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct UnknownTagsBuf {
    raw: Box<[u8]>,
    count: u32,
}

impl UnknownTagsBuf {
    /// The fields, borrowed.
    #[inline]
    pub const fn as_tags(&self) -> UnknownTags<'_> {
        UnknownTags { raw: &self.raw, count: self.count }
    }

    /// True if there are none.
    #[inline]
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }
}

impl From<UnknownTags<'_>> for UnknownTagsBuf {
    fn from(tags: UnknownTags<'_>) -> UnknownTagsBuf {
        UnknownTagsBuf { raw: tags.raw.into(), count: tags.count }
    }
}

/// Iterator over [`UnknownTags`].
#[derive(Clone, Debug)]
pub struct UnknownTagsIter<'a> {
    reader: Reader<'a>,
}

impl<'a> Iterator for UnknownTagsIter<'a> {
    type Item = (u32, &'a [u8]);

    fn next(&mut self) -> Option<(u32, &'a [u8])> {
        // The bytes were walked when the value was made, so an error can only be the end.
        field(&mut self.reader).ok()
    }
}

/// Reads a tag section whose schema knows no tags at all.
///
/// # Errors
/// If the section is cut short or its tags do not ascend.
#[inline]
pub fn read_unknown<'a>(reader: &mut Reader<'a>) -> Result<UnknownTags<'a>, DecodeError> {
    if let Some((0, rest)) = reader.rest().split_first() {
        *reader = Reader::new(rest);
        return Ok(UnknownTags::EMPTY);
    }
    read_unknown_slow(reader)
}

#[cold]
#[inline(never)]
fn read_unknown_slow<'a>(reader: &mut Reader<'a>) -> Result<UnknownTags<'a>, DecodeError> {
    read(reader, 0, |_, _| Err(DecodeError::TagVersion))
}

/// Reads a tag section. `known` gets each tag below `known_end` with a reader over exactly that
/// field's data, which it must use up; for a tag that the version at hand lacks it returns
/// [`DecodeError::TagVersion`].
///
/// # Errors
/// [`DecodeError::TagOrder`] if tags do not ascend, [`DecodeError::TagSize`] if a known field is
/// shorter than declared, [`DecodeError::Truncated`] if it is longer or the section is cut.
#[inline]
pub fn read<'a>(
    reader: &mut Reader<'a>,
    known_end: u32,
    mut known: impl FnMut(u32, &mut Reader<'a>) -> Result<(), DecodeError>,
) -> Result<UnknownTags<'a>, DecodeError> {
    let fields = reader.uvarint()?;
    let mut last = None;
    for read in 0..fields {
        let before = reader.rest();
        let (tag, data) = field(reader)?;
        check_order(&mut last, tag)?;
        if tag >= known_end {
            // Tags ascend, so this field and all behind it are unknown.
            return rest_unknown(reader, before, fields - read, last);
        }
        let mut data = Reader::new(data);
        known(tag, &mut data)?;
        if !data.is_empty() {
            return Err(DecodeError::TagSize);
        }
    }
    Ok(UnknownTags::EMPTY)
}

/// Walks the unknown fields behind the first one; `from` starts with that one, `reader` is behind it.
#[cold]
#[inline(never)]
fn rest_unknown<'a>(
    reader: &mut Reader<'a>,
    from: &'a [u8],
    count: u32,
    mut last: Option<u32>,
) -> Result<UnknownTags<'a>, DecodeError> {
    for _ in 1..count {
        let (tag, _) = field(reader)?;
        check_order(&mut last, tag)?;
    }
    let raw = from.get(..from.len() - reader.len()).ok_or(DecodeError::Truncated)?;
    Ok(UnknownTags { raw, count })
}

#[inline]
fn field<'a>(reader: &mut Reader<'a>) -> Result<(u32, &'a [u8]), DecodeError> {
    let tag = reader.uvarint()?;
    // On every target with at least 32-bit pointers the cast keeps the value.
    let size = reader.uvarint()? as usize;
    Ok((tag, reader.take(size)?))
}

#[inline]
fn check_order(last: &mut Option<u32>, tag: u32) -> Result<(), DecodeError> {
    if last.is_some_and(|last| tag <= last) {
        return Err(DecodeError::TagOrder);
    }
    *last = Some(tag);
    Ok(())
}

/// Writes the number of fields of a section: `known` that follow by [`put_field_head`] and their
/// data, in ascending order, then the unknown ones by [`put_unknown`].
///
/// # Errors
/// [`EncodeError::TagOrder`] if an unknown tag is below `known_end`, [`EncodeError::TooLong`] if
/// there are more fields than a section can count.
#[inline]
pub fn put_count(
    out: &mut impl Put,
    known: u32,
    known_end: u32,
    unknown: &UnknownTags<'_>,
) -> Result<(), EncodeError> {
    unknown.check_above(known_end)?;
    let count = known.checked_add(unknown.len()).ok_or(EncodeError::TooLong { len: usize::MAX })?;
    out.put_uvarint(count);
    Ok(())
}

/// Writes tag and size of a known field; exactly `size` bytes of data must follow.
///
/// # Errors
/// [`EncodeError::TooLong`] if the size does not fit.
#[inline]
pub fn put_field_head(out: &mut impl Put, tag: u32, size: usize) -> Result<(), EncodeError> {
    let bytes = i32::try_from(size).map_err(|_| EncodeError::TooLong { len: size })?;
    out.put_uvarint(tag);
    out.put_uvarint(bytes.cast_unsigned());
    Ok(())
}

/// Writes the unknown fields behind the known ones.
#[inline]
pub fn put_unknown(out: &mut impl Put, unknown: &UnknownTags<'_>) {
    out.put(unknown.raw);
}

/// Writes a section whose schema knows no tags.
#[inline]
pub fn put_section(out: &mut impl Put, unknown: &UnknownTags<'_>) {
    out.put_uvarint(unknown.count);
    out.put(unknown.raw);
}

/// Bytes that [`put_section`] writes.
#[inline]
pub fn section_size(unknown: &UnknownTags<'_>) -> usize {
    varint::size_u32(unknown.count) + unknown.raw.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_fields_behind_known_ones_are_kept_bit_for_bit() {
        // Tags 0 (known, one byte), 5 (two bytes, with an overlong size) and 300 (empty).
        let bytes = [3, 0, 1, 7, 5, 0x82, 0x00, 0xaa, 0xbb, 0xac, 0x02, 0, 0x77];
        let mut reader = Reader::new(&bytes);
        let mut seen = Vec::new();
        let unknown = read(&mut reader, 3, |tag, data| {
            seen.push((tag, data.u8()?));
            Ok(())
        })
        .unwrap();
        assert_eq!(seen, [(0, 7)]);
        assert_eq!(reader.rest(), [0x77]);
        assert_eq!(unknown.iter().collect::<Vec<_>>(), [(5, &[0xaa, 0xbb][..]), (300, &[])]);

        let mut out = Vec::new();
        put_count(&mut out, 1, 3, &unknown).unwrap();
        put_field_head(&mut out, 0, 1).unwrap();
        out.put_u8(7);
        put_unknown(&mut out, &unknown);
        assert_eq!(out, bytes[..12]);
        assert_eq!(UnknownTags::from_raw(unknown.raw()), Ok(unknown));
        assert_eq!(put_count(&mut out, 1, 6, &unknown), Err(EncodeError::TagOrder));
    }

    #[test]
    fn sections_that_kafka_never_writes_are_refused() {
        let known = |tag: u32, data: &mut Reader<'_>| match tag {
            0 => data.u8().map(|_| ()),
            _ => Err(DecodeError::TagVersion),
        };
        for (bytes, error) in [
            (&[2, 0, 1, 7, 0, 1, 7][..], DecodeError::TagOrder),
            (&[2, 9, 0, 8, 0], DecodeError::TagOrder),
            (&[2, 9, 0, 9, 0], DecodeError::TagOrder),
            (&[1, 0, 2, 7, 7], DecodeError::TagSize),
            (&[1, 0, 0, 7, 7], DecodeError::Truncated),
            (&[1, 1, 1, 7], DecodeError::TagVersion),
            (&[1, 9, 5, 7], DecodeError::Truncated),
            (&[0xff, 0xff, 0xff, 0xff, 0x0f, 9, 0], DecodeError::BadVarint),
            (&[], DecodeError::BadVarint),
        ] {
            assert_eq!(read(&mut Reader::new(bytes), 2, known), Err(error), "{bytes:?}");
        }
        assert_eq!(read_unknown(&mut Reader::new(&[2, 9, 0, 8, 0])), Err(DecodeError::TagOrder));
        assert_eq!(read_unknown(&mut Reader::new(&[0])), Ok(UnknownTags::EMPTY));
    }
}
