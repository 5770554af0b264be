import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;

import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.Config;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.NewPartitions;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.ScramCredentialInfo;
import org.apache.kafka.clients.admin.ScramMechanism;
import org.apache.kafka.clients.admin.TopicDescription;
import org.apache.kafka.clients.admin.UserScramCredentialUpsertion;
import org.apache.kafka.common.TopicPartitionInfo;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.quota.ClientQuotaAlteration;
import org.apache.kafka.common.quota.ClientQuotaEntity;

import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Properties;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;

/** A client of a running node: a few administrative operations, one after the other, each read back. */
final class Client {
    private final Admin admin;

    private Client(Admin admin) { this.admin = admin; }

    static int main(String[] args) throws Exception {
        Properties p = new Properties();
        if (args[0].startsWith("controller:")) p.put("bootstrap.controllers", args[0].substring(11));
        else p.put("bootstrap.servers", args[0]);
        p.put("default.api.timeout.ms", "40000");
        p.put("request.timeout.ms", "20000");
        try (Admin admin = Admin.create(p)) {
            Client c = new Client(admin);
            for (int i = 1; i < args.length; i++) {
                switch (args[i]) {
                    case "create": c.create(args[++i], Integer.parseInt(args[++i])); break;
                    case "topic": c.topic(args[++i], Integer.parseInt(args[++i])); break;
                    case "topic-config": c.expectConfig(ConfigResource.Type.TOPIC, args[++i], args[++i], args[++i]); break;
                    case "broker-config": c.brokerConfig(args[++i], args[++i]); break;
                    case "has-broker-config": c.expectConfig(ConfigResource.Type.BROKER, "", args[++i], args[++i]); break;
                    case "feature": c.feature(args[++i], Short.parseShort(args[++i])); break;
                    case "scram": c.scram(args[++i], args[++i], Integer.parseInt(args[++i])); break;
                    case "voters": c.voters(args[++i]); break;
                    case "busy": c.busy(args[++i], Integer.parseInt(args[++i])); break;
                    default: throw new IllegalArgumentException("unknown operation " + args[i]);
                }
            }
        } catch (ExecutionException e) {
            System.out.println("client: " + Json.error(e.getCause()));
            return 1;
        } catch (Exception e) {
            System.out.println("client: " + Json.error(e));
            return 1;
        }
        return 0;
    }

    /** What was asked for may reach the node that answers a moment later, so read until it is there. */
    private static <T> T eventually(String what, Callable<Optional<T>> read) throws Exception {
        Exception last = null;
        for (int i = 0; i < 150; i++) {
            try {
                Optional<T> found = read.call();
                if (found.isPresent()) return found.get();
            } catch (ExecutionException e) {
                last = e;
            }
            Thread.sleep(200);
        }
        throw new IllegalStateException("not seen after 30 s: " + what, last);
    }

    private void create(String name, int partitions) throws Exception {
        admin.createTopics(List.of(new NewTopic(name, partitions, (short) 1).configs(Map.of("retention.ms", "86400000")))).all().get();
        topic(name, partitions);
    }

    /** Prints the topic once each partition has a leader. */
    private void topic(String name, int partitions) throws Exception {
        TopicDescription d = eventually("topic " + name + " with " + partitions + " led partitions", () -> {
            TopicDescription t = admin.describeTopics(List.of(name)).allTopicNames().get().get(name);
            boolean led = t.partitions().stream().allMatch(x -> x.leader() != null && !x.leader().isEmpty());
            return led && t.partitions().size() == partitions ? Optional.of(t) : Optional.empty();
        });
        ObjectNode out = Json.object();
        out.put("topic", d.name()).put("id", d.topicId().toString());
        ArrayNode list = out.putArray("partitions");
        for (TopicPartitionInfo x : d.partitions())
            list.addObject().put("partition", x.partition()).put("leader", x.leader().id()).put("replicas", x.replicas().size()).put("isr", x.isr().size());
        Json.line(out);
        Json.flush();
    }

    private Optional<String> config(ConfigResource.Type type, String name, String key) throws Exception {
        ConfigResource r = new ConfigResource(type, name);
        Config c = admin.describeConfigs(List.of(r)).all().get().get(r);
        return Optional.ofNullable(c.get(key)).map(ConfigEntry::value);
    }

    private void expectConfig(ConfigResource.Type type, String name, String key, String value) throws Exception {
        eventually(key + "=" + value + " of " + type + " '" + name + "'", () -> config(type, name, key).filter(value::equals));
    }

    private void alter(ConfigResource.Type type, String name, String key, String value) throws Exception {
        Map<ConfigResource, Collection<AlterConfigOp>> ops = Map.of(new ConfigResource(type, name),
            List.of(new AlterConfigOp(new ConfigEntry(key, value), AlterConfigOp.OpType.SET)));
        admin.incrementalAlterConfigs(ops).all().get();
    }

    /** The cluster-wide default of all brokers: works against a controller without any broker. */
    private void brokerConfig(String key, String value) throws Exception {
        alter(ConfigResource.Type.BROKER, "", key, value);
        expectConfig(ConfigResource.Type.BROKER, "", key, value);
    }

    private void feature(String name, short level) throws Exception {
        eventually(name + "=" + level, () -> {
            var found = admin.describeFeatures().featureMetadata().get().finalizedFeatures().get(name);
            short is = found == null ? 0 : found.maxVersionLevel();
            return is == level ? Optional.of(is) : Optional.empty();
        });
    }

    private void scram(String user, String mechanism, int iterations) throws Exception {
        eventually("SCRAM credential of " + user, () -> admin.describeUserScramCredentials(List.of(user)).all().get().get(user).credentialInfos().stream()
            .filter(x -> x.mechanism() == ScramMechanism.fromMechanismName(mechanism) && x.iterations() == iterations).findAny());
    }

    /** The voters by id, ascending, as the leader knows them. */
    private void voters(String expected) throws Exception {
        eventually("voters " + expected, () -> {
            List<Integer> ids = new ArrayList<>();
            admin.describeMetadataQuorum().quorumInfo().get().voters().forEach(v -> ids.add(v.replicaId()));
            ids.sort(null);
            String text = ids.toString().replace(" ", "");
            return text.equals("[" + expected + "]") ? Optional.of(text) : Optional.empty();
        });
    }

    /** Many kinds of metadata records: topics, more partitions, deletions, configs, quotas, SCRAM. */
    private void busy(String prefix, int topics) throws Exception {
        List<NewTopic> list = new ArrayList<>();
        for (int i = 0; i < topics; i++) list.add(new NewTopic(prefix + "-" + i, 3, (short) 1).configs(Map.of("segment.bytes", "16777216")));
        admin.createTopics(list).all().get();
        for (int i = 0; i < topics; i++) topic(prefix + "-" + i, 3);
        for (int i = 0; i < topics; i += 2) alter(ConfigResource.Type.TOPIC, prefix + "-" + i, "retention.ms", "1000000" + i);
        admin.createPartitions(Map.of(prefix + "-0", NewPartitions.increaseTo(5))).all().get();
        admin.deleteTopics(List.of(prefix + "-1")).all().get();
        for (int i = 0; i < 5; i++) {
            admin.alterClientQuotas(List.of(new ClientQuotaAlteration(new ClientQuotaEntity(Map.of("user", prefix + "-user-" + i)),
                List.of(new ClientQuotaAlteration.Op("producer_byte_rate", 1000.0 + i))))).all().get();
        }
        admin.alterUserScramCredentials(List.of(new UserScramCredentialUpsertion(prefix + "-user",
            new ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256, 4096), "secret-of-a-test"))).all().get();
        topic(prefix + "-0", 5);
    }
}
