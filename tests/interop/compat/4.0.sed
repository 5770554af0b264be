# Imports and classes of 4.4 as Kafka 4.0 names them; the calls are those of Compat-4.0.java.
s/common\.utils\.internals\.\(BufferSupplier\|LogContext\)/common.utils.\1/
s/common\.record\.internal\./common.record./
s/server\.common\.OffsetAndEpoch/raft.OffsetAndEpoch/
s/\bRaftLog\b/ReplicatedLog/g
