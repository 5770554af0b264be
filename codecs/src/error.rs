//! Why bytes could not be decoded.
//!
//! [`DecodeError`] is one byte: the hot loops return it in a register. Callers that know the file,
//! position or offset wrap it in an error of their own that names them.

/// What is wrong with the bytes. `Display` finishes the sentence "the bytes are bad: ...".
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
#[repr(u8)]
pub enum DecodeError {
    /// A value claims more bytes than there are.
    #[error("fewer bytes than a length or type asks for")]
    Truncated,
    /// A varint has no end within its width, or bits beyond it.
    #[error("varint does not end or does not fit")]
    BadVarint,
    /// A string is not UTF-8.
    #[error("string is not valid UTF-8")]
    BadUtf8,
    /// A string is longer than 32,767 bytes.
    #[error("string is longer than 32767 bytes")]
    StringTooLong,
    /// Null where the schema forbids it.
    #[error("null in a field that cannot be null")]
    UnexpectedNull,
    /// An array claims more elements than there are bytes left.
    #[error("array claims more elements than there are bytes")]
    ArrayTooLong,
    /// Tags are not strictly ascending.
    #[error("tagged fields are not in ascending order")]
    TagOrder,
    /// A known tag's declared size disagrees with its content.
    #[error("size of a tagged field disagrees with its content")]
    TagSize,
    /// A tag that the schema knows, but not at this version.
    #[error("tagged field does not exist at this version")]
    TagVersion,
    /// Bytes remain behind a value that should fill its frame.
    #[error("bytes left over behind the value")]
    TrailingBytes,
    /// A number that must not be negative is.
    #[error("negative length or count")]
    NegativeLength,
    /// The frame of a metadata record has a version other than 1.
    #[error("metadata record frame version is not 1")]
    BadFrameVersion,
    /// An api key or record version above 32,767.
    #[error("metadata record type or version above 32767")]
    BadRecordType,
    /// A batch's declared length is below the smallest possible.
    #[error("batch length is below the minimum")]
    BatchTooShort,
    /// A batch has a magic byte other than 2.
    #[error("batch magic is not 2")]
    BadMagic,
    /// The stored CRC-32C does not match the bytes.
    #[error("checksum mismatch")]
    BadCrc,
    /// The compression id is none of the known ones.
    #[error("unknown compression id")]
    BadCompression,
    /// A batch is compressed, which KRaft forbids.
    #[error("batch is compressed")]
    Compressed,
    /// The batch is compressed with a codec that this build leaves out.
    #[error("compression codec is not built in")]
    CompressionNotBuiltIn,
    /// A compressed stream is damaged.
    #[error("compressed data is damaged")]
    BadCompressedData,
    /// Decompressed bytes would exceed the bound given.
    #[error("decompressed data exceeds its bound")]
    DecompressedTooLong,
    /// The record count is zero, negative or does not match the records there.
    #[error("record count does not match the records")]
    BadRecordCount,
    /// The last offset delta is not the record count minus one.
    #[error("last offset delta does not match the record count")]
    BadLastOffsetDelta,
    /// A record's length is not positive or does not match its content.
    #[error("record length does not match its content")]
    BadRecordLength,
    /// A record's offset delta is not its place in the batch.
    #[error("offset delta is not the record's place in its batch")]
    BadOffsetDelta,
    /// A KRaft record has a timestamp delta.
    #[error("timestamp delta is not zero")]
    BadTimestampDelta,
    /// A KRaft record has headers.
    #[error("record has headers")]
    HasHeaders,
    /// A data record has a key, or a control record has none.
    #[error("record key is present or absent against the rules")]
    BadKey,
    /// A record has no value.
    #[error("record value is missing or empty")]
    BadValue,
    /// An offset is negative or would overflow.
    #[error("offset is negative or too large")]
    BadOffset,
    /// A field has a value outside its range.
    #[error("value outside its range")]
    BadFieldValue,
    /// Text does not have the form asked for.
    #[error("text does not have the expected form")]
    BadText,
}

/// Why a value could not be encoded.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EncodeError {
    /// A field has a value that the version to be written cannot hold.
    #[error("{record} version {version} has no field {field}, and its value is not the default")]
    UnsupportedField {
        /// Name of the record.
        record: &'static str,
        /// Name of the field.
        field: &'static str,
        /// Version asked for.
        version: i16,
    },
    /// The record has no such version.
    #[error("{record} has no version {version}")]
    UnsupportedVersion {
        /// Name of the record.
        record: &'static str,
        /// Version asked for.
        version: i16,
    },
    /// A string is longer than 32,767 bytes.
    #[error("string of {len} bytes is longer than 32767")]
    StringTooLong {
        /// Its length in bytes.
        len: usize,
    },
    /// A value is longer than its length field can say.
    #[error("value of {len} bytes or elements is too long")]
    TooLong {
        /// Its length.
        len: usize,
    },
    /// Unknown tagged fields kept from reading do not fit between the known ones.
    #[error("unknown tagged fields are not in ascending order or use a known tag")]
    TagOrder,
}
