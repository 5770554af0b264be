//! Offsets at the end of what 64 bits hold, in names and in files.

mod support;

use kraftlog::OpenError;
use support::{batch, chain};

on_every_backend! {
    fn an_index_that_points_beyond_the_last_offset_is_no_panic(place: &Place) {
        // The node died while it opened such a directory, and said only that a lane was gone.
        let base = i64::MAX - 10;
        let (first, second) = (batch(base, 1, 1), batch(base + 1, 1, 1));
        place.put_segment(base, &[&first[..], &second[..]].concat());
        let position = i32::try_from(first.len()).expect("small");
        let entry = [1000_i32.to_be_bytes(), position.to_be_bytes()].concat();
        let path = place.segment(base).with_extension("index");
        place.write(&path, entry);
        let error = place.refused();
        assert!(!matches!(error, OpenError::LaneGone), "{}", chain(&error));
    }
}
