//! The golden vectors of the format reference: bytes that codecs generated from Kafka's own schemas
//! wrote for these values.

use super::hex;
use crate::metadata::*;
use crate::tagged::UnknownTags;
use crate::uuid::Uuid;

const NONE: UnknownTags<'static> = UnknownTags::EMPTY;

fn id(text: &str) -> Uuid {
    text.parse().unwrap()
}

fn golden<'a>(record: impl Into<MetadataRecord<'a>>, version: i16, expected: &str) {
    let (record, bytes) = (record.into(), hex(expected));
    let mut out = Vec::new();
    record.encode(version, &mut out).unwrap();
    assert_eq!(out, bytes, "{record:?} at {version}");
    assert_eq!(MetadataRecord::decode(&bytes), Ok(Framed { record, version }));
}

#[test]
#[expect(clippy::too_many_lines, reason = "one call a vector")]
fn every_golden_vector_is_written_and_read() {
    let a0 = ArrayBuf::of([BrokerEndpoint {
        name: "L",
        host: "h",
        port: 65535,
        security_protocol: 3,
        ..Default::default()
    }])
    .unwrap();
    let a1 = ArrayBuf::of([BrokerFeature {
        name: "f",
        min_supported_version: 7,
        max_supported_version: 30,
        ..Default::default()
    }])
    .unwrap();
    golden(
        RegisterBrokerRecord {
            broker_id: 1,
            incarnation_id: id("AAAAAAAAAAIAAAAAAAAAAg"),
            broker_epoch: 3,
            end_points: a0.array(),
            features: a1.array(),
            rack: Some("r"),
            fenced: true,
            in_controlled_shutdown: false,
            log_dirs: Array::empty(),
            cordoned_log_dirs: None,
            ..Default::default()
        },
        0,
        "0100000000000100000000000000020000000000000002000000000000000302024c0268ffff0003000202660007001e0002720100",
    );
    let a0 = ArrayBuf::of([BrokerEndpoint {
        name: "L",
        host: "h",
        port: 65535,
        security_protocol: 3,
        ..Default::default()
    }])
    .unwrap();
    let a1 = ArrayBuf::of([BrokerFeature {
        name: "f",
        min_supported_version: 7,
        max_supported_version: 30,
        ..Default::default()
    }])
    .unwrap();
    golden(
        RegisterBrokerRecord {
            broker_id: 1,
            incarnation_id: id("AAAAAAAAAAIAAAAAAAAAAg"),
            broker_epoch: 3,
            end_points: a0.array(),
            features: a1.array(),
            rack: Some("r"),
            fenced: true,
            in_controlled_shutdown: true,
            log_dirs: Array::empty(),
            cordoned_log_dirs: None,
            ..Default::default()
        },
        1,
        "0100010000000100000000000000020000000000000002000000000000000302024c0268ffff0003000202660007001e000272010100",
    );
    let a0 = ArrayBuf::of([BrokerEndpoint {
        name: "L",
        host: "h",
        port: 65535,
        security_protocol: 3,
        ..Default::default()
    }])
    .unwrap();
    let a1 = ArrayBuf::of([BrokerFeature {
        name: "f",
        min_supported_version: 7,
        max_supported_version: 30,
        ..Default::default()
    }])
    .unwrap();
    golden(
        RegisterBrokerRecord {
            broker_id: 1,
            is_migrating_zk_broker: true,
            incarnation_id: id("AAAAAAAAAAIAAAAAAAAAAg"),
            broker_epoch: 3,
            end_points: a0.array(),
            features: a1.array(),
            rack: None,
            fenced: true,
            in_controlled_shutdown: false,
            log_dirs: Array::empty(),
            cordoned_log_dirs: None,
            unknown_tags: NONE,
        },
        2,
        "010002000000010100000000000000020000000000000002000000000000000302024c0268ffff0003000202660007001e0000010000",
    );
    let a0 = ArrayBuf::of([BrokerEndpoint {
        name: "L",
        host: "h",
        port: 65535,
        security_protocol: 3,
        ..Default::default()
    }])
    .unwrap();
    let a1 = ArrayBuf::of([BrokerFeature {
        name: "f",
        min_supported_version: 7,
        max_supported_version: 30,
        ..Default::default()
    }])
    .unwrap();
    let a2 = ArrayBuf::of([id("AAAAAAAAAAQAAAAAAAAABA")]).unwrap();
    golden(
        RegisterBrokerRecord {
            broker_id: 1,
            incarnation_id: id("AAAAAAAAAAIAAAAAAAAAAg"),
            broker_epoch: 3,
            end_points: a0.array(),
            features: a1.array(),
            rack: Some("r"),
            fenced: true,
            in_controlled_shutdown: false,
            log_dirs: a2.array(),
            cordoned_log_dirs: None,
            ..Default::default()
        },
        3,
        "010003000000010000000000000000020000000000000002000000000000000302024c0268ffff0003000202660007001e00027201000100110200000000000000040000000000000004",
    );
    let a0 = ArrayBuf::of([BrokerEndpoint {
        name: "L",
        host: "h",
        port: 65535,
        security_protocol: 3,
        ..Default::default()
    }])
    .unwrap();
    let a1 = ArrayBuf::of([BrokerFeature {
        name: "f",
        min_supported_version: 7,
        max_supported_version: 30,
        ..Default::default()
    }])
    .unwrap();
    let a2 = ArrayBuf::of([id("AAAAAAAAAAQAAAAAAAAABA")]).unwrap();
    golden(
        RegisterBrokerRecord {
            broker_id: 1,
            incarnation_id: id("AAAAAAAAAAIAAAAAAAAAAg"),
            broker_epoch: 3,
            end_points: a0.array(),
            features: a1.array(),
            rack: Some("r"),
            fenced: true,
            in_controlled_shutdown: false,
            log_dirs: a2.array(),
            cordoned_log_dirs: Some(Array::empty()),
            ..Default::default()
        },
        4,
        "010004000000010000000000000000020000000000000002000000000000000302024c0268ffff0003000202660007001e00027201000200110200000000000000040000000000000004010101",
    );
    golden(
        UnregisterBrokerRecord { broker_id: 1, broker_epoch: 2, unknown_tags: NONE },
        0,
        "01010000000001000000000000000200",
    );
    golden(
        TopicRecord { name: "foo", topic_id: id("AAAAAAAAAAEAAAAAAAAAAQ"), unknown_tags: NONE },
        0,
        "01020004666f6f0000000000000001000000000000000100",
    );
    let a0 = ArrayBuf::of([1, 2]).unwrap();
    let a1 = ArrayBuf::of([1]).unwrap();
    let a2 = ArrayBuf::of([2]).unwrap();
    golden(
        PartitionRecord {
            partition_id: 1,
            topic_id: id("AAAAAAAAAAIAAAAAAAAAAg"),
            replicas: a0.array(),
            isr: a1.array(),
            removing_replicas: Array::empty(),
            adding_replicas: a2.array(),
            leader: 1,
            leader_recovery_state: 1,
            leader_epoch: 3,
            partition_epoch: 4,
            directories: Array::empty(),
            eligible_leader_replicas: None,
            last_known_elr: None,
            unknown_tags: NONE,
        },
        0,
        "0103000000000100000000000000020000000000000002030000000100000002020000000101020000000200000001000000030000000401000101",
    );
    let a0 = ArrayBuf::of([1, 2]).unwrap();
    let a1 = ArrayBuf::of([1]).unwrap();
    let a2 = ArrayBuf::of([2]).unwrap();
    let a3 = ArrayBuf::of([id("AAAAAAAAAAUAAAAAAAAABQ"), id("AAAAAAAAAAAAAAAAAAAAAQ")]).unwrap();
    golden(
        PartitionRecord {
            partition_id: 1,
            topic_id: id("AAAAAAAAAAIAAAAAAAAAAg"),
            replicas: a0.array(),
            isr: a1.array(),
            removing_replicas: Array::empty(),
            adding_replicas: a2.array(),
            leader: 1,
            leader_recovery_state: 0,
            leader_epoch: 3,
            partition_epoch: 4,
            directories: a3.array(),
            eligible_leader_replicas: None,
            last_known_elr: None,
            unknown_tags: NONE,
        },
        1,
        "0103010000000100000000000000020000000000000002030000000100000002020000000101020000000200000001000000030000000403000000000000000500000000000000050000000000000000000000000000000100",
    );
    let a0 = ArrayBuf::of([1, 2]).unwrap();
    let a1 = ArrayBuf::of([1]).unwrap();
    let a2 = ArrayBuf::of([2]).unwrap();
    let a3 = ArrayBuf::of([id("AAAAAAAAAAUAAAAAAAAABQ"), id("AAAAAAAAAAYAAAAAAAAABg")]).unwrap();
    let a4 = ArrayBuf::of([2]).unwrap();
    golden(
        PartitionRecord {
            partition_id: 1,
            topic_id: id("AAAAAAAAAAIAAAAAAAAAAg"),
            replicas: a0.array(),
            isr: a1.array(),
            removing_replicas: Array::empty(),
            adding_replicas: a2.array(),
            leader: 1,
            leader_recovery_state: 0,
            leader_epoch: 3,
            partition_epoch: 4,
            directories: a3.array(),
            eligible_leader_replicas: Some(a4.array()),
            last_known_elr: Some(Array::empty()),
            unknown_tags: NONE,
        },
        2,
        "010302000000010000000000000002000000000000000203000000010000000202000000010102000000020000000100000003000000040300000000000000050000000000000005000000000000000600000000000000060201050200000002020101",
    );
    golden(
        ConfigRecord {
            resource_type: 2,
            resource_name: "foo",
            name: "k",
            value: Some("v"),
            unknown_tags: NONE,
        },
        0,
        "0104000204666f6f026b027600",
    );
    golden(
        ConfigRecord { resource_type: 4, resource_name: "", name: "k", value: None, unknown_tags: NONE },
        0,
        "0104000401026b0000",
    );
    let a0 = ArrayBuf::of([1]).unwrap();
    golden(
        PartitionChangeRecord {
            partition_id: 1,
            topic_id: id("AAAAAAAAAAIAAAAAAAAAAg"),
            isr: Some(a0.array()),
            leader: 1,
            replicas: None,
            removing_replicas: None,
            adding_replicas: None,
            leader_recovery_state: 0,
            directories: None,
            eligible_leader_replicas: None,
            last_known_elr: None,
            unknown_tags: NONE,
        },
        0,
        "01050000000001000000000000000200000000000000020300050200000001010400000001050100",
    );
    let a0 = ArrayBuf::of([1]).unwrap();
    let a1 = ArrayBuf::of([id("AAAAAAAAAAUAAAAAAAAABQ")]).unwrap();
    golden(
        PartitionChangeRecord {
            partition_id: 1,
            topic_id: id("AAAAAAAAAAIAAAAAAAAAAg"),
            isr: Some(a0.array()),
            leader: 1,
            replicas: None,
            removing_replicas: None,
            adding_replicas: None,
            leader_recovery_state: -1,
            directories: Some(a1.array()),
            eligible_leader_replicas: None,
            last_known_elr: None,
            unknown_tags: NONE,
        },
        1,
        "0105010000000100000000000000020000000000000002030005020000000101040000000108110200000000000000050000000000000005",
    );
    let a0 = ArrayBuf::of([1]).unwrap();
    let a1 = ArrayBuf::of([1]).unwrap();
    let a2 = ArrayBuf::of([id("AAAAAAAAAAUAAAAAAAAABQ")]).unwrap();
    let a3 = ArrayBuf::of([2]).unwrap();
    golden(
        PartitionChangeRecord {
            partition_id: 1,
            topic_id: id("AAAAAAAAAAIAAAAAAAAAAg"),
            isr: Some(a0.array()),
            leader: 1,
            replicas: Some(a1.array()),
            removing_replicas: Some(Array::empty()),
            adding_replicas: Some(Array::empty()),
            leader_recovery_state: -1,
            directories: Some(a2.array()),
            eligible_leader_replicas: Some(a3.array()),
            last_known_elr: Some(Array::empty()),
            unknown_tags: NONE,
        },
        2,
        "01050200000001000000000000000200000000000000020800050200000001010400000001020502000000010301010401010605020000000207010108110200000000000000050000000000000005",
    );
    golden(FenceBrokerRecord { id: 1, epoch: 2, unknown_tags: NONE }, 0, "01070000000001000000000000000200");
    golden(
        UnfenceBrokerRecord { id: 1, epoch: 2, unknown_tags: NONE },
        0,
        "01080000000001000000000000000200",
    );
    golden(
        RemoveTopicRecord { topic_id: id("AAAAAAAAAAEAAAAAAAAAAQ"), unknown_tags: NONE },
        0,
        "0109000000000000000001000000000000000100",
    );
    let a0 = ArrayBuf::of(["User:c"]).unwrap();
    golden(
        DelegationTokenRecord {
            owner: "User:a",
            requester: "User:b",
            renewers: a0.array(),
            issue_timestamp: 1,
            max_timestamp: 2,
            expiration_timestamp: 3,
            token_id: "t",
            unknown_tags: NONE,
        },
        0,
        "010a0007557365723a6107557365723a620207557365723a63000000000000000100000000000000020000000000000003027400",
    );
    golden(
        UserScramCredentialRecord {
            name: "a",
            mechanism: 1,
            salt: &[1],
            stored_key: &[2, 3],
            server_key: &[],
            iterations: 4096,
            unknown_tags: NONE,
        },
        0,
        "010b000261010201030203010000100000",
    );
    golden(
        FeatureLevelRecord { name: "metadata.version", feature_level: 30, unknown_tags: NONE },
        0,
        "010c00116d657461646174612e76657273696f6e001e00",
    );
    let a0 =
        ArrayBuf::of([EntityData { entity_type: "user", entity_name: None, ..Default::default() }]).unwrap();
    golden(
        ClientQuotaRecord { entity: a0.array(), key: "k", value: 1.5, remove: true, unknown_tags: NONE },
        0,
        "010e000205757365720000026b3ff80000000000000100",
    );
    golden(
        ProducerIdsRecord { broker_id: 1, broker_epoch: 2, next_producer_id: 1000, unknown_tags: NONE },
        0,
        "010f0000000001000000000000000200000000000003e800",
    );
    golden(
        BrokerRegistrationChangeRecord {
            broker_id: 1,
            broker_epoch: 2,
            fenced: -1,
            in_controlled_shutdown: 0,
            log_dirs: Array::empty(),
            cordoned_log_dirs: None,
            unknown_tags: NONE,
        },
        0,
        "011100000000010000000000000002010001ff",
    );
    golden(
        BrokerRegistrationChangeRecord {
            broker_id: 1,
            broker_epoch: 2,
            fenced: 0,
            in_controlled_shutdown: 1,
            log_dirs: Array::empty(),
            cordoned_log_dirs: None,
            unknown_tags: NONE,
        },
        1,
        "01110100000001000000000000000201010101",
    );
    let a0 = ArrayBuf::of([id("AAAAAAAAAAMAAAAAAAAAAw")]).unwrap();
    golden(
        BrokerRegistrationChangeRecord {
            broker_id: 1,
            broker_epoch: 2,
            fenced: 0,
            in_controlled_shutdown: 0,
            log_dirs: a0.array(),
            cordoned_log_dirs: None,
            unknown_tags: NONE,
        },
        2,
        "0111020000000100000000000000020102110200000000000000030000000000000003",
    );
    golden(
        BrokerRegistrationChangeRecord {
            broker_id: 1,
            broker_epoch: 2,
            fenced: 1,
            in_controlled_shutdown: 0,
            log_dirs: Array::empty(),
            cordoned_log_dirs: Some(Array::empty()),
            unknown_tags: NONE,
        },
        3,
        "01110300000001000000000000000202000101030101",
    );
    golden(
        AccessControlEntryRecord {
            id: id("AAAAAAAAAAEAAAAAAAAAAQ"),
            resource_type: 2,
            resource_name: "foo",
            pattern_type: 3,
            principal: "User:a",
            host: "*",
            operation: 3,
            permission_type: 3,
            unknown_tags: NONE,
        },
        0,
        "011200000000000000000100000000000000010204666f6f0307557365723a61022a030300",
    );
    golden(
        RemoveAccessControlEntryRecord { id: id("AAAAAAAAAAEAAAAAAAAAAQ"), unknown_tags: NONE },
        0,
        "0113000000000000000001000000000000000100",
    );
    golden(NoOpRecord { ..Default::default() }, 0, "01140000");
    golden(ZkMigrationStateRecord { zk_migration_state: 3, unknown_tags: NONE }, 0, "0115000300");
    golden(
        RemoveUserScramCredentialRecord { name: "a", mechanism: 2, unknown_tags: NONE },
        0,
        "01160002610200",
    );
    golden(BeginTransactionRecord { name: None, unknown_tags: NONE }, 0, "01170000");
    golden(
        BeginTransactionRecord { name: Some("Bootstrap records"), unknown_tags: NONE },
        0,
        "01170001001212426f6f747374726170207265636f726473",
    );
    golden(EndTransactionRecord { ..Default::default() }, 0, "01180000");
    golden(
        AbortTransactionRecord { reason: Some("Controller failover"), unknown_tags: NONE },
        0,
        "01190001001414436f6e74726f6c6c6572206661696c6f766572",
    );
    golden(RemoveDelegationTokenRecord { token_id: "t", unknown_tags: NONE }, 0, "011a00027400");
    let a0 = ArrayBuf::of([ControllerEndpoint {
        name: "C",
        host: "h",
        port: 9093,
        security_protocol: 0,
        ..Default::default()
    }])
    .unwrap();
    let a1 = ArrayBuf::of([ControllerFeature {
        name: "f",
        min_supported_version: 0,
        max_supported_version: 1,
        ..Default::default()
    }])
    .unwrap();
    golden(
        RegisterControllerRecord {
            controller_id: 1,
            incarnation_id: id("AAAAAAAAAAIAAAAAAAAAAg"),
            zk_migration_ready: false,
            end_points: a0.array(),
            features: a1.array(),
            unknown_tags: NONE,
        },
        0,
        "011b0000000001000000000000000200000000000000020002024302682385000000020266000000010000",
    );
    golden(ClearElrRecord { topic_name: "", unknown_tags: NONE }, 0, "011c000100");
    golden(ClearElrRecord { topic_name: "foo", unknown_tags: NONE }, 0, "011c0004666f6f00");
    golden(UnregisterControllerRecord { controller_id: 1, unknown_tags: NONE }, 0, "011d000000000100");
}
