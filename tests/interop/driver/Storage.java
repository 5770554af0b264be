import kafka.tools.StorageTool;

import java.io.PrintStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;

/** Runs kafka-storage many times in one JVM. Each run's output goes to a file of its own, `exit N` is its last line. */
final class Storage {
    static int main(String[] args) throws Exception {
        for (String line : Files.readAllLines(Path.of(args[0]))) {
            String[] parts = line.split("\t");
            try (PrintStream out = new PrintStream(parts[0], java.nio.charset.StandardCharsets.UTF_8)) {
                int rc;
                try {
                    rc = StorageTool.execute(Arrays.copyOfRange(parts, 1, parts.length), out);
                } catch (Exception e) {   // the tool's main prints the text of an expected failure and exits with 1
                    out.println(e.getMessage());
                    rc = 1;
                }
                out.println("exit " + rc);
            }
        }
        return 0;
    }
}
