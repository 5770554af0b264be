//! JSON as Kafka's generated converters print it (Jackson with its defaults), written by hand into
//! a byte vector, because formatting is most of the time that a dump takes.
//!
//! Strings are escaped as Jackson does (`"`, `\`, control characters; everything else stays UTF-8),
//! bytes are base64 with padding, uuids their 22 characters, doubles as `Double.toString` prints
//! them, NaN and the infinities as strings.

use crate::uuid::Uuid;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use std::io::Write as _;

/// Writes the fields of one JSON object: commas and names are its business.
///
/// ```
/// use kraftlog_codecs::json::{self, Object};
/// let mut out = Vec::new();
/// let mut object = Object::begin(&mut out);
/// json::put_int(object.field("brokerId"), 7);
/// json::put_str(object.field("name"), "foo");
/// object.end();
/// assert_eq!(out, br#"{"brokerId":7,"name":"foo"}"#);
/// ```
#[derive(Debug)]
pub struct Object<'o> {
    out: &'o mut Vec<u8>,
    empty: bool,
}

impl<'o> Object<'o> {
    /// Opens an object.
    #[inline]
    pub fn begin(out: &'o mut Vec<u8>) -> Object<'o> {
        out.push(b'{');
        Object { out, empty: true }
    }

    /// Writes a field's name, which must need no escaping; the caller writes one value behind it.
    #[inline]
    pub fn field(&mut self, name: &str) -> &mut Vec<u8> {
        if self.empty {
            self.empty = false;
            self.out.push(b'"');
        } else {
            self.out.extend_from_slice(b",\"");
        }
        self.out.extend_from_slice(name.as_bytes());
        self.out.extend_from_slice(b"\":");
        self.out
    }

    /// Closes the object.
    #[inline]
    pub fn end(self) {
        self.out.push(b'}');
    }
}

/// Writes an array, one value by one call of `value`.
#[inline]
pub fn put_array<T>(
    out: &mut Vec<u8>,
    items: impl IntoIterator<Item = T>,
    mut value: impl FnMut(&mut Vec<u8>, T),
) {
    out.push(b'[');
    let mut first = true;
    for item in items {
        if !first {
            out.push(b',');
        }
        first = false;
        value(out, item);
    }
    out.push(b']');
}

/// Writes `null`.
#[inline]
pub fn put_null(out: &mut Vec<u8>) {
    out.extend_from_slice(b"null");
}

/// Writes `true` or `false`.
#[inline]
pub fn put_bool(out: &mut Vec<u8>, value: bool) {
    out.extend_from_slice(if value { b"true" } else { b"false" });
}

/// Writes an integer.
#[inline]
pub fn put_int(out: &mut Vec<u8>, value: impl Into<i64>) {
    let value: i64 = value.into();
    if value < 0 {
        out.push(b'-');
    }
    put_digits(out, value.unsigned_abs());
}

/// Places that hold every `u64`.
const DIGITS_MAX: usize = 20;
/// All numbers of two digits, as text.
const PAIRS: [[u8; 2]; 100] = {
    let mut pairs = [[b'0'; 2]; 100];
    let mut number = 0u8;
    while number < 100 {
        #[expect(clippy::indexing_slicing, reason = "below the length; evaluated by the compiler")]
        {
            pairs[number as usize] = [b'0' + number / 10, b'0' + number % 10];
        }
        number += 1;
    }
    pairs
};

/// Two digits a step, from the last to the first; then one copy of fixed size and a cut, because a
/// copy of a few bytes whose number the compiler does not know is a call.
#[inline]
#[expect(clippy::cast_possible_truncation, reason = "remainders below a hundred")]
#[expect(clippy::indexing_slicing, reason = "20 places hold every u64, a remainder is below 100")]
fn put_digits(out: &mut Vec<u8>, mut value: u64) {
    if value < 10 {
        out.push(b'0' + value as u8);
        return;
    }
    let mut digits = [0u8; 2 * DIGITS_MAX];
    let mut at = DIGITS_MAX;
    while value >= 10 {
        at -= 2;
        [digits[at], digits[at + 1]] = PAIRS[(value % 100) as usize];
        value /= 100;
    }
    if value > 0 {
        at -= 1;
        digits[at] = b'0' + value as u8;
    }
    if let Some(text) = digits.get(at..).and_then(|rest| rest.first_chunk::<DIGITS_MAX>()) {
        out.extend_from_slice(text);
        out.truncate(out.len() - at);
    }
}

/// Writes a double as Java prints it: `1.0`, `1.0E10`, `4.9E-324`; NaN and infinities in quotes.
pub fn put_f64(out: &mut Vec<u8>, value: f64) {
    if value.is_nan() {
        out.extend_from_slice(b"\"NaN\"");
    } else if value.is_infinite() {
        out.extend_from_slice(if value > 0.0 { b"\"Infinity\"" } else { b"\"-Infinity\"" });
    } else {
        put_finite(out, value);
    }
}

fn put_finite(out: &mut Vec<u8>, value: f64) {
    if value.is_sign_negative() {
        out.push(b'-');
    }
    let magnitude = value.abs();
    if magnitude == 0.0 {
        out.extend_from_slice(b"0.0");
        return;
    }
    // The shortest digits that read back as the same double, in the form `d.ddde-n`. Where one
    // digit would do, Java takes the nearest of all decimals with two (`4.9E-324`, not `5E-324`).
    let mut text = Vec::with_capacity(32);
    let _ = write!(text, "{magnitude:e}");
    if text.get(1) == Some(&b'e') {
        text.clear();
        let _ = write!(text, "{magnitude:.1e}");
    }
    let mark = text.iter().position(|&b| b == b'e').unwrap_or(text.len());
    let (mantissa, exponent) = text.split_at_checked(mark).unwrap_or((&text, b""));
    let exponent: i32 = std::str::from_utf8(exponent.get(1..).unwrap_or_default())
        .ok()
        .and_then(|digits| digits.parse().ok())
        .unwrap_or(0);
    if (-3..7).contains(&exponent) {
        let digits: Vec<u8> = mantissa.iter().copied().filter(|&b| b != b'.').collect();
        put_plain(out, &digits, exponent);
    } else {
        out.extend_from_slice(mantissa);
        out.push(b'E');
        put_int(out, exponent);
    }
}

/// `digits` with the point behind the digit of weight 10^`exponent`'s successor: at least one digit
/// stands on either side of it.
fn put_plain(out: &mut Vec<u8>, digits: &[u8], exponent: i32) {
    // A one-digit mantissa was widened to two; "1.0" must not become "10".
    let digits = match digits {
        [first, b'0'] => std::slice::from_ref(first),
        _ => digits,
    };
    match usize::try_from(exponent) {
        Err(_) => {
            out.extend_from_slice(b"0.");
            out.extend((exponent + 1..0).map(|_| b'0'));
            out.extend_from_slice(digits);
        }
        Ok(exponent) => {
            let whole = exponent + 1;
            for place in 0..whole {
                out.push(digits.get(place).copied().unwrap_or(b'0'));
            }
            out.push(b'.');
            match digits.get(whole..) {
                Some(fraction) if !fraction.is_empty() => out.extend_from_slice(fraction),
                _ => out.push(b'0'),
            }
        }
    }
}

/// Writes bytes as base64 in quotes.
pub fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    out.push(b'"');
    let start = out.len();
    out.resize(start + bytes.len().div_ceil(3) * 4, 0);
    let written = out.get_mut(start..).and_then(|room| STANDARD.encode_slice(bytes, room).ok());
    out.truncate(start + written.unwrap_or(0));
    out.push(b'"');
}

/// Writes a uuid in quotes.
#[inline]
#[expect(clippy::indexing_slicing, reason = "constant places, and a table as long as its mask")]
pub fn put_uuid(out: &mut Vec<u8>, id: Uuid) {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let character = |group: u64| ALPHABET[(group & 63) as usize];
    let (high, low) = (id.msb(), id.lsb());
    // 22 groups of six bits: ten in the upper half, one across the middle, ten in the lower half,
    // and the last with two bits and four zeros.
    let mut text = [b'"'; 24];
    let mut place = 1;
    while place <= 10 {
        text[place] = character(high >> (64 - 6 * place));
        text[place + 11] = character(low >> (62 - 6 * place));
        place += 1;
    }
    text[11] = character(high << 2 | low >> 62);
    text[22] = character(low << 4);
    out.extend_from_slice(&text);
}

/// Writes a string in quotes.
#[inline]
pub fn put_str(out: &mut Vec<u8>, text: &str) {
    out.push(b'"');
    if text.bytes().any(needs_escape) {
        put_escaped(out, text.as_bytes());
    } else {
        out.extend_from_slice(text.as_bytes());
    }
    out.push(b'"');
}

#[inline]
const fn needs_escape(byte: u8) -> bool {
    byte < 0x20 || byte == b'"' || byte == b'\\'
}

#[cold]
fn put_escaped(out: &mut Vec<u8>, mut text: &[u8]) {
    while let Some(at) = text.iter().position(|&byte| needs_escape(byte)) {
        let Some((plain, [byte, rest @ ..])) = text.split_at_checked(at) else { break };
        out.extend_from_slice(plain);
        match byte {
            b'"' => out.extend_from_slice(b"\\\""),
            b'\\' => out.extend_from_slice(b"\\\\"),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            b'\t' => out.extend_from_slice(b"\\t"),
            0x08 => out.extend_from_slice(b"\\b"),
            0x0c => out.extend_from_slice(b"\\f"),
            _ => {
                let _ = write!(out, "\\u{byte:04X}");
            }
        }
        text = rest;
    }
    out.extend_from_slice(text);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(put: impl FnOnce(&mut Vec<u8>)) -> String {
        let mut out = Vec::new();
        put(&mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn doubles_look_as_java_prints_them() {
        // From the documentation of java.lang.Double.toString and jshell of JDK 21.
        for (value, expected) in [
            (0.0, "0.0"),
            (-0.0, "-0.0"),
            (1.0, "1.0"),
            (10.0, "10.0"),
            (0.001, "0.001"),
            (0.0123, "0.0123"),
            (9.999e-4, "9.999E-4"),
            (1048576.0, "1048576.0"),
            (1e7, "1.0E7"),
            (9999999.0, "9999999.0"),
            (12345678.9, "1.23456789E7"),
            (33.333333333333336, "33.333333333333336"),
            (100.5, "100.5"),
            (2e23, "2.0E23"),
            (f64::from_bits(1), "4.9E-324"),
            (f64::MAX, "1.7976931348623157E308"),
            (f64::NAN, "\"NaN\""),
            (f64::NEG_INFINITY, "\"-Infinity\""),
        ] {
            assert_eq!(text(|out| put_f64(out, value)), expected);
        }
    }

    #[test]
    fn strings_are_escaped_as_jackson_does() {
        assert_eq!(
            text(|out| put_str(out, "a\"b\\c/\u{0}\u{1f}\u{7f}\n\r\t\u{8}\u{c}é😀")),
            "\"a\\\"b\\\\c/\\u0000\\u001F\u{7f}\\n\\r\\t\\b\\fé😀\""
        );
    }

    #[test]
    fn integers_of_every_length_and_sign_are_right() {
        let mut power = 1i64;
        loop {
            for value in [power - 1, power, power + 1, -power] {
                assert_eq!(text(|out| put_int(out, value)), value.to_string());
            }
            let Some(next) = power.checked_mul(10) else { break };
            power = next;
        }
        for value in [i64::MIN, i64::MAX] {
            assert_eq!(text(|out| put_int(out, value)), value.to_string());
        }
    }

    #[test]
    fn uuids_and_bytes_agree_with_their_other_writers() {
        let id = Uuid::from_halves(0x1122_3344_5566_7788, 0x99aa_bbcc_ddee_ff00);
        assert_eq!(text(|out| put_uuid(out, id)), "\"ESIzRFVmd4iZqrvM3e7_AA\"");
        let id = Uuid::from_halves(0, u64::MAX);
        assert_eq!(text(|out| put_uuid(out, id)), format!("\"{id}\""));
        assert_eq!(text(|out| put_bytes(out, b"")), "\"\"");
        assert_eq!(text(|out| put_bytes(out, b"f")), "\"Zg==\"");
        assert_eq!(text(|out| put_bytes(out, b"foob")), "\"Zm9vYg==\"");
    }

    #[test]
    fn arrays_and_objects_have_their_commas() {
        let out = text(|out| {
            let mut object = Object::begin(out);
            put_array(object.field("a"), [1, 2], |out, v: i32| put_int(out, v));
            put_array(object.field("b"), [] as [i32; 0], put_int);
            put_null(object.field("c"));
            put_bool(object.field("d"), true);
            object.end();
        });
        assert_eq!(out, r#"{"a":[1,2],"b":[],"c":null,"d":true}"#);
    }
}
