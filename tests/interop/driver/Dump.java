import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;

import org.apache.kafka.common.message.KRaftVersionRecordJsonConverter;
import org.apache.kafka.common.message.LeaderChangeMessageJsonConverter;
import org.apache.kafka.common.message.SnapshotFooterRecordJsonConverter;
import org.apache.kafka.common.message.SnapshotHeaderRecordJsonConverter;
import org.apache.kafka.common.message.VotersRecordJsonConverter;
import org.apache.kafka.common.metadata.MetadataJsonConverters;
import org.apache.kafka.common.metadata.MetadataRecordType;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.Message;
import org.apache.kafka.common.protocol.ObjectSerializationCache;
import org.apache.kafka.common.protocol.types.RawTaggedField;
import org.apache.kafka.common.record.internal.ControlRecordType;
import org.apache.kafka.common.record.internal.ControlRecordUtils;
import org.apache.kafka.common.record.internal.FileLogInputStream;
import org.apache.kafka.common.record.internal.FileRecords;
import org.apache.kafka.common.record.internal.Record;
import org.apache.kafka.metadata.MetadataRecordSerde;
import org.apache.kafka.server.common.ApiMessageAndVersion;

import java.io.File;
import java.lang.reflect.Field;
import java.lang.reflect.Modifier;
import java.nio.ByteBuffer;
import java.util.Collection;
import java.util.HexFormat;
import java.util.Iterator;
import java.util.List;

/** Prints a log segment or checkpoint as JSON lines: file, batch, record, ..., end. */
final class Dump {
    static int main(String[] args) throws Exception {
        int rc = 0;
        for (String arg : args) if (!dump(new File(arg))) rc = 1;
        Json.flush();
        return rc;
    }

    static boolean dump(File file) throws Exception {
        String name = file.getName();
        ObjectNode head = Json.object();
        head.put("kind", "file").put("name", name).put("size", file.length());
        if (name.matches("\\d{20}-\\d{10}.*\\.checkpoint.*")) {
            head.put("type", "checkpoint");
            head.put("endOffset", Long.parseLong(name.substring(0, 20)));
            head.put("epoch", Integer.parseInt(name.substring(21, 31)));
        } else if (name.matches("\\d{20}\\.log.*")) {
            head.put("type", "log").put("baseOffset", Long.parseLong(name.substring(0, 20)));
        } else {
            head.put("type", "bootstrap");
        }
        Json.line(head);
        long valid = 0, batches = 0, records = 0;
        boolean good = true;
        String error = null;
        FileRecords fileRecords = FileRecords.open(file, false);
        try {
            for (FileLogInputStream.FileChannelRecordBatch batch : fileRecords.batches()) {
                ObjectNode b = Json.object();
                b.put("kind", "batch").put("baseOffset", batch.baseOffset()).put("lastOffset", batch.lastOffset());
                b.put("count", batch.countOrNull()).put("epoch", batch.partitionLeaderEpoch());
                b.put("position", batch.position()).put("size", batch.sizeInBytes());
                b.put("magic", batch.magic()).put("crc", batch.checksum());
                boolean ok = batch.isValid();
                b.put("valid", ok).put("control", batch.isControlBatch()).put("transactional", batch.isTransactional());
                b.put("compression", batch.compressionType().name).put("timestampType", batch.timestampType().name);
                ByteBuffer raw = ByteBuffer.allocate(61);
                fileRecords.readInto(raw, batch.position());
                b.put("attributes", raw.getShort(21)).put("lastOffsetDelta", raw.getInt(23));
                b.put("baseTimestamp", raw.getLong(27)).put("maxTimestamp", raw.getLong(35));
                b.put("producerId", raw.getLong(43)).put("producerEpoch", raw.getShort(51)).put("baseSequence", raw.getInt(53));
                Json.line(b);
                batches++;
                valid += batch.sizeInBytes();
                if (!ok) { good = false; continue; }
                for (Record record : batch) {
                    Json.line(record(record, batch.isControlBatch(), batch.partitionLeaderEpoch()));
                    records++;
                }
            }
        } catch (Exception e) {
            good = false;
            error = Json.error(e);
        } finally {
            fileRecords.close();
        }
        ObjectNode end = Json.object();
        end.put("kind", "end").put("batches", batches).put("records", records).put("validBytes", valid);
        end.put("trailingBytes", file.length() - valid);
        if (error != null) end.put("error", error);
        String kraft = kraftReader(file, head);
        end.put("kraftReader", kraft);
        Json.line(end);
        return good && kraft.equals("ok");
    }

    /** What Kafka's own KRaft iterator says about the file. */
    private static String kraftReader(File file, ObjectNode head) {
        try {
            if (head.get("type").asText().equals("checkpoint")) {
                Compat.readSnapshot(file, head.get("endOffset").asLong(), head.get("epoch").asInt(), b -> { });
            } else {
                FileRecords records = FileRecords.open(file, false);
                Iterator<?> it = Compat.iterator(records);
                while (it.hasNext()) it.next();
                records.close();
            }
            return "ok";
        } catch (Throwable t) {
            return Json.error(t);
        }
    }

    static ObjectNode record(Record record, boolean control, int epoch) {
        ObjectNode r = Json.object();
        r.put("kind", "record").put("offset", record.offset()).put("epoch", epoch).put("timestamp", record.timestamp());
        r.put("control", control).put("keySize", record.keySize()).put("valueSize", record.valueSize());
        try {
            if (control) {
                short id = ControlRecordType.parseTypeId(record.key());
                ControlRecordType type = ControlRecordType.fromTypeId(id);
                r.put("type", type.name()).put("typeId", id);
                Message message = control(type, record);
                if (message != null) {
                    r.put("version", 0);
                    r.set("data", controlJson(message));
                    finish(r, message, (short) 0, record.value(), false);
                }
            } else {
                ByteBuffer value = record.value();
                ApiMessageAndVersion m = MetadataRecordSerde.INSTANCE.read(new ByteBufferAccessor(value), record.valueSize());
                r.put("type", MetadataRecordType.fromId(m.message().apiKey()).name());
                r.put("typeId", m.message().apiKey()).put("version", m.version());
                r.set("data", MetadataJsonConverters.writeJson(m.message(), m.version()));
                finish(r, m.message(), m.version(), record.value(), true);
            }
        } catch (Throwable t) {
            r.put("error", Json.error(t));
            r.put("value", Json.hex(record.value()));
            return r;
        }
        return r;
    }

    /** Unknown tagged fields, and whether Kafka would write the same bytes again. */
    private static void finish(ObjectNode r, Message message, short version, ByteBuffer value, boolean framed) {
        ArrayNode tags = Json.array();
        unknownTags(message, "", tags);
        if (tags.size() > 0) r.set("unknownTags", tags);
        ObjectSerializationCache cache = new ObjectSerializationCache();
        ByteBuffer again;
        try {
            if (framed) {
                ApiMessageAndVersion m = new ApiMessageAndVersion((org.apache.kafka.common.protocol.ApiMessage) message, version);
                again = ByteBuffer.allocate(MetadataRecordSerde.INSTANCE.recordSize(m, cache));
                MetadataRecordSerde.INSTANCE.write(m, cache, new ByteBufferAccessor(again));
            } else {
                again = ByteBuffer.allocate(message.size(cache, version));
                message.write(new ByteBufferAccessor(again), cache, version);
            }
            again.flip();
            r.put("canonical", again.equals(value));
        } catch (Exception e) {
            r.put("canonical", false);
            r.put("rewriteError", Json.error(e));
        }
    }

    static void unknownTags(Object object, String path, ArrayNode out) {
        if (!(object instanceof Message)) return;
        List<RawTaggedField> raw = ((Message) object).unknownTaggedFields();
        if (raw != null) {
            for (RawTaggedField f : raw) {
                ObjectNode n = Json.object();
                n.put("path", path).put("tag", f.tag()).put("data", HexFormat.of().formatHex(f.data()));
                out.add(n);
            }
        }
        for (Field field : object.getClass().getDeclaredFields()) {
            if (Modifier.isStatic(field.getModifiers())) continue;
            try {
                field.setAccessible(true);
                Object value = field.get(object);
                String p = path.isEmpty() ? field.getName() : path + "." + field.getName();
                if (value instanceof Message) unknownTags(value, p, out);
                if (value instanceof Collection && !field.getName().startsWith("_")) {
                    int i = 0;
                    for (Object e : (Collection<?>) value) unknownTags(e, p + "[" + i++ + "]", out);
                }
            } catch (IllegalAccessException e) {
                throw new RuntimeException(e);
            }
        }
    }

    static Message control(ControlRecordType type, Record record) {
        switch (type) {
            case LEADER_CHANGE: return ControlRecordUtils.deserializeLeaderChangeMessage(record);
            case SNAPSHOT_HEADER: return ControlRecordUtils.deserializeSnapshotHeaderRecord(record);
            case SNAPSHOT_FOOTER: return ControlRecordUtils.deserializeSnapshotFooterRecord(record);
            case KRAFT_VERSION: return ControlRecordUtils.deserializeKRaftVersionRecord(record);
            case KRAFT_VOTERS: return ControlRecordUtils.deserializeVotersRecord(record);
            default: return null;
        }
    }

    static JsonNode controlJson(Object m) {
        if (m instanceof org.apache.kafka.common.message.LeaderChangeMessage)
            return LeaderChangeMessageJsonConverter.write((org.apache.kafka.common.message.LeaderChangeMessage) m, (short) 0);
        if (m instanceof org.apache.kafka.common.message.SnapshotHeaderRecord)
            return SnapshotHeaderRecordJsonConverter.write((org.apache.kafka.common.message.SnapshotHeaderRecord) m, (short) 0);
        if (m instanceof org.apache.kafka.common.message.SnapshotFooterRecord)
            return SnapshotFooterRecordJsonConverter.write((org.apache.kafka.common.message.SnapshotFooterRecord) m, (short) 0);
        if (m instanceof org.apache.kafka.common.message.KRaftVersionRecord)
            return KRaftVersionRecordJsonConverter.write((org.apache.kafka.common.message.KRaftVersionRecord) m, (short) 0);
        return VotersRecordJsonConverter.write((org.apache.kafka.common.message.VotersRecord) m, (short) 0);
    }
}
