//! How a value from a file is shown in an error: in quotes, control characters escaped, cut when long.
//!
//! A blank at the end of an id or a carriage return in it must be visible, and a damaged file must
//! not spill its bytes over a terminal.

use std::fmt::{self, Write as _};

/// Longest text that is shown in full, in characters.
const SHOWN_CHARS_MAX: usize = 200;

/// Shows `self.0` in double quotes, with control characters, quotes and backslashes escaped.
#[derive(Debug, Clone, Copy)]
pub struct Quoted<'a>(pub &'a str);

impl fmt::Display for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_char('"')?;
        let mut chars = self.0.chars();
        for c in chars.by_ref().take(SHOWN_CHARS_MAX) {
            match c {
                '"' | '\\' => write!(f, "\\{c}")?,
                '\n' => f.write_str("\\n")?,
                '\r' => f.write_str("\\r")?,
                '\t' => f.write_str("\\t")?,
                c if c.is_control() => write!(f, "\\u{{{:x}}}", u32::from(c))?,
                c => f.write_char(c)?,
            }
        }
        f.write_char('"')?;
        match chars.as_str().len() {
            0 => Ok(()),
            rest => write!(f, " and {rest} more bytes"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blanks_show_and_control_characters_are_escaped() {
        assert_eq!(Quoted("1 ").to_string(), "\"1 \"");
        assert_eq!(Quoted("a\r\n\t\0\u{1b}\"\\é").to_string(), r#""a\r\n\t\u{0}\u{1b}\"\\é""#);
    }

    #[test]
    fn long_text_is_cut_and_says_so() {
        let shown = Quoted(&"x".repeat(100_000)).to_string();
        assert!(shown.len() < 250 && shown.ends_with("\" and 99800 more bytes"), "{shown}");
    }
}
