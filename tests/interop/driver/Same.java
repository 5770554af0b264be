import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;

import java.io.File;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;

/** Compares what Kafka's classes and kraftlog say about the same files. */
final class Same {
    /** Dump lines, one by one. Two fields are opinions of Kafka's reader and writer and not facts of the file. */
    static int lines(String[] args) throws Exception {
        List<String> kafka = Files.readAllLines(Path.of(args[0])), ours = Files.readAllLines(Path.of(args[1]));
        for (int i = 0; i < Math.min(kafka.size(), ours.size()); i++) {
            JsonNode k = facts(kafka.get(i)), o = facts(ours.get(i));
            if (!k.equals(o)) {
                System.out.println("line " + (i + 1) + " differs" + field(k, o) + "\n  Kafka: " + kafka.get(i) + "\n  ours:  " + ours.get(i));
                return 1;
            }
        }
        if (kafka.size() != ours.size() || kafka.isEmpty()) {
            System.out.println("Kafka has " + kafka.size() + " lines, we have " + ours.size());
            return 1;
        }
        System.out.println(kafka.size() + " lines");
        return 0;
    }

    private static JsonNode facts(String line) throws Exception {
        JsonNode n = Json.MAPPER.readTree(line);
        if (n instanceof ObjectNode) ((ObjectNode) n).remove(List.of("canonical", "kraftReader"));
        return n;
    }

    private static String field(JsonNode k, JsonNode o) {
        java.util.TreeSet<String> names = new java.util.TreeSet<>();
        k.fieldNames().forEachRemaining(names::add);
        o.fieldNames().forEachRemaining(names::add);
        for (String name : names) if (!String.valueOf(k.get(name)).equals(String.valueOf(o.get(name)))) return " in " + name + " (Kafka " + k.get(name) + ", ours " + o.get(name) + ")";
        return "";
    }

    /** Every field that interop-node prints under "log" has the name it has in `load`; all of them must agree. */
    static int log(String[] args) throws Exception {
        JsonNode kafka = Json.MAPPER.readTree(new File(args[0])), ours = Json.MAPPER.readTree(new File(args[1])).path("log");
        if (kafka.has("refused") || ours.size() == 0) {
            System.out.println("Kafka says " + kafka + ", we say " + ours);
            return 1;
        }
        StringBuilder bad = new StringBuilder();
        ours.fieldNames().forEachRemaining(name -> {
            JsonNode k = kafka.get(name), o = ours.get(name);
            if (name.equals("snapshots")) { k = snapshots(k); o = snapshots(o); }
            if (!o.equals(k)) bad.append(name).append(": Kafka ").append(k).append(", ours ").append(o).append("; ");
        });
        System.out.println(bad.length() > 0 ? bad : "offsets " + ours.get("startOffset") + " to " + ours.get("endOffset") + ", epoch "
            + ours.get("lastFetchedEpoch") + ", " + ours.get("logRecords") + " records, " + ours.get("snapshots").size() + " snapshots");
        return bad.length() > 0 ? 1 : 0;
    }

    private static JsonNode snapshots(JsonNode list) {
        com.fasterxml.jackson.databind.node.ArrayNode out = Json.array();
        for (JsonNode s : list) {
            ObjectNode one = s.deepCopy();
            out.add(one.without("validBytes"));   // always the size, where Kafka reads it to the end
        }
        return out;
    }
}
