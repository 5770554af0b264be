//! LeaderChangeMessage: the first record of an epoch.

use super::{ControlTagVisitor, show};
use crate::cursor::{Put, Reader};
use crate::error::{DecodeError, EncodeError};
use crate::json::{self, Object};
use crate::tagged::{self, UnknownTags};
use std::fmt;

/// A leader began its epoch, with these voters behind it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LeaderChange<'a> {
    /// Written 0.
    pub version: i16,
    /// Node id of the leader.
    pub leader_id: i32,
    /// The voter set. Kafka writes it in hash order; the order means nothing.
    pub voters: LeaderVoters<'a>,
    /// Those that granted their vote, the leader among them.
    pub granting_voters: LeaderVoters<'a>,
    /// Tagged fields that are not known here.
    pub unknown_tags: UnknownTags<'a>,
}

/// A list of voters in a [`LeaderChange`]: as it was read, or the ids to write.
#[derive(Clone, Copy)]
pub struct LeaderVoters<'a>(Form<'a>);

#[derive(Clone, Copy)]
enum Form<'a> {
    /// Whole elements, walked once when they were read.
    Encoded {
        count: usize,
        elements: &'a [u8],
    },
    Ids(&'a [i32]),
}

/// One voter of a [`LeaderChange`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeaderVoter<'a> {
    /// Its node id.
    pub id: i32,
    /// Tagged fields that are not known here.
    pub unknown_tags: UnknownTags<'a>,
}

impl<'a> LeaderVoters<'a> {
    /// Voters to be written.
    pub const fn from_ids(ids: &'a [i32]) -> LeaderVoters<'a> {
        LeaderVoters(Form::Ids(ids))
    }

    /// Number of voters.
    pub const fn len(&self) -> usize {
        match self.0 {
            Form::Encoded { count, .. } => count,
            Form::Ids(ids) => ids.len(),
        }
    }

    /// True if there are none.
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The voters in their order.
    pub fn iter(&self) -> impl Iterator<Item = LeaderVoter<'a>> + use<'a> {
        let (mut reader, ids) = match self.0 {
            Form::Encoded { elements, .. } => (Reader::new(elements), &[][..]),
            Form::Ids(ids) => (Reader::new(&[]), ids),
        };
        // The elements were walked when they were read, so an error can only be their end.
        let encoded = std::iter::from_fn(move || LeaderVoter::read(&mut reader).ok());
        encoded.chain(ids.iter().map(|&id| LeaderVoter { id, unknown_tags: UnknownTags::EMPTY }))
    }

    /// The node ids in their order.
    pub fn ids(&self) -> impl Iterator<Item = i32> + use<'a> {
        self.iter().map(|voter| voter.id)
    }

    fn read(reader: &mut Reader<'a>) -> Result<LeaderVoters<'a>, DecodeError> {
        let count = reader.compact_len()?.ok_or(DecodeError::UnexpectedNull)?;
        if count > reader.len() {
            return Err(DecodeError::ArrayTooLong);
        }
        let from = reader.rest();
        for _ in 0..count {
            LeaderVoter::read(reader)?;
        }
        let elements = from.get(..from.len() - reader.len()).unwrap_or_default();
        Ok(LeaderVoters(Form::Encoded { count, elements }))
    }

    fn write(&self, out: &mut impl Put) -> Result<(), EncodeError> {
        out.put_compact_len(Some(self.len()))?;
        match self.0 {
            Form::Encoded { elements, .. } => out.put(elements),
            Form::Ids(ids) => {
                for &id in ids {
                    out.put_i32(id);
                    tagged::put_section(out, &UnknownTags::EMPTY);
                }
            }
        }
        Ok(())
    }

    fn json(&self, out: &mut Vec<u8>) {
        json::put_array(out, self.ids(), |out, id| {
            let mut object = Object::begin(out);
            json::put_int(object.field("voterId"), id);
            object.end();
        });
    }

    fn visit_unknown_tags(&self, name: &str, visit: &mut ControlTagVisitor<'_>) {
        for (index, voter) in self.iter().enumerate() {
            show(format_args!("{name}[{index}]"), &voter.unknown_tags, visit);
        }
    }
}

impl Default for LeaderVoters<'_> {
    fn default() -> Self {
        LeaderVoters::from_ids(&[])
    }
}

impl PartialEq for LeaderVoters<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.len() == other.len() && self.iter().eq(other.iter())
    }
}

impl Eq for LeaderVoters<'_> {}

impl fmt::Debug for LeaderVoters<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

impl<'a> LeaderVoter<'a> {
    fn read(reader: &mut Reader<'a>) -> Result<LeaderVoter<'a>, DecodeError> {
        Ok(LeaderVoter { id: reader.i32()?, unknown_tags: tagged::read_unknown(reader)? })
    }
}

impl<'a> LeaderChange<'a> {
    pub(super) fn read(reader: &mut Reader<'a>) -> Result<LeaderChange<'a>, DecodeError> {
        Ok(LeaderChange {
            version: reader.i16()?,
            leader_id: reader.i32()?,
            voters: LeaderVoters::read(reader)?,
            granting_voters: LeaderVoters::read(reader)?,
            unknown_tags: tagged::read_unknown(reader)?,
        })
    }

    pub(super) fn write(&self, out: &mut impl Put) -> Result<(), EncodeError> {
        out.put_i16(self.version);
        out.put_i32(self.leader_id);
        self.voters.write(out)?;
        self.granting_voters.write(out)?;
        tagged::put_section(out, &self.unknown_tags);
        Ok(())
    }

    pub(super) fn json(&self, object: &mut Object<'_>) {
        json::put_int(object.field("version"), self.version);
        json::put_int(object.field("leaderId"), self.leader_id);
        self.voters.json(object.field("voters"));
        self.granting_voters.json(object.field("grantingVoters"));
    }

    pub(super) fn visit_unknown_tags(&self, visit: &mut ControlTagVisitor<'_>) {
        show(format_args!(""), &self.unknown_tags, visit);
        self.voters.visit_unknown_tags("voters", visit);
        self.granting_voters.visit_unknown_tags("grantingVoters", visit);
    }
}
