import com.sun.management.GarbageCollectionNotificationInfo;
import com.sun.management.ThreadMXBean;

import java.io.IOException;
import java.lang.management.GarbageCollectorMXBean;
import java.lang.management.ManagementFactory;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

import javax.management.NotificationEmitter;
import javax.management.openmbean.CompositeData;

/** Looks at the process over the window: what it uses, and where it stood still. */
final class Watch extends Thread {
    private static final long NAP = 50 * Workload.MILLISECOND, TICK = Workload.SECOND / 100;
    private final Workload.Window window;
    volatile boolean stop;
    final Books.Silences pauses = new Books.Silences();
    final Map<String, Object> usage = new LinkedHashMap<>(), runtime = new LinkedHashMap<>();
    private final Books.Silences collections = new Books.Silences();
    private long collectedFor;

    /** What the process used so far. */
    private record Reading(long at, Map<String, long[]> threads, long user, long system) {
        static Reading now() {
            Map<String, long[]> threads = new HashMap<>();
            long user = 0, system = 0;
            try (DirectoryStream<Path> tasks =
                    Files.newDirectoryStream(Path.of("/proc/self/task"))) {
                for (Path task : tasks) threads.put(task.getFileName().toString(), thread(task));
                String stat = Files.readString(Path.of("/proc/self/stat"));
                String[] fields = stat.substring(stat.lastIndexOf(')') + 2).split(" ");
                user = Long.parseLong(fields[11]) * TICK;
                system = Long.parseLong(fields[12]) * TICK;
            } catch (IOException unknown) {
                // Nothing is told then, which the check of a run sees.
            }
            return new Reading(System.nanoTime(), threads, user, system);
        }

        /** Processor time and switches of a thread; zeroes of one that ended meanwhile. */
        private static long[] thread(Path task) {
            try {
                long voluntary = 0,
                        involuntary = 0,
                        cpu =
                                Long.parseLong(
                                        Files.readString(task.resolve("schedstat")).split(" ")[0]);
                for (String line : Files.readAllLines(task.resolve("status"))) {
                    if (line.startsWith("voluntary_"))
                        voluntary = Long.parseLong(line.replaceAll("\\D", ""));
                    if (line.startsWith("nonvoluntary_"))
                        involuntary = Long.parseLong(line.replaceAll("\\D", ""));
                }
                return new long[] {cpu, voluntary, involuntary};
            } catch (IOException gone) {
                return new long[3];
            }
        }

        /** Of all threads since then, each by itself: those that ended on the way are left out. */
        private long since(Reading before, int which) {
            long sum = 0;
            for (Map.Entry<String, long[]> thread : threads.entrySet()) {
                sum +=
                        Math.max(
                                0,
                                thread.getValue()[which]
                                        - before.threads
                                                .getOrDefault(thread.getKey(), new long[3])[which]);
            }
            return sum;
        }

        Map<String, Object> since(Reading before) {
            long ticks = user - before.user + system - before.system;
            // Ticks are coarse, and know the threads that ended.
            long cpu = Math.max(since(before, 0), ticks - 2 * TICK);
            Map<String, Object> used = new LinkedHashMap<>();
            used.put("cpu_ns", cpu);
            used.put(
                    "user_ns",
                    ticks == 0 ? cpu : (long) ((double) cpu * (user - before.user) / ticks));
            used.put("voluntary_switches", since(before, 1));
            used.put("involuntary_switches", since(before, 2));
            return used;
        }
    }

    Watch(Workload.Window window) {
        super("watch");
        setDaemon(true);
        this.window = window;
    }

    /** The path of a shared object of this process. */
    static String loaded(String name) {
        try {
            return Files.readAllLines(Path.of("/proc/self/maps")).stream()
                    .filter(line -> line.contains(name))
                    .map(line -> line.substring(line.indexOf('/')))
                    .findFirst()
                    .orElse("");
        } catch (IOException unknown) {
            return "";
        }
    }

    private static long[] memory() {
        long rss = 0, uss = 0;
        try {
            for (String line : Files.readAllLines(Path.of("/proc/self/smaps_rollup"))) {
                long bytes =
                        line.endsWith("kB") ? Long.parseLong(line.replaceAll("\\D", "")) << 10 : 0;
                if (line.startsWith("Rss:")) rss = bytes;
                if (line.startsWith("Private_Clean:") || line.startsWith("Private_Dirty:"))
                    uss += bytes;
            }
        } catch (IOException unknown) {
            // None is told then.
        }
        return new long[] {rss, uss};
    }

    /** Bytes that all threads of Java but this one allocated so far, less those of the books. */
    private static long allocated() {
        ThreadMXBean threads = (ThreadMXBean) ManagementFactory.getThreadMXBean();
        long sum =
                -Books.MADE.sum() - threads.getThreadAllocatedBytes(Thread.currentThread().getId());
        for (long bytes : threads.getThreadAllocatedBytes(threads.getAllThreadIds()))
            sum += Math.max(0, bytes);
        return sum;
    }

    /** Enters the collections that the runtime tells, in its milliseconds. */
    private void listen() {
        long offset =
                System.nanoTime()
                        - ManagementFactory.getRuntimeMXBean().getUptime() * Workload.MILLISECOND;
        for (GarbageCollectorMXBean collector : ManagementFactory.getGarbageCollectorMXBeans()) {
            ((NotificationEmitter) collector)
                    .addNotificationListener(
                            (notification, nothing) -> {
                                if (!notification
                                        .getType()
                                        .equals(
                                                GarbageCollectionNotificationInfo
                                                        .GARBAGE_COLLECTION_NOTIFICATION)) return;
                                var one =
                                        GarbageCollectionNotificationInfo.from(
                                                        (CompositeData) notification.getUserData())
                                                .getGcInfo();
                                long at = offset + one.getStartTime() * Workload.MILLISECOND,
                                        length = one.getDuration() * Workload.MILLISECOND;
                                synchronized (collections) {
                                    if (!window.holds(at)) return;
                                    collections.add(1, length, at - window.from());
                                    collectedFor += length;
                                }
                            },
                            null,
                            null);
        }
    }

    /** Does once what takes long the first time. */
    static void practise() {
        memory();
        allocated();
        Reading now = Reading.now();
        now.since(now);
    }

    @Override
    public void run() {
        listen();
        Reading began = null;
        long allocatedBefore = 0, sampleAt = 0, turn = 0, woke = System.nanoTime();
        List<Object> course = new ArrayList<>(), rss = new ArrayList<>(), uss = new ArrayList<>();
        for (boolean over = false; !over; ) {
            long before = System.nanoTime(); // what this thread itself takes is no pause
            long until = Math.min(woke + NAP, began == null ? window.from() : window.to());
            Player.park(until - before);
            woke = System.nanoTime();
            long from = Math.max(before, window.from()), gap = Math.min(woke, window.to()) - from;
            if (gap >= 3 * NAP) pauses.add(1, gap - NAP, from - window.from());
            over = stop || woke >= window.to();
            if (began == null && (woke >= window.from() || over)) {
                began = Reading.now();
                allocatedBefore = allocated();
                sampleAt =
                        began.at
                                + Math.min(250 * Workload.MILLISECOND, window.to() - window.from())
                                        / 4;
            }
            if (began == null) {
                Reading.now(); // practice, so that the compiler has been there before the window
                continue;
            }
            if (woke >= sampleAt || over && rss.isEmpty()) {
                long[] memory = memory();
                rss.add(memory[0]);
                uss.add(memory[1]);
                sampleAt = woke + (rss.size() < 4 ? 250 * Workload.MILLISECOND : Workload.SECOND);
            }
            if (window.open() && (over || turn++ % 5 == 0)) course.add(reading(began, rss.size()));
        }
        runtime.put("allocated_bytes", Math.max(0, allocated() - allocatedBefore));
        Reading ended = Reading.now();
        usage.put("wall_ns", ended.at - began.at);
        usage.putAll(ended.since(began));
        usage.put("rss_bytes", rss);
        usage.put("uss_bytes", uss);
        if (window.open()) usage.put("course", course);
        synchronized (collections) {
            runtime.put(
                    "pauses",
                    Map.of(
                            "count",
                            collections.count,
                            "total_ns",
                            collectedFor,
                            "longest_ns",
                            collections.longest,
                            "longest_at_ns",
                            collections.longestAt));
            runtime.put("collections", collections.count);
        }
    }

    private static Map<String, Object> reading(Reading began, int samples) {
        Reading now = Reading.now();
        Map<String, Object> reading = now.since(began);
        reading.put("at_ns", now.at);
        reading.put("samples", samples);
        return reading;
    }
}
