//! What a node's `server.properties` says about its storage.
//!
//! Only the keys that decide identity, directories, quorum and bootstrap are read, and the rules
//! between them that Kafka checks before `kafka-storage` or a server does anything (B-45). All other
//! keys are left alone and can be listed with [`NodeConfig::other_keys`]: a wrong value in one of
//! them is for the server to refuse.

use kraftlog_codecs::properties::Properties;
use std::collections::BTreeSet;
use std::fmt;
use std::path::{Path, PathBuf};

/// What a node does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ProcessRole {
    /// Serves clients; follows the metadata log as an observer.
    Broker,
    /// Takes part in the metadata quorum.
    Controller,
}

/// One entry of `listeners` or `advertised.listeners`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listener {
    /// Name, in upper case.
    pub name: String,
    /// Host; `None` for none and for `0.0.0.0`, which other nodes cannot connect to.
    pub host: Option<String>,
    /// Port as given; its range is checked where it is used, as in Kafka.
    pub port: i32,
}

/// One entry of `controller.quorum.voters`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StaticVoter {
    /// Node id.
    pub id: i32,
    /// Host.
    pub host: String,
    /// Port.
    pub port: u16,
}

/// The part of `server.properties` that concerns storage, checked.
#[derive(Debug, Clone)]
pub struct NodeConfig {
    roles: BTreeSet<ProcessRole>,
    node_id: i32,
    log_dirs: Vec<PathBuf>,
    metadata_dir: PathBuf,
    controller_listener_names: Vec<String>,
    controller_listeners: Vec<Listener>,
    voters: Vec<StaticVoter>,
    unstable_features: bool,
    min_insync_replicas: i32,
    other_keys: Vec<String>,
}

const KEYS: [&str; 14] = [
    "process.roles",
    "node.id",
    "broker.id",
    "log.dirs",
    "log.dir",
    "metadata.log.dir",
    "listeners",
    "advertised.listeners",
    "listener.security.protocol.map",
    "controller.listener.names",
    "controller.quorum.voters",
    "controller.quorum.bootstrap.servers",
    "unstable.feature.versions.enable",
    "min.insync.replicas",
];

/// Why a configuration is refused. `Display` is Kafka's sentence.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the messages say it")]
pub enum ConfigError {
    #[error("Missing required configuration \"{key}\" which has no default value.")]
    Missing { key: &'static str },
    #[error("Configuration '{key}' must not be empty. Valid values include: any non-empty value")]
    Empty { key: &'static str },
    #[error("Configuration '{key}' values must not be empty.")]
    EmptyElement { key: &'static str },
    #[error("Configuration 'process.roles' must not be empty. Valid values include: [broker, controller]")]
    NoRoles,
    #[error("Invalid value {value} for configuration {key}: {reason}")]
    Invalid { key: &'static str, value: String, reason: &'static str },
    #[error(
        "If using process.roles, either controller.quorum.bootstrap.servers must contain the set of \
         bootstrap controllers or controller.quorum.voters must contain a parseable set of controllers."
    )]
    NoQuorum,
    #[error(
        "requirement failed: If process.roles contains the 'controller' role, the node id {node_id} must be \
         included in the set of voters controller.quorum.voters={voters}"
    )]
    NotAVoter { node_id: i32, voters: VoterIds },
    #[error(
        "requirement failed: If process.roles contains just the 'broker' role, the node id {node_id} must \
         not be included in the set of voters controller.quorum.voters={voters}"
    )]
    BrokerIsVoter { node_id: i32, voters: VoterIds },
    #[error("Error creating broker listeners from '[{listeners}]': {reason}")]
    Listeners { listeners: String, reason: String },
    #[error(
        "Failed to parse host name from entry {entry} for the configuration controller.quorum.voters. Each \
         entry should be in the form `{{id}}@{{host}}:{{port}}`."
    )]
    VoterEntry { entry: String },
    #[error("Failed to parse voter ID as an integer from {text}")]
    VoterId { text: String },
    #[error(
        "requirement failed: controller.listener.names must only contain values appearing in the \
         'listeners' configuration when running the KRaft controller role"
    )]
    ControllerListenerUnknown,
    #[error(
        "requirement failed: The listeners config must only contain KRaft controller listeners from \
         controller.listener.names when process.roles=controller"
    )]
    ForeignListener,
    #[error(
        "requirement failed: controller.listener.names must not contain a value appearing in the \
         'listeners' configuration when running KRaft with just the broker role"
    )]
    BrokerHasControllerListener,
    #[error(
        "requirement failed: There must be at least one broker advertised listener. Perhaps all listeners \
         appear in controller.listener.names?"
    )]
    NoBrokerListener,
}

/// Ids of `controller.quorum.voters`, printed as Scala prints a set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VoterIds(pub Vec<i32>);

impl fmt::Display for VoterIds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Set(")?;
        for (i, id) in self.0.iter().enumerate() {
            write!(f, "{}{id}", if i == 0 { "" } else { ", " })?;
        }
        f.write_str(")")
    }
}

impl NodeConfig {
    /// Reads and checks the keys that concern storage.
    ///
    /// # Errors
    /// The first rule of Kafka's that the configuration breaks.
    pub fn from_properties(properties: &Properties) -> Result<NodeConfig, ConfigError> {
        let get = |key: &str| properties.get(key);
        let roles = roles(list(get("process.roles")).ok_or(ConfigError::Missing { key: "process.roles" })?)?;
        let node_id = match get("node.id").or(get("broker.id")) {
            None => return Err(ConfigError::Missing { key: "node.id" }),
            Some(text) => integer("node.id", text)?,
        };
        let controller_listener_names = list(get("controller.listener.names"))
            .ok_or(ConfigError::Missing { key: "controller.listener.names" })?;
        if controller_listener_names.is_empty() {
            return Err(ConfigError::Empty { key: "controller.listener.names" });
        }
        if node_id < 0 {
            return Err(ConfigError::Invalid {
                key: "node.id",
                value: node_id.to_string(),
                reason: "Value must be at least 0",
            });
        }
        let log_dirs: Vec<PathBuf> = match (list(get("log.dirs")), list(get("log.dir"))) {
            (Some(dirs), _) | (None, Some(dirs)) => dirs.into_iter().map(PathBuf::from).collect(),
            (None, None) => vec![PathBuf::from("/tmp/kafka-logs")],
        };
        let Some(first_dir) = log_dirs.first() else {
            return Err(ConfigError::Empty { key: "log.dirs" });
        };
        if log_dirs.iter().any(|dir| dir.as_os_str().is_empty()) {
            return Err(ConfigError::EmptyElement { key: "log.dirs" });
        }
        let metadata_dir = match get("metadata.log.dir").map(str::trim).filter(|dir| !dir.is_empty()) {
            Some(dir) => PathBuf::from(dir),
            None => first_dir.clone(),
        };
        let unstable_features = match get("unstable.feature.versions.enable").map(str::trim) {
            None => false,
            Some(text) if text.eq_ignore_ascii_case("true") => true,
            Some(text) if text.eq_ignore_ascii_case("false") => false,
            Some(text) => {
                return Err(ConfigError::Invalid {
                    key: "unstable.feature.versions.enable",
                    value: text.to_owned(),
                    reason: "Expected value to be either true or false",
                });
            }
        };
        let min_insync_replicas = match get("min.insync.replicas") {
            None => 1,
            Some(text) => integer("min.insync.replicas", text)?,
        };

        let names: Vec<String> = controller_listener_names.iter().map(|n| n.to_uppercase()).collect();
        let known = listener_protocols(get("listener.security.protocol.map"), &controller_listener_names);
        let listeners = listeners(get("listeners").unwrap_or("PLAINTEXT://:9092"), &known)?;
        let advertised = match get("advertised.listeners").filter(|text| !text.trim().is_empty()) {
            Some(text) => Some(self::listeners(text, &known)?),
            None => None,
        };
        let voters = voters(list(get("controller.quorum.voters")).unwrap_or_default())?;
        let bootstrap_servers = list(get("controller.quorum.bootstrap.servers")).unwrap_or_default();
        if voters.is_empty() && bootstrap_servers.is_empty() {
            return Err(ConfigError::NoQuorum);
        }

        let is = |role| roles.contains(&role);
        let voter_ids = || VoterIds(voters.iter().map(|v| v.id).collect());
        let is_voter = voters.iter().any(|v| v.id == node_id);
        let of_controller = |l: &Listener| names.contains(&l.name);
        if !is(ProcessRole::Controller) {
            if is_voter {
                return Err(ConfigError::BrokerIsVoter { node_id, voters: voter_ids() });
            }
            if listeners.iter().any(of_controller) {
                return Err(ConfigError::BrokerHasControllerListener);
            }
        } else {
            if !is(ProcessRole::Broker) && !listeners.iter().all(of_controller) {
                return Err(ConfigError::ForeignListener);
            }
            if !voters.is_empty() && !is_voter {
                return Err(ConfigError::NotAVoter { node_id, voters: voter_ids() });
            }
            if !names.iter().all(|name| listeners.iter().any(|l| l.name == *name)) {
                return Err(ConfigError::ControllerListenerUnknown);
            }
            let for_clients = advertised.as_ref().unwrap_or(&listeners);
            if is(ProcessRole::Broker) && for_clients.iter().all(of_controller) {
                return Err(ConfigError::NoBrokerListener);
            }
        }

        let find = |from: &[Listener], name: &String| from.iter().find(|l| l.name == *name).cloned();
        let controller_listeners = names
            .iter()
            .filter_map(|name| {
                let advertised = advertised.as_deref().and_then(|list| find(list, name));
                advertised.or_else(|| find(&listeners, name))
            })
            .collect();
        let other_keys =
            properties.iter().map(|(key, _)| key).filter(|key| !KEYS.contains(key)).map(str::to_owned);
        Ok(NodeConfig {
            roles,
            node_id,
            log_dirs: log_dirs.clone(),
            metadata_dir,
            controller_listener_names,
            controller_listeners,
            voters,
            unstable_features,
            min_insync_replicas,
            other_keys: other_keys.collect(),
        })
    }

    /// True if the node has this role.
    pub fn has_role(&self, role: ProcessRole) -> bool {
        self.roles.contains(&role)
    }

    /// `node.id`.
    pub fn node_id(&self) -> i32 {
        self.node_id
    }

    /// `log.dirs` as given.
    pub fn log_dirs(&self) -> &[PathBuf] {
        &self.log_dirs
    }

    /// `metadata.log.dir`, or the first of `log.dirs`.
    pub fn metadata_dir(&self) -> &Path {
        &self.metadata_dir
    }

    /// `log.dirs` and the metadata directory, without duplicates, sorted (B-7). Like Kafka this
    /// compares texts; two names of one directory meet at its lock.
    pub fn all_dirs(&self) -> Vec<PathBuf> {
        let dirs: BTreeSet<&PathBuf> = self.log_dirs.iter().chain([&self.metadata_dir]).collect();
        // By the whole text, as Java sorts strings; `Path` would compare component by component.
        let mut dirs: Vec<PathBuf> = dirs.into_iter().cloned().collect();
        dirs.sort_by(|a, b| a.as_os_str().cmp(b.as_os_str()));
        dirs.dedup_by(|a, b| a.as_os_str() == b.as_os_str());
        dirs
    }

    /// `controller.listener.names`, as given; never empty.
    pub fn controller_listener_names(&self) -> &[String] {
        &self.controller_listener_names
    }

    /// Where other nodes reach this controller: the advertised address of each controller listener,
    /// or the one it binds to.
    pub fn controller_listeners(&self) -> &[Listener] {
        &self.controller_listeners
    }

    /// `controller.quorum.voters`; empty for a dynamic quorum.
    pub fn static_voters(&self) -> &[StaticVoter] {
        &self.voters
    }

    /// `unstable.feature.versions.enable`.
    pub fn unstable_features(&self) -> bool {
        self.unstable_features
    }

    /// `min.insync.replicas`, which the bootstrap writes into the log where ELR is on (B-78).
    pub fn min_insync_replicas(&self) -> i32 {
        self.min_insync_replicas
    }

    /// Keys that this crate does not read: a server's other settings, or misspelt ones.
    pub fn other_keys(&self) -> &[String] {
        &self.other_keys
    }
}

/// A list as Kafka reads it: split at commas, blanks trimmed, nothing for an empty text.
fn list(text: Option<&str>) -> Option<Vec<String>> {
    let text = text?.trim();
    if text.is_empty() {
        return Some(Vec::new());
    }
    Some(text.split(',').map(|part| part.trim().to_owned()).collect())
}

fn integer(key: &'static str, text: &str) -> Result<i32, ConfigError> {
    text.trim().parse().map_err(|_| ConfigError::Invalid {
        key,
        value: text.to_owned(),
        reason: "Not a number of type INT",
    })
}

fn roles(texts: Vec<String>) -> Result<BTreeSet<ProcessRole>, ConfigError> {
    if texts.is_empty() {
        return Err(ConfigError::NoRoles);
    }
    let role = |text: &String| match text.as_str() {
        "broker" => Ok(ProcessRole::Broker),
        "controller" => Ok(ProcessRole::Controller),
        other => Err(ConfigError::Invalid {
            key: "process.roles",
            value: other.to_owned(),
            reason: "String must be one of: broker, controller",
        }),
    };
    texts.iter().map(role).collect()
}

/// Names that have a security protocol: those of the map, or the built-in ones and, without a map,
/// the controller's as they are written: Kafka looks up the upper-case form, so a lower-case one
/// is unknown there.
fn listener_protocols(map: Option<&str>, controller_names: &[String]) -> Vec<String> {
    match list(map) {
        Some(entries) => entries
            .iter()
            .filter_map(|e| e.split_once(':'))
            .map(|(name, _)| name.trim().to_uppercase())
            .collect(),
        None => ["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"]
            .into_iter()
            .map(str::to_owned)
            .chain(controller_names.iter().cloned())
            .collect(),
    }
}

fn listeners(text: &str, known: &[String]) -> Result<Vec<Listener>, ConfigError> {
    let entries = list(Some(text)).unwrap_or_default();
    let fail = |reason: String| ConfigError::Listeners { listeners: entries.join(", "), reason };
    let mut listeners = Vec::new();
    for entry in &entries {
        let listener =
            listener(entry).ok_or_else(|| fail(format!("Unable to parse {entry} to a broker endpoint")))?;
        if !known.contains(&listener.name) {
            return Err(fail(format!("No security protocol defined for listener {}", listener.name)));
        }
        listeners.push(listener);
    }
    Ok(listeners)
}

/// `NAME://host:port`, the host possibly empty or in brackets.
fn listener(entry: &str) -> Option<Listener> {
    let (name, address) = entry.split_once("://")?;
    let (host, port) = address.rsplit_once(':')?;
    let port: i32 = port.parse().ok()?;
    let host = host.strip_prefix('[').unwrap_or(host);
    let host = host.strip_suffix(']').unwrap_or(host);
    let legal = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'%' | b'.' | b'_' | b':');
    if !host.bytes().all(legal) {
        return None;
    }
    let host = Some(host).filter(|host| !host.is_empty() && *host != "0.0.0.0").map(str::to_owned);
    Some(Listener { name: name.to_uppercase(), host, port })
}

fn voters(entries: Vec<String>) -> Result<Vec<StaticVoter>, ConfigError> {
    let mut voters: Vec<StaticVoter> = Vec::new();
    for entry in entries {
        let bad = || ConfigError::VoterEntry { entry: entry.clone() };
        let (id, address) = entry.split_once('@').ok_or_else(bad)?;
        let id: i32 = id.parse().map_err(|_| ConfigError::VoterId { text: id.to_owned() })?;
        let (host, port) = address.rsplit_once(':').ok_or_else(bad)?;
        let host = host.strip_prefix('[').and_then(|h| h.strip_suffix(']')).unwrap_or(host);
        let port: u16 = port.parse().map_err(|_| bad())?;
        if host.is_empty() {
            return Err(bad());
        }
        // Of a repeated id the last entry counts, as in Kafka's map.
        voters.retain(|v| v.id != id);
        voters.push(StaticVoter { id, host: host.to_owned(), port });
    }
    voters.sort_by_key(|v| v.id);
    Ok(voters)
}
