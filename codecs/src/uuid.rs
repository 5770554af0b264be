//! Kafka's UUID: 16 bytes, text in base64url without padding (22 characters).

use crate::error::DecodeError;
use base64::Engine as _;
use base64::alphabet::URL_SAFE;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use std::fmt;
use std::str::FromStr;

/// Like Java's decoder: padding may be there or not, surplus low bits are ignored.
const BASE64_URL: GeneralPurpose = GeneralPurpose::new(
    &URL_SAFE,
    GeneralPurposeConfig::new()
        .with_encode_padding(false)
        .with_decode_padding_mode(DecodePaddingMode::Indifferent)
        .with_decode_allow_trailing_bits(true),
);

/// A UUID as Kafka keeps it (`org.apache.kafka.common.Uuid`); ordered by its bytes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
#[repr(transparent)]
pub struct Uuid(pub [u8; 16]);

impl Uuid {
    /// All zero: "no id"; as a replica's directory MIGRATING.
    pub const ZERO: Uuid = Uuid([0; 16]);
    /// 0/1: id of the metadata topic; as a directory UNASSIGNED.
    pub const ONE: Uuid = Uuid::from_halves(0, 1);
    /// The topic id of `__cluster_metadata`.
    pub const METADATA_TOPIC: Uuid = Uuid::ONE;
    /// 0/2: as a directory LOST.
    pub const LOST_DIR: Uuid = Uuid::from_halves(0, 2);

    /// From the two 64-bit halves, most significant first.
    #[allow(clippy::indexing_slicing, reason = "constant indices below 16")]
    pub const fn from_halves(msb: u64, lsb: u64) -> Uuid {
        Uuid((((msb as u128) << 64) | lsb as u128).to_be_bytes())
    }

    /// The most significant 64 bits.
    pub const fn msb(&self) -> u64 {
        (u128::from_be_bytes(self.0) >> 64) as u64
    }

    /// The least significant 64 bits.
    pub const fn lsb(&self) -> u64 {
        #[expect(clippy::cast_possible_truncation, reason = "the lower half is meant")]
        let half = u128::from_be_bytes(self.0) as u64;
        half
    }

    /// True for ids that no directory may have: the most significant half is 0 and the least
    /// significant, *as a signed number*, below 100 (`DirectoryId.reserved`).
    pub const fn is_reserved_directory(&self) -> bool {
        self.msb() == 0 && self.lsb().cast_signed() < 100
    }

    /// Draws ids from `random` until one has a text that survives a command line and is not
    /// reserved: it never begins with `-` (`Uuid.randomUuid`, `DirectoryId.random`).
    pub fn random(mut random: impl FnMut() -> u64) -> Uuid {
        loop {
            let id = Uuid::from_halves(random(), random());
            if !id.is_reserved_directory() && !id.to_string().starts_with('-') {
                return id;
            }
        }
    }
}

impl fmt::Display for Uuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = [0u8; 22];
        let len = BASE64_URL.encode_slice(self.0, &mut text).map_err(|_| fmt::Error)?;
        let text = text.get(..len).and_then(|t| std::str::from_utf8(t).ok()).ok_or(fmt::Error)?;
        f.write_str(text)
    }
}

impl fmt::Debug for Uuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for Uuid {
    type Err = DecodeError;

    /// Accepts what `Uuid.fromString` accepts: at most 24 characters, `==` padding or none, any low
    /// bits in the last character.
    fn from_str(text: &str) -> Result<Uuid, DecodeError> {
        if text.len() > 24 {
            return Err(DecodeError::BadText);
        }
        if text.len() == 23 {
            // A single `=` is no correct padding for 16 bytes.
            return Err(DecodeError::BadText);
        }
        let bytes = BASE64_URL.decode(text).map_err(|_| DecodeError::BadText)?;
        Ok(Uuid(bytes.try_into().map_err(|_| DecodeError::BadText)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_base64url_without_padding() {
        let id = Uuid::from_halves(0x1122_3344_5566_7788, 0x99aa_bbcc_ddee_ff00);
        assert_eq!(id.to_string(), "ESIzRFVmd4iZqrvM3e7_AA");
        assert_eq!("ESIzRFVmd4iZqrvM3e7_AA".parse(), Ok(id));
        assert_eq!("ESIzRFVmd4iZqrvM3e7_AA==".parse(), Ok(id));
        assert_eq!(Uuid::ONE.to_string(), "AAAAAAAAAAAAAAAAAAAAAQ");
        assert_eq!("AAAAAAAAAAAAAAAAAAAAAR".parse(), Ok(Uuid::ONE), "low bits are ignored");
    }

    #[test]
    fn bad_text_is_refused() {
        for text in [
            "",
            "A",
            "ESIzRFVmd4iZqrvM3e7_AA=",
            "ESIzRFVmd4iZqrvM3e7+AA",
            "ESIzRFVmd4iZqrvM3e7_AAAAA",
            "ESIzRFVmd4iZqrvM3e7_A A",
        ] {
            assert_eq!(text.parse::<Uuid>(), Err(DecodeError::BadText), "{text:?}");
        }
    }

    #[test]
    fn reserved_is_a_signed_compare() {
        assert!(Uuid::from_halves(0, 99).is_reserved_directory());
        assert!(Uuid::from_halves(0, u64::MAX).is_reserved_directory());
        assert!(!Uuid::from_halves(0, 100).is_reserved_directory());
        assert!(!Uuid::from_halves(1, 0).is_reserved_directory());
    }
}
