//! The declarative form of the record files, and what it expands to.
//!
//! A record file is one [`schema!`] block. Each line is a field in Kafka's order:
//!
//! ```text
//! name: Type [since V] = default => tag T,
//! ```
//!
//! - `Option<..>` means nullable; the lifetime `'a` is that of the bytes decoded;
//! - `[since V]` is the first version that has the field, 0 if left out. When another version is
//!   read the field has its default; when another is written it must have it;
//! - `= default` is Kafka's default, that of the type (0, empty, null) if left out;
//! - `=> tag T` makes it a tagged field, written only if it differs from its default.
//!
//! Kafka's field name is the Rust name in lowerCamelCase, worked out by the compiler.
//! Decoding, encoding, JSON, defaults and the list of unknown tags come from the same lines.

use crate::cursor::{Put, Reader};
use crate::error::{DecodeError, EncodeError};
use crate::json;
use crate::tagged::UnknownTags;
use crate::uuid::Uuid;
use std::fmt;

/// Called with the place, the tag and the data of an unknown tagged field.
pub type TagVisitor<'v> = dyn FnMut(&TagPath<'_>, u32, &[u8]) + 'v;

/// Where in a record an unknown tagged field stands; displayed as `endPoints[0]`, the record itself
/// as nothing.
#[derive(Debug, Clone, Copy)]
pub enum TagPath<'p> {
    /// The record itself.
    Record,
    /// An element of an array field.
    Item {
        /// The struct that has the array.
        parent: &'p TagPath<'p>,
        /// Kafka's name of the array field.
        name: &'static str,
        /// Place in the array.
        index: usize,
    },
}

impl fmt::Display for TagPath<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TagPath::Record => Ok(()),
            TagPath::Item { parent: TagPath::Record, name, index } => write!(f, "{name}[{index}]"),
            TagPath::Item { parent, name, index } => write!(f, "{parent}.{name}[{index}]"),
        }
    }
}

/// A value that a field may have, in Kafka's compact encoding.
pub trait Field<'a>: Copy + PartialEq {
    /// True if structs with tag sections of their own may be inside.
    const NESTED: bool = false;
    /// Reads and checks the value.
    ///
    /// # Errors
    /// If the bytes are not such a value.
    fn read(reader: &mut Reader<'a>) -> Result<Self, DecodeError>;
    /// Appends the value.
    ///
    /// # Errors
    /// If a length is more than the encoding can say.
    fn write(&self, out: &mut impl Put) -> Result<(), EncodeError>;
    /// Appends the value as Kafka's JSON converters print it.
    fn json(&self, out: &mut Vec<u8>);
    /// Shows unknown tagged fields inside of a field of this name.
    #[inline]
    fn visit_field(&self, _name: &'static str, _path: &TagPath<'_>, _visit: &mut TagVisitor<'_>) {}
    /// Shows unknown tagged fields of this struct.
    #[inline]
    fn visit_tags(&self, _path: &TagPath<'_>, _visit: &mut TagVisitor<'_>) {}
    /// Appends a random value.
    #[cfg(test)]
    fn random(dice: &mut super::tests::Dice, out: &mut Vec<u8>);
}

macro_rules! plain {
    ($($ty:ty: $from:expr, $write:ident, $json:ident;)*) => {$(
        impl<'a> Field<'a> for $ty {
            #[inline(always)]
            fn read(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
                reader.array().map($from)
            }
            #[inline]
            fn write(&self, out: &mut impl Put) -> Result<(), EncodeError> {
                out.$write(*self);
                Ok(())
            }
            #[inline]
            fn json(&self, out: &mut Vec<u8>) {
                json::$json(out, *self);
            }
            #[cfg(test)]
            fn random(dice: &mut super::tests::Dice, out: &mut Vec<u8>) {
                dice.plain::<$ty>(out);
            }
        }
    )*};
}

plain! {
    // Anything but zero is true, as in Kafka.
    bool: |[byte]: [u8; 1]| byte != 0, put_bool, put_bool;
    i8: i8::from_be_bytes, put_i8, put_int;
    i16: i16::from_be_bytes, put_i16, put_int;
    u16: u16::from_be_bytes, put_u16, put_int;
    i32: i32::from_be_bytes, put_i32, put_int;
    i64: i64::from_be_bytes, put_i64, put_int;
    // Through the integer, which keeps every bit pattern.
    f64: |bits| f64::from_bits(u64::from_be_bytes(bits)), put_f64, put_f64;
    Uuid: Uuid, put_uuid, put_uuid;
}

impl<'a> Field<'a> for &'a str {
    #[inline]
    fn read(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        reader.string()
    }
    #[inline]
    fn write(&self, out: &mut impl Put) -> Result<(), EncodeError> {
        out.put_string(self)
    }
    #[inline]
    fn json(&self, out: &mut Vec<u8>) {
        json::put_str(out, self);
    }
    #[cfg(test)]
    fn random(dice: &mut super::tests::Dice, out: &mut Vec<u8>) {
        dice.string(out);
    }
}

impl<'a> Field<'a> for Option<&'a str> {
    #[inline]
    fn read(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        reader.nullable_string()
    }
    #[inline]
    fn write(&self, out: &mut impl Put) -> Result<(), EncodeError> {
        out.put_nullable_string(*self)
    }
    #[inline]
    fn json(&self, out: &mut Vec<u8>) {
        match self {
            Some(text) => json::put_str(out, text),
            None => json::put_null(out),
        }
    }
    #[cfg(test)]
    fn random(dice: &mut super::tests::Dice, out: &mut Vec<u8>) {
        dice.nullable_string(out);
    }
}

impl<'a> Field<'a> for &'a [u8] {
    #[inline]
    fn read(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        reader.bytes()
    }
    #[inline]
    fn write(&self, out: &mut impl Put) -> Result<(), EncodeError> {
        out.put_bytes(self)
    }
    #[inline]
    fn json(&self, out: &mut Vec<u8>) {
        json::put_bytes(out, self);
    }
    #[cfg(test)]
    fn random(dice: &mut super::tests::Dice, out: &mut Vec<u8>) {
        dice.bytes(out);
    }
}

/// Bytes of `,"camelCase":` for a `snake_case` name.
pub(super) const fn key_len(name: &str) -> usize {
    let (name, mut at, mut len) = (name.as_bytes(), 0, 4);
    while at < name.len() {
        #[expect(clippy::indexing_slicing, reason = "below its length; evaluated by the compiler")]
        if name[at] != b'_' {
            len += 1;
        }
        at += 1;
    }
    len
}

/// `,"camelCase":` for a `snake_case` name.
#[expect(clippy::indexing_slicing, reason = "evaluated by the compiler, which stops at an index too large")]
pub(super) const fn key<const N: usize>(name: &str) -> [u8; N] {
    let (name, mut out) = (name.as_bytes(), [b'"'; N]);
    out[0] = b',';
    let (mut from, mut to) = (0, 2);
    while from < name.len() {
        if name[from] == b'_' {
            from += 1;
            out[to] = name[from].to_ascii_uppercase();
        } else {
            out[to] = name[from];
        }
        from += 1;
        to += 1;
    }
    assert!(to + 2 == N);
    out[to + 1] = b':';
    out
}

/// The bare name inside of [`key`].
pub(super) const fn key_name(key: &'static [u8]) -> &'static str {
    let (_, name) = key.split_at(2);
    let (name, _) = name.split_at(name.len() - 2);
    match std::str::from_utf8(name) {
        Ok(name) => name,
        Err(_) => panic!("field names are ASCII"),
    }
}

/// Writes `{}` or makes of the first field's comma the opening brace, and closes the object.
#[inline]
pub(super) fn close_object(out: &mut Vec<u8>, start: usize) {
    match out.get_mut(start) {
        Some(comma) => *comma = b'{',
        None => out.push(b'{'),
    }
    out.push(b'}');
}

/// Shows the unknown fields of one struct.
pub(super) fn visit_unknown(tags: &UnknownTags<'_>, path: &TagPath<'_>, visit: &mut TagVisitor<'_>) {
    for (tag, data) in tags {
        visit(path, tag, data);
    }
}

/// Declares a record (`Name<'a> = key, TYPE_NAME, versions 0..=N { fields }`) or a nested struct
/// (`Name<'a> { fields }`); see the module for a field's form.
macro_rules! schema {
    (
        $(#[$doc:meta])*
        $name:ident<'a> = $key:literal, $type_name:ident, versions 0..=$last:literal { $($fields:tt)* }
    ) => {
        schema!(@struct [$(#[$doc])*] $name { $($fields)* });

        impl<'a> $name<'a> {
            /// Kafka's number for this record.
            pub const API_KEY: i16 = $key;
            /// Kafka's name for this record in `MetadataRecordType`.
            pub const TYPE_NAME: &'static str = stringify!($type_name);
            /// The highest version known; the lowest is 0.
            pub const HIGHEST_VERSION: i16 = $last;

            /// Reads a body that must fill `body`, tags and all, and does not mind its speed.
            #[inline(never)]
            pub(crate) fn read_whole(
                body: $crate::cursor::Reader<'a>,
                version: i16,
            ) -> Result<Self, $crate::error::DecodeError> {
                let mut reader = body;
                let value = $name::read_with_tags(&mut reader, version)?;
                if !reader.is_empty() {
                    return Err($crate::error::DecodeError::TrailingBytes);
                }
                Ok(value)
            }
        }
    };
    ($(#[$doc:meta])* $name:ident<'a> { $($fields:tt)* }) => {
        schema!(@struct [$(#[$doc])*] $name { $($fields)* });

        impl<'a> $crate::metadata::schema::Field<'a> for $name<'a> {
            const NESTED: bool = true;

            #[inline]
            fn read(
                reader: &mut $crate::cursor::Reader<'a>,
            ) -> Result<Self, $crate::error::DecodeError> {
                $name::read_with_tags(reader, 0)
            }

            #[inline]
            fn write(
                &self,
                out: &mut impl $crate::cursor::Put,
            ) -> Result<(), $crate::error::EncodeError> {
                self.write_body(0, out)
            }

            #[inline]
            fn json(&self, out: &mut Vec<u8>) {
                self.write_json(0, out);
            }

            fn visit_tags(
                &self,
                path: &$crate::metadata::schema::TagPath<'_>,
                visit: &mut $crate::metadata::schema::TagVisitor<'_>,
            ) {
                self.visit_unknown_tags(path, visit);
            }

            #[cfg(test)]
            fn random(dice: &mut $crate::metadata::tests::Dice, out: &mut Vec<u8>) {
                $name::random_body(dice, 0, out);
            }
        }

        impl<'a> $crate::metadata::array::Element<'a> for $name<'a> {
            const WIDTH: usize = 0;
            type At<'x> = $name<'x>;
        }
    };
    (@struct [$(#[$doc:meta])*] $name:ident {
        $(
            $(#[$field_doc:meta])*
            $field:ident: $ty:ty $([since $since:literal])? $(= $default:expr)? $(=> tag $tag:literal)?
        ),* $(,)?
    }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq)]
        pub struct $name<'a> {
            $($(#[$field_doc])* pub $field: $ty,)*
            /// Tagged fields that this schema does not know, kept bit for bit.
            pub unknown_tags: $crate::tagged::UnknownTags<'a>,
        }

        impl Default for $name<'_> {
            /// All fields with Kafka's defaults.
            #[inline]
            fn default() -> Self {
                $name {
                    $($field: schema!(@default $($default)?),)*
                    unknown_tags: $crate::tagged::UnknownTags::EMPTY,
                }
            }
        }

        #[allow(
            unused_mut,
            unused_variables,
            unused_imports,
            unused_comparisons,
            clippy::reversed_empty_ranges,
            reason = "not every schema has every kind of field"
        )]
        impl<'a> $name<'a> {
            /// One above the highest tag of the schema. Known tags have no holes, see `tagged`.
            const KNOWN_TAGS: u32 = {
                let mask = 0u32 $($(| (1 << $tag))?)*;
                assert!(mask & (mask + 1) == 0);
                mask.count_ones()
            };

            /// The fields of a body that ends with an empty tag section, given to `make` in registers;
            /// `None` if it ends in another way. This is the hot path of every start: a value that
            /// is first put together in memory and then moved into its enum costs twice as much.
            #[inline(always)]
            #[allow(dead_code, reason = "nested structs are read with their tags at once")]
            pub(crate) fn read_untagged<T>(
                body: $crate::cursor::Reader<'a>,
                version: i16,
                make: impl FnOnce(Self) -> T,
            ) -> Result<Option<T>, $crate::error::DecodeError> {
                let mut body = body;
                let reader = &mut body;
                $(let $field: $ty = schema!(@read reader, version, $ty, [$($default)?] [$($since)?] [$($tag)?]);)*
                if reader.rest() == [0] {
                    return Ok(Some(make($name { $($field,)* unknown_tags: $crate::tagged::UnknownTags::EMPTY })));
                }
                Ok(None)
            }

            fn read_with_tags(
                reader: &mut $crate::cursor::Reader<'a>,
                version: i16,
            ) -> Result<Self, $crate::error::DecodeError> {
                $(let $field: $ty = schema!(@read reader, version, $ty, [$($default)?] [$($since)?] [$($tag)?]);)*
                let mut value = $name { $($field,)* unknown_tags: $crate::tagged::UnknownTags::EMPTY };
                value.unknown_tags = $crate::tagged::read(reader, Self::KNOWN_TAGS, |tag, data| {
                    $(schema!(@read_tag value, tag, data, version, $field, $ty, [$($since)?] [$($tag)?]);)*
                    Err($crate::error::DecodeError::TagVersion)
                })?;
                Ok(value)
            }

            pub(crate) fn write_body(
                &self,
                version: i16,
                out: &mut impl $crate::cursor::Put,
            ) -> Result<(), $crate::error::EncodeError> {
                use $crate::metadata::schema::Field as _;
                let defaults = Self::default();
                let mut known = 0u32;
                $(schema!(@write self, defaults, out, version, known, $name, $field, [$($since)?] [$($tag)?]);)*
                $crate::tagged::put_count(out, known, Self::KNOWN_TAGS, &self.unknown_tags)?;
                if known > 0 {
                    for tag in 0..Self::KNOWN_TAGS {
                        match tag {
                            $($(
                                $tag if self.$field != defaults.$field => {
                                    let mut size = $crate::cursor::Sizer::default();
                                    self.$field.write(&mut size)?;
                                    $crate::tagged::put_field_head(out, tag, size.0)?;
                                    self.$field.write(out)?;
                                }
                            )?)*
                            _ => {}
                        }
                    }
                }
                $crate::tagged::put_unknown(out, &self.unknown_tags);
                Ok(())
            }

            /// Appends the fields as Kafka's JSON converter for this `version` prints them: in the
            /// order of the schema, tagged ones only if they differ from their default. Unknown
            /// tagged fields and fields that the version lacks are left out.
            pub fn write_json(&self, version: i16, out: &mut Vec<u8>) {
                use $crate::metadata::schema::Field as _;
                let defaults = Self::default();
                let start = out.len();
                $(
                    if version >= schema!(@since $($since)?) && schema!(@shown self, defaults, $field, [$($tag)?]) {
                        const KEY: &[u8] = schema!(@key $field);
                        out.extend_from_slice(KEY);
                        self.$field.json(out);
                    }
                )*
                $crate::metadata::schema::close_object(out, start);
            }

            /// Shows every tagged field that the schema does not know, nested structs first come
            /// after the struct that has them.
            pub(crate) fn visit_unknown_tags(
                &self,
                path: &$crate::metadata::schema::TagPath<'_>,
                visit: &mut $crate::metadata::schema::TagVisitor<'_>,
            ) {
                use $crate::metadata::schema::{Field, visit_unknown};
                visit_unknown(&self.unknown_tags, path, visit);
                $(
                    if <$ty as Field<'a>>::NESTED {
                        const NAME: &str = $crate::metadata::schema::key_name(schema!(@key $field));
                        self.$field.visit_field(NAME, path, visit);
                    }
                )*
            }

            /// Appends a random body as Kafka would write it, unknown tags among its fields.
            #[cfg(test)]
            pub(crate) fn random_body(
                dice: &mut $crate::metadata::tests::Dice,
                version: i16,
                out: &mut Vec<u8>,
            ) {
                use $crate::metadata::schema::Field;
                $(schema!(@random dice, version, $ty, out, [$($since)?] [$($tag)?]);)*
                let mut fields: Vec<(u32, Vec<u8>)> = Vec::new();
                $($(
                    let mut data = Vec::new();
                    <$ty as Field<'_>>::random(dice, &mut data);
                    // The lifetime of the type is any, so a test's few bytes are given away.
                    let data: &'static [u8] = data.leak();
                    let read = <$ty as Field<'_>>::read(&mut $crate::cursor::Reader::new(data)).unwrap();
                    let is_default = read == $name::default().$field;
                    if schema!(@has_field version, [$field] $name) && !is_default {
                        fields.push(($tag, data.to_vec()));
                    }
                )?)*
                fields.sort();
                dice.section(fields, Self::KNOWN_TAGS, out);
            }

            #[cfg(test)]
            #[allow(unreachable_code, dead_code, reason = "only schemas with tagged fields ask")]
            fn since(field: &str) -> i16 {
                $(if field == stringify!($field) {
                    return schema!(@since $($since)?);
                })*
                0
            }
        }
    };
    (@random $dice:ident, $version:ident, $ty:ty, $out:ident, [$($since:literal)?] [$tag:literal]) => {};
    (@random $dice:ident, $version:ident, $ty:ty, $out:ident, [$($since:literal)?] []) => {
        if $version >= schema!(@since $($since)?) {
            <$ty as Field<'_>>::random($dice, $out);
        }
    };
    (@has_field $version:ident, [$field:ident] $name:ident) => { $version >= $name::since(stringify!($field)) };
    (@default) => { Default::default() };
    (@default $default:expr) => { $default };
    (@since) => { 0 };
    (@since $since:literal) => { $since };
    (@key $field:ident) => {
        &$crate::metadata::schema::key::<{ $crate::metadata::schema::key_len(stringify!($field)) }>(
            stringify!($field),
        )
    };
    (@shown $self:ident, $defaults:ident, $field:ident, []) => { true };
    (@shown $self:ident, $defaults:ident, $field:ident, [$tag:literal]) => { $self.$field != $defaults.$field };
    // A tagged field is read with its section.
    (@read $reader:ident, $version:ident, $ty:ty, [$($default:expr)?] [$($since:literal)?] [$tag:literal]) => {
        schema!(@default $($default)?)
    };
    (@read $reader:ident, $version:ident, $ty:ty, [$($default:expr)?] [] []) => {
        <$ty as $crate::metadata::schema::Field<'a>>::read($reader)?
    };
    (@read $reader:ident, $version:ident, $ty:ty, [$($default:expr)?] [$since:literal] []) => {
        if $version >= $since {
            <$ty as $crate::metadata::schema::Field<'a>>::read($reader)?
        } else {
            schema!(@default $($default)?)
        }
    };
    (@read_tag $value:ident, $seen:ident, $data:ident, $version:ident, $field:ident, $ty:ty,
     [$($since:literal)?] []) => {};
    (@read_tag $value:ident, $seen:ident, $data:ident, $version:ident, $field:ident, $ty:ty,
     [$($since:literal)?] [$tag:literal]) => {
        if $seen == $tag && $version >= schema!(@since $($since)?) {
            $value.$field = <$ty as $crate::metadata::schema::Field<'a>>::read($data)?;
            return Ok(());
        }
    };
    (@write $self:ident, $defaults:ident, $out:ident, $version:ident, $known:ident, $name:ident, $field:ident,
     [] []) => {
        $self.$field.write($out)?;
    };
    (@write $self:ident, $defaults:ident, $out:ident, $version:ident, $known:ident, $name:ident, $field:ident,
     [$since:literal] []) => {
        if $version >= $since {
            $self.$field.write($out)?;
        } else if $self.$field != $defaults.$field {
            return Err(schema!(@unsupported $version, $name, $field));
        }
    };
    (@write $self:ident, $defaults:ident, $out:ident, $version:ident, $known:ident, $name:ident, $field:ident,
     [$($since:literal)?] [$tag:literal]) => {
        if $self.$field != $defaults.$field {
            if $version < schema!(@since $($since)?) {
                return Err(schema!(@unsupported $version, $name, $field));
            }
            $known += 1;
        }
    };
    (@unsupported $version:ident, $name:ident, $field:ident) => {{
        const NAME: &str = $crate::metadata::schema::key_name(schema!(@key $field));
        $crate::error::EncodeError::UnsupportedField { record: stringify!($name), field: NAME, version: $version }
    }};
}

pub(super) use schema;
