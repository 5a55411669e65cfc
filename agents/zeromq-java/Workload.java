import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteOrder;
import java.util.Map;

/** What is to be played. */
final class Workload {
    static final long MILLISECOND = 1_000_000L, SECOND = 1_000_000_000L, FOREVER = Long.MAX_VALUE;
    static final int PROBE = 0xffffffff, END = 0xfffffffe;
    static final long SEQUENCES_MAX = 0xffffffefL;
    static final VarHandle LONG =
            MethodHandles.byteArrayViewVarHandle(long[].class, ByteOrder.LITTLE_ENDIAN);
    static final VarHandle INT =
            MethodHandles.byteArrayViewVarHandle(int[].class, ByteOrder.LITTLE_ENDIAN);
    private static final long PERIOD = 1_000_000_000_000L; // 1,000 s

    final String pattern, transport, arrival, pacing, receive, verify;
    final long publishers, subscribers, warmup, time, count, drain, quantum, seed;
    final int payload;

    /** Messages in 1,000 s of a publisher; 0: as fast as possible. */
    final long perKs;

    final long burst;

    /** What is added to this machine's clock in messages, ns. */
    final long ahead;

    Workload(Map<String, Object> order, long ahead) {
        this.ahead = ahead;
        pattern = (String) order.get("pattern");
        transport = (String) order.get("transport");
        arrival = (String) order.get("arrival");
        pacing = (String) order.get("pacing");
        receive = (String) order.get("receive");
        verify = (String) order.get("verify");
        publishers = number(order, "publishers");
        subscribers = number(order, "subscribers");
        warmup = number(order, "warmup_ns");
        drain = number(order, "drain_ns");
        quantum = number(order, "pacing_quantum_ns");
        seed = number(order, "seed");
        payload = (int) number(order, "payload_bytes");
        Map<String, Object> extent = map(order, "extent");
        time = number(extent, "time_ns");
        count = number(extent, "count");
        perKs =
                order.get("rate") instanceof Number rate
                        ? Math.round(rate.doubleValue() * 1000)
                        : 0;
        burst = arrival.startsWith("burst:") ? Long.parseLong(arrival.substring(6)) : 1;
    }

    static long number(Map<String, Object> from, String name) {
        return from.get(name) instanceof Number number ? number.longValue() : 0;
    }

    @SuppressWarnings("unchecked")
    static Map<String, Object> map(Map<String, Object> from, String name) {
        return (Map<String, Object>) from.getOrDefault(name, Map.of());
    }

    boolean competing() {
        return pattern.equals("pipeline");
    }

    /**
     * Whether latencies are measured: not where messages go out as fast as possible, for there it
     * is the length of a queue.
     */
    boolean timed() {
        return perKs > 0 || pattern.equals("request-reply");
    }

    boolean poisson() {
        return arrival.equals("poisson");
    }

    /**
     * When message i is due after the first of its publisher, ns: i × 10^12 / perKs, in whole
     * numbers without overflow.
     */
    long due(long i) {
        long thousands = i / perKs * PERIOD, rest = i % perKs * 1_000_000;
        return thousands + rest / perKs * 1_000_000 + rest % perKs * 1_000_000 / perKs;
    }

    /** How many messages of one publisher are kept account of. */
    long ledgerRoom() {
        double room = (time + warmup) / 1e12 * (perKs > 0 ? perKs : 50e9);
        return (long)
                Math.min(
                        room + (poisson() ? 12 * Math.sqrt(room) : 0) + burst + count + 1024,
                        SEQUENCES_MAX);
    }

    /** The silence of a subscriber that counts as a stall, ns. */
    long stall(long heard) {
        if (perKs == 0) return SECOND / 2;
        double gap =
                (double) burst
                        * (competing() ? subscribers : 1)
                        * PERIOD
                        / perKs
                        / Math.max(heard, 1);
        return Math.max((long) (20 * gap), 100 * MILLISECOND);
    }

    /** What every message carries behind its header. */
    static byte[] body(int length) {
        SplitMix random = new SplitMix(0x7075626d61726b31L);
        byte[] text = new byte[(length + 7) / 8 * 8];
        for (int at = 0; at < length; at += 8) LONG.set(text, at, random.next());
        return java.util.Arrays.copyOf(text, length);
    }

    static int bodyAt(int length) {
        return length >= 32 ? 32 : Math.min(24, length);
    }

    static final class SplitMix {
        private long state;

        SplitMix(long state) {
            this.state = state;
        }

        long next() {
            state += 0x9e3779b97f4a7c15L;
            long z = state;
            z = (z ^ z >>> 30) * 0xbf58476d1ce4e5b9L;
            z = (z ^ z >>> 27) * 0x94d049bb133111ebL;
            return z ^ z >>> 31;
        }
    }

    /** The measured part of a run; a message belongs to it by its intended time. */
    record Window(long start, long from, long to, long slice, int slices) {
        static Window of(Workload work, long start) {
            long from = start + work.warmup;
            if (work.count > 0 && work.perKs == 0)
                return new Window(start, from, FOREVER, SECOND, 3600);
            long length = work.count > 0 ? work.due(work.count) : work.time;
            long slice =
                    Math.max(
                            Math.max(10 * MILLISECOND, Math.min(SECOND, length / 20)),
                            (length + 3599) / 3600);
            return new Window(
                    start,
                    from,
                    from + length,
                    slice,
                    (int) Math.max(1, (length + slice - 1) / slice));
        }

        /** Whether nobody knows its end beforehand. */
        boolean open() {
            return to == FOREVER;
        }

        boolean holds(long at) {
            return at >= from && at < to;
        }

        int place(long at) {
            return (int) Math.min((at - from) / slice, slices - 1);
        }
    }

    /** When the messages of a publisher are due: a function of their number. */
    static final class Schedule {
        private final Workload work;
        private final SplitMix random;
        private final long offset;
        private long index;
        private double sum;

        /** When the next one is, ns from the start. */
        long at;

        Schedule(Workload work, long publisher) {
            this.work = work;
            random = new SplitMix(new SplitMix(work.seed ^ publisher << 32).next());
            offset =
                    work.poisson()
                            ? 0
                            : Math.multiplyExact(work.due(work.burst), publisher) / work.publishers;
            compute();
        }

        private void compute() {
            if (work.poisson()) {
                sum += -Math.log(1 - (random.next() >>> 11) * 0x1p-53) * PERIOD / work.perKs;
                at = (long) sum;
            } else {
                at = offset + work.due(index / work.burst * work.burst);
            }
        }

        void advance() {
            index++;
            compute();
        }
    }
}
