//! `version-mapping`: which feature levels a new cluster of a release starts with (B-47).

use crate::args::VersionMappingArgs;
use crate::exit::{Exit, Failure};
use crate::output::Output;
use kraftlog::format::ReleaseVersion;
use kraftlog_codecs::features::{Feature, METADATA_VERSION, MetadataVersion};
use serde_json::{Map, Value, json};

pub(crate) fn run(args: &VersionMappingArgs, out: &mut Output) -> Result<Exit, Failure> {
    // Levels that are not stable yet are known here.
    let (version, shown) = match &args.release_version {
        Some(text) => {
            let release = ReleaseVersion::parse(text, true)
                .map_err(|error| Failure::new(Exit::FINDINGS, error.name(), &error).with(error.details()))?;
            (release.metadata_version(), text.clone())
        }
        None => (MetadataVersion::LATEST_PRODUCTION, MetadataVersion::LATEST_PRODUCTION.to_string()),
    };
    out.line(format_args!("{METADATA_VERSION}={} ({shown})", version.0))?;
    let mut levels = Map::new();
    for feature in Feature::ALL {
        let level = feature.default_level(version);
        out.line(format_args!("{feature}={level}"))?;
        levels.insert(feature.name().to_owned(), Value::from(level));
    }
    out.object(&json!({
        "metadataVersion": version.0,
        "name": version.name(),
        "release": shown,
        "features": levels,
    }))?;
    Ok(Exit::SOUND)
}
