//! Kafka's own words for the records of a format.

use kraftlog::format::FormatPlan;

/// What `BootstrapMetadata.toString` says, but for the keys of SCRAM users: whoever reads a console
/// log must not be able to impersonate a server or to try passwords.
pub(crate) fn bootstrap_metadata(plan: &FormatPlan) -> String {
    let features = plan.features().iter().map(|(name, level)| {
        format!("ApiMessageAndVersion(FeatureLevelRecord(name='{name}', featureLevel={level}) at version 0)")
    });
    let users = plan.scram().iter().map(|user| {
        format!(
            "ApiMessageAndVersion(UserScramCredentialRecord(name='{}', mechanism={}, salt=(redacted), \
             storedKey=(redacted), serverKey=(redacted), iterations={}) at version 0)",
            user.name.escape_debug(),
            user.mechanism.code(),
            user.iterations
        )
    });
    let records = features.chain(users).collect::<Vec<_>>().join(", ");
    format!(
        "Bootstrap metadata: BootstrapMetadata(records=[{records}], metadataVersionLevel={}, \
         source=format command)",
        plan.metadata_version().0
    )
}
