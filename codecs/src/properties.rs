//! Text of `java.util.Properties`: `meta.properties` and `server.properties`.
//!
//! Reading follows `Properties.load(InputStream)` of the JDK to the byte: Latin-1, continued lines,
//! escapes. Writing follows `Properties.store(Writer, ..)` over a UTF-8 writer, as Kafka calls it: no
//! `\u` escapes in keys and values, so text that is not ASCII does not survive a round trip. Keep
//! values ASCII. The clock stays outside: the line with the date is given by the caller.

use std::collections::BTreeMap;

/// Keys and values, sorted by key. Of a repeated key the last value counts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Properties {
    entries: BTreeMap<String, String>,
}

/// Why the text is no properties file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PropertiesError {
    /// `\u` without four hexadecimal digits behind it.
    #[error("line {line}: \\u is not followed by four hexadecimal digits")]
    BadEscape {
        /// Number of the line on which the entry begins, from 1.
        line: usize,
    },
}

impl Properties {
    /// Reads the bytes of a file. A lone UTF-16 surrogate, which only an escape can make, becomes U+FFFD.
    ///
    /// # Errors
    /// [`PropertiesError::BadEscape`]; everything else is some properties file.
    pub fn parse(bytes: &[u8]) -> Result<Properties, PropertiesError> {
        let mut entries = BTreeMap::new();
        let mut lines = LogicalLines { bytes, at: 0, line: 1, first_line: 1, content: Vec::new() };
        while lines.next_line() {
            let (key, value) = split(&lines.content);
            let bad_escape = || PropertiesError::BadEscape { line: lines.first_line };
            let key = unescape(key).ok_or_else(bad_escape)?;
            let value = unescape(value).ok_or_else(bad_escape)?;
            entries.insert(key, value);
        }
        Ok(Properties { entries })
    }

    /// The value of `key`.
    pub fn get(&self, key: &str) -> Option<&str> {
        self.entries.get(key).map(String::as_str)
    }

    /// Sets the value of `key`.
    pub fn set(&mut self, key: impl Into<String>, value: impl Into<String>) {
        self.entries.insert(key.into(), value.into());
    }

    /// All keys and values, sorted by key.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.entries.iter().map(|(key, value)| (key.as_str(), value.as_str()))
    }

    /// Number of keys.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// True without any key.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
}

impl<K: Into<String>, V: Into<String>> FromIterator<(K, V)> for Properties {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(iter: I) -> Self {
        let entries = iter.into_iter().map(|(key, value)| (key.into(), value.into())).collect();
        Properties { entries }
    }
}

/// Joins physical lines to logical ones and drops comments: the JDK's `LineReader`, state for state,
/// because its corners (a lone backslash before a comment or at the end) follow from its states.
struct LogicalLines<'a> {
    bytes: &'a [u8],
    at: usize,
    line: usize,
    first_line: usize,
    content: Vec<u8>,
}

impl LogicalLines<'_> {
    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn take(&mut self) -> Option<u8> {
        let byte = self.peek()?;
        self.at += 1;
        if byte == b'\n' || (byte == b'\r' && self.peek() != Some(b'\n')) {
            self.line += 1;
        }
        Some(byte)
    }

    /// Puts the next logical line into `content`; false at the end.
    fn next_line(&mut self) -> bool {
        self.content.clear();
        let mut skip_white = true;
        let mut continued = false;
        let mut backslash = false;
        loop {
            let Some(byte) = self.take() else {
                if self.content.is_empty() {
                    return false;
                }
                if backslash {
                    self.content.pop();
                }
                return true;
            };
            if skip_white {
                if is_white(byte) || (!continued && is_line_end(byte)) {
                    continue;
                }
                skip_white = false;
                continued = false;
            }
            if self.content.is_empty() && matches!(byte, b'#' | b'!') {
                while !self.take().is_none_or(is_line_end) {}
                skip_white = true;
                continue;
            }
            if !is_line_end(byte) {
                if self.content.is_empty() {
                    self.first_line = self.line;
                }
                self.content.push(byte);
                backslash = byte == b'\\' && !backslash;
                continue;
            }
            if self.content.is_empty() {
                skip_white = true;
                continue;
            }
            if !backslash {
                return true;
            }
            self.content.pop();
            if self.peek().is_none() {
                return true;
            }
            skip_white = true;
            continued = true;
            backslash = false;
            if byte == b'\r' && self.peek() == Some(b'\n') {
                self.take();
            }
        }
    }
}

fn is_white(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | 0x0c)
}

fn is_line_end(byte: u8) -> bool {
    matches!(byte, b'\n' | b'\r')
}

/// Splits a logical line at the first separator that no backslash escapes.
fn split(line: &[u8]) -> (&[u8], &[u8]) {
    let mut backslash = false;
    let key_len = line.iter().position(|&byte| {
        let separates = !backslash && (is_white(byte) || matches!(byte, b'=' | b':'));
        backslash = byte == b'\\' && !backslash;
        separates
    });
    let Some((key, rest)) = key_len.and_then(|len| line.split_at_checked(len)) else {
        return (line, &[]);
    };
    let value = skip_white(rest);
    match value.split_first() {
        Some((b'=' | b':', value)) => (key, skip_white(value)),
        _ => (key, value),
    }
}

fn skip_white(text: &[u8]) -> &[u8] {
    let white = text.iter().take_while(|&&byte| is_white(byte)).count();
    text.get(white..).unwrap_or_default()
}

/// Resolves escapes; `None` for a bad `\u`.
fn unescape(text: &[u8]) -> Option<String> {
    if text.is_ascii() && !text.contains(&b'\\') {
        return Some(String::from_utf8_lossy(text).into_owned());
    }
    // UTF-16, because two escapes in a row may be the halves of one character.
    let mut units: Vec<u16> = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((&byte, behind)) = rest.split_first() {
        rest = behind;
        let Some((&escaped, behind)) = rest.split_first().filter(|_| byte == b'\\') else {
            units.push(u16::from(byte));
            continue;
        };
        rest = behind;
        units.push(match escaped {
            b't' => u16::from(b'\t'),
            b'n' => u16::from(b'\n'),
            b'r' => u16::from(b'\r'),
            b'f' => 0x0c,
            b'u' => {
                let (digits, behind) = rest.split_first_chunk::<4>()?;
                rest = behind;
                let mut unit = 0;
                for digit in digits {
                    unit = unit << 4 | u16::try_from(char::from(*digit).to_digit(16)?).ok()?;
                }
                unit
            }
            other => u16::from(other),
        });
    }
    Some(String::from_utf16_lossy(&units))
}

/// The bytes of a file with `entries` in the order given, below a comment and the line with the date
/// (see [`java_date_utc`]). Kafka passes an empty comment, which gives the line `#`.
pub fn store<'a>(
    comment: &str,
    date: &str,
    entries: impl IntoIterator<Item = (&'a str, &'a str)>,
) -> Vec<u8> {
    let mut out = String::new();
    push_comment(&mut out, comment);
    push_comment(&mut out, date);
    for (key, value) in entries {
        push_escaped(&mut out, key, true);
        out.push('=');
        push_escaped(&mut out, value, false);
        out.push('\n');
    }
    out.into_bytes()
}

/// Every line of a comment begins with `#` or `!`, whatever the text.
fn push_comment(out: &mut String, comment: &str) {
    out.push('#');
    let mut chars = comment.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\n' | '\r' => {
                if c == '\r' {
                    chars.next_if_eq(&'\n');
                }
                out.push('\n');
                if !matches!(chars.peek(), Some('#' | '!')) {
                    out.push('#');
                }
            }
            c if c > '\u{ff}' => {
                for unit in c.encode_utf16(&mut [0; 2]) {
                    out.push_str(&format!("\\u{unit:04X}"));
                }
            }
            c => out.push(c),
        }
    }
    out.push('\n');
}

fn push_escaped(out: &mut String, text: &str, is_key: bool) {
    for (at, c) in text.char_indices() {
        match c {
            ' ' if is_key || at == 0 => out.push_str("\\ "),
            '\t' => out.push_str("\\t"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\u{c}' => out.push_str("\\f"),
            '\\' | '=' | ':' | '#' | '!' => {
                out.push('\\');
                out.push(c);
            }
            c => out.push(c),
        }
    }
}

/// A time in milliseconds since 1970 as Java's `Date.toString` shows it in UTC, such as
/// `Mon Nov 30 20:31:57 UTC 2026`. Equal to Java's from 15 October 1582 on.
pub fn java_date_utc(epoch_ms: i64) -> String {
    const DAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
    const MONTHS: [&str; 12] =
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let seconds = epoch_ms.div_euclid(1000);
    let (days, second) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    // Years that begin in March: the leap day is the last one, and months follow one formula.
    let shifted = days + 719_468;
    let (era, day_of_era) = (shifted.div_euclid(146_097), shifted.rem_euclid(146_097));
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month_index = (month_from_march + 2) % 12;
    let year = era * 400 + year_of_era + i64::from(month_index < 2);
    let name = |names: &[&'static str], index: i64| {
        usize::try_from(index).ok().and_then(|index| names.get(index)).copied().unwrap_or_default()
    };
    format!(
        "{} {} {day:02} {:02}:{:02}:{:02} UTC {year}",
        name(&DAYS, days.rem_euclid(7)),
        name(&MONTHS, month_index),
        second / 3600,
        second / 60 % 60,
        second % 60,
    )
}

#[cfg(test)]
#[path = "properties_tests.rs"]
mod tests;
