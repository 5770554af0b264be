//! VotersRecord: the voter set of a dynamic quorum. Owned, because it is rare and is kept.

use super::{ControlTagVisitor, show};
use crate::cursor::{Put, Reader};
use crate::error::{DecodeError, EncodeError};
use crate::json::{self, Object};
use crate::tagged::{self, UnknownTagsBuf};
use crate::uuid::Uuid;

/// A voter set.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Voters {
    /// Written 0.
    pub version: i16,
    /// The voters. Kafka writes them in hash order; if an id stands twice, its reader takes the last.
    pub voters: Vec<Voter>,
    /// Tagged fields that are not known here.
    pub unknown_tags: UnknownTagsBuf,
}

/// One voter.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Voter {
    /// Its node id.
    pub id: i32,
    /// Its metadata directory; zero if not known.
    pub directory_id: Uuid,
    /// Its listeners, each name once.
    pub endpoints: Vec<Endpoint>,
    /// Lowest kraft.version that it can run.
    pub kraft_version_min: i16,
    /// Highest kraft.version that it can run.
    pub kraft_version_max: i16,
    /// Tagged fields of the version range that are not known here.
    pub kraft_version_unknown_tags: UnknownTagsBuf,
    /// Tagged fields that are not known here.
    pub unknown_tags: UnknownTagsBuf,
}

/// One listener of a voter.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Endpoint {
    /// Name of the listener; Kafka stores it in upper case.
    pub name: String,
    /// Host name or address.
    pub host: String,
    /// Port.
    pub port: u16,
    /// Tagged fields that are not known here.
    pub unknown_tags: UnknownTagsBuf,
}

/// Reads a compact array. The vector grows with the elements that are really there.
fn read_array<T>(
    reader: &mut Reader<'_>,
    element: impl Fn(&mut Reader<'_>) -> Result<T, DecodeError>,
) -> Result<Vec<T>, DecodeError> {
    let count = reader.compact_len()?.ok_or(DecodeError::UnexpectedNull)?;
    if count > reader.len() {
        return Err(DecodeError::ArrayTooLong);
    }
    let mut elements = Vec::new();
    for _ in 0..count {
        elements.push(element(reader)?);
    }
    Ok(elements)
}

impl Voters {
    pub(super) fn read(reader: &mut Reader<'_>) -> Result<Voters, DecodeError> {
        Ok(Voters {
            version: reader.i16()?,
            voters: read_array(reader, Voter::read)?,
            unknown_tags: tagged::read_unknown(reader)?.into(),
        })
    }

    pub(super) fn write(&self, out: &mut impl Put) -> Result<(), EncodeError> {
        out.put_i16(self.version);
        out.put_compact_len(Some(self.voters.len()))?;
        for voter in &self.voters {
            voter.write(out)?;
        }
        tagged::put_section(out, &self.unknown_tags.as_tags());
        Ok(())
    }

    pub(super) fn json(&self, object: &mut Object<'_>) {
        json::put_int(object.field("version"), self.version);
        json::put_array(object.field("voters"), &self.voters, |out, voter| voter.json(out));
    }

    pub(super) fn visit_unknown_tags(&self, visit: &mut ControlTagVisitor<'_>) {
        show(format_args!(""), &self.unknown_tags.as_tags(), visit);
        for (v, voter) in self.voters.iter().enumerate() {
            show(format_args!("voters[{v}]"), &voter.unknown_tags.as_tags(), visit);
            for (e, endpoint) in voter.endpoints.iter().enumerate() {
                show(format_args!("voters[{v}].endpoints[{e}]"), &endpoint.unknown_tags.as_tags(), visit);
            }
            let range_tags = voter.kraft_version_unknown_tags.as_tags();
            show(format_args!("voters[{v}].kRaftVersionFeature"), &range_tags, visit);
        }
    }
}

impl Voter {
    fn read(reader: &mut Reader<'_>) -> Result<Voter, DecodeError> {
        Ok(Voter {
            id: reader.i32()?,
            directory_id: reader.uuid()?,
            endpoints: read_array(reader, Endpoint::read)?,
            kraft_version_min: reader.i16()?,
            kraft_version_max: reader.i16()?,
            kraft_version_unknown_tags: tagged::read_unknown(reader)?.into(),
            unknown_tags: tagged::read_unknown(reader)?.into(),
        })
    }

    fn write(&self, out: &mut impl Put) -> Result<(), EncodeError> {
        out.put_i32(self.id);
        out.put_uuid(self.directory_id);
        out.put_compact_len(Some(self.endpoints.len()))?;
        for endpoint in &self.endpoints {
            out.put_string(&endpoint.name)?;
            out.put_string(&endpoint.host)?;
            out.put_u16(endpoint.port);
            tagged::put_section(out, &endpoint.unknown_tags.as_tags());
        }
        out.put_i16(self.kraft_version_min);
        out.put_i16(self.kraft_version_max);
        tagged::put_section(out, &self.kraft_version_unknown_tags.as_tags());
        tagged::put_section(out, &self.unknown_tags.as_tags());
        Ok(())
    }

    fn json(&self, out: &mut Vec<u8>) {
        let mut object = Object::begin(out);
        json::put_int(object.field("voterId"), self.id);
        json::put_uuid(object.field("voterDirectoryId"), self.directory_id);
        json::put_array(object.field("endpoints"), &self.endpoints, |out, endpoint| {
            let mut object = Object::begin(out);
            json::put_str(object.field("name"), &endpoint.name);
            json::put_str(object.field("host"), &endpoint.host);
            json::put_int(object.field("port"), endpoint.port);
            object.end();
        });
        let mut range = Object::begin(object.field("kRaftVersionFeature"));
        json::put_int(range.field("minSupportedVersion"), self.kraft_version_min);
        json::put_int(range.field("maxSupportedVersion"), self.kraft_version_max);
        range.end();
        object.end();
    }
}

impl Endpoint {
    fn read(reader: &mut Reader<'_>) -> Result<Endpoint, DecodeError> {
        Ok(Endpoint {
            name: reader.string()?.to_owned(),
            host: reader.string()?.to_owned(),
            port: reader.u16()?,
            unknown_tags: tagged::read_unknown(reader)?.into(),
        })
    }
}
