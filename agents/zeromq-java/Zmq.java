import org.zeromq.ZMQ;
import org.zeromq.ZMQException;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * JeroMQ or jzmq: one source, compiled against each, because their classes have the same names.
 * What JeroMQ calls deprecated is what both have.
 */
@SuppressWarnings("deprecation")
final class Zmq implements Socket.Binding {
    private static final int EFSM = 156384712 + 51, WAIT_MS = 10;
    private static final Map<String, Integer> KINDS =
            Map.of(
                    "PUB",
                    ZMQ.PUB,
                    "SUB",
                    ZMQ.SUB,
                    "PUSH",
                    ZMQ.PUSH,
                    "PULL",
                    ZMQ.PULL,
                    "REQ",
                    ZMQ.REQ,
                    "REP",
                    ZMQ.REP,
                    "DEALER",
                    ZMQ.DEALER,
                    "ROUTER",
                    ZMQ.ROUTER,
                    "PAIR",
                    ZMQ.PAIR);
    private final Path jar = jar();
    private final boolean isJava = jar.getFileName().toString().startsWith("jeromq");
    private final String zmqVersion =
            ZMQ.getVersionString(); // fails now, where the library is missing
    private ZMQ.Context context;
    private long ioThreads;

    private static Path jar() {
        Path jar = Path.of(ZMQ.class.getProtectionDomain().getCodeSource().getLocation().getPath());
        try {
            return jar.toRealPath(); // Debian's zmq.jar is a link
        } catch (java.io.IOException gone) {
            return jar;
        }
    }

    @Override
    public Socket open(Socket.Order order) {
        if (context == null) {
            ioThreads = order.options().number("io_threads", 1);
            context = ZMQ.context((int) ioThreads);
            context.setMaxSockets(16383);
        }
        ZMQ.Socket socket = context.socket(KINDS.get(order.kind()));
        long queue = order.options().queue(order.work().payload),
                buffer = order.options().number("socket_buffer", 0);
        socket.setSndHWM(queue);
        socket.setRcvHWM(queue);
        socket.setLinger(order.options().milliseconds("linger", "10s"));
        socket.setSendTimeOut(WAIT_MS);
        socket.setReceiveTimeOut(order.work().receive.equals("spin") ? 0 : WAIT_MS);
        socket.setReconnectIVL(10L);
        socket.setMaxMsgSize(-1);
        if (buffer > 0 && !order.work().transport.equals("inproc")) {
            socket.setSendBufferSize(buffer);
            socket.setReceiveBufferSize(buffer);
        }
        if (order.kind().equals("SUB")) socket.subscribe(new byte[0]);
        if (order.kind().equals("REQ")) socket.setReqRelaxed(true);
        String bound = order.bind();
        if (bound != null && bound.endsWith(":0")) {
            String address = bound.substring(0, bound.length() - 2);
            bound = address + ":" + socket.bindToRandomPort(address, 10000, 32000);
        } else if (bound != null) {
            socket.bind(bound);
        }
        for (String endpoint : order.connect()) socket.connect(endpoint);
        return new End(socket, bound, order, order.options().word("idiom").equals("buffer"));
    }

    private final class End implements Socket {
        private final ZMQ.Socket socket;
        private final String endpoint;
        private final boolean kept, routes;
        private final byte[] buffer;
        private byte[] message, peer = {};

        End(ZMQ.Socket socket, String endpoint, Order order, boolean kept) {
            this.socket = socket;
            this.endpoint = endpoint;
            this.kept = kept;
            routes = order.kind().equals("ROUTER");
            buffer =
                    new byte
                            [order.work().payload
                                    + 16]; // a message that is too long shows by its length
        }

        @Override
        public String endpoint() {
            return endpoint;
        }

        @Override
        public boolean send(byte[] message, int length) {
            if (routes && !socket.send(peer, ZMQ.SNDMORE)) return false;
            if (kept) return socket.send(message, 0, length, 0);
            // JeroMQ keeps the array that it is given; jzmq copies it.
            boolean mine = isJava || length != message.length;
            return socket.send(mine ? java.util.Arrays.copyOf(message, length) : message, 0);
        }

        @Override
        public int receive() {
            try {
                if (routes) {
                    byte[] from = socket.recv(0);
                    if (from == null) return -1;
                    peer = from;
                }
                if (kept) {
                    message = buffer;
                    return socket.recv(buffer, 0, buffer.length, 0);
                }
                message = socket.recv(0);
                return message == null ? -1 : message.length;
            } catch (ZMQException error) {
                if (error.getErrorCode() != EFSM) throw error;
                Player.park(
                        WAIT_MS
                                * Workload
                                        .MILLISECOND); // a late reply was taken for the one awaited
                return -1;
            }
        }

        @Override
        public byte[] message() {
            return message;
        }

        @Override
        public void crash() {
            socket.setLinger(0L);
            socket.close();
        }
    }

    @Override
    public List<String> knows() {
        return List.of(
                "linger",
                "io_threads",
                "queue_messages",
                "queue_bytes",
                "socket_buffer",
                "tcp_nodelay",
                "idiom",
                "request_reply",
                "pairs");
    }

    @Override
    public List<String> transports() {
        // JeroMQ's ipc is a TCP connection to a port that the name hashes to: nothing else hears
        // it.
        return isJava ? List.of("inproc", "tcp") : List.of("inproc", "ipc", "tcp");
    }

    @Override
    public Map<String, Object> applied(Socket.Order order, Socket opened) {
        ZMQ.Socket socket = ((End) opened).socket;
        Map<String, Object> applied = new LinkedHashMap<>();
        long linger = socket.getLinger();
        applied.put("linger", linger % 1000 == 0 ? linger / 1000 + "s" : linger + "ms");
        applied.put("io_threads", ioThreads);
        applied.put("send_queue_messages", socket.getSndHWM());
        applied.put("receive_queue_messages", socket.getRcvHWM());
        if (!order.work().transport.equals("inproc")) {
            applied.put("send_buffer_bytes", granted(socket.getSendBufferSize(), "wmem_max"));
            applied.put("receive_buffer_bytes", granted(socket.getReceiveBufferSize(), "rmem_max"));
        }
        return applied;
    }

    /** What the kernel makes of a socket buffer that a process asks for. */
    private static Object granted(long asked, String limit) {
        if (asked <= 0) return "automatic";
        try {
            return Math.min(
                    asked,
                    Long.parseLong(
                            Files.readString(Path.of("/proc/sys/net/core/" + limit)).trim()));
        } catch (java.io.IOException | NumberFormatException unknown) {
            return asked;
        }
    }

    /** The version that the jar has in its name. */
    private String version() {
        return jar.getFileName().toString().replaceAll("\\.jar$|[^0-9.]", "");
    }

    @Override
    public Map<String, Object> versions() {
        return Map.of(
                "library",
                isJava ? "JeroMQ" : "libzmq",
                "version",
                isJava ? version() : zmqVersion,
                "path",
                isJava ? jar.toString() : Watch.loaded("libzmq.so"));
    }

    @Override
    public Map<String, Object> made(Options options) {
        boolean kept = options.word("idiom").equals("buffer");
        String sending =
                isJava ? "into a new array, which its queue keeps" : "into libzmq's message";
        String receiving =
                isJava
                        ? kept ? "out of its array" : "nothing, a new array"
                        : kept
                                ? "out of libzmq's message"
                                : "out of libzmq's message into a new array";
        return Map.of(
                "binding",
                (isJava ? "JeroMQ " : "jzmq ") + version(),
                "library",
                isJava ? "pure Java" : "libzmq " + zmqVersion,
                "copies",
                "sending: " + sending + "; receiving: " + receiving);
    }
}
