//! Feature levels of a new cluster, from `--release-version` and `--feature` (B-47, B-50, B-53, B-55).

use super::FormatError;
use kraftlog_codecs::features::{Feature, METADATA_VERSION, MetadataVersion};
use std::collections::BTreeMap;

/// What `--release-version` stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReleaseVersion {
    version: MetadataVersion,
    patch_level_ignored: bool,
}

impl ReleaseVersion {
    /// Reads a release (`4.0`), a level's name (`3.9-IV0`) or either with a patch level. Levels that
    /// are not stable are taken only if `unstable` says so.
    ///
    /// # Errors
    /// [`FormatError::UnknownReleaseVersion`] with all that are known.
    pub fn parse(text: &str, unstable: bool) -> Result<ReleaseVersion, FormatError> {
        let last =
            if unstable { MetadataVersion::LATEST_TESTING } else { MetadataVersion::LATEST_PRODUCTION };
        match MetadataVersion::from_release(text) {
            Ok(release) if release.version <= last => {
                Ok(ReleaseVersion { version: release.version, patch_level_ignored: release.patch_dropped })
            }
            _ => Err(FormatError::UnknownReleaseVersion {
                version: text.to_owned(),
                supported: MetadataVersion::names_up_to(last),
            }),
        }
    }

    /// The level of metadata.version.
    pub fn metadata_version(self) -> MetadataVersion {
        self.version
    }

    /// True if something behind the second dot was dropped.
    pub fn patch_level_ignored(self) -> bool {
        self.patch_level_ignored
    }
}

/// The levels that a new cluster starts with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Levels {
    pub(super) metadata_version: MetadataVersion,
    pub(super) kraft_version: i16,
    /// What goes into FeatureLevelRecords: metadata.version, then levels above 0 by name.
    pub(super) records: Vec<(String, i16)>,
}

impl Levels {
    /// Reads `name=level` arguments; of a repeated name the last counts.
    pub(super) fn parse_arguments(arguments: &[String]) -> Result<BTreeMap<String, i16>, FormatError> {
        let mut levels = BTreeMap::new();
        for argument in arguments {
            let (name, level) = argument
                .split_once('=')
                .ok_or_else(|| FormatError::FeatureWithoutEquals { argument: argument.clone() })?;
            let (name, level) = (name.trim(), level.trim());
            let level = level.parse().map_err(|_| FormatError::FeatureLevelNotAShort {
                argument: argument.clone(),
                level: level.to_owned(),
            })?;
            levels.insert(name.to_owned(), level);
        }
        Ok(levels)
    }

    /// Fills in defaults and checks everything against each other.
    pub(super) fn resolve(
        release: Option<ReleaseVersion>,
        mut given: BTreeMap<String, i16>,
        static_quorum: bool,
        unstable: bool,
    ) -> Result<Levels, FormatError> {
        let metadata_version = match (release, given.remove(METADATA_VERSION)) {
            (Some(_), Some(_)) => return Err(FormatError::MetadataVersionTwice),
            (Some(release), None) => release.metadata_version(),
            (None, Some(level)) => known_version(level)?,
            (None, None) if unstable => MetadataVersion::LATEST_TESTING,
            (None, None) => MetadataVersion::LATEST_PRODUCTION,
        };
        if !metadata_version.is_production() && !unstable {
            return Err(FormatError::UnstableMetadataVersion { version: metadata_version });
        }
        if let Some(name) = given.keys().find(|name| Feature::from_name(name).is_none()) {
            return Err(FormatError::UnknownFeature {
                name: name.clone(),
                supported: Feature::names_sorted(),
            });
        }
        let mut kraft_version = i16::from(!static_quorum);
        let mut records: Vec<(String, i16)> = Vec::new();
        for feature in Feature::ALL {
            let given = given.get(feature.name()).copied();
            if let Some(level) = given
                && !feature.has_level(level)
            {
                return Err(FormatError::UnknownFeatureLevel { name: feature.name(), level });
            }
            if feature == Feature::KRaftVersion {
                kraft_version = kraft_level(given, static_quorum)?;
                continue;
            }
            let level = given.unwrap_or_else(|| feature.default_level(metadata_version));
            if let Some(needs) = feature.dependency(level)
                && metadata_version < needs
            {
                return Err(FormatError::FeatureDependency {
                    name: feature.name(),
                    level,
                    needs: METADATA_VERSION,
                    needs_level: needs.0,
                });
            }
            if level > 0 {
                records.push((feature.name().to_owned(), level));
            }
        }
        records.sort();
        records.insert(0, (METADATA_VERSION.to_owned(), metadata_version.0));
        Ok(Levels { metadata_version, kraft_version, records })
    }
}

fn known_version(level: i16) -> Result<MetadataVersion, FormatError> {
    let version = MetadataVersion(level);
    if version.is_known() {
        return Ok(version);
    }
    Err(FormatError::UnknownMetadataVersion {
        level,
        lowest: MetadataVersion::MINIMUM.0,
        highest: MetadataVersion::LATEST_TESTING.0,
    })
}

/// kraft.version follows the kind of quorum; what is given may only agree (B-53).
fn kraft_level(given: Option<i16>, static_quorum: bool) -> Result<i16, FormatError> {
    match given {
        Some(0) if !static_quorum => Err(FormatError::KraftVersionTooLow),
        Some(level) if level > 0 && static_quorum => Err(FormatError::KraftVersionTooHigh { level }),
        Some(level) => Ok(level),
        None => Ok(i16::from(!static_quorum)),
    }
}
