//! What `kraftlog dump` does with a file: every byte is accounted for, in order, and each line of JSON is one.
#![no_main]

use kraftlog_fuzz::{mend, scratch};
use libfuzzer_sys::fuzz_target;

/// The command's own code: the walk and both ways to print.
#[path = "../../cli/src/dump"]
#[allow(dead_code)]
mod dump {
    mod content;
    mod json;
    mod kind;
    mod source;
    mod text;

    use content::Content;
    use kraftlog_codecs::batch::Batch;
    use kraftlog_codecs::compress::{Compression, decompress};
    use source::{Source, Step};
    use std::fs::File;

    /// As the command's own bound, but for a machine that tries thousands a second.
    const UNPACKED_BYTES_MAX: usize = 1 << 20;

    /// Walks a file and gives its lines of JSON.
    pub(super) fn walk(file: File) -> Vec<u8> {
        let mut source = Source::open(file).expect("a file");
        let (size, mut at, mut out) = (source.size(), 0, Vec::new());
        loop {
            match source.step().expect("a file in memory") {
                Step::Batch(position, batch) => {
                    assert_eq!(position, at);
                    at += batch.bytes().len() as u64;
                    print(position, &batch, &mut out);
                }
                Step::Corrupt(position, header, _) => {
                    assert_eq!(position, at);
                    json::batch(&mut out, position, &header, false);
                    text::batch(&mut Vec::new(), position, &header, false);
                    // The walk says only with its next step how far it went.
                    at = source.position();
                    assert!(at > position && at <= position + header.size() as u64);
                }
                Step::Damage { position, bytes, error } => {
                    assert!(position == at && bytes > 0);
                    at += bytes;
                    json::damage(&mut out, "\"x\"", position, bytes, &error.to_string());
                }
                Step::End { valid_bytes, trailing_bytes, .. } => {
                    // A batch with a wrong checksum at the very end was told as such, and is no tail.
                    let told = if trailing_bytes > 0 { valid_bytes + trailing_bytes } else { at };
                    assert_eq!(told, size);
                    return out;
                }
            }
        }
    }

    fn print(position: u64, batch: &Batch<'_>, out: &mut Vec<u8>) {
        let (header, mut unpacked, mut text) = (*batch.header(), Vec::new(), Vec::new());
        json::batch(out, position, &header, true);
        text::batch(&mut text, position, &header, true);
        let records = match header.compression() {
            Ok(Compression::None) => batch.records_bytes(),
            Ok(codec) => {
                let done = decompress(codec, batch.records_bytes(), UNPACKED_BYTES_MAX, &mut unpacked);
                if done.is_err() {
                    return;
                }
                &unpacked
            }
            Err(_) => return,
        };
        for general in batch.records_general(records).map_while(Result::ok) {
            let content = Content::of(&header, &general.record);
            json::record(out, &header, &general, &content);
            text::record(&mut text, &header, &general, &content);
        }
    }
}

fn check(bytes: &[u8]) {
    let lines = dump::walk(scratch::file(bytes));
    for line in lines.split(|&byte| byte == b'\n').filter(|line| !line.is_empty()) {
        let parsed = serde_json::from_slice::<serde::de::IgnoredAny>(line);
        assert!(parsed.is_ok(), "no JSON: {}", String::from_utf8_lossy(line));
    }
}

fuzz_target!(|bytes: &[u8]| {
    check(bytes);
    check(&mend::batches(bytes));
});
