import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Semaphore;
import java.util.concurrent.locks.LockSupport;
import java.util.function.BooleanSupplier;

/** A client on its thread. */
final class Player extends Thread {
    /** Nobody sleeps for longer, so that a stop is noticed. */
    private static final long NAP = 50 * Workload.MILLISECOND;

    /** Probes of a requester before it is ready, as far as half a second allows. */
    private static final long PRACTICE = 1000;

    /** What clients are told. */
    static final class Control {
        volatile long start;
        volatile boolean drains, crashed, stopped;

        /** Somebody wants to be looked at. */
        final Semaphore changed = new Semaphore(0);

        boolean silenced() {
            return crashed || stopped;
        }

        boolean over() {
            return start > 0 || silenced();
        }
    }

    final String role;
    final long id;
    private final Workload work;
    private final Socket socket;
    private final Control control;
    private final List<Object> cpus;
    final double budget;
    Books.Incoming in;
    volatile Outgoing out;
    Pacer pacer;
    volatile boolean isReady, hasSent;
    long killed = Workload.FOREVER;
    volatile Throwable failed;
    final CountDownLatch finished = new CountDownLatch(1);

    Player(
            String role,
            long id,
            Workload work,
            Socket socket,
            Control control,
            List<Object> cpus,
            double budget) {
        super(role + " " + id);
        setDaemon(true);
        this.role = role;
        this.id = id;
        this.work = work;
        this.socket = socket;
        this.control = control;
        this.cpus = cpus;
        this.budget = budget;
    }

    /** Sleeps for so long, ns. */
    static void park(long time) {
        if (time > 0) LockSupport.parkNanos(time);
    }

    /**
     * Says when a publisher wakes up for a due time. The margin follows the 99th percentile of what
     * waking up takes: up by a step for each wake-up that took longer, down by a hundredth of it
     * for each other.
     */
    static final class Pacer {
        private final String pacing;
        private final long from, most;
        private long wake = 60_000 * 100; // what waking up takes, ns times 100
        long spent; // awake before due times in the window, ns

        Pacer(Workload work, double budget, long from) {
            pacing = work.pacing;
            this.from = from;
            most = work.perKs > 0 ? Math.min((long) (budget * 1e12 / work.perKs), 200_000) : 0;
        }

        long margin() {
            return switch (pacing) {
                case "sleep" -> 0;
                case "spin" -> Workload.FOREVER;
                default -> Math.min(wake / 100, most);
            };
        }

        /** Waits until an instant, or for a nap; the time after it. */
        long await(long until) {
            long now = System.nanoTime(), alarm = until - margin();
            if (alarm > now) {
                park(Math.min(alarm - now, NAP));
                now = System.nanoTime();
                if (now < alarm) return now;
                wake =
                        now - alarm > wake / 100
                                ? Math.min(wake + 2_000 * 99, 200_000 * 100)
                                : Math.max(wake - 2_000, 2_000 * 100);
            }
            long awake = now, end = Math.min(until, now + NAP);
            while (now < end) {
                Thread.yield();
                now = System.nanoTime();
            }
            if (awake >= from) spent += Math.max(0, Math.min(now, end) - awake);
            return now;
        }
    }

    /** The books of one publisher, or of the sending side of a requester. */
    static final class Outgoing {
        private static final java.lang.invoke.VarHandle SEQUENCE;

        static {
            try {
                SEQUENCE =
                        java.lang.invoke.MethodHandles.lookup()
                                .findVarHandle(Outgoing.class, "sequence", long.class);
            } catch (ReflectiveOperationException impossible) {
                throw new ExceptionInInitializerError(impossible);
            }
        }

        final long id;
        final Workload work;
        final Workload.Window window;
        final Workload.Schedule schedule;
        final byte[] message;
        final long most;
        volatile long sequence;
        private long left; // of a count
        private long first = -1, end, offered;
        long intended, free, firstSent;
        volatile long lagMax;
        final long[] slices;
        final Books.Histogram sendLag = new Books.Histogram(12), ownLag = new Books.Histogram(12);

        Outgoing(Workload work, long id, Workload.Window window) {
            this.work = work;
            this.id = id;
            this.window = window;
            left = work.count;
            most = work.ledgerRoom();
            message = Workload.body(work.payload);
            schedule = work.perKs > 0 ? new Workload.Schedule(work, id) : null;
            slices = new long[window == null ? 0 : window.slices()];
        }

        /** Whether a message that is due then is none of the run any more. */
        private boolean over(long due) {
            return work.count > 0 ? left <= 0 : due >= window.to();
        }

        /** When to send the next message: not later than now, if at once; −1 if there is none. */
        long next(long now) {
            long due =
                    schedule == null ? Math.max(now, window.start()) : window.start() + schedule.at;
            boolean late = schedule != null && due <= now && now >= window.to() + work.drain;
            if (over(due) || late || sequence >= most) return -1;
            return intended = due;
        }

        /** Writes what the message says of itself, its instants as all hosts mean them. */
        byte[] header(int sequence, long intended, long sent, long free) {
            Workload.LONG.set(message, 0, intended + work.ahead);
            Workload.INT.set(message, 8, (int) id);
            Workload.INT.set(message, 12, sequence);
            if (message.length >= 24) Workload.LONG.set(message, 16, sent + work.ahead);
            if (message.length >= 32) Workload.LONG.set(message, 24, free + work.ahead);
            return message;
        }

        byte[] data(long now) {
            return header((int) (long) SEQUENCE.get(this), intended, now, Math.max(intended, free));
        }

        byte[] marker(int sequence) {
            long now = System.nanoTime();
            return header(sequence, now, now, now);
        }

        /** The message was offered at one instant, and the call returned at the other. */
        void accepted(long began, long ended) {
            long could = Math.max(intended, free),
                    own = Math.max(0, began - could),
                    number = (long) SEQUENCE.get(this);
            if (own > lagMax) lagMax = own;
            if (intended >= window.from()) {
                if (first < 0) {
                    first = number;
                    firstSent = began;
                }
                end = number + 1;
                offered++;
                left--;
                if (schedule != null) {
                    sendLag.record(began - intended);
                    ownLag.record(own);
                }
            }
            if (window.holds(began)) slices[window.place(began)]++;
            free = could + ended - began; // the call was the system's
            SEQUENCE.setRelease(this, number + 1);
            if (schedule != null) schedule.advance();
        }

        /** Counts what was due by then in the window and never sent. */
        void finish(long until) {
            for (; schedule != null; schedule.advance()) {
                long due = window.start() + schedule.at;
                if (over(due) || due > until) break;
                if (due < window.from()) continue;
                offered++;
                left--;
            }
        }

        Books.Total total() {
            return new Books.Total(
                    id,
                    sequence,
                    first < 0 ? sequence : first,
                    first < 0 ? sequence : end,
                    offered);
        }
    }

    @Override
    public void run() {
        try {
            pin();
            switch (role) {
                case "publisher" -> publish();
                case "subscriber" -> subscribe();
                case "requester" -> request();
                case "replier" -> reply();
                default -> throw new IllegalArgumentException("there is no role " + role);
            }
            kill();
            while (!control.stopped) park(10 * Workload.MILLISECOND);
            finished.countDown();
            // It lives until the process ends: what it used is told by the thread.
            while (true) park(Workload.SECOND);
        } catch (Throwable error) {
            failed = error;
            control.changed.release();
        }
    }

    /** Java cannot do it: another program is asked. */
    private void pin() throws IOException, InterruptedException {
        if (cpus.isEmpty()) return;
        String thread =
                Files.readSymbolicLink(Path.of("/proc/thread-self")).getFileName().toString();
        String list = cpus.toString().replaceAll("[^0-9,]", "");
        int status =
                new ProcessBuilder("taskset", "-pc", list, thread)
                        .redirectErrorStream(true)
                        .redirectOutput(ProcessBuilder.Redirect.DISCARD)
                        .start()
                        .waitFor();
        if (status != 0)
            throw new IOException("cannot be pinned to processors " + list + ": taskset failed");
    }

    private void kill() {
        if (control.crashed && killed == Workload.FOREVER) {
            killed = System.nanoTime();
            socket.crash();
        }
    }

    private void ready() {
        isReady = true;
        control.changed.release();
    }

    /** Sends probes, or end markers, until the condition ends that. */
    private void markers(Outgoing marker, int sequence, BooleanSupplier until) {
        long copies = work.competing() ? work.subscribers : 1;
        long every =
                Math.min(
                        Math.max(5 * Workload.MILLISECOND, work.publishers * 100_000),
                        Workload.SECOND);
        while (!until.getAsBoolean()) {
            for (long copy = 0; copy < copies && !until.getAsBoolean(); copy++)
                socket.send(marker.marker(sequence), work.payload);
            park(every);
        }
    }

    /** Makes the books of the sending side, when the start is known. */
    private void begin() {
        Workload.Window window = Workload.Window.of(work, control.start);
        pacer = new Pacer(work, budget, window.from());
        out = new Outgoing(work, id, window);
    }

    /** All is sent that will be; where the client was killed, by then. */
    private void end() {
        kill();
        out.finish(killed);
        hasSent = true;
        control.changed.release();
    }

    private interface Offer {
        /** Offers the message that is due; when that was through. */
        long at(long now);
    }

    private void play(Offer offer) {
        Outgoing out = this.out;
        long woke = 0, now = System.nanoTime();
        while (!control.silenced()) {
            long due = out.next(now);
            if (due < 0) return;
            if (due > now) woke = now = pacer.await(Math.max(due, woke + work.quantum));
            else now = offer.at(now);
        }
    }

    private void publish() {
        Outgoing marker = new Outgoing(work, id, null);
        ready();
        markers(marker, Workload.PROBE, control::over);
        if (control.start == 0) return;
        begin();
        Outgoing out = this.out;
        play(
                began -> {
                    boolean accepted = socket.send(out.data(began), work.payload);
                    long now = System.nanoTime();
                    if (accepted) out.accepted(began, now);
                    else out.free = Math.max(out.free, now);
                    return now;
                });
        end();
        markers(marker, Workload.END, control::silenced);
    }

    private void subscribe() {
        boolean timed = work.timed(), spins = work.receive.equals("spin");
        while (!control.silenced()) {
            if (timed) in.listens(System.nanoTime());
            int length = socket.receive();
            if (length < 0) {
                in.idle();
                if (spins) Thread.yield();
                continue;
            }
            long now = System.nanoTime();
            in.hands(now);
            if (in.window == null && control.start > 0)
                in.start(Workload.Window.of(work, control.start));
            if (in.take(socket.message(), length, now) || control.drains) control.changed.release();
        }
    }

    private void request() {
        Outgoing marker = new Outgoing(work, id, null);
        // One probe that comes back would do; those after it are practice for both sides, whose
        // code is compiled by how often it runs.
        long until = Workload.FOREVER, probes = 0;
        while (!control.silenced() && probes < PRACTICE && System.nanoTime() < until) {
            if (!socket.send(marker.marker(Workload.PROBE), work.payload)) continue;
            answer(Workload.FOREVER);
            if (probes++ == 0) until = System.nanoTime() + Workload.SECOND / 2;
        }
        ready();
        while (!control.over()) park(5 * Workload.MILLISECOND);
        if (control.start == 0) return;
        begin();
        Outgoing out = this.out;
        in.start(out.window);
        play(
                began -> {
                    long now;
                    if (socket.send(out.data(began), work.payload)) {
                        out.accepted(began, began);
                        now = answer(began + work.drain);
                    } else {
                        now = System.nanoTime();
                    }
                    out.free =
                            Math.max(
                                    out.free,
                                    now); // the wait for the reply, or for room, is the system's
                    return now;
                });
        end();
        while (!control.silenced()) park(5 * Workload.MILLISECOND);
    }

    /** Waits for a reply; the time of its arrival, or when it was given up. */
    private long answer(long deadline) {
        while (true) {
            int length = socket.receive();
            long now = System.nanoTime();
            if (length >= 0) in.take(socket.message(), length, now);
            if (length >= 0 || now >= deadline || control.silenced()) return now;
        }
    }

    private void reply() {
        ready();
        while (!control.silenced()) {
            int length = socket.receive();
            while (length >= 0 && !control.silenced() && !socket.send(socket.message(), length))
                Thread.yield();
        }
    }
}
