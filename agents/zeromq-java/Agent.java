import java.io.BufferedReader;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.management.ManagementFactory;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;

/**
 * Plays clients of ZeroMQ in Java for pubmark, by its agent protocol: JeroMQ, jzmq (libzmq, by
 * JNI), or queues (the floor).
 */
public final class Agent {
    private static final String VERSION = "1.0.0";
    private static final List<String> PATTERNS =
            List.of("pairs", "fan-out", "fan-in", "request-reply", "pipeline");

    /** The real standard output: what a library prints goes to the log. */
    private static final PrintStream OUT =
            new PrintStream(
                    new FileOutputStream(FileDescriptor.out), false, StandardCharsets.UTF_8);

    private final Map<String, Socket.Binding> drivers = new LinkedHashMap<>();
    private final Player.Control control = new Player.Control();
    private final List<Player> players = new ArrayList<>();
    private final Set<String> said = new HashSet<>();
    private final Map<String, Object> applied = new LinkedHashMap<>();
    private Socket.Binding plays;
    private Workload work;
    private Options options;
    private Map<Long, Books.Total> totals;
    private long deadline = Workload.FOREVER, progress = Workload.FOREVER;
    private Watch watch;

    private Agent(String binding) throws ReflectiveOperationException {
        if (!binding.equals("null"))
            drivers.put(
                    "zeromq",
                    (Socket.Binding) Class.forName("Zmq").getDeclaredConstructor().newInstance());
        drivers.put("null", new Null());
    }

    private static synchronized void say(String event, Map<String, ?> more) {
        Map<String, Object> line = new LinkedHashMap<>(Map.of("type", event));
        line.putAll(more);
        OUT.print(Json.write(line) + "\n");
        OUT.flush();
    }

    private void once(String event, Map<String, ?> more) {
        if (said.add(event)) say(event, more);
    }

    private static void fatal(String message) {
        fatal(message, false);
    }

    private static void fatal(String message, boolean tooLate) {
        say("error", Map.of("message", message, "fatal", true, "too_late", tooLate));
        Runtime.getRuntime().halt(1);
    }

    /** The coordinator has gone. */
    private static void orphaned() {
        Player.park(200 * Workload.MILLISECOND); // an exit that was said before counts
        Path scratch = Path.of(System.getenv().getOrDefault("PUBMARK_SCRATCH", ""));
        if (scratch.isAbsolute()
                && scratch.getFileName().toString().startsWith("pubmark-")
                && Files.exists(scratch.resolve("lock"))) {
            try (Stream<Path> files = Files.walk(scratch)) {
                files.sorted(Comparator.reverseOrder()).forEach(file -> file.toFile().delete());
            } catch (IOException gone) {
                // Somebody else was faster.
            }
        }
        Runtime.getRuntime().halt(1);
    }

    private void hear(Map<String, Object> command) throws Exception {
        switch (String.valueOf(command.get("type"))) {
            case "hello" -> hello(Workload.number(command, "protocol"));
            case "prepare" -> prepare(command);
            case "start" -> {
                long at = Workload.number(command, "at_ns");
                if (at <= System.nanoTime())
                    fatal("the start has passed by " + (System.nanoTime() - at) + " ns", true);
                control.start = at;
                watch = new Watch(Workload.Window.of(work, at));
                watch.start();
                progress = at + Workload.SECOND;
            }
            case "crash" -> control.crashed = true;
            case "drain" -> {
                totals = new HashMap<>();
                for (Map<String, Object> one : list(command, "publishers"))
                    totals.put(Workload.number(one, "publisher"), Books.Total.of(one));
                deadline = Workload.number(command, "deadline_ns");
                control.drains = true;
            }
            case "stop" -> result();
            case "exit" -> Runtime.getRuntime().halt(0);
            default ->
                    say(
                            "error",
                            Map.of(
                                    "message",
                                    "there is no command " + command.get("type"),
                                    "fatal",
                                    false));
        }
    }

    @SuppressWarnings("unchecked")
    private static List<Map<String, Object>> list(Map<String, Object> from, String name) {
        return (List<Map<String, Object>>) from.getOrDefault(name, List.of());
    }

    @SuppressWarnings("unchecked")
    private static <T> List<T> values(Map<String, Object> from, String name) {
        return (List<T>) from.getOrDefault(name, List.of());
    }

    private void hello(long protocol) {
        if (protocol != 2)
            fatal("this agent speaks version 2 of the protocol, and was asked for " + protocol);
        Socket.Binding first = drivers.values().iterator().next();
        Map<String, Object> versions = first.versions(),
                knows = new LinkedHashMap<>(),
                features = new LinkedHashMap<>();
        drivers.forEach((name, driver) -> knows.put(name, driver.knows()));
        features.put("patterns", PATTERNS);
        features.put("transports", first.transports());
        features.put("arrivals", List.of("uniform", "poisson", "burst"));
        features.put("verification", List.of("header", "full"));
        features.put("pacing", List.of("sleep", "hybrid", "spin"));
        features.put("profiles", List.of("constant", "max"));
        features.putAll(Map.of("flows", 1, "pauses", true, "crash", true, "clock_offset", true));
        Map<String, Object> hello =
                new LinkedHashMap<>(
                        Map.of("protocol", 2, "name", "zeromq-java", "version", VERSION));
        hello.putAll(
                Map.of(
                        "pid",
                        ProcessHandle.current().pid(),
                        "drivers",
                        drivers.keySet(),
                        "clock_ns",
                        System.nanoTime()));
        hello.put(
                "versions",
                Map.of(
                        "java",
                        runtimeName(),
                        "binding",
                        first.made(new Options(Map.of())).get("binding"),
                        "library",
                        (versions.get("library") + " " + versions.getOrDefault("version", ""))
                                .trim()));
        hello.putAll(Map.of("features", features, "options", knows));
        say("hello", hello);
    }

    private static String runtimeName() {
        return System.getProperty("java.vm.name")
                + " "
                + System.getProperty("java.runtime.version");
    }

    private void prepare(Map<String, Object> order) throws Exception {
        plays = drivers.get(order.get("driver"));
        List<Map<String, Object>> flows = list(order, "flows"),
                clients = new ArrayList<>(list(order, "clients"));
        if (plays == null)
            throw new IllegalArgumentException(
                    "there is no driver " + order.get("driver") + " here: " + drivers.keySet());
        if (flows.size() != 1)
            throw new IllegalArgumentException(
                    "this agent plays one flow at a time, not " + flows.size());
        work =
                new Workload(
                        Workload.map(flows.get(0), "workload"),
                        Workload.number(order, "clock_offset_ns"));
        options = new Options(Workload.map(order, "options"));
        options.check(plays, work);
        // Who binds comes first: within a process nobody can connect to what is not there.
        clients.sort(Comparator.comparing(client -> client.get("bind") == null));
        long sending =
                clients.stream()
                        .filter(
                                client ->
                                        List.of("publisher", "requester")
                                                .contains(client.get("role")))
                        .count();
        double budget =
                order.get("spin_cores") instanceof Number cores
                        ? cores.doubleValue() / Math.max(1, sending)
                        : 0;
        List<Object> bound = new ArrayList<>();
        for (Map<String, Object> client : clients) {
            String role = (String) client.get("role");
            long id = Workload.number(client, "id");
            boolean sends = role.equals("publisher") || role.equals("requester");
            var wanted =
                    new Socket.Order(
                            options.kind(role, work),
                            work,
                            options,
                            (String) client.get("bind"),
                            values(client, "connect"));
            Socket socket = plays.open(wanted);
            applied.putAll(plays.applied(wanted, socket));
            if (wanted.bind() != null)
                bound.add(Map.of("role", role, "id", id, "endpoint", socket.endpoint()));
            Player player =
                    new Player(
                            role,
                            id,
                            work,
                            socket,
                            control,
                            values(order, sends ? "publisher_cpus" : "subscriber_cpus"),
                            budget);
            if (role.equals("requester")) player.in = new Books.Incoming(work, id, 1);
            if (role.equals("subscriber"))
                player.in =
                        new Books.Incoming(
                                work,
                                Workload.number(client, "hears_first"),
                                Workload.number(client, "hears_count"));
            players.add(player);
        }
        Watch.practise();
        System.gc(); // what preparing took is collected before it can disturb
        say("bound", Map.of("endpoints", bound));
        players.forEach(Thread::start);
    }

    /** Says what has become true. */
    private void look() {
        for (Player player : players) {
            if (player.failed == null) continue;
            player.failed.printStackTrace();
            fatal(player.role + " " + player.id + ": " + player.failed);
        }
        if (players.isEmpty() || said.contains("result")) return;
        boolean ready = true, sends = false, sent = true, drained = true;
        for (Player player : players) {
            if (player.role.equals("subscriber")) {
                ready &= player.in.heardAll();
                drained &= control.crashed || totals != null && player.in.complete(totals);
            } else {
                ready &= player.isReady;
                sends |= !player.role.equals("replier");
                sent &= player.hasSent || player.role.equals("replier");
            }
        }
        if (ready) once("ready", Map.of());
        if (sends && sent) once("sent", Map.of("publishers", sent()));
        if (totals != null && (drained || System.nanoTime() >= deadline)) once("drained", Map.of());
        if (System.nanoTime() >= progress) {
            progress += Workload.SECOND;
            tell();
        }
    }

    private List<Object> sent() {
        List<Object> totals = new ArrayList<>();
        for (Player player : players) {
            Player.Outgoing out = player.out;
            if (out != null) totals.add(out.total().json());
            else if (List.of("publisher", "requester").contains(player.role))
                totals.add(new Books.Total(player.id, 0, 0, 0, 0).json());
        }
        return totals;
    }

    private void tell() {
        long sent = 0, received = 0, lag = 0;
        for (Player player : players) {
            Player.Outgoing out = player.out;
            if (out != null) {
                sent += out.sequence;
                lag = Math.max(lag, out.lagMax);
                out.lagMax = 0;
            }
            if (player.role.equals("subscriber")) received += player.in.received();
        }
        Map<String, Object> progress =
                new LinkedHashMap<>(Map.of("sent", sent, "received", received));
        if (sent > 0 && work.perKs > 0) progress.put("own_lag_max_ns", lag);
        say("progress", progress);
    }

    /** Ends all clients, and says what they measured. */
    private void result() throws Exception {
        control.stopped = true;
        for (Player player : players) {
            if (!player.finished.await(5, TimeUnit.SECONDS))
                fatal(
                        player.role
                                + " "
                                + player.id
                                + " does not come back from a call of the library");
        }
        look();
        Workload.Window window = control.start > 0 ? Workload.Window.of(work, control.start) : null;
        if (watch == null) {
            watch =
                    new Watch(
                            new Workload.Window(
                                    System.nanoTime(),
                                    System.nanoTime(),
                                    Workload.FOREVER,
                                    Workload.SECOND,
                                    1));
            watch.start();
        }
        watch.stop = true;
        watch.join();
        Map<String, Object>
                versions = new LinkedHashMap<>(plays == null ? Map.of() : plays.versions()),
                made = new LinkedHashMap<>();
        if (plays != null) made.putAll(plays.made(options));
        versions.put("binding", made.get("binding"));
        versions.put("runtime", runtimeName());
        for (String name : List.of("idiom", "request_reply", "pairs")) {
            if (plays != null && plays.knows().contains(name))
                applied.put(name, options.word(name));
        }
        if (work != null && "tcp".equals(work.transport)) applied.put("tcp_nodelay", true);
        made.putAll(
                Map.of(
                        "language",
                        "Java",
                        "runtime",
                        runtimeName(),
                        "call",
                        "blocking",
                        "memory",
                        "garbage collected",
                        "build",
                        "javac"));
        List<String> flags =
                new ArrayList<>(ManagementFactory.getRuntimeMXBean().getInputArguments());
        ManagementFactory.getGarbageCollectorMXBeans()
                .forEach(collector -> flags.add("(" + collector.getName() + ")"));
        made.put("flags", String.join(" ", flags));
        Map<String, Object> result = new LinkedHashMap<>();
        List<String> remarks = new ArrayList<>();
        result.put("flows", List.of(Flow.of(players, work, window, totals, remarks, sent())));
        result.putAll(
                Map.of(
                        "usage",
                        watch.usage,
                        "versions",
                        versions,
                        "applied",
                        applied,
                        "loops",
                        players.size()));
        result.putAll(
                Map.of(
                        "pauses",
                        watch.pauses.json(),
                        "runtime",
                        watch.runtime,
                        "made",
                        made,
                        "remarks",
                        remarks));
        once("result", result);
    }

    @SuppressWarnings("unchecked")
    private void take(String line) throws Exception {
        Object command;
        try {
            command = Json.read(line);
        } catch (IllegalArgumentException wrong) {
            command = wrong.getMessage();
        }
        if (command instanceof Map) hear((Map<String, Object>) command);
        else say("error", Map.of("message", "this is no command: " + command, "fatal", false));
    }

    private void converse(BlockingQueue<String> lines) {
        while (true) {
            try {
                // A change, a command, or a time: whichever comes first.
                long until =
                        Math.min(
                                Math.min(deadline, progress) - System.nanoTime(),
                                100 * Workload.MILLISECOND);
                if (control.changed.tryAcquire(
                        Math.max(until, Workload.MILLISECOND), TimeUnit.NANOSECONDS))
                    control.changed.drainPermits();
                for (String line = lines.poll(); line != null; line = lines.poll()) {
                    take(line);
                    look();
                }
                look();
            } catch (IllegalArgumentException wrong) {
                fatal(wrong.getMessage());
            } catch (Exception error) {
                error.printStackTrace();
                fatal(error.toString());
            }
        }
    }

    public static void main(String[] arguments) {
        System.setOut(System.err);
        if (arguments.length != 2
                || !arguments[0].equals("--binding")
                || !List.of("jeromq", "jzmq", "null").contains(arguments[1])) {
            System.err.println("zeromq-java: usage: zeromq-java --binding jeromq|jzmq|null");
            Runtime.getRuntime().halt(2);
        }
        try {
            Agent agent = new Agent(arguments[1]);
            BlockingQueue<String> lines = new LinkedBlockingQueue<>();
            Thread reader =
                    new Thread(
                            () -> {
                                try (BufferedReader input =
                                        new BufferedReader(
                                                new InputStreamReader(
                                                        System.in, StandardCharsets.UTF_8))) {
                                    for (String line = input.readLine();
                                            line != null;
                                            line = input.readLine()) {
                                        lines.add(line);
                                        agent.control.changed.release();
                                    }
                                } catch (IOException ended) {
                                    // As if it had ended.
                                }
                                orphaned();
                            },
                            "orders");
            reader.setDaemon(true);
            reader.start();
            agent.converse(lines);
        } catch (ReflectiveOperationException | LinkageError missing) {
            Throwable cause = missing.getCause() == null ? missing : missing.getCause();
            System.err.println(
                    "zeromq-java: the binding "
                            + arguments[1]
                            + " is not here ("
                            + cause
                            + "): `make -C agents/zeromq-java` builds it; jzmq needs `apt-get"
                            + " install libzmq-java libzmq-jni`");
            Runtime.getRuntime().halt(1);
        }
    }
}
