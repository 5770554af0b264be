//! Arrays that stay where they are: a view of encoded elements, checked once and walked lazily.
//!
//! Invariant: the bytes of an [`Array`] are whole, valid elements and nothing else. Only
//! [`Array::read`], which checks them, and [`ArrayBuf`], which wrote them, make one; so walking
//! cannot fail. A failure would be a bug of ours and panics.

use super::schema::{Field, TagPath, TagVisitor};
use crate::cursor::{Put, Reader};
use crate::error::{DecodeError, EncodeError};
use crate::uuid::Uuid;
use std::fmt;
use std::marker::PhantomData;

/// A type that arrays may hold: `i32`, `Uuid`, `&str` and the nested structs of the schemas.
pub trait Element<'a>: Field<'a> {
    /// Bytes of every element; 0 if they vary.
    const WIDTH: usize;
    /// The same type borrowing for another lifetime.
    type At<'x>: Element<'x>;
}

impl<'a> Element<'a> for i32 {
    const WIDTH: usize = 4;
    type At<'x> = i32;
}

impl<'a> Element<'a> for Uuid {
    const WIDTH: usize = 16;
    type At<'x> = Uuid;
}

impl<'a> Element<'a> for &'a str {
    const WIDTH: usize = 0;
    type At<'x> = &'x str;
}

/// A borrowed array in its encoded form. Equal arrays have equal elements in the same order.
///
/// It is as small as a slice, because the values that hold it are moved once for every record: the
/// count follows from the bytes, at once if all elements have one size, else by a walk.
pub struct Array<'a, T> {
    bytes: &'a [u8],
    of: PhantomData<T>,
}

impl<'a, T: Element<'a>> Array<'a, T> {
    /// An array without elements.
    #[inline]
    pub fn empty() -> Self {
        Array { bytes: &[], of: PhantomData }
    }

    /// Number of elements; found by a walk if their sizes vary.
    #[inline]
    pub fn len(&self) -> usize {
        self.bytes.len().checked_div(T::WIDTH).unwrap_or_else(|| self.iter().count())
    }

    /// True if there are none.
    #[inline]
    pub fn is_empty(&self) -> bool {
        // An element has at least one byte.
        self.bytes.is_empty()
    }

    /// The elements in their encoded form, without the count.
    #[inline]
    pub fn as_bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// The elements, in order.
    #[inline]
    pub fn iter(&self) -> Iter<'a, T> {
        Iter { rest: Reader::new(self.bytes), of: PhantomData }
    }

    /// The element at `index`: found at once if all have the same size, else by walking.
    #[inline]
    pub fn get(&self, index: usize) -> Option<T> {
        let width = T::WIDTH;
        if width == 0 {
            return self.iter().nth(index);
        }
        let bytes = self.bytes.get(index.checked_mul(width)?..)?;
        if bytes.is_empty() { None } else { Some(element(&mut Reader::new(bytes))) }
    }

    /// True if an element equals `value`.
    #[inline]
    pub fn contains(&self, value: T) -> bool {
        self.iter().any(|item| item == value)
    }

    /// Reads `count` elements and checks each of them.
    #[inline(always)]
    pub(crate) fn read(reader: &mut Reader<'a>, count: usize) -> Result<Self, DecodeError> {
        // Kafka's rule, and the bound of all work here: an element takes at least one byte.
        if count > reader.len() {
            return Err(DecodeError::ArrayTooLong);
        }
        let width = T::WIDTH;
        if width != 0 {
            let bytes = reader.take(count.saturating_mul(width))?;
            return Ok(Array { bytes, of: PhantomData });
        }
        Array::read_varying(reader, count)
    }

    #[inline(never)]
    fn read_varying(reader: &mut Reader<'a>, count: usize) -> Result<Self, DecodeError> {
        let start = reader.rest();
        for _ in 0..count {
            T::read(reader)?;
        }
        let bytes = start.get(..start.len() - reader.len()).ok_or(DecodeError::Truncated)?;
        Ok(Array { bytes, of: PhantomData })
    }

    pub(crate) fn visit_items(&self, name: &'static str, path: &TagPath<'_>, visit: &mut TagVisitor<'_>) {
        if T::NESTED {
            for (index, item) in self.iter().enumerate() {
                item.visit_tags(&TagPath::Item { parent: path, name, index }, visit);
            }
        }
    }
}

impl<T> Clone for Array<'_, T> {
    #[inline]
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Array<'_, T> {}

impl<'a, T: Element<'a>> Default for Array<'a, T> {
    #[inline]
    fn default() -> Self {
        Array::empty()
    }
}

impl<'a, T: Element<'a>> PartialEq for Array<'a, T> {
    #[inline]
    fn eq(&self, other: &Self) -> bool {
        if T::WIDTH != 0 { self.bytes == other.bytes } else { self.iter().eq(other.iter()) }
    }
}

impl<'a, T: Element<'a> + fmt::Debug> fmt::Debug for Array<'a, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

impl<'a, T: Element<'a>> IntoIterator for Array<'a, T> {
    type Item = T;
    type IntoIter = Iter<'a, T>;
    #[inline]
    fn into_iter(self) -> Iter<'a, T> {
        self.iter()
    }
}

impl<'a, T: Element<'a>> IntoIterator for &Array<'a, T> {
    type Item = T;
    type IntoIter = Iter<'a, T>;
    #[inline]
    fn into_iter(self) -> Iter<'a, T> {
        self.iter()
    }
}

/// Iterator over the elements of an [`Array`].
#[derive(Clone, Debug)]
pub struct Iter<'a, T> {
    rest: Reader<'a>,
    of: PhantomData<T>,
}

impl<'a, T: Element<'a>> Iterator for Iter<'a, T> {
    type Item = T;

    #[inline]
    fn next(&mut self) -> Option<T> {
        // An element has at least one byte.
        if self.rest.is_empty() { None } else { Some(element(&mut self.rest)) }
    }

    #[inline]
    fn size_hint(&self) -> (usize, Option<usize>) {
        let bytes = self.rest.len();
        match bytes.checked_div(T::WIDTH) {
            Some(exact) => (exact, Some(exact)),
            None => (usize::from(bytes > 0), Some(bytes)),
        }
    }
}

impl ExactSizeIterator for Iter<'_, i32> {}
impl ExactSizeIterator for Iter<'_, Uuid> {}

#[inline]
fn element<'a, T: Element<'a>>(reader: &mut Reader<'a>) -> T {
    match T::read(reader) {
        Ok(item) => item,
        Err(error) => broken(error),
    }
}

#[cold]
#[inline(never)]
fn broken(error: DecodeError) -> ! {
    panic!("an array was checked when it was made, and now its element is bad: {error}")
}

/// Elements encoded into a buffer of their own, to lend as an [`Array`] to a record that is built.
///
/// ```
/// use kraftlog_codecs::metadata::{ArrayBuf, PartitionRecord};
/// let replicas = ArrayBuf::of([1, 2, 3])?;
/// let record = PartitionRecord { replicas: replicas.array(), isr: replicas.array(), ..Default::default() };
/// assert_eq!(record.isr.iter().collect::<Vec<_>>(), [1, 2, 3]);
/// # Ok::<(), kraftlog_codecs::error::EncodeError>(())
/// ```
#[derive(Clone, Debug)]
pub struct ArrayBuf<T> {
    bytes: Vec<u8>,
    count: usize,
    of: PhantomData<T>,
}

impl<T: Element<'static>> Default for ArrayBuf<T> {
    fn default() -> Self {
        ArrayBuf { bytes: Vec::new(), count: 0, of: PhantomData }
    }
}

impl<T: Element<'static>> ArrayBuf<T> {
    /// Encodes `items`.
    ///
    /// # Errors
    /// If a string in them is longer than the format allows, or there are more than 2^31 - 2.
    pub fn of<'a, I>(items: impl IntoIterator<Item = I>) -> Result<ArrayBuf<T>, EncodeError>
    where
        I: Element<'a, At<'static> = T>,
    {
        let mut buf = ArrayBuf::default();
        for item in items {
            buf.push(item)?;
        }
        Ok(buf)
    }

    /// Encodes one more element.
    ///
    /// # Errors
    /// As [`ArrayBuf::of`]; the array is as before.
    pub fn push<'a, I>(&mut self, item: I) -> Result<(), EncodeError>
    where
        I: Element<'a, At<'static> = T>,
    {
        let count = self.count + 1;
        if count >= i32::MAX as usize {
            return Err(EncodeError::TooLong { len: count });
        }
        let before = self.bytes.len();
        if let Err(error) = item.write(&mut self.bytes) {
            self.bytes.truncate(before);
            return Err(error);
        }
        self.count = count;
        Ok(())
    }

    /// Removes all elements and keeps the memory.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.count = 0;
    }

    /// The elements as a record borrows them.
    #[inline]
    pub fn array(&self) -> Array<'_, T::At<'_>> {
        Array { bytes: &self.bytes, of: PhantomData }
    }
}

impl<'a, T: Element<'a>> Field<'a> for Array<'a, T> {
    const NESTED: bool = T::NESTED;

    #[inline(always)]
    fn read(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        let count = reader.compact_len()?.ok_or(DecodeError::UnexpectedNull)?;
        Array::read(reader, count)
    }

    #[inline]
    fn write(&self, out: &mut impl Put) -> Result<(), EncodeError> {
        out.put_compact_len(Some(self.len()))?;
        out.put(self.bytes);
        Ok(())
    }

    #[inline]
    fn json(&self, out: &mut Vec<u8>) {
        crate::json::put_array(out, self.iter(), |out, item| item.json(out));
    }

    #[inline]
    fn visit_field(&self, name: &'static str, path: &TagPath<'_>, visit: &mut TagVisitor<'_>) {
        self.visit_items(name, path, visit);
    }

    #[cfg(test)]
    fn random(dice: &mut super::tests::Dice, out: &mut Vec<u8>) {
        let count = dice.below(5);
        out.put_compact_len(Some(count)).unwrap();
        for _ in 0..count {
            T::random(dice, out);
        }
    }
}

impl<'a, T: Element<'a>> Field<'a> for Option<Array<'a, T>> {
    const NESTED: bool = T::NESTED;

    #[inline(always)]
    fn read(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        match reader.compact_len()? {
            Some(count) => Ok(Some(Array::read(reader, count)?)),
            None => Ok(None),
        }
    }

    #[inline]
    fn write(&self, out: &mut impl Put) -> Result<(), EncodeError> {
        match self {
            Some(array) => array.write(out),
            None => out.put_compact_len(None),
        }
    }

    #[inline]
    fn json(&self, out: &mut Vec<u8>) {
        match self {
            Some(array) => array.json(out),
            None => crate::json::put_null(out),
        }
    }

    #[inline]
    fn visit_field(&self, name: &'static str, path: &TagPath<'_>, visit: &mut TagVisitor<'_>) {
        if let Some(array) = self {
            array.visit_items(name, path, visit);
        }
    }

    #[cfg(test)]
    fn random(dice: &mut super::tests::Dice, out: &mut Vec<u8>) {
        if dice.below(4) == 0 {
            return out.push(0);
        }
        Array::<'a, T>::random(dice, out);
    }
}
