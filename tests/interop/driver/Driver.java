import java.util.Arrays;

/**
 * Drives Apache Kafka's own classes for the round trips: they read what we wrote, format beside us and talk to a running node.
 * Standard output is JSON lines, or `ok ...` / `FAIL ...` lines where the command compares something.
 */
public final class Driver {
    public static void main(String[] args) throws Exception {
        if (args.length == 0) usage();
        String[] rest = Arrays.copyOfRange(args, 1, args.length);
        int rc = 2;
        switch (args[0]) {
            case "dump": rc = Dump.main(rest); break;
            case "load": rc = Load.main(rest); break;
            case "image": rc = Load.image(rest); break;
            case "client": rc = Client.main(rest); break;
            case "storage": rc = Storage.main(rest); break;
            case "same-lines": rc = Same.lines(rest); break;
            case "same-log": rc = Same.log(rest); break;
            case "same-format": rc = SameFormat.main(rest); break;
            default: usage();
        }
        System.out.flush();
        System.exit(rc);
    }

    private static void usage() {
        System.err.println("usage: Driver dump FILE...                  batches and records as JSON lines");
        System.err.println("       Driver load DIR                      what Kafka's log class finds in a copy of DIR, one JSON object");
        System.err.println("       Driver image DIR|CHECKPOINT          the replayed metadata image as sorted JSON lines");
        System.err.println("       Driver client BOOTSTRAP|controller:BOOTSTRAP OP...");
        System.err.println("       Driver storage SCRIPT                kafka-storage once for each line OUT<tab>ARG<tab>ARG...");
        System.err.println("       Driver same-lines KAFKA OURS         two files of dump lines");
        System.err.println("       Driver same-log LOAD OURS            what `load` and what interop-node say of one directory");
        System.err.println("       Driver same-format SCRIPT            formatted directories, pair by pair: NAME<tab>KAFKA<tab>OURS<tab>NODE|-");
        System.exit(2);
    }
}
