import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * JSON, read strictly: maps, lists, texts, booleans, null; whole numbers are longs (those above
 * 2^63 too, as bits), others doubles.
 */
final class Json {
    private final String text;
    private int at;

    private Json(String text) {
        this.text = text;
    }

    static Object read(String text) {
        Json json = new Json(text);
        Object value = json.value();
        if (json.next() != 0) throw json.wrong("the end");
        return value;
    }

    private IllegalArgumentException wrong(String wanted) {
        return new IllegalArgumentException("no JSON: " + wanted + " is wanted at character " + at);
    }

    /** The next character that is no space; 0 at the end. */
    private char next() {
        while (at < text.length() && " \t\r\n".indexOf(text.charAt(at)) >= 0) at++;
        return at < text.length() ? text.charAt(at) : 0;
    }

    private boolean take(char wanted) {
        boolean there = next() == wanted;
        if (there) at++;
        return there;
    }

    private void need(char wanted) {
        if (!take(wanted)) throw wrong("'" + wanted + "'");
    }

    private Object value() {
        switch (next()) {
            case '{' -> {
                Map<String, Object> map = new LinkedHashMap<>();
                at++;
                for (boolean first = true; !take('}'); first = false) {
                    if (!first) need(',');
                    next();
                    String name = string();
                    need(':');
                    map.put(name, value());
                }
                return map;
            }
            case '[' -> {
                List<Object> list = new ArrayList<>();
                at++;
                for (boolean first = true; !take(']'); first = false) {
                    if (!first) need(',');
                    list.add(value());
                }
                return list;
            }
            case '"' -> {
                return string();
            }
            default -> {
                return word();
            }
        }
    }

    private Object word() {
        int from = at;
        while (at < text.length() && ",]} \t\r\n".indexOf(text.charAt(at)) < 0) at++;
        String word = text.substring(from, at);
        switch (word) {
            case "true", "false" -> {
                return word.equals("true");
            }
            case "null" -> {
                return null;
            }
            default -> {
                if (word.matches("\\d+")) return Long.parseUnsignedLong(word);
                if (word.matches("-\\d+")) return Long.parseLong(word);
                if (word.matches("-?\\d+(\\.\\d+)?([eE][+-]?\\d+)?"))
                    return Double.parseDouble(word);
                throw wrong("a value");
            }
        }
    }

    private String string() {
        need('"');
        StringBuilder string = new StringBuilder();
        while (at < text.length() && text.charAt(at) != '"') {
            char c = text.charAt(at++);
            if (c == '\\' && at < text.length()) {
                c = text.charAt(at++);
                int known = "nrtbf".indexOf(c);
                if (known >= 0) c = "\n\r\t\b\f".charAt(known);
                if (c == 'u' && known < 0) {
                    if (at + 4 > text.length()) throw wrong("a character's number");
                    c = (char) Integer.parseInt(text.substring(at, at += 4), 16);
                }
            }
            string.append(c);
        }
        need('"');
        return string.toString();
    }

    static String write(Object value) {
        StringBuilder text = new StringBuilder();
        write(value, text);
        return text.toString();
    }

    private static void write(Object value, StringBuilder text) {
        if (value instanceof Map<?, ?> map) {
            String before = "{";
            for (Map.Entry<?, ?> entry : map.entrySet()) {
                write(entry.getKey(), text.append(before));
                write(entry.getValue(), text.append(':'));
                before = ",";
            }
            text.append(map.isEmpty() ? "{}" : "}");
        } else if (value instanceof Iterable<?> list) {
            String before = "[";
            for (Object one : list) {
                write(one, text.append(before));
                before = ",";
            }
            text.append(before.equals("[") ? "[]" : "]");
        } else if (value instanceof long[] numbers) {
            text.append('[');
            for (int i = 0; i < numbers.length; i++)
                text.append(i > 0 ? "," : "").append(numbers[i]);
            text.append(']');
        } else if (value instanceof String string) {
            text.append('"');
            for (char c : string.toCharArray()) {
                if (c < ' ') text.append(String.format("\\u%04x", (int) c));
                else text.append(c == '"' || c == '\\' ? "\\" : "").append(c);
            }
            text.append('"');
        } else {
            text.append(value);
        }
    }
}
