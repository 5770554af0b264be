//! Round trips of random records at every version, and what must be refused.

mod golden;

use super::*;
use crate::tagged;
use proptest::prelude::*;

fn hex(text: &str) -> Vec<u8> {
    (0..text.len()).step_by(2).map(|at| u8::from_str_radix(&text[at..at + 2], 16).unwrap()).collect()
}

/// Random values from a seed (splitmix64), so that a failing seed replays.
pub struct Dice(u64);

impl Dice {
    fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub(crate) fn below(&mut self, end: usize) -> usize {
        (self.roll() % end as u64) as usize
    }

    /// A number, or a boolean, which is written as 0 or 1 only. Extremes are frequent.
    pub(crate) fn plain<T: 'static>(&mut self, out: &mut Vec<u8>) {
        if std::any::TypeId::of::<T>() == std::any::TypeId::of::<bool>() {
            return out.push(self.below(2) as u8);
        }
        match self.below(4) {
            0 => out.extend(vec![0u8; size_of::<T>()]),
            1 => out.extend(vec![0xffu8; size_of::<T>()]),
            _ => (0..size_of::<T>()).for_each(|_| out.push(self.roll() as u8)),
        }
    }

    pub(crate) fn bytes(&mut self, out: &mut Vec<u8>) {
        let len = [0, 1, 5, 126, 127, 300][self.below(6)];
        out.put_compact_len(Some(len)).unwrap();
        (0..len).for_each(|_| out.push(self.roll() as u8));
    }

    pub(crate) fn string(&mut self, out: &mut Vec<u8>) {
        let len = [0, 1, 5, 126, 127, 300][self.below(6)];
        let text: String = (0..len).map(|_| ['a', 'é', '"', '\n', '中', '😀', '\0'][self.below(7)]).collect();
        out.put_string(&text).unwrap();
    }

    pub(crate) fn nullable_string(&mut self, out: &mut Vec<u8>) {
        if self.below(3) == 0 { out.push(0) } else { self.string(out) }
    }

    /// A tag section of these known fields and some unknown ones.
    pub(crate) fn section(&mut self, known: Vec<(u32, Vec<u8>)>, known_end: u32, out: &mut Vec<u8>) {
        let mut fields = known;
        let mut tag = known_end;
        for _ in 0..self.below(3) {
            tag += self.below(200) as u32;
            let mut data = Vec::new();
            self.bytes(&mut data);
            fields.push((tag, data));
            tag += 1;
        }
        out.put_uvarint(fields.len() as u32);
        for (tag, data) in fields {
            tagged::put_field_head(out, tag, data.len()).unwrap();
            out.put(&data);
        }
    }
}

/// A random value of the type with this default, frame included, canonical as Kafka writes it.
fn random_record(default: &MetadataRecord<'_>, version: i16, dice: &mut Dice) -> Vec<u8> {
    let mut out = Vec::new();
    out.put_u8(FRAME_VERSION);
    out.put_uvarint(default.api_key());
    out.put_uvarint(version as u32);
    random_body(default, dice, version, &mut out);
    out
}

fn every_version() -> impl Iterator<Item = (MetadataRecord<'static>, i16)> {
    all_defaults().into_iter().flat_map(|record| (0..=record.highest_version()).map(move |v| (record, v)))
}

/// Everything that can be done with a decoded record; none of it may panic.
fn walk(framed: &Framed<'_>) -> (String, Vec<(String, u32, Vec<u8>)>) {
    let mut json = Vec::new();
    framed.record.write_json(framed.version, &mut json);
    let mut tags = Vec::new();
    framed
        .record
        .visit_unknown_tags(&mut |path, tag, data| tags.push((path.to_string(), tag, data.to_vec())));
    let _ = format!("{framed:?}");
    (String::from_utf8(json).unwrap(), tags)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn every_record_at_every_version_is_written_as_it_was_read(seed: u64) {
        let mut dice = Dice(seed);
        for (default, version) in every_version() {
            let bytes = random_record(&default, version, &mut dice);
            let framed = MetadataRecord::decode(&bytes).unwrap();
            prop_assert_eq!(framed.version, version);
            let mut again = Vec::new();
            framed.record.encode(version, &mut again).unwrap();
            prop_assert_eq!(&again, &bytes, "{:?}", framed);
            let (json, _) = walk(&framed);
            prop_assert!(serde_json::from_str::<serde_json::Value>(&json).is_ok(), "{}", json);
            for cut in 0..bytes.len() {
                prop_assert!(MetadataRecord::decode(&bytes[..cut]).is_err(), "cut at {cut} of {:?}", framed);
            }
            again.push(0);
            prop_assert_eq!(MetadataRecord::decode(&again).err(), Some(DecodeError::TrailingBytes));
        }
    }

    #[test]
    fn damaged_records_are_refused_or_survive_a_round_trip(seed: u64) {
        let mut dice = Dice(seed);
        for (default, version) in every_version() {
            let mut bytes = random_record(&default, version, &mut dice);
            for _ in 0..8 {
                let at = dice.below(bytes.len());
                bytes[at] = [0, 1, 0x7f, 0x80, 0xff, dice.roll() as u8][dice.below(6)];
                let Ok(framed) = MetadataRecord::decode(&bytes) else { continue };
                walk(&framed);
                let mut again = Vec::new();
                framed.record.encode(framed.version, &mut again).unwrap();
                // Longer varints than needed and odd booleans become canonical, then stay.
                let second = MetadataRecord::decode(&again).unwrap();
                prop_assert_eq!(walk(&second), walk(&framed));
                let mut third = Vec::new();
                second.record.encode(second.version, &mut third).unwrap();
                prop_assert_eq!(third, again);
            }
        }
    }

    #[test]
    fn arbitrary_bytes_never_panic(bytes: Vec<u8>) {
        for api_key in 0..32 {
            for version in 0..5 {
                let mut value = vec![1, api_key, version];
                value.extend(&bytes);
                if let Ok(framed) = MetadataRecord::decode(&value) {
                    walk(&framed);
                }
            }
        }
        let _ = MetadataRecord::decode(&bytes);
    }
}

#[test]
fn unknown_types_and_versions_survive_a_round_trip() {
    for (text, name) in [
        ("0106000102", None),
        ("010d00", None),
        ("01637f0102", None),
        ("01aa02000102", None),
        ("01140100", Some("NO_OP_RECORD")),
        ("010c8001ff", Some("FEATURE_LEVEL_RECORD")),
    ] {
        let bytes = hex(text);
        let framed = MetadataRecord::decode(&bytes).unwrap();
        assert!(matches!(framed.record, MetadataRecord::Unknown(_)), "{text}: {framed:?}");
        assert_eq!(framed.record.type_name(), name, "{text}");
        let mut out = Vec::new();
        framed.record.encode(framed.version, &mut out).unwrap();
        assert_eq!(out, bytes, "{text}");
        assert!(framed.record.encode(framed.version + 1, &mut out).is_err());
    }
}

#[test]
fn frames_that_kafka_refuses_are_refused() {
    for (text, error) in [
        ("", DecodeError::BadValue),
        ("001400", DecodeError::BadFrameVersion),
        ("02140000", DecodeError::BadFrameVersion),
        ("81010000", DecodeError::BadFrameVersion),
        ("0180800200", DecodeError::BadRecordType),
        ("011480800200", DecodeError::BadRecordType),
        ("01", DecodeError::BadVarint),
        ("0114", DecodeError::BadVarint),
        ("0114000000", DecodeError::TrailingBytes),
    ] {
        assert_eq!(MetadataRecord::decode(&hex(text)), Err(error), "{text:?}");
    }
}

#[test]
fn bodies_that_kafka_never_writes_are_refused() {
    for (what, text, error) in [
        ("null name", "010200000000000000000001000000000000000100", DecodeError::UnexpectedNull),
        ("bad UTF-8", "0116000361ff0200", DecodeError::BadUtf8),
        ("name of 32768 bytes", "010c00818002", DecodeError::StringTooLong),
        ("string longer than the rest", "010c0011", DecodeError::Truncated),
        ("null array", "010e0000026b000000000000000000", DecodeError::UnexpectedNull),
        ("array longer than the rest", "010e00ffffffff0f", DecodeError::ArrayTooLong),
        ("known tag of another version", "011100000000010000000000000002010101ff", DecodeError::TagVersion),
        ("known tag with a size too large", "01110000000001000000000000000201000201ff", DecodeError::TagSize),
        ("known tag with a size too small", "011100000000010000000000000002010000", DecodeError::Truncated),
        ("tag twice", "011100000000010000000000000002020001ff0001ff", DecodeError::TagOrder),
        ("tags descending", "01140002050004 00", DecodeError::TagOrder),
    ] {
        assert_eq!(MetadataRecord::decode(&hex(&text.replace(' ', ""))), Err(error), "{what}");
    }
}

#[test]
fn a_version_that_lacks_a_field_is_written_only_with_the_fields_default() {
    let dirs = ArrayBuf::of([crate::uuid::Uuid::ONE]).unwrap();
    let record = RegisterBrokerRecord { log_dirs: dirs.array(), ..Default::default() };
    let error =
        |version, field| EncodeError::UnsupportedField { record: "RegisterBrokerRecord", field, version };
    let encode = |record: RegisterBrokerRecord<'_>, version| {
        MetadataRecord::from(record).encode(version, &mut Vec::new())
    };
    assert_eq!(encode(record, 3), Ok(()));
    assert_eq!(encode(record, 2), Err(error(2, "logDirs")));
    assert_eq!(encode(RegisterBrokerRecord::default(), 0), Ok(()));
    let record = RegisterBrokerRecord { is_migrating_zk_broker: true, ..Default::default() };
    assert_eq!(encode(record, 1), Err(error(1, "isMigratingZkBroker")));
    let record = RegisterBrokerRecord { cordoned_log_dirs: Some(Array::empty()), ..Default::default() };
    assert_eq!(encode(record, 3), Err(error(3, "cordonedLogDirs")));
    assert_eq!(
        encode(record, 5),
        Err(EncodeError::UnsupportedVersion { record: "RegisterBrokerRecord", version: 5 })
    );
    assert!(encode(record, -1).is_err());
}

#[test]
fn unknown_tags_are_shown_with_their_place() {
    // One endpoint with tag 77, one without; tag 9 on the record.
    let text = "011b0000000001000000000000000200000000000000020003\
                024302682385000001 4d01aa 0244026823850000 00 01 01 0902bbcc";
    let bytes = hex(&text.replace(' ', ""));
    let framed = MetadataRecord::decode(&bytes).unwrap();
    let (_, tags) = walk(&framed);
    let expected = [(String::new(), 9, vec![0xbb, 0xcc]), ("endPoints[0]".to_owned(), 77, vec![0xaa])];
    assert_eq!(tags, expected);
}

#[test]
fn unknown_tags_below_the_known_ones_cannot_be_written() {
    let raw = [0, 1, 7];
    let record = BeginTransactionRecord {
        unknown_tags: tagged::UnknownTags::from_raw(&raw).unwrap(),
        ..Default::default()
    };
    assert_eq!(MetadataRecord::from(record).encode(0, &mut Vec::new()), Err(EncodeError::TagOrder));
}

#[test]
fn arrays_are_walked_compared_and_indexed_where_they_lie() {
    let ids = ArrayBuf::of([3, -1, 7]).unwrap();
    let ids = ids.array();
    assert_eq!(
        (ids.len(), ids.get(0), ids.get(2), ids.get(3), ids.get(usize::MAX)),
        (3, Some(3), Some(7), None, None)
    );
    assert!(ids.contains(-1) && !ids.contains(8));
    let names = ArrayBuf::of(["a", "", "ccc"]).unwrap();
    assert_eq!(names.array().iter().collect::<Vec<_>>(), ["a", "", "ccc"]);
    assert_eq!((names.array().len(), names.array().get(2), names.array().get(3)), (3, Some("ccc"), None));
    let mut long = ArrayBuf::of(["a"]).unwrap();
    assert_eq!(long.push("x".repeat(32768).as_str()), Err(EncodeError::StringTooLong { len: 32768 }));
    assert_eq!(long.array().len(), 1, "a refused element leaves the array as it was");
    assert_eq!(long.array(), ArrayBuf::of(["a"]).unwrap().array());
}
