//! Lines of a text file as Java's `BufferedReader.readLine` cuts them: at LF, CR or CR LF.

/// The lines of `text`; a line end at the very end opens no further line.
pub(crate) fn lines(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let Some((line, _)) = rest.split_once(['\n', '\r']) else {
            return Some(std::mem::take(&mut rest));
        };
        let behind = rest.get(line.len()..).unwrap_or_default();
        rest = behind.strip_prefix("\r\n").or_else(|| behind.get(1..)).unwrap_or_default();
        Some(line)
    })
}

#[cfg(test)]
mod tests {
    use super::lines;

    #[test]
    fn lines_end_at_lf_cr_or_both() {
        assert_eq!(lines("a\nb\r\nc\rd\n\n\ne").collect::<Vec<_>>(), ["a", "b", "c", "d", "", "", "e"]);
        assert_eq!(lines("a\n").collect::<Vec<_>>(), ["a"]);
        assert_eq!(lines("\r\n").collect::<Vec<_>>(), [""]);
        assert_eq!(lines("").count(), 0);
    }
}
