import java.io.ByteArrayOutputStream;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Base64;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.LongAdder;
import java.util.zip.Deflater;
import java.util.zip.DeflaterOutputStream;

/** What clients keep account in. */
final class Books {
    /** Bytes that books took when they were touched first: they are not the program's. */
    static final LongAdder MADE = new LongAdder();

    private Books() {}

    /** Counts values by their first bits; parts of it are made when they are touched first. */
    static final class Histogram {
        private static final int LONGEST = 42; // bits, 73 minutes: what is longer counts as that
        private final int bits;
        private final int[][] counts;

        Histogram(int bits) {
            this.bits = bits;
            counts = new int[LONGEST - bits + 1][];
        }

        void record(long value) {
            long v = Math.max(0, Math.min(value, (1L << LONGEST) - 1));
            int shift = Math.max(0, 64 - Long.numberOfLeadingZeros(v) - bits);
            int[] part = counts[shift];
            if (part == null) {
                part = counts[shift] = new int[1 << bits];
                MADE.add(4L << bits);
            }
            part[(int) (v >>> shift)]++;
        }

        /** What they hold together, as the protocol writes it; null if that is nothing. */
        static List<long[]> merged(List<Histogram> histograms) {
            List<long[]> pairs = new ArrayList<>();
            int parts = histograms.isEmpty() ? 0 : histograms.get(0).counts.length;
            for (int shift = 0; shift < parts; shift++) {
                for (int at = 0; at < 1 << histograms.get(0).bits; at++) {
                    long count = 0;
                    for (Histogram one : histograms)
                        count += one.counts[shift] == null ? 0 : one.counts[shift][at];
                    if (count > 0) pairs.add(new long[] {(long) at << shift, count});
                }
            }
            return pairs.isEmpty() ? null : pairs;
        }
    }

    static final class Silences {
        long count, longest, longestAt;

        void add(long count, long length, long at) {
            this.count += count;
            if (length > longest) {
                longest = length;
                longestAt = at;
            }
        }

        Map<String, Object> json() {
            return Map.of("count", count, "longest_ns", longest, "longest_at_ns", longestAt);
        }
    }

    record Total(long publisher, long sent, long first, long end, long offered) {
        static Total of(Map<String, Object> said) {
            return new Total(
                    Workload.number(said, "publisher"),
                    Workload.number(said, "sent"),
                    Workload.number(said, "window_first"),
                    Workload.number(said, "window_end"),
                    Workload.number(said, "offered"));
        }

        Map<String, Object> json() {
            return Map.of(
                    "publisher",
                    publisher,
                    "sent",
                    sent,
                    "window_first",
                    first,
                    "window_end",
                    end,
                    "offered",
                    offered);
        }
    }

    /** What a subscriber heard of one publisher. */
    static final class Stream {
        private static final int CHUNK = 1 << 14; // words, 128 KiB
        private final long room;
        private final long[][] seen;
        long next;
        volatile long distinct;
        volatile boolean heard, ended;

        /** The last latency, and its sequence; −2 for none. */
        long before, beforeIs = -2;

        Stream(long room) {
            this.room = room;
            seen = new long[(int) (room / 64 / CHUNK + 1)][];
        }

        /** Marks a sequence: 1 if it is new, 0 if it is not, −1 if there is no room for it. */
        int mark(long sequence) {
            if (sequence >= room) return -1;
            int word = (int) (sequence >>> 6);
            long[] chunk = seen[word / CHUNK];
            if (chunk == null) {
                chunk = seen[word / CHUNK] = new long[CHUNK];
                MADE.add(8L * CHUNK);
            }
            long bit = 1L << sequence, old = chunk[word % CHUNK];
            chunk[word % CHUNK] = old | bit;
            return (old & bit) == 0 ? 1 : 0;
        }

        private long word(int at) {
            return seen[at / CHUNK] == null ? 0 : seen[at / CHUNK][at % CHUNK];
        }

        long count(long from, long to) {
            long count = 0;
            for (long at = from; at < Math.min(to, next); at++)
                count += word((int) (at >>> 6)) >>> at & 1;
            return count;
        }

        /** The marks of all sequences: raw DEFLATE, base64. */
        String bits() throws java.io.IOException {
            ByteBuffer words =
                    ByteBuffer.allocate((int) ((next + 63) / 64 * 8))
                            .order(ByteOrder.LITTLE_ENDIAN);
            for (int at = 0; words.hasRemaining(); at++) words.putLong(word(at));
            ByteArrayOutputStream packed = new ByteArrayOutputStream();
            try (DeflaterOutputStream out =
                    new DeflaterOutputStream(
                            packed, new Deflater(Deflater.DEFAULT_COMPRESSION, true))) {
                out.write(words.array());
            }
            return Base64.getEncoder().encodeToString(packed.toByteArray());
        }
    }

    /** The books of one subscriber, or of the receiving side of a requester. */
    static final class Incoming {
        private static final java.lang.invoke.VarHandle DISTINCT;

        static {
            try {
                DISTINCT =
                        java.lang.invoke.MethodHandles.lookup()
                                .findVarHandle(Stream.class, "distinct", long.class);
            } catch (ReflectiveOperationException impossible) {
                throw new ExceptionInInitializerError(impossible);
            }
        }

        final Workload work;
        final long first;
        final Stream[] streams;
        private final byte[] body; // where it is compared
        private final boolean timed;
        private final long stall;
        Workload.Window window;
        long expected, delivered, duplicated, reordered, corrupted, unidentified, negative;
        long arrived, last, jitterPairs;
        double jitter;
        final Histogram latency = new Histogram(12),
                intended = new Histogram(12),
                service = new Histogram(12),
                receiveLag = new Histogram(12);
        long[] slices = {};
        Histogram[] sliceLatency = {};
        final Silences stalls = new Silences();
        private long lastArrival;
        // From the end of one call to the beginning of the next, over the messages
        // that came at once: how long the last one can have waited for those before it.
        private long backlog, asked, taken = Workload.FOREVER;

        Incoming(Workload work, long first, long count) {
            this.work = work;
            this.first = first;
            timed = work.timed();
            stall = work.stall(count);
            streams = new Stream[(int) count];
            Arrays.setAll(streams, i -> new Stream(work.ledgerRoom()));
            body = work.verify.equals("full") ? Workload.body(work.payload) : null;
        }

        void start(Workload.Window window) {
            slices = new long[window.slices()];
            if (timed && !window.open()) {
                sliceLatency = new Histogram[window.slices()];
                Arrays.setAll(sliceLatency, i -> new Histogram(9));
            }
            this.window = window;
        }

        /** The next message is asked for. */
        void listens(long at) {
            asked = at;
            backlog += Math.max(0, at - taken);
        }

        /** There was none. */
        void idle() {
            backlog = 0;
            taken = Workload.FOREVER;
        }

        /** The call brought a message. */
        void hands(long now) {
            if (now - asked > 5000) backlog = 0; // it was not there yet when it was asked for
            taken = now;
        }

        private boolean damaged() {
            corrupted++;
            unidentified++;
            return false;
        }

        /** An instant that a message carries, by this machine's clock. */
        private long instant(byte[] message, int at) {
            return (long) Workload.LONG.get(message, at) - work.ahead;
        }

        /** Enters a message; whether somebody may want to know: a first probe, an end marker. */
        boolean take(byte[] message, int length, long now) {
            if (length < 16) return damaged();
            long due = instant(message, 0),
                    publisher = (int) Workload.INT.get(message, 8) & 0xffffffffL;
            int number = (int) Workload.INT.get(message, 12);
            if (publisher < first || publisher - first >= streams.length || length != work.payload)
                return damaged();
            Stream stream = streams[(int) (publisher - first)];
            if (number == Workload.PROBE) return !stream.heard && (stream.heard = true);
            if (number == Workload.END) return !stream.ended && (stream.ended = true);
            if (window == null || due < window.start() || due > now + Workload.SECOND)
                return damaged();
            long sequence = number & 0xffffffffL;
            boolean measured = window.holds(due);
            int marked = stream.mark(sequence);
            if (marked < 0) return damaged(); // nobody sends what there is no room for
            if (marked == 0) {
                if (measured) duplicated++;
                return false;
            }
            DISTINCT.setRelease(stream, (long) DISTINCT.get(stream) + 1);
            if (sequence >= stream.next) stream.next = sequence + 1;
            else if (measured) reordered++;
            int place = -1;
            if (window.holds(now) && (measured || !window.open())) {
                place = window.place(now);
                arrived++;
                slices[place]++;
                noteSilence(Math.max(lastArrival, window.from()), now);
            }
            if (!measured) return false;
            last = now;
            int from = Workload.bodyAt(length);
            if (body != null && !Arrays.equals(message, from, length, body, from, length))
                corrupted++;
            else if (timed) measure(stream, message, length, due, sequence, now, place);
            return false;
        }

        private void measure(
                Stream stream,
                byte[] message,
                int length,
                long due,
                long sequence,
                long now,
                int place) {
            if (now < due) {
                negative++;
                return;
            }
            long took = now - due;
            intended.record(took);
            if (length >= 24) {
                long sent = instant(message, 16);
                if (sent <= now) service.record(now - sent);
                if (length >= 32) {
                    long free = instant(message, 24);
                    if (due <= free && free <= sent) took = Math.max(0, took - (sent - free));
                }
            }
            latency.record(took);
            receiveLag.record(backlog);
            if (place >= 0 && sliceLatency.length > 0) sliceLatency[place].record(took);
            if (stream.beforeIs >= 0 && (work.competing() || stream.beforeIs + 1 == sequence)) {
                jitter += Math.abs(took - stream.before);
                jitterPairs++;
            }
            stream.before = took;
            stream.beforeIs = sequence;
        }

        private void noteSilence(long since, long now) {
            if (now - since > stall) stalls.add(1, now - since, since - window.from());
            lastArrival = now;
        }

        /** Whether nothing more can come. */
        boolean complete(Map<Long, Total> totals) {
            for (int i = 0; i < streams.length; i++) {
                Total total = totals.get(first + i);
                boolean all =
                        !work.competing() && total != null && streams[i].distinct >= total.sent;
                if (!all && !streams[i].ended) return false;
            }
            return true;
        }

        boolean heardAll() {
            return Arrays.stream(streams).allMatch(stream -> stream.heard);
        }

        long received() {
            return Arrays.stream(streams).mapToLong(stream -> stream.distinct).sum();
        }

        /**
         * Settles the account: what was sent is known. A client that was killed heard until then.
         */
        void close(Map<Long, Total> totals, long killed) {
            if (window == null || totals == null) return;
            for (int i = 0; i < streams.length; i++) {
                Total total = totals.get(first + i);
                if (total == null) continue;
                delivered += streams[i].count(total.first, total.end);
                long unsent = streams[i].count(total.sent, streams[i].next);
                corrupted += unsent;
                unidentified += unsent;
                if (!work.competing()) expected += total.end - total.first;
            }
            if (!window.open() && !work.competing()) {
                long since = Math.max(lastArrival, window.from());
                noteSilence(since, Math.max(since, Math.min(window.to(), killed)));
            }
        }
    }
}
