//! RemoveUserScramCredentialRecord, api key 22.

use super::schema::schema;

schema! {
    /// SCRAM credential of a user, removed.
    RemoveUserScramCredentialRecord<'a> = 22, REMOVE_USER_SCRAM_CREDENTIAL_RECORD, versions 0..=0 {
        /// Name of the user.
        name: &'a str,
        /// As in UserScramCredentialRecord.
        mechanism: i8,
    }
}
