import java.io.ByteArrayInputStream;
import java.io.StringWriter;
import java.nio.charset.StandardCharsets;
import java.util.HexFormat;
import java.util.Properties;
import java.util.Random;
import java.util.TreeMap;

/**
 * Writes what java.util.Properties makes of random input: java PropertiesVectors.java SEED COUNT.
 * A line is "load HEX RESULT" (RESULT: "error" or HEX=HEX pairs, sorted by key, joined by commas, or "-")
 * or "store KEYHEX VALUEHEX COMMENTHEX OUTHEX" (without the line of the date) or "date MS HEX". Text is hex of UTF-8.
 */
public class PropertiesVectors {
    static final HexFormat HEX = HexFormat.of();
    static final byte[] ALPHABET = "ab=: \t\f\n\r\r\n\n\\\\\\#!u0041ud83dude00tnrfx\u00e9\0".getBytes(StandardCharsets.ISO_8859_1);
    static final String[] PIECES = {"\\u0041", "\\ud83d\\ude00", "\\uD800", "\\u12", "\\\r\n", "\\\n", "\\\\", "#", "k=v\n", "\n\n"};

    public static void main(String[] args) throws Exception {
        Random random = new Random(Long.parseLong(args[0]));
        int count = Integer.parseInt(args[1]);
        for (int i = 0; i < count; i++) {
            if (i % 10 == 9) date(random); else if (i % 4 == 3) store(random); else load(random);
        }
    }

    static byte[] input(Random random) throws Exception {
        var out = new java.io.ByteArrayOutputStream();
        int length = random.nextInt(40);
        for (int i = 0; i < length; i++) {
            if (random.nextInt(5) == 0) out.write(PIECES[random.nextInt(PIECES.length)].getBytes(StandardCharsets.ISO_8859_1));
            else out.write(ALPHABET[random.nextInt(ALPHABET.length)]);
        }
        return out.toByteArray();
    }

    static void load(Random random) throws Exception {
        byte[] bytes = input(random);
        String result;
        try {
            Properties properties = new Properties();
            properties.load(new ByteArrayInputStream(bytes));
            var sorted = new TreeMap<String, String>();
            for (String key : properties.stringPropertyNames()) sorted.put(hex(key), hex(properties.getProperty(key)));
            var joined = new StringBuilder();
            sorted.forEach((key, value) -> joined.append(joined.length() == 0 ? "" : ",").append(key).append('=').append(value));
            result = sorted.isEmpty() ? "-" : joined.toString();
        } catch (IllegalArgumentException e) {
            result = "error";
        }
        System.out.println("load " + HEX.formatHex(bytes) + " " + result);
    }

    static void date(Random random) {
        long ms = -12_200_000_000_000L + (long) (random.nextDouble() * 265_000_000_000_000L);
        System.out.println("date " + ms + " " + hex(new java.util.Date(ms).toString()));
    }

    static void store(Random random) throws Exception {
        String key = text(random), value = text(random), comment = text(random);
        Properties properties = new Properties();
        properties.setProperty(key, value);
        var writer = new StringWriter();
        properties.store(writer, comment);
        String out = writer.toString();
        int entry = out.lastIndexOf('\n', out.length() - 2);
        int date = out.lastIndexOf('\n', entry - 1);
        out = out.substring(0, date + 1) + out.substring(entry + 1);
        System.out.println("store " + hex(key) + " " + hex(value) + " " + hex(comment) + " " + hex(out));
    }

    static String text(Random random) {
        String alphabet = "ab =:#!\\\t\n\r\f\u00e9\u20ac\0\u007f\ud83d\ude00";
        var out = new StringBuilder();
        int length = random.nextInt(8);
        for (int i = 0; i < length; i++) out.append(alphabet.charAt(random.nextInt(alphabet.length())));
        return well(out.toString());
    }

    /** Lone surrogates become U+FFFD, which is how the other side keeps them. */
    static String well(String text) {
        var out = new StringBuilder();
        text.codePoints().forEach(c -> out.appendCodePoint(c >= 0xd800 && c < 0xe000 ? 0xfffd : c));
        return out.toString();
    }

    static String hex(String text) {
        return HEX.formatHex(well(text).getBytes(StandardCharsets.UTF_8));
    }
}
