//! Starting a node: identity over all its directories (B-7 to B-24, field cases C-2, C-6, C-8, C-9,
//! C-11 to C-13).
#![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]

mod support;

use kraftlog::ErrorKind;
use kraftlog::node::{LearnError, Node, NodeConfig, StartError, StartOptions};
use kraftlog_codecs::properties::Properties;
use std::path::PathBuf;
use std::sync::Arc;
use support::Place;

const ID: &str = "Jk01gj4RQRegVl2GLqYuTg";
const DIR_A: &str = "Y0_TxaqAQb2tTuW2MXphaA";
const DIR_B: &str = "FNu1jmuxSF2vc8q95hCkCQ";

/// A node whose log directories lie side by side.
struct Dirs(Place);

impl Dirs {
    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, name: &str, text: impl AsRef<[u8]>) {
        self.0.write(&self.path(name), text);
    }

    fn meta(&self, dir: &str, cluster: &str, node: i32, id: Option<&str>) {
        let id = id.map_or(String::new(), |id| format!("directory.id={id}\n"));
        self.write(
            &format!("{dir}/meta.properties"),
            format!("version=1\ncluster.id={cluster}\nnode.id={node}\n{id}"),
        );
    }

    fn config(&self, roles: &str, dirs: &[&str], quorum: &str) -> NodeConfig {
        let dirs: Vec<_> = dirs.iter().map(|d| self.path(d).to_str().unwrap().to_owned()).collect();
        let listeners = match roles {
            "broker" => "PLAINTEXT://h:9092",
            "controller" => "CONTROLLER://h:9093",
            _ => "PLAINTEXT://h:9092,CONTROLLER://h:9093",
        };
        let properties: Properties = [
            ("process.roles", roles),
            ("node.id", "1"),
            ("listeners", listeners),
            ("controller.listener.names", "CONTROLLER"),
            (quorum, if quorum.ends_with("voters") { "1@h:9093" } else { "h:9093" }),
            ("log.dirs", &dirs.join(",")),
        ]
        .into_iter()
        .collect();
        NodeConfig::from_properties(&properties).unwrap()
    }

    fn start_with(&self, config: NodeConfig, options: StartOptions) -> Result<Node, StartError> {
        let (rt, backend) = (Arc::clone(&self.0.rt), self.0.backend.clone());
        self.0.run(Node::start_with_rt(config, options, rt, backend))
    }

    fn start(&self, dirs: &[&str]) -> Result<Node, StartError> {
        let config = self.config("broker,controller", dirs, "controller.quorum.bootstrap.servers");
        self.start_with(config, StartOptions::default())
    }

    fn discover(&self, config: NodeConfig) -> Result<Node, StartError> {
        let mut options = StartOptions::default();
        options.discover_cluster_id = true;
        self.start_with(config, options)
    }

    fn read(&self, name: &str) -> String {
        self.0.read_text(&self.path(name))
    }

    fn tree(&self) -> Vec<(PathBuf, Vec<u8>)> {
        self.0.everything()
    }

    fn refused(&self, dirs: &[&str]) -> StartError {
        let before = self.tree();
        let error = self.start(dirs).err().expect("the node started");
        assert_eq!(self.tree(), before, "a refused start changed something");
        error
    }
}

fn send<T: Send>(value: T) -> T {
    value
}

on_every_backend! {
    fn a_formatted_node_starts_and_keeps_its_files(place: &Place) {
        let place = Dirs(place.another());
        place.meta("d1", ID, 1, Some(DIR_A));
        place.meta("d2", ID, 1, Some(DIR_B));
        let before = place.tree();
        let node = place.start(&["d1", "d2"]).unwrap();
        assert_eq!(node.identity().node_id(), 1);
        assert_eq!(node.identity().directory_id(&place.path("d1")).unwrap().to_string(), DIR_A);
        assert_eq!(node.identity().directories().count(), 2);
        assert_eq!(node.cluster_id().get().as_deref(), Some(ID));
        assert_eq!(&*place.0.run(node.cluster_id().wait()), ID);
        assert_eq!(node.metadata_dir().path(), place.path("d1"));
        for dir in ["d1", "d2"] {
            let again = place.0.rt.lock_dir(&place.path(dir));
            assert!(again.is_err(), "{dir} is not locked");
        }
        let error = place.start(&["d1", "d2"]).err().unwrap();
        assert_eq!((error.kind(), error.name()), (ErrorKind::Locked, "DirectoryLocked"));
        drop(node);
        assert_eq!(place.tree(), before);
        // The future may go to any thread of a runtime.
        let config = place.config("broker", &["d1"], "controller.quorum.bootstrap.servers");
        drop(send(Node::start(config)));
    }

    #[not_on_sim = "brings its own runtime, for the real disk"]
    fn a_node_starts_without_a_runtime_of_the_callers(place: &Place) {
        let place = Dirs(place.another());
        place.meta("d1", ID, 1, Some(DIR_A));
        let config = place.config("controller", &["d1"], "controller.quorum.bootstrap.servers");
        let node = Node::start_blocking(config, StartOptions::default()).unwrap();
        assert_eq!(node.identity().node_id(), 1);
    }

    fn a_missing_directory_id_is_drawn_and_the_version_kept(place: &Place) {
        let place = Dirs(place.another());
        place.write("d1/meta.properties", format!("broker.id=1\ncluster.id={ID}\n"));
        place.meta("d2", ID, 1, Some(DIR_B));
        let kept = place.read("d2/meta.properties");
        let node = place.start(&["d1", "d2"]).unwrap();
        let text = place.read("d1/meta.properties");
        let id = node.identity().directory_id(&place.path("d1")).unwrap();
        let lines: Vec<&str> = text.lines().skip(2).collect();
        assert_eq!(
            lines,
            ["broker.id=1", &format!("directory.id={id}"), "version=0", &format!("cluster.id={ID}")],
            "the order of a Kafka on JDK 17"
        );
        assert_eq!(place.read("d2/meta.properties"), kept);
    }

    fn a_directory_without_a_file_is_named_with_the_command_to_run(place: &Place) {
        let place = Dirs(place.another());
        place.meta("d1", ID, 1, Some(DIR_A));
        let error = place.refused(&["d1", "d2"]);
        assert_eq!(error.name(), "NotFormatted");
        let text = error.to_string();
        assert!(text.contains(place.path("d2").to_str().unwrap()) && text.contains("format"), "{text}");
    }

    fn directories_of_another_cluster_or_node_are_refused(place: &Place) {
        let place = Dirs(place.another());
        place.meta("d1", ID, 1389, Some(DIR_A));
        let error = place.refused(&["d1"]);
        assert_eq!(error.name(), "NodeIdMismatch");
        assert!(error.to_string().contains("Stored node id 1389 doesn't match previous node id 1"), "{error}");

        place.meta("d1", "MkU3OEVBNTcwNTJENDM2Qg", 1, Some(DIR_A));
        place.meta("d2", "MkU3OEVBNTcwNTJENDM2Qk", 1, Some(DIR_B));
        let StartError::Identity(error) = place.refused(&["d1", "d2"]) else { panic!("another error") };
        assert_eq!(error.name(), "ClusterIdMismatch");
        assert!(error.details()[0].contains("same 16 bytes, different last character"));

        place.meta("d1", ID, 1, Some(DIR_A));
        place.meta("d2", ID, 1, Some(DIR_A));
        assert_eq!(place.refused(&["d1", "d2"]).name(), "DuplicateDirectoryId");
        place.meta("d2", ID, 1, Some("AAAAAAAAAAAAAAAAAAAAAQ"));
        assert!(place.refused(&["d1", "d2"]).to_string().starts_with("Invalid reserved directory ID"));
    }

    fn files_that_cannot_be_understood_are_refused_by_their_names(place: &Place) {
        for (text, name) in [
            ("", "EmptyMetaProperties"),
            ("version=1\nnode.id=1\n", "ClusterIdMissing"),
            ("version=3\nnode.id=1\ncluster.id=x\n", "UnsupportedMetaVersion"),
            ("version=2\ncluster.id=x\n", "MetaPropertiesInvalid"),
            ("version=one\nnode.id=1\ncluster.id=x\n", "MetaPropertiesInvalid"),
            ("broker.id=1\n", "ClusterIdMissing"),
        ] {
            let place = Dirs(place.another());
            place.write("d1/meta.properties", text);
            assert_eq!(place.refused(&["d1"]).name(), name, "{text:?}");
        }
    }

    fn a_broken_data_directory_is_left_offline(place: &Place) {
        let place = Dirs(place.another());
        place.meta("d1", ID, 1, Some(DIR_A));
        place.write("d2", "a file in its place");
        let node = place.start(&["d1", "d2"]).unwrap();
        assert_eq!(node.identity().directories().count(), 1);
        assert_eq!(node.identity().directory_id(&place.path("d2")), None);
    }

    fn a_metadata_log_outside_of_the_metadata_directory_is_refused(place: &Place) {
        let place = Dirs(place.another());
        place.meta("d1", ID, 1, Some(DIR_A));
        place.meta("d2", ID, 1, Some(DIR_B));
        place.write("d2/__cluster_metadata-0/x", "");
        let error = place.refused(&["d1", "d2"]);
        assert!(matches!(error, StartError::UnexpectedMetadataLog { .. }), "{error}");
    }

    fn a_broker_may_learn_its_cluster_and_a_voter_may_not(place: &Place) {
        let place = Dirs(place.another());
        let broker = place.config("broker", &["d1", "d2"], "controller.quorum.bootstrap.servers");
        let node = place.discover(broker.clone()).unwrap();
        assert_eq!(node.cluster_id().get(), None);
        assert!(place.read("d1/meta.properties").contains("version=2\n"));
        assert!(!place.read("d1/meta.properties").contains("cluster.id"));
        place.0.run(async {
            node.learn_cluster_id(ID).await.unwrap();
            node.learn_cluster_id(ID).await.unwrap();
            let error = node.learn_cluster_id("another").await.unwrap_err();
            assert!(matches!(error, LearnError::Mismatch { .. }), "{error}");
        });
        assert_eq!(node.cluster_id().get().as_deref(), Some(ID));
        for dir in ["d1", "d2"] {
            assert!(place.read(&format!("{dir}/meta.properties")).contains(&format!("cluster.id={ID}\n")));
        }
        drop(node);
        // Known from now on; the other directory is completed after a crash in between.
        place.write("d2/meta.properties", "version=2\nnode.id=1\n");
        let node = place.discover(broker).unwrap();
        assert_eq!(node.cluster_id().get().as_deref(), Some(ID));
        assert!(place.read("d2/meta.properties").contains(&format!("cluster.id={ID}\n")));

        let place = Dirs(place.0.another());
        place.0.make_dir(&place.path("d1"));
        let voter = place.config("controller", &["d1"], "controller.quorum.voters");
        assert_eq!(place.discover(voter).err().unwrap().name(), "NotFormatted");
        assert!(place.tree().is_empty());
    }
}
