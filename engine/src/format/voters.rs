//! The argument of `--initial-controllers`, and the order in which Kafka writes voters.
//!
//! Grammar (B-51): comma-separated `id@host:port:directory-id`, IPv6 hosts in brackets, blanks around
//! entries and empty entries ignored. Stricter than Kafka where its server would refuse the
//! result or clients could not use it (field case C-22): port 0, an empty host, an IPv6 address
//! without brackets, a reserved directory id, one directory id under two nodes.

use kraftlog_codecs::uuid::Uuid;
use std::fmt;

/// One entry: a controller that is in the voter set from the start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InitialController {
    /// Node id, not negative.
    pub id: i32,
    /// Host name or address; IPv6 addresses without their brackets.
    pub host: String,
    /// Port, 1 to 65535.
    pub port: u16,
    /// Id of its metadata directory.
    pub directory_id: Uuid,
}

/// Which part of an entry is wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub enum EntryPart {
    NodeId,
    Host,
    Port,
    DirectoryId,
    Whole,
}

impl fmt::Display for EntryPart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            EntryPart::NodeId => "node id",
            EntryPart::Host => "host",
            EntryPart::Port => "port",
            EntryPart::DirectoryId => "directory id",
            EntryPart::Whole => "form",
        })
    }
}

/// A list that is wrong. `Display` is Kafka's sentence; [`place`](Self::place) says where.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{problem}")]
pub struct InitialControllersError {
    /// Which entry, from 1; 0 for the list as a whole.
    pub entry: usize,
    /// Its text.
    pub text: String,
    /// Which part of it.
    pub part: EntryPart,
    /// What is wrong.
    pub problem: VoterProblem,
}

impl InitialControllersError {
    /// Where in the list it stands and what an entry looks like.
    pub fn place(&self) -> String {
        const FORM: &str = "an entry is id@host:port:directory-id, with an IPv6 host in brackets";
        if self.entry == 0 {
            return FORM.to_owned();
        }
        format!(
            "entry {} of --initial-controllers, {}: \"{}\"; {FORM}",
            self.entry,
            self.part,
            self.text.escape_debug()
        )
    }
}

/// What is wrong with a list of initial controllers.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the messages say it")]
pub enum VoterProblem {
    #[error("No voters given.")]
    Empty,
    #[error("No @ found in dynamic voter string.")]
    NoAt,
    #[error("Failed to parse node id in dynamic voter string.")]
    NodeId,
    #[error("Invalid negative node id {id} in dynamic voter string.")]
    NegativeNodeId { id: i32 },
    #[error("Node id {id} was specified more than once.")]
    RepeatedNodeId { id: i32 },
    #[error("Hostname began with left bracket, but no right bracket was found.")]
    OpenBracket,
    #[error("Port section must start with a colon.")]
    NoColonAfterBracket,
    #[error("No colon following hostname could be found.")]
    NoColonAfterHost,
    #[error("No colon following port could be found.")]
    NoColonAfterPort,
    #[error("Empty hostname in dynamic voter string.")]
    EmptyHost,
    #[error("Invalid hostname in dynamic voter string.")]
    BadHost,
    #[error("Failed to parse port in dynamic voter string.")]
    Port,
    #[error("Invalid port {port} in dynamic voter string.")]
    PortRange { port: i64 },
    #[error("Failed to parse directory ID in dynamic voter string.")]
    DirectoryId,
    #[error("Reserved directory ID {id} in dynamic voter string.")]
    ReservedDirectoryId { id: Uuid },
    #[error("Directory ID {id} was specified for node {first} and node {second}.")]
    RepeatedDirectoryId { id: Uuid, first: i32, second: i32 },
}

/// Reads a list, in the order given.
///
/// # Errors
/// The first entry that is wrong.
pub fn parse_initial_controllers(list: &str) -> Result<Vec<InitialController>, InitialControllersError> {
    let mut controllers: Vec<InitialController> = Vec::new();
    let entries = list.split(',').map(str::trim).filter(|text| !text.is_empty());
    for (index, text) in entries.enumerate() {
        let fail = |(part, problem)| InitialControllersError {
            entry: index + 1,
            text: text.to_owned(),
            part,
            problem,
        };
        let controller = entry(text).map_err(fail)?;
        for other in &controllers {
            if other.id == controller.id {
                return Err(fail((EntryPart::NodeId, VoterProblem::RepeatedNodeId { id: controller.id })));
            }
            if other.directory_id == controller.directory_id {
                let problem = VoterProblem::RepeatedDirectoryId {
                    id: controller.directory_id,
                    first: other.id,
                    second: controller.id,
                };
                return Err(fail((EntryPart::DirectoryId, problem)));
            }
        }
        controllers.push(controller);
    }
    if controllers.is_empty() {
        return Err(InitialControllersError {
            entry: 0,
            text: String::new(),
            part: EntryPart::Whole,
            problem: VoterProblem::Empty,
        });
    }
    Ok(controllers)
}

fn entry(text: &str) -> Result<InitialController, (EntryPart, VoterProblem)> {
    let (id, rest) = text.split_once('@').ok_or((EntryPart::Whole, VoterProblem::NoAt))?;
    let id: i32 = id.parse().map_err(|_| (EntryPart::NodeId, VoterProblem::NodeId))?;
    if id < 0 {
        return Err((EntryPart::NodeId, VoterProblem::NegativeNodeId { id }));
    }
    let (host, rest, bracketed) = match rest.strip_prefix('[') {
        Some(rest) => {
            let (host, rest) = rest.split_once(']').ok_or((EntryPart::Host, VoterProblem::OpenBracket))?;
            let rest = rest.strip_prefix(':').ok_or((EntryPart::Port, VoterProblem::NoColonAfterBracket))?;
            (host, rest, true)
        }
        None => {
            let (host, rest) =
                rest.split_once(':').ok_or((EntryPart::Host, VoterProblem::NoColonAfterHost))?;
            (host, rest, false)
        }
    };
    if host.is_empty() {
        return Err((EntryPart::Host, VoterProblem::EmptyHost));
    }
    let (port, directory_id) =
        rest.split_once(':').ok_or((EntryPart::Port, VoterProblem::NoColonAfterPort))?;
    let port: i64 = port.parse().map_err(|_| (EntryPart::Port, VoterProblem::Port))?;
    let port = u16::try_from(port)
        .ok()
        .filter(|&port| port != 0)
        .ok_or((EntryPart::Port, VoterProblem::PortRange { port }))?;
    if !host_is_plausible(host, bracketed) {
        return Err((EntryPart::Host, VoterProblem::BadHost));
    }
    let directory_id: Uuid =
        directory_id.parse().map_err(|_| (EntryPart::DirectoryId, VoterProblem::DirectoryId))?;
    if directory_id.is_reserved_directory() {
        return Err((EntryPart::DirectoryId, VoterProblem::ReservedDirectoryId { id: directory_id }));
    }
    Ok(InitialController { id, host: host.to_owned(), port, directory_id })
}

/// Characters that occur in names (underscores included: containers have them) and addresses with
/// zones; a bracketed host must be an address.
fn host_is_plausible(host: &str, bracketed: bool) -> bool {
    if bracketed {
        let address = host.split('%').next().unwrap_or_default();
        return address.parse::<std::net::Ipv6Addr>().is_ok();
    }
    host.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.'))
}

/// Order in which Kafka writes voters: that of a Java `HashMap` keyed by node id, which it copies
/// once (`VoterSet.fromMap`). Readers do not care; equal bytes do.
pub(crate) fn kafka_order<T>(items: Vec<T>, id: impl Fn(&T) -> i32) -> Vec<T> {
    let count = items.len();
    // A map that grows from 16 by doubling when more than three quarters full.
    let mut grown = 16usize;
    while count * 4 > grown * 3 {
        grown *= 2;
    }
    // A map made as a copy: room for count / 0.75 + 1, rounded up to a power of two.
    let copied = (count * 4 / 3 + 1).next_power_of_two();
    let hash = |item: &T| {
        let id = id(item).cast_unsigned();
        (id ^ (id >> 16)) as usize
    };
    let mut items = items;
    items.sort_by_key(|item| hash(item) & (grown - 1));
    items.sort_by_key(|item| hash(item) & (copied - 1));
    items
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: &str = "Y0_TxaqAQb2tTuW2MXphaA";
    const B: &str = "FNu1jmuxSF2vc8q95hCkCQ";

    fn parse(list: &str) -> Result<Vec<InitialController>, InitialControllersError> {
        parse_initial_controllers(&list.replace("$a", A).replace("$b", B))
    }

    #[test]
    fn names_addresses_blanks_and_a_trailing_comma_are_taken() {
        for (list, host, count) in [
            ("1@ctrl-1.example:9093:$a", "ctrl-1.example", 1),
            ("1@[2001:db8::1]:9093:$a", "2001:db8::1", 1),
            ("1@10.0.0.1:9093:$a,2@ctrl_2.ns.svc:9093:$b", "10.0.0.1", 2),
            ("1@xn--bcher-kva.example:9093:$a", "xn--bcher-kva.example", 1),
            (" 1@ctrl-1.example:9093:$a , 2@ctrl-2.example:9093:$b ,", "ctrl-1.example", 2),
        ] {
            let controllers = parse(list).unwrap_or_else(|e| panic!("{list}: {e}"));
            assert_eq!(controllers.len(), count, "{list}");
            assert_eq!(controllers[0].host, host, "{list}");
            assert_eq!((controllers[0].id, controllers[0].port), (1, 9093), "{list}");
            assert_eq!(controllers[0].directory_id.to_string(), A, "{list}");
        }
    }

    #[test]
    fn a_wrong_entry_is_named_by_number_and_part() {
        for (list, entry, part, text) in [
            ("1@2001:db8::1:9093:$a", 1, EntryPart::Port, "Failed to parse port in dynamic voter string."),
            (
                "1@[2001:db8::1:9093:$a",
                1,
                EntryPart::Host,
                "Hostname began with left bracket, but no right bracket was found.",
            ),
            ("1@ctrl-1.example:9093", 1, EntryPart::Port, "No colon following port could be found."),
            (
                "1@ctrl-1.example:9093:$a@,2@ctrl-2.example:9093:$b",
                1,
                EntryPart::DirectoryId,
                "Failed to parse directory ID in dynamic voter string.",
            ),
            (
                "1@ctrl-1.example:9093:$a,1@ctrl-2.example:9093:$b",
                2,
                EntryPart::NodeId,
                "Node id 1 was specified more than once.",
            ),
            (
                "1@ctrl-1.example:9093:$a,2@ctrl-2.example:9093:$a",
                2,
                EntryPart::DirectoryId,
                "Directory ID Y0_TxaqAQb2tTuW2MXphaA was specified for node 1 and node 2.",
            ),
            (
                "-1@ctrl-1.example:9093:$a",
                1,
                EntryPart::NodeId,
                "Invalid negative node id -1 in dynamic voter string.",
            ),
            ("1@:9093:$a", 1, EntryPart::Host, "Empty hostname in dynamic voter string."),
            ("1@ctrl-1.example:0:$a", 1, EntryPart::Port, "Invalid port 0 in dynamic voter string."),
            ("1@ctrl-1.example:65536:$a", 1, EntryPart::Port, "Invalid port 65536 in dynamic voter string."),
            (
                "1@ctrl-1.example:9093:AAAAAAAAAAAAAAAAAAAAAA",
                1,
                EntryPart::DirectoryId,
                "Reserved directory ID AAAAAAAAAAAAAAAAAAAAAA in dynamic voter string.",
            ),
            (",", 0, EntryPart::Whole, "No voters given."),
            ("x@h:1:$a", 1, EntryPart::NodeId, "Failed to parse node id in dynamic voter string."),
            ("1@h:1:$a,2", 2, EntryPart::Whole, "No @ found in dynamic voter string."),
        ] {
            let error = parse(list).err().unwrap_or_else(|| panic!("{list} was taken"));
            assert_eq!((error.entry, error.part, error.to_string().as_str()), (entry, part, text), "{list}");
        }
    }

    #[test]
    fn voters_stand_in_the_order_of_a_java_hash_map() {
        assert_eq!(kafka_order(vec![3, 1, 2], |&id| id), [1, 2, 3]);
        assert_eq!(kafka_order(vec![3001, 3000, 3002], |&id| id), [3000, 3001, 3002]);
        // Eight buckets for three voters: 8 falls into bucket 0, before 5.
        assert_eq!(kafka_order(vec![5, 8, 6], |&id| id), [8, 5, 6]);
    }
}
