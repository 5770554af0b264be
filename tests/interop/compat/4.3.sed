# Imports of 4.4 as Kafka 4.3 names them; the calls are those of Compat-4.4.java.
s/common\.utils\.internals\.\(BufferSupplier\|LogContext\)/common.utils.\1/
