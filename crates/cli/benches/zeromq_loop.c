/* The least that a C program can do to measure ZeroMQ: what pubmark is held
 * against by the bench zeromq_parity.
 *
 *     zeromq_loop request-reply|pipeline tcp|ipc|inproc BYTES WARMUP_MS WINDOW_MS roles|none LIMIT_MS FOLDER
 *
 * Prints three lines: the figure (median round trip in ns, or messages per
 * second), the version of libzmq, and the file that it was loaded from.
 *
 * Equal to pubmark: who binds (replier and pusher) and who connects and
 * measures (requester and puller), what is a process and what a thread, the
 * socket options, payload, warm-up and window, and how often a payload is
 * copied. Less than pubmark: no header, ledger, histogram or live display, one
 * call to the library per message and nothing between.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>
#include <zmq.h>

/* pubmark's options, at their defaults. */
enum { IO_THREADS = 1, QUEUE_MESSAGES = 1000, LINGER_MS = 10000 };
static const size_t QUEUE_BYTES = (size_t)64 << 20;

/* At the puller; a look at the clock costs about as much as a small message. */
enum { MESSAGES_PER_CLOCK = 1000 };

/* How a run begins. */
enum { PROBES = 20, PAUSE_US = 5000, REST_US = 100000 };

/* No round trip is shorter: two threads wake each other. */
static const uint64_t SHORTEST_TRIP_NS = 200;

/* limit_ms: a receive comes back empty-handed after so long, and is made again; 0 is never. */
static int request_reply, inproc, pin, limit_ms;
static const char *transport, *folder;
static size_t bytes;
static uint64_t warmup_ns, window_ns;

/* The binder tells the other side through it where it is bound. */
static int endpoint_pipe[2];
/* Threads share one context, as inproc needs; a process makes its own. */
static void *context;

static void check(int held, const char *what) {
    if (!held) {
        fprintf(stderr, "zeromq_loop: %s: %s\n", what, zmq_strerror(zmq_errno()));
        exit(1);
    }
}

static uint64_t now_ns(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

static void make_context(void) {
    context = zmq_ctx_new();
    check(context != NULL, "zmq_ctx_new");
    check(zmq_ctx_set(context, ZMQ_IO_THREADS, IO_THREADS) == 0, "ZMQ_IO_THREADS");
}

static void *open_socket(int type) {
    void *socket = zmq_socket(context, type);
    check(socket != NULL, "zmq_socket");
    size_t most = QUEUE_BYTES / bytes;
    int queue = most < QUEUE_MESSAGES ? (int)(most > 0 ? most : 1) : QUEUE_MESSAGES;
    int linger = LINGER_MS;
    check(zmq_setsockopt(socket, ZMQ_SNDHWM, &queue, sizeof queue) == 0, "ZMQ_SNDHWM");
    check(zmq_setsockopt(socket, ZMQ_RCVHWM, &queue, sizeof queue) == 0, "ZMQ_RCVHWM");
    check(zmq_setsockopt(socket, ZMQ_LINGER, &linger, sizeof linger) == 0, "ZMQ_LINGER");
    if (limit_ms > 0)
        check(zmq_setsockopt(socket, ZMQ_RCVTIMEO, &limit_ms, sizeof limit_ms) == 0, "ZMQ_RCVTIMEO");
    return socket;
}

/* As pubmark's pin=roles: those who send first (requester, pusher) on the first
 * half of the processors, the others on the second. Only the calling thread:
 * the library's I/O thread, which runs by now, stays where it likes. */
static void pin_thread(int sends_first) {
    cpu_set_t usable, half;
    CPU_ZERO(&half);
    check(sched_getaffinity(0, sizeof usable, &usable) == 0, "sched_getaffinity");
    int count = CPU_COUNT(&usable), seen = 0;
    if (!pin || count < 2)
        return;
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
        if (CPU_ISSET(cpu, &usable) && (seen++ < count / 2) == sends_first)
            CPU_SET(cpu, &half);
    check(sched_setaffinity(0, sizeof half, &half) == 0, "sched_setaffinity");
}

/* Written to, for pages never written to would all be one: the kernel's page of
 * zeros, which is always in the cache. */
static char *make_payload(void) {
    char *payload = malloc(bytes);
    check(payload != NULL, "malloc");
    return memset(payload, 0x5a, bytes);
}

/* Replier or pusher: goes on until the process is ended from outside. */
static void *bound_side(void *unused) {
    (void)unused;
    char endpoint[512];
    size_t length = sizeof endpoint;
    void *socket = open_socket(request_reply ? ZMQ_REP : ZMQ_PUSH);
    if (strcmp(transport, "tcp") == 0)
        snprintf(endpoint, sizeof endpoint, "tcp://127.0.0.1:*");
    else
        snprintf(endpoint, sizeof endpoint, "%s://%s/loop", transport, folder);
    check(zmq_bind(socket, endpoint) == 0, "zmq_bind");
    check(zmq_getsockopt(socket, ZMQ_LAST_ENDPOINT, endpoint, &length) == 0, "ZMQ_LAST_ENDPOINT");
    check(write(endpoint_pipe[1], endpoint, length) == (ssize_t)length, "write to a pipe");
    pin_thread(!request_reply);
    char *buffer = make_payload();
    while (request_reply) {
        /* Out of the library's message and into another, as pubmark echoes. */
        int received = zmq_recv(socket, buffer, bytes, 0);
        if (received < 0 && limit_ms > 0 && zmq_errno() == EAGAIN)
            continue;
        check(received == (int)bytes, "zmq_recv");
        check(zmq_send(socket, buffer, bytes, 0) == (int)bytes, "zmq_send");
    }
    for (;;)
        check(zmq_send(socket, buffer, bytes, 0) == (int)bytes, "zmq_send");
    return NULL;
}

/* zmq_msg_recv hands the library's message over; zmq_recv would copy it out,
 * which pubmark does not do either. */
static void receive(zmq_msg_t *message, void *socket) {
    int received;
    do
        received = zmq_msg_recv(message, socket, 0);
    while (received < 0 && limit_ms > 0 && zmq_errno() == EAGAIN);
    check(received == (int)bytes, "zmq_msg_recv");
}

static int ascending(const void *left, const void *right) {
    uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;
    return (a > b) - (a < b);
}

/* Single round trips with pauses, and a rest: as pubmark looks whether the other
 * side is there before it starts. Where the kernel puts the threads hangs on it for
 * the rest of the run: on two processors, two sides that begin at full speed stay where
 * they are, and a round trip of 32 KiB takes less time than where the library's I/O
 * threads change processors at each message, as they do after such a beginning. */
static void meet(void *socket, zmq_msg_t *message, const char *buffer) {
    for (int i = 0; i < PROBES; i++) {
        usleep(PAUSE_US);
        check(zmq_send(socket, buffer, bytes, 0) == (int)bytes, "zmq_send");
        receive(message, socket);
    }
    usleep(REST_US);
}

/* The median round trip, ns. One clock call a round trip: the end of one is
 * the beginning of the next. */
static double median_round_trip(void *socket, zmq_msg_t *message) {
    size_t room = window_ns / SHORTEST_TRIP_NS, count = 0;
    uint64_t *trips = malloc(room * sizeof *trips);
    char *buffer = make_payload();
    check(trips != NULL, "malloc");
    meet(socket, message, buffer);
    uint64_t before = now_ns(), from = before + warmup_ns, to = from + window_ns;
    while (before < to) {
        check(zmq_send(socket, buffer, bytes, 0) == (int)bytes, "zmq_send");
        receive(message, socket);
        uint64_t after = now_ns();
        if (before >= from && count < room)
            trips[count++] = after - before;
        before = after;
    }
    check(count > 0, "no round trip");
    qsort(trips, count, sizeof *trips, ascending);
    return count % 2 ? (double)trips[count / 2] : (double)(trips[count / 2 - 1] + trips[count / 2]) / 2;
}

/* Messages per second that arrive in the window; its ends are where the clock
 * is looked at, so the count and the time belong together. */
static double throughput(void *socket, zmq_msg_t *message) {
    uint64_t now, from, count = 0, warm = now_ns() + warmup_ns;
    do {
        for (int i = 0; i < MESSAGES_PER_CLOCK; i++)
            receive(message, socket);
        from = now_ns();
    } while (from < warm);
    do {
        for (int i = 0; i < MESSAGES_PER_CLOCK; i++)
            receive(message, socket);
        count += MESSAGES_PER_CLOCK;
        now = now_ns();
    } while (now < from + window_ns);
    return (double)count * 1e9 / (double)(now - from);
}

int main(int count, char **arguments) {
    if (count != 9) {
        fprintf(stderr, "zeromq_loop request-reply|pipeline tcp|ipc|inproc BYTES WARMUP_MS WINDOW_MS roles|none LIMIT_MS FOLDER\n");
        return 2;
    }
    request_reply = strcmp(arguments[1], "request-reply") == 0;
    transport = arguments[2];
    inproc = strcmp(transport, "inproc") == 0;
    bytes = strtoul(arguments[3], NULL, 10);
    warmup_ns = strtoull(arguments[4], NULL, 10) * 1000000u;
    window_ns = strtoull(arguments[5], NULL, 10) * 1000000u;
    pin = strcmp(arguments[6], "roles") == 0;
    limit_ms = atoi(arguments[7]);
    folder = arguments[8];
    check(bytes > 0 && window_ns > 0, "a number is 0");
    check(pipe(endpoint_pipe) == 0, "pipe");

    /* As pubmark: two threads of a process for inproc, two processes elsewhere. */
    pid_t child = 0;
    if (inproc) {
        pthread_t thread;
        make_context();
        check(pthread_create(&thread, NULL, bound_side, NULL) == 0, "pthread_create");
    } else {
        child = fork();
        check(child >= 0, "fork");
        if (child == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            make_context();
            bound_side(NULL);
        }
        close(endpoint_pipe[1]);
        make_context();
    }
    /* Ends this process should the other side be gone. */
    alarm((unsigned)((warmup_ns + window_ns) / 1000000000u) + 30);

    char endpoint[512];
    check(read(endpoint_pipe[0], endpoint, sizeof endpoint) > 0, "the other side could not bind");
    void *socket = open_socket(request_reply ? ZMQ_REQ : ZMQ_PULL);
    check(zmq_connect(socket, endpoint) == 0, "zmq_connect");
    zmq_msg_t message;
    zmq_msg_init(&message);
    pin_thread(request_reply);
    double figure = request_reply ? median_round_trip(socket, &message) : throughput(socket, &message);

    int major, minor, patch;
    Dl_info library;
    zmq_version(&major, &minor, &patch);
    check(dladdr((void *)zmq_send, &library) != 0, "dladdr");
    printf("%.1f\n%d.%d.%d\n%s\n", figure, major, minor, patch, library.dli_fname);
    if (child > 0)
        kill(child, SIGKILL);
    fflush(stdout);
    /* Without closing: nothing that is still under way is wanted. */
    _exit(0);
}
