import java.util.List;
import java.util.Map;

/** The options of the system, with their defaults filled in. */
record Options(Map<String, Object> values) {
    private static final Map<String, List<String>> WORDS =
            Map.of(
                    "idiom",
                    List.of("new", "buffer"),
                    "request_reply",
                    List.of("req-rep", "dealer-router"),
                    "pairs",
                    List.of("pub-sub", "pair"));
    private static final Map<String, Double> UNITS =
            Map.of("ns", 1e-6, "us", 1e-3, "ms", 1.0, "s", 1e3, "m", 6e4, "h", 3.6e6);

    long number(String name, long otherwise) {
        return values.get(name) instanceof Number number ? number.longValue() : otherwise;
    }

    /** One of the words of this option; the first where nothing is said. */
    String word(String name) {
        return (String) values.getOrDefault(name, WORDS.get(name).get(0));
    }

    /** A time with its unit, ms. */
    long milliseconds(String name, String otherwise) {
        String text = (String) values.getOrDefault(name, otherwise),
                number = text.replaceAll("[a-z ]+$", "");
        Double unit =
                UNITS.getOrDefault(
                        text.substring(number.length()).trim(), number.equals("0") ? 1.0 : null);
        if (unit == null)
            throw new IllegalArgumentException(
                    "the option " + name + " is " + text + ": it takes a time with its unit");
        return (long) (Double.parseDouble(number) * unit);
    }

    /** Messages that may wait at a socket. */
    int queue(int payload) {
        long bytes = number("queue_bytes", 64 << 20) / Math.max(1, payload);
        return (int)
                Math.max(
                        1,
                        Math.min(
                                Math.min(number("queue_messages", 1000), bytes),
                                Integer.MAX_VALUE));
    }

    /** Refuses what is not known, and values that cannot be honoured. */
    void check(Socket.Binding binding, Workload work) {
        for (String name : values.keySet()) {
            if (!binding.knows().contains(name))
                throw new IllegalArgumentException(
                        "there is no option " + name + " here: " + binding.knows());
        }
        WORDS.forEach(
                (name, known) -> {
                    if (!known.contains(word(name)))
                        throw new IllegalArgumentException(
                                "the option "
                                        + name
                                        + " is "
                                        + word(name)
                                        + ": it can be "
                                        + known);
                });
        if (word("pairs").equals("pair") && !work.pattern.equals("pairs"))
            throw new IllegalArgumentException(
                    "the option pairs is pair, and the pattern "
                            + work.pattern
                            + ": a PAIR socket has one peer");
        if (Boolean.FALSE.equals(values.get("tcp_nodelay")))
            throw new IllegalArgumentException(
                    "the option tcp_nodelay is false: this binding cannot turn TCP_NODELAY off");
        if (number("io_threads", 1) < 1)
            throw new IllegalArgumentException(
                    "the option io_threads is 0, which leaves no thread to move messages");
        milliseconds("linger", "10s");
        if (!binding.transports().contains(work.transport))
            throw new IllegalArgumentException(
                    "there is no transport " + work.transport + " here: " + binding.transports());
    }

    /** The type of socket of a client. */
    String kind(String role, Workload work) {
        boolean sends = role.equals("publisher") || role.equals("requester");
        return switch (work.pattern) {
            case "request-reply" ->
                    word("request_reply").equals("req-rep")
                            ? sends ? "REQ" : "REP"
                            : sends ? "DEALER" : "ROUTER";
            case "pipeline" -> sends ? "PUSH" : "PULL";
            case "pairs", "fan-out", "fan-in" ->
                    word("pairs").equals("pair") ? "PAIR" : sends ? "PUB" : "SUB";
            default ->
                    throw new IllegalArgumentException(
                            "this agent cannot play the pattern " + work.pattern);
        };
    }
}
