//! `feature-dependencies`: what each feature level given needs (B-48). Unstable levels are known.

use crate::args::FeatureDependenciesArgs;
use crate::exit::{Exit, Failure};
use crate::output::Output;
use kraftlog_codecs::features::{Feature, METADATA_VERSION, MetadataVersion};
use serde_json::json;

pub(crate) fn run(args: &FeatureDependenciesArgs, out: &mut Output) -> Result<Exit, Failure> {
    for argument in &args.feature {
        let refuse = |text: String| Failure::new(Exit::FINDINGS, "UsageError", text);
        let Some((name, level)) = argument.split_once('=') else {
            return Err(refuse(format!(
                "Invalid feature format: {argument}. Expected format: 'feature=version' (e.g. \
                 'group.version=1')"
            )));
        };
        let (name, text) = (name.trim(), level.trim());
        let level: i16 =
            text.parse().map_err(|_| refuse(format!("Invalid version format: {text} for feature {name}")))?;
        let (shown, needs) = if name == METADATA_VERSION {
            let version = MetadataVersion(level);
            if !version.is_known() {
                return Err(refuse(format!("Unknown metadata.version {level}")));
            }
            (format!("{name}={level} ({version})"), None)
        } else {
            let feature =
                Feature::from_name(name).ok_or_else(|| refuse(format!("Unknown feature: {name}")))?;
            if !feature.has_level(level) {
                return Err(refuse(format!("Feature level {level} is not supported for feature {name}")));
            }
            (format!("{name}={level}"), feature.dependency(level))
        };
        match needs {
            None => out.line(format_args!("{shown} has no dependencies."))?,
            Some(version) => {
                out.line(format_args!("{shown} requires:"))?;
                out.line(format_args!("    {METADATA_VERSION}={} ({version})", version.0))?;
            }
        }
        let requires: Vec<_> = needs
            .map(|version| json!({ "feature": METADATA_VERSION, "level": version.0, "name": version.name() }))
            .into_iter()
            .collect();
        out.object(&json!({ "feature": name, "level": level, "requires": requires }))?;
    }
    Ok(Exit::SOUND)
}
