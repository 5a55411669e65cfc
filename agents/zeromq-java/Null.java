import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.TimeUnit;

/** Hands messages over by queues: the floor of this language. */
final class Null implements Socket.Binding {
    /**
     * An endpoint: a queue to each of those who connect (where they compete: one for all), and one
     * back.
     */
    private record Hub(List<BlockingQueue<byte[]>> to, BlockingQueue<byte[]> back) {}

    /** Sockets are opened before any of them is used, and by one thread. */
    private final Map<String, Hub> hubs = new HashMap<>();

    @Override
    public Socket open(Socket.Order order) {
        int room = order.options().queue(order.work().payload);
        boolean spins = order.work().receive.equals("spin");
        if (order.bind() != null) {
            Hub bound = new Hub(new ArrayList<>(), new ArrayBlockingQueue<>(room));
            hubs.put(order.bind(), bound);
            return new End(order.bind(), bound.back, bound.to, spins);
        }
        BlockingQueue<byte[]> in = new ArrayBlockingQueue<>(room);
        List<BlockingQueue<byte[]>> out = List.of();
        for (String endpoint : order.connect()) {
            Hub hub = hubs.get(endpoint);
            out = List.of(hub.back);
            if (order.work().competing() && !hub.to.isEmpty()) in = hub.to.get(0);
            else hub.to.add(in);
        }
        return new End(null, in, out, spins);
    }

    private static final class End implements Socket {
        private final String endpoint;
        private final BlockingQueue<byte[]> in;
        private final List<BlockingQueue<byte[]>> out;
        private final boolean spins;
        private byte[] message;
        private int taken; // queues that have the message which is being offered

        End(
                String endpoint,
                BlockingQueue<byte[]> in,
                List<BlockingQueue<byte[]>> out,
                boolean spins) {
            this.endpoint = endpoint;
            this.in = in;
            this.out = out;
            this.spins = spins;
        }

        @Override
        public String endpoint() {
            return endpoint;
        }

        @Override
        public boolean send(byte[] message, int length) {
            byte[] mine = java.util.Arrays.copyOf(message, length);
            try {
                for (; taken < out.size(); taken++) {
                    if (!out.get(taken).offer(mine, 10, TimeUnit.MILLISECONDS)) return false;
                }
            } catch (InterruptedException interrupted) {
                return false;
            }
            taken = 0;
            return true;
        }

        @Override
        public int receive() {
            try {
                message = spins ? in.poll() : in.poll(10, TimeUnit.MILLISECONDS);
            } catch (InterruptedException interrupted) {
                message = null;
            }
            return message == null ? -1 : message.length;
        }

        @Override
        public byte[] message() {
            return message;
        }

        @Override
        public void crash() {}
    }

    @Override
    public List<String> knows() {
        return List.of("queue_messages", "queue_bytes");
    }

    @Override
    public List<String> transports() {
        return List.of("inproc");
    }

    @Override
    public Map<String, Object> applied(Socket.Order order, Socket socket) {
        return Map.of("send_queue_messages", order.options().queue(order.work().payload));
    }

    @Override
    public Map<String, Object> versions() {
        return Map.of("library", "none");
    }

    @Override
    public Map<String, Object> made(Options options) {
        return Map.of(
                "binding",
                "none: java.util.concurrent.ArrayBlockingQueue",
                "library",
                "none",
                "copies",
                "sending: into a new array; receiving: nothing");
    }
}
