//! What `fuzz/` reaches of the crate's insides. Only there under `--cfg fuzzing`, which cargo-fuzz sets; no
//! part of the library.

use crate::state::State;

/// Reads `kraftlog.state`; what could be read is written and read again as the same.
///
/// # Panics
/// If it is not the same.
pub fn state(bytes: &[u8]) {
    let Ok(state) = State::decode(bytes) else { return };
    let again = State::decode(state.encode().as_bytes());
    assert_eq!(again.as_ref(), Ok(&state), "what was written can be read");
    let _ = state.epochs_ascend();
}
