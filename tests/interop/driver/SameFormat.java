import org.apache.kafka.common.message.VotersRecord;
import org.apache.kafka.common.record.internal.ControlRecordType;
import org.apache.kafka.common.record.internal.ControlRecordUtils;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.MutableRecordBatch;
import org.apache.kafka.common.record.internal.Record;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.Arrays;
import java.util.TreeMap;
import java.util.stream.Stream;

/**
 * Compares a directory that Kafka formatted with one that we formatted from the same arguments: the same names, modes and bytes,
 * after the few bytes that must differ (directory ids where they are random, clock readings, and the checksums over them) were set to zero.
 */
final class SameFormat {
    static int main(String[] args) throws Exception {
        int rc = 0;
        for (String line : Files.readAllLines(Path.of(args[0]))) {
            String[] p = line.split("\t");
            String why;
            try {
                why = differ(Path.of(p[1]), Path.of(p[2]), p[3].equals("-") ? -1 : Integer.parseInt(p[3]));
            } catch (Exception e) {
                why = Json.error(e);
            }
            System.out.println(p[0] + "\t" + (why == null ? "same" : why.replace('\n', ' ')));
            if (why != null) rc = 1;
        }
        return rc;
    }

    /** The first difference, or null. NODE is the voter whose directory id was drawn at random, or -1. */
    private static String differ(Path kafka, Path ours, int node) throws Exception {
        TreeMap<String, String> k = tree(kafka), o = tree(ours);
        if (!k.equals(o)) return "names and modes: Kafka " + k + ", ours " + o;
        for (String name : k.keySet()) {
            Path kf = kafka.resolve(name), of = ours.resolve(name);
            if (Files.isDirectory(kf)) continue;
            byte[] kb, ob;
            if (name.endsWith(".checkpoint")) {
                kb = checkpoint(kf, node);
                ob = checkpoint(of, node);
                String why = identity(of);
                if (why != null) return why;
            } else if (name.endsWith("meta.properties")) {
                kb = properties(kf);
                ob = properties(of);
            } else {
                kb = Files.readAllBytes(kf);
                ob = Files.readAllBytes(of);
            }
            int at = Arrays.mismatch(kb, ob);
            if (at >= 0) return name + " differs at byte " + at + " (Kafka " + kb.length + " bytes: " + around(kb, at) + ", ours " + ob.length + ": " + around(ob, at) + ")";
        }
        return null;
    }

    private static String around(byte[] b, int at) {
        return Json.hex(ByteBuffer.wrap(b, Math.min(b.length, Math.max(0, at - 8)), Math.min(b.length, at + 24) - Math.min(b.length, Math.max(0, at - 8))));
    }

    /** Names and modes. A lock file may stay behind our formatter; Kafka's takes no lock. */
    private static TreeMap<String, String> tree(Path dir) throws IOException {
        TreeMap<String, String> out = new TreeMap<>();
        try (Stream<Path> walk = Files.walk(dir)) {
            for (Path p : (Iterable<Path>) walk::iterator) {
                String name = dir.relativize(p).toString();
                if (!name.endsWith(".lock")) out.put(name, PosixFilePermissions.toString(Files.getPosixFilePermissions(p)));
            }
        }
        return out;
    }

    /** The file as it is, with the directory id and the date of the second comment line replaced. */
    private static byte[] properties(Path file) throws IOException {
        String text = Files.readString(file, StandardCharsets.ISO_8859_1);
        text = text.replaceFirst("(?m)^directory\\.id=[A-Za-z0-9_-]{22}$", "directory.id=DIRECTORY");
        text = text.replaceFirst("(?m)^#(Mon|Tue|Wed|Thu|Fri|Sat|Sun) [A-Z][a-z]{2} \\d{2} \\d{2}:\\d{2}:\\d{2} \\S+ \\d{4}$", "#DATE");
        // java.util.Properties writes its entries in the order of a hash table, which Java does not promise.
        String[] lines = text.split("\n", -1);
        Arrays.sort(lines, 2, Math.max(2, lines.length - 1));
        return String.join("\n", lines).getBytes(StandardCharsets.ISO_8859_1);
    }

    private static byte[] checkpoint(Path file, int node) throws IOException {
        byte[] bytes = Files.readAllBytes(file);
        MemoryRecords records = MemoryRecords.readableRecords(ByteBuffer.wrap(bytes));
        int at = 0;
        for (MutableRecordBatch batch : records.batches()) {
            batch.ensureValid();
            if (batch.isControlBatch()) {
                for (Record r : batch) {
                    ByteBuffer value = r.value();
                    int from = value.arrayOffset() + value.position();
                    switch (ControlRecordType.fromTypeId(ControlRecordType.parseTypeId(r.key()))) {
                        case SNAPSHOT_HEADER: Arrays.fill(bytes, from + 2, from + 10, (byte) 0); break;
                        case KRAFT_VOTERS:
                            for (VotersRecord.Voter v : ControlRecordUtils.deserializeVotersRecord(r).voters())
                                if (v.voterId() == node) zero(bytes, from, value.remaining(), v.voterDirectoryId());
                            break;
                        default:
                    }
                }
            }
            Arrays.fill(bytes, at + 17, at + 21, (byte) 0);   // checksum, checked above
            Arrays.fill(bytes, at + 27, at + 43, (byte) 0);   // base and max timestamp
            at += batch.sizeInBytes();
        }
        return bytes;
    }

    /** If the voters name this node, they name it with the directory id of its meta.properties. */
    private static String identity(Path checkpoint) throws IOException {
        java.util.Properties meta = new java.util.Properties();
        Path file = checkpoint.getParent().getParent().resolve("meta.properties");
        try (var in = Files.newInputStream(file)) {
            meta.load(in);
        }
        for (MutableRecordBatch batch : MemoryRecords.readableRecords(ByteBuffer.wrap(Files.readAllBytes(checkpoint))).batches()) {
            if (!batch.isControlBatch()) continue;
            for (Record r : batch) {
                if (ControlRecordType.fromTypeId(ControlRecordType.parseTypeId(r.key())) != ControlRecordType.KRAFT_VOTERS) continue;
                for (VotersRecord.Voter v : ControlRecordUtils.deserializeVotersRecord(r).voters())
                    if (String.valueOf(v.voterId()).equals(meta.getProperty("node.id")) && !v.voterDirectoryId().toString().equals(meta.getProperty("directory.id")))
                        return "the voters have directory id " + v.voterDirectoryId() + " for this node, " + file + " has " + meta.getProperty("directory.id");
            }
        }
        return null;
    }

    private static void zero(byte[] bytes, int from, int length, org.apache.kafka.common.Uuid id) {
        byte[] pattern = ByteBuffer.allocate(16).putLong(id.getMostSignificantBits()).putLong(id.getLeastSignificantBits()).array();
        for (int i = from; i + 16 <= from + length; i++) {
            if (Arrays.equals(bytes, i, i + 16, pattern, 0, 16)) {
                Arrays.fill(bytes, i, i + 16, (byte) 0);
                return;
            }
        }
    }
}
