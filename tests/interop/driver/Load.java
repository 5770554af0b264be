import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;

import org.apache.kafka.common.metadata.MetadataJsonConverters;
import org.apache.kafka.common.metadata.MetadataRecordType;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.image.MetadataDelta;
import org.apache.kafka.image.MetadataImage;
import org.apache.kafka.image.MetadataProvenance;
import org.apache.kafka.image.writer.ImageWriterOptions;
import org.apache.kafka.image.writer.RecordListWriter;
import org.apache.kafka.metadata.properties.MetaProperties;
import org.apache.kafka.metadata.properties.MetaPropertiesEnsemble;
import org.apache.kafka.raft.Batch;
import org.apache.kafka.raft.ControlRecord;
import org.apache.kafka.raft.FileQuorumStateStore;
import org.apache.kafka.raft.Isolation;
import org.apache.kafka.raft.RaftLog;
import org.apache.kafka.server.common.ApiMessageAndVersion;
import org.apache.kafka.server.common.OffsetAndEpoch;
import org.apache.kafka.server.util.KafkaScheduler;
import org.apache.kafka.snapshot.RawSnapshotReader;

import java.io.File;
import java.io.IOException;
import java.nio.file.FileVisitResult;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.SimpleFileVisitor;
import java.nio.file.attribute.BasicFileAttributes;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalInt;
import java.util.Set;
import java.util.TreeSet;

/** Opens a metadata directory with Kafka's own classes, reads all of it, replays it into a metadata image. */
final class Load {
    static int main(String[] args) throws Exception {
        File work = copy(new File(args[0]));
        ObjectNode out = Json.object();
        int rc;
        try {
            load(work, out, false);
            rc = 0;
        } catch (Throwable t) {
            out.put("refused", Json.error(t));
            rc = 1;
        }
        Json.line(out);
        Json.flush();
        delete(work);
        return rc;
    }

    static int image(String[] args) throws Exception {
        File source = new File(args[0]);
        ObjectNode out = Json.object();
        if (source.isFile()) {
            MetadataDelta delta = new MetadataDelta.Builder().setImage(MetadataImage.EMPTY).build();
            String name = source.getName();
            long offset = Long.parseLong(name.substring(0, 20));
            int epoch = Integer.parseInt(name.substring(21, 31));
            Compat.readSnapshot(source, offset, epoch, b -> b.records().forEach(r -> delta.replay(r.message())));
            delta.finishSnapshot();
            printImage(delta.apply(new MetadataProvenance(offset - 1, epoch, 0, true)));
            Json.flush();
            return 0;
        }
        File work = copy(source);
        try {
            load(work, out, true);
            return 0;
        } finally {
            Json.flush();
            delete(work);
        }
    }

    private static void load(File dir, ObjectNode out, boolean printImage) throws Exception {
        File partition = new File(dir, "__cluster_metadata-0");
        if (!partition.isDirectory()) throw new IllegalStateException("no " + partition.getName());
        out.put("logClass", Compat.LOG_CLASS);
        if (new File(dir, "meta.properties").exists()) {
            MetaPropertiesEnsemble.Loader loader = new MetaPropertiesEnsemble.Loader();
            loader.addLogDirs(java.util.List.of(dir.getPath()));
            loader.addMetadataLogDir(dir.getPath());
            MetaPropertiesEnsemble ensemble = loader.load();
            ensemble.verify(Optional.empty(), OptionalInt.empty(),
                java.util.EnumSet.of(MetaPropertiesEnsemble.VerificationFlag.REQUIRE_METADATA_LOG_DIR,
                    MetaPropertiesEnsemble.VerificationFlag.REQUIRE_AT_LEAST_ONE_VALID));
            MetaProperties p = ensemble.logDirProps().get(dir.getPath());
            ObjectNode m = out.putObject("metaProperties");
            m.put("version", p.version().number());
            m.put("clusterId", p.clusterId().orElse(null));
            if (p.nodeId().isPresent()) m.put("nodeId", p.nodeId().getAsInt());
            m.put("directoryId", p.directoryId().map(Object::toString).orElse(null));
        }
        File quorum = new File(partition, "quorum-state");
        out.put("quorumState", new FileQuorumStateStore(quorum).readElectionState().map(Object::toString).orElse(null));
        KafkaScheduler scheduler = new KafkaScheduler(1);
        scheduler.startup();
        Map<String, String> config = new HashMap<>();
        RaftLog log = Compat.open(partition, config, Time.SYSTEM, scheduler, 0);
        out.put("startOffset", log.startOffset()).put("endOffset", log.endOffset().offset());
        out.put("lastFetchedEpoch", log.lastFetchedEpoch()).put("highWatermark", log.highWatermark().offset());
        ArrayNode ids = out.putArray("snapshots");
        Set<OffsetAndEpoch> snapshots = new TreeSet<>();
        for (File f : sorted(partition)) {
            if (!f.getName().matches("\\d{20}-\\d{10}\\.checkpoint")) continue;
            OffsetAndEpoch id = new OffsetAndEpoch(Long.parseLong(f.getName().substring(0, 20)), Integer.parseInt(f.getName().substring(21, 31)));
            Optional<RawSnapshotReader> raw = log.readSnapshot(id);
            if (raw.isEmpty()) continue;
            snapshots.add(id);
            long[] n = new long[4];
            long size = raw.get().sizeInBytes();
            long time = Compat.readSnapshot(raw.get(), b -> {
                n[0]++;
                n[1] += b.records().size();
                n[2] += b.controlRecords().size();
                n[3] += b.sizeInBytes();
            });
            ids.addObject().put("offset", id.offset()).put("epoch", id.epoch()).put("size", size).put("lastContainedLogTimestamp", time)
                .put("batches", n[0]).put("records", n[1]).put("controlRecords", n[2]).put("validBytes", n[3]);
        }
        log.latestSnapshotId().ifPresent(id -> out.put("latestSnapshot", id.offset() + "-" + id.epoch()));
        log.earliestSnapshotId().ifPresent(id -> out.put("earliestSnapshot", id.offset() + "-" + id.epoch()));

        // Everything that the log holds, straight through, checksums on.
        long at = log.startOffset(), batches = 0, records = 0, controls = 0;
        long end = log.endOffset().offset();
        String voters = null;
        while (at < end) {
            Iterator<Batch<ApiMessageAndVersion>> it = Compat.iterator(Compat.read(log, at, Isolation.UNCOMMITTED, Integer.MAX_VALUE));
            long before = at;
            while (it.hasNext()) {
                Batch<ApiMessageAndVersion> b = it.next();
                batches++;
                records += b.records().size();
                controls += b.controlRecords().size();
                for (ControlRecord c : b.controlRecords())
                    if (c.type().name().equals("KRAFT_VOTERS")) voters = c.message().toString();
                at = b.lastOffset() + 1;
            }
            if (at == before) throw new IllegalStateException("log ends at " + end + " but nothing can be read at " + at);
        }
        out.put("logBatches", batches).put("logRecords", records).put("logControlRecords", controls);
        if (voters != null) out.put("lastVotersInLog", voters);

        // The image: latest snapshot but the zero one, then the log, transactions honoured.
        MetadataImage image = MetadataImage.EMPTY;
        long next = log.startOffset();
        Optional<OffsetAndEpoch> latest = log.latestSnapshotId();
        MetadataDelta delta = new MetadataDelta.Builder().setImage(image).build();
        if (latest.isPresent() && latest.get().offset() > 0) {
            MetadataDelta d = delta;
            Compat.readSnapshot(log.readSnapshot(latest.get()).get(), b -> b.records().forEach(r -> d.replay(r.message())));
            d.finishSnapshot();
            image = d.apply(new MetadataProvenance(latest.get().offset() - 1, latest.get().epoch(), 0, true));
            delta = new MetadataDelta.Builder().setImage(image).build();
            next = latest.get().offset();
        }
        boolean open = false;
        long last = next - 1;
        int epoch = log.lastFetchedEpoch();
        at = next;
        while (at < end) {
            Iterator<Batch<ApiMessageAndVersion>> it = Compat.iterator(Compat.read(log, at, Isolation.UNCOMMITTED, Integer.MAX_VALUE));
            while (it.hasNext()) {
                Batch<ApiMessageAndVersion> b = it.next();
                long offset = b.baseOffset();
                for (ApiMessageAndVersion r : b.records()) {
                    if (offset >= next) {
                        MetadataRecordType type = MetadataRecordType.fromId(r.message().apiKey());
                        switch (type) {
                            case BEGIN_TRANSACTION_RECORD:
                                if (open) throw new IllegalStateException("Begin inside a transaction at " + offset);
                                image = delta.apply(new MetadataProvenance(offset - 1, b.epoch(), 0, true));
                                delta = new MetadataDelta.Builder().setImage(image).build();
                                open = true;
                                break;
                            case END_TRANSACTION_RECORD:
                            case ABORT_TRANSACTION_RECORD:
                                if (!open) throw new IllegalStateException(type + " outside of a transaction at " + offset);
                                if (type == MetadataRecordType.ABORT_TRANSACTION_RECORD) delta = new MetadataDelta.Builder().setImage(image).build();
                                open = false;
                                break;
                            default:
                                delta.replay(r.message());
                        }
                    }
                    offset++;
                }
                at = b.lastOffset() + 1;
                last = b.lastOffset();
            }
        }
        if (!open) image = delta.apply(new MetadataProvenance(last, epoch, 0, true));
        ObjectNode i = out.putObject("image");
        i.put("openTransaction", open);
        i.put("metadataVersion", version(image));
        i.put("brokers", image.cluster().brokers().size()).put("controllers", image.cluster().controllers().size());
        i.put("topics", image.topics().topicsById().size());
        i.put("partitions", image.topics().topicsById().values().stream().mapToInt(t -> t.partitions().size()).sum());
        i.put("configResources", image.configs().resourceData().size());
        i.put("quotaEntities", image.clientQuotas().entities().size());
        i.put("acls", image.acls().acls().size());
        i.put("scramUsers", image.scram().mechanisms().values().stream().mapToInt(Map::size).sum());
        i.put("delegationTokens", image.delegationTokens().tokens().size());
        i.put("nextProducerId", image.producerIds().nextProducerId());
        log.close();
        scheduler.shutdown();
        ArrayNode epochs = out.putArray("epochs");
        List<String> lines = Files.readAllLines(new File(partition, "leader-epoch-checkpoint").toPath());
        for (int k = 2; k < lines.size(); k++) epochs.add(lines.get(k));
        ArrayNode files = out.putArray("files");
        for (File f : sorted(partition)) files.addObject().put("name", f.getName()).put("size", f.length());
        if (printImage) printImage(image);
    }

    private static String version(MetadataImage image) {
        try {
            Object v = image.features().getClass().getMethod("metadataVersion").invoke(image.features());
            return String.valueOf(v instanceof Optional ? ((Optional<?>) v).map(Object::toString).orElse(null) : v);
        } catch (ReflectiveOperationException e) {
            return "?";
        }
    }

    /** As the records of a checkpoint. Their order inside a group is hash order, so the lines are sorted. */
    private static void printImage(MetadataImage image) {
        RecordListWriter writer = new RecordListWriter();
        image.write(writer, new ImageWriterOptions.Builder(image).setLossHandler(e -> { throw e; }).build());
        List<String> lines = new ArrayList<>();
        for (ApiMessageAndVersion r : writer.records()) {
            ObjectNode n = Json.object();
            n.put("type", MetadataRecordType.fromId(r.message().apiKey()).name()).put("version", r.version());
            n.set("data", MetadataJsonConverters.writeJson(r.message(), r.version()));
            lines.add(n.toString());
        }
        lines.sort(null);
        lines.forEach(System.out::println);
    }

    static List<File> sorted(File dir) {
        File[] files = dir.listFiles();
        if (files == null) return new ArrayList<>();
        Arrays.sort(files);
        return Arrays.asList(files);
    }

    /** Opening changes a directory, so work on a copy: metadata partition and the top-level files only. */
    private static File copy(File dir) throws IOException {
        Path to = Files.createTempDirectory("oracle");
        for (File f : sorted(dir)) {
            if (f.isFile() && f.length() < (16 << 20)) Files.copy(f.toPath(), to.resolve(f.getName()));
        }
        File partition = new File(dir, "__cluster_metadata-0");
        if (partition.isDirectory()) {
            Path p = Files.createDirectory(to.resolve("__cluster_metadata-0"));
            for (File f : sorted(partition)) if (f.isFile()) Files.copy(f.toPath(), p.resolve(f.getName()));
        }
        return to.toFile();
    }

    private static void delete(File dir) throws IOException {
        Files.walkFileTree(dir.toPath(), new SimpleFileVisitor<Path>() {
            @Override public FileVisitResult visitFile(Path f, BasicFileAttributes a) throws IOException { Files.delete(f); return FileVisitResult.CONTINUE; }
            @Override public FileVisitResult postVisitDirectory(Path d, IOException e) throws IOException { Files.delete(d); return FileVisitResult.CONTINUE; }
        });
    }
}
