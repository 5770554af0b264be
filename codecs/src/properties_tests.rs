use super::*;

/// What the JDK makes of random input; see `codecs/tests/vectors/ORIGIN.md`.
const VECTORS: &str = include_str!("../tests/vectors/properties.txt");

fn unhex(hex: &str) -> Vec<u8> {
    let digits = hex.as_bytes();
    assert!(digits.len().is_multiple_of(2), "{hex}");
    digits.chunks(2).map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap()).collect()
}

fn text(hex: &str) -> String {
    String::from_utf8(unhex(hex)).unwrap()
}

#[test]
fn the_jdk_reads_and_writes_the_same() {
    let longer = std::env::var("KRAFTLOG_PROPERTIES_VECTORS").ok();
    let longer = longer.map(|path| std::fs::read_to_string(path).unwrap());
    let (mut loads, mut stores, mut dates) = (0, 0, 0);
    for line in longer.as_deref().unwrap_or(VECTORS).lines() {
        match line.split(' ').collect::<Vec<_>>()[..] {
            ["load", bytes, result] => {
                loads += 1;
                let read = Properties::parse(&unhex(bytes));
                if result == "error" {
                    assert!(read.is_err(), "{line}");
                    continue;
                }
                let pairs = result.split(',').filter(|_| result != "-");
                let expected: Properties = pairs
                    .map(|pair| pair.split_once('=').unwrap())
                    .map(|(key, value)| (text(key), text(value)))
                    .collect();
                assert_eq!(read, Ok(expected), "{line}");
            }
            ["store", key, value, comment, out] => {
                stores += 1;
                let (key, value) = (text(key), text(value));
                let written = store(&text(comment), "date", [(key.as_str(), value.as_str())]);
                let written = String::from_utf8(written).unwrap().replacen("\n#date\n", "\n", 1);
                assert_eq!(written, text(out), "{line}");
            }
            ["date", ms, shown] => {
                dates += 1;
                assert_eq!(java_date_utc(ms.parse().unwrap()), text(shown), "{line}");
            }
            _ => panic!("{line}"),
        }
    }
    assert!(loads >= 200 && stores >= 80 && dates >= 30, "{loads} loads, {stores} stores, {dates} dates");
}

#[test]
fn every_rule_of_reading_holds() {
    let read = |text: &[u8]| Properties::parse(text).unwrap();
    let one = |text: &[u8]| {
        let properties = read(text);
        assert_eq!(properties.len(), 1, "{properties:?}");
        let (key, value) = properties.iter().next().unwrap();
        (key.to_owned(), value.to_owned())
    };
    let pair = |key: &str, value: &str| (key.to_owned(), value.to_owned());
    assert_eq!(read(b"a=1\rb=2\r\nc=3\nd=4").len(), 4);
    assert_eq!(one(b"  \t\x0c a = 1 "), pair("a", "1 "));
    assert_eq!(read(b"\n  \n # c \\\n! d\n").len(), 0);
    assert_eq!(one(b"# c \\\na=1"), pair("a", "1"), "a comment never continues");
    assert_eq!(one(b"a=1\\\n  #2"), pair("a", "1#2"), "a continued line is no comment");
    assert_eq!(one(b"a=1\\\\\n").1, "1\\", "an even number of backslashes continues nothing");
    assert_eq!(one(b"a=1\\"), pair("a", "1"));
    assert_eq!(one(b"a"), pair("a", ""));
    assert_eq!(one(b"a:=b"), pair("a", "=b"));
    assert_eq!(one(b"a b=c"), pair("a", "b=c"));
    assert_eq!(one(b"=x"), pair("", "x"));
    assert_eq!(one(b"a\\=\\:\\ b=\\t\\n\\r\\f\\b\\u0041"), pair("a=: b", "\t\n\r\x0cbA"));
    assert_eq!(one(b"a=\xe9"), pair("a", "\u{e9}"), "bytes are Latin-1");
    assert_eq!(one(b"a=\\ud83d\\ude00").1, "\u{1f600}");
    assert_eq!(one(b"a=1\na=2"), pair("a", "2"));
    assert_eq!(one("\u{feff}a=1".as_bytes()).0, "ï»¿a", "no byte order mark is known");
}

#[test]
fn a_bad_escape_names_its_line() {
    for (text, line) in
        [(&b"a=\\u12"[..], 1), (b"#\n\nb=\\u12g4\n", 3), (b"a=1\r\nb=\\\r\n  \\ux", 2), (b"\\u123", 1)]
    {
        assert_eq!(Properties::parse(text), Err(PropertiesError::BadEscape { line }), "{text:?}");
    }
}

#[test]
fn dates_are_javas() {
    assert_eq!(java_date_utc(0), "Thu Jan 01 00:00:00 UTC 1970");
    assert_eq!(java_date_utc(-1), "Wed Dec 31 23:59:59 UTC 1969");
    assert_eq!(java_date_utc(951_782_400_000), "Tue Feb 29 00:00:00 UTC 2000");
    assert_eq!(java_date_utc(1_796_070_717_000), "Mon Nov 30 20:31:57 UTC 2026");
    java_date_utc(i64::MIN);
    java_date_utc(i64::MAX);
}
