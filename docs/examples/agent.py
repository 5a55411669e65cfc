#!/usr/bin/env python3
"""Plays publishers and subscribers over plain TCP sockets: the system `kernel`."""
import contextlib, json, os, platform, resource, select, socket, struct, sys, time
from collections import Counter

PROBE, END, SECOND, MILLISECOND = 0xFFFFFFFF, 0xFFFFFFFE, 10**9, 10**6
now = time.monotonic_ns  # CLOCK_MONOTONIC


def say(kind, **fields):
    sys.stdout.write(json.dumps({"type": kind, **fields}) + "\n")
    sys.stdout.flush()


def fatal(message):
    say("error", message=message, fatal=True)
    sys.exit(1)


def body(length):
    """SplitMix64 from a fixed seed, little-endian."""
    state, mask, words = 0x7075626D61726B31, 2**64 - 1, []
    for _ in range(-(-length // 8)):
        state = (state + 0x9E3779B97F4A7C15) & mask
        word = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) & mask
        word = ((word ^ (word >> 27)) * 0x94D049BB133111EB) & mask
        words.append(struct.pack("<Q", word ^ (word >> 31)))
    return b"".join(words)[:length]


class Window:
    """The measured part of a run; a message belongs to it by its intended time."""

    def __init__(self, work, start):
        self.per_ks = round(work["rate"] * 1000)  # messages in 1,000 s
        self.count = work["extent"].get("count")
        length = work["extent"].get("time_ns") or self.count * 1000 * SECOND // self.per_ks
        self.start, self.begin = start, start + work["warmup_ns"]
        self.end = self.begin + length
        self.slice = max(10 * MILLISECOND, min(SECOND, length // 20), -(-length // 3600))
        self.slices = -(-length // self.slice)

    def holds(self, at):
        return self.begin <= at < self.end


class Peer:
    """A connection: each message behind its length, 4 bytes."""

    def __init__(self, stream):
        self.stream, self.buffer, self.unsent = stream, bytearray(), b""
        stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        stream.setblocking(False)

    def fileno(self):
        return self.stream.fileno()

    def flush(self):
        """Sends what is left of a message; whether there is room for another."""
        with contextlib.suppress(BlockingIOError):
            while self.unsent:
                self.unsent = self.unsent[self.stream.send(self.unsent):]
        return not self.unsent

    def messages(self):
        data = self.stream.recv(1 << 18)
        self.buffer += data
        while len(self.buffer) >= 4:
            end = 4 + struct.unpack_from("<I", self.buffer)[0]
            if len(self.buffer) < end:
                break
            yield bytes(self.buffer[4:end])
            del self.buffer[:end]
        if not data:
            self.stream = None  # it has ended


class Publisher:
    def __init__(self, client, work):
        self.id, self.work, self.peers = client["id"], work, []
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.endpoint = "tcp://127.0.0.1:%d" % self.listener.getsockname()[1]
        self.message = bytearray(body(work["payload_bytes"]))
        self.window, self.done, self.next_marker = None, False, 0
        self.number = self.sent = self.first = self.offered = 0
        self.first_sent, self.series, self.send_lag, self.own_lag = None, [], Counter(), Counter()

    def start(self, window):
        self.window, self.series, self.ready = window, [0] * window.slices, 0

    def due(self):
        """When the next message is due: from its number alone."""
        offset = 1000 * SECOND // self.window.per_ks * self.id // self.work["publishers"]
        return self.window.start + offset + self.number * 1000 * SECOND // self.window.per_ks

    def write(self, sequence, intended, ready):
        """Offers it to all peers; when it was sent, or 0 where one of them has no room."""
        if not all([peer.flush() for peer in self.peers]):
            return 0
        sent = now()
        header = struct.pack("<QIIQQ", intended, self.id, sequence, sent, ready)
        room = max(room for room in (16, 24, 32) if room <= len(self.message))
        self.message[:room] = header[:room]
        for peer in self.peers:
            peer.unsent = struct.pack("<I", len(self.message)) + self.message
            peer.flush()
        return sent

    def over(self):
        count = self.window.count
        return self.offered >= count if count else self.due() >= self.window.end

    def step(self):
        """Sends what is due; when to come again."""
        if self.window is None or self.done:
            if now() >= self.next_marker:
                self.write(END if self.done else PROBE, now(), now())
                self.next_marker = now() + 5 * MILLISECOND
            return self.next_marker
        while not self.over() and (due := self.due()) <= now():
            ready, given_up = max(self.ready, due), now() >= self.window.end + self.work["drain_ns"]
            sent = 0 if given_up else self.write(self.sent, due, ready)
            if not sent and not given_up:
                self.ready = now()  # it is offered again, and the wait was the system's
                return self.ready + MILLISECOND
            self.number += 1
            self.offered += due >= self.window.begin
            if given_up:
                continue
            self.ready = ready + now() - sent  # the call was the system's
            if due < self.window.begin:
                self.first += 1
            else:
                self.first_sent = self.first_sent or sent
                self.send_lag[sent - due] += 1
                self.own_lag[sent - ready] += 1
            if self.window.holds(sent):
                self.series[(sent - self.window.begin) // self.window.slice] += 1
            self.sent += 1
        self.done = self.over()
        return now() if self.done else self.due()

    def total(self):
        return {"publisher": self.id, "sent": self.sent, "window_first": self.first,
                "window_end": self.sent, "offered": self.offered}


class Subscriber:
    def __init__(self, client, work):
        self.work, self.window, self.body = work, None, body(work["payload_bytes"])
        self.hears = range(client["hears_first"], client["hears_first"] + client["hears_count"])
        self.peers = []
        for endpoint in client["connect"]:
            host, _, port = endpoint.removeprefix("tcp://").rpartition(":")
            self.peers.append(Peer(socket.create_connection((host, int(port)))))
        self.probed, self.ended, self.seen = set(), set(), {publisher: set() for publisher in self.hears}
        self.highest, self.before, self.counts, self.last = {}, {}, Counter(), None
        self.latency, self.intended, self.service = Counter(), Counter(), Counter()
        self.jitter, self.pairs = 0, 0

    def start(self, window):
        self.window, self.delivered = window, [0] * window.slices
        self.slices = [Counter() for _ in range(window.slices)]

    def take(self, message, at):
        window, length = self.window, len(message)
        fields = struct.unpack("<QIIQQ", message[:32].ljust(32, b"\0"))
        intended, publisher, sequence, sent, ready = fields
        seen = self.seen.get(publisher) if length >= 16 else None
        if seen is not None and sequence in (PROBE, END):
            (self.probed if sequence == PROBE else self.ended).add(publisher)
            return
        sound = window and seen is not None and length == self.work["payload_bytes"]
        if not sound or not window.start <= intended <= at + SECOND:
            self.counts.update(("corrupted", "unidentified"))
            return
        self.counts["received"] += 1
        measured, twice = window.holds(intended), sequence in seen
        seen.add(sequence)
        if twice:
            self.counts["duplicated"] += measured
            return
        self.counts["reordered"] += measured and sequence < self.highest.get(publisher, 0)
        self.highest[publisher] = max(sequence, self.highest.get(publisher, 0))
        if window.holds(at):
            place = (at - window.begin) // window.slice
            self.counts["arrived"] += 1
            self.delivered[place] += 1
        if not measured:
            return
        self.last = at
        room = max(room for room in (16, 24, 32) if room <= length)
        changed = self.work["verify"] == "full" and message[room:] != self.body[room:]
        if changed or at < intended:
            self.counts["corrupted" if changed else "negative"] += 1
            return
        own = sent - ready if length >= 32 and intended <= ready <= sent else 0
        latency, before = at - intended - own, self.before.get(publisher)
        self.before[publisher] = (sequence, latency)
        self.latency[max(0, latency)] += 1
        self.intended[max(0, at - intended)] += 1
        if length >= 24:
            self.service[max(0, at - sent)] += 1
        if before and before[0] + 1 == sequence:
            self.jitter += abs(latency - before[1])
            self.pairs += 1
        if window.holds(at):
            self.slices[place][max(0, latency)] += 1

    def complete(self, totals):
        whole = lambda publisher: len(self.seen[publisher]) >= totals[publisher]["sent"]
        return all(publisher in self.ended or whole(publisher) for publisher in self.hears)

    def close(self, totals):
        for publisher in self.hears:
            first, end, sent = (totals[publisher][name] for name in ("window_first", "window_end", "sent"))
            never_sent = sum(sequence >= sent for sequence in self.seen[publisher])
            self.counts.update({"corrupted": never_sent, "unidentified": never_sent, "expected": end - first})
            self.counts["delivered"] += sum(first <= sequence < end for sequence in self.seen[publisher])


def histogram(counters, digits=3):
    """[[value, count], ...]: values rounded to one digit more than is asked for."""
    merged = Counter()
    for value, count in (item for counter in counters for item in counter.items()):
        step = 10 ** max(0, len(str(value)) - digits - 1)
        merged[value // step * step] += count
    return sorted(merged.items()) or None


def usage():
    used = resource.getrusage(resource.RUSAGE_SELF)
    with open("/proc/self/smaps_rollup") as lines:
        kib = {line.split()[0]: int(line.split()[1]) for line in lines if line.endswith("kB\n")}
    return {"wall_ns": now(), "cpu_ns": time.process_time_ns(), "user_ns": int(used.ru_utime * SECOND),
            "voluntary_switches": used.ru_nvcsw, "involuntary_switches": used.ru_nivcsw,
            "rss_bytes": kib["Rss:"] << 10, "uss_bytes": (kib["Private_Clean:"] + kib["Private_Dirty:"]) << 10}


class Agent:
    def __init__(self):
        self.publishers, self.subscribers, self.said, self.used = [], [], set(), []
        self.work, self.window, self.deadline, self.totals = None, None, None, {}

    def once(self, word, **fields):
        if word not in self.said:
            self.said.add(word)
            say(word, **fields)

    def hear(self, line):
        command = json.loads(line)
        kind = command.get("type")
        if kind == "hello" and command["protocol"] == 2:
            say("hello", protocol=2, name="sockets-python", version="1.0", pid=os.getpid(), drivers=["kernel"],
                clock_ns=now(), versions={"python": platform.python_version()},
                features={"patterns": ["pairs", "fan-out", "fan-in"], "transports": ["tcp"]}, options={"kernel": []})
        elif kind == "prepare" and command["driver"] == "kernel" and not command["options"]:
            self.work = command["flows"][0]["workload"]
            if cpus := command["publisher_cpus"] + command["subscriber_cpus"]:
                os.sched_setaffinity(0, cpus)
            for client in command["clients"]:
                sends = client["role"] == "publisher"
                clients = self.publishers if sends else self.subscribers
                clients.append((Publisher if sends else Subscriber)(client, self.work))
            say("bound", endpoints=[{"role": "publisher", "id": publisher.id, "endpoint": publisher.endpoint}
                                    for publisher in self.publishers])
        elif kind == "start" and command["at_ns"] > now():
            self.window, self.progress = Window(self.work, command["at_ns"]), command["at_ns"] + SECOND
            for client in self.publishers + self.subscribers:
                client.start(self.window)
        elif kind == "drain":
            self.totals = {total["publisher"]: total for total in command["publishers"]}
            self.deadline = command["deadline_ns"]
        elif kind == "stop":
            self.result()
        elif kind == "exit":
            sys.exit(0)
        else:
            fatal("this cannot be done: %.200s" % line.decode())

    def look(self):
        """Says what has become true; when to look again."""
        at = now()
        if not self.work or "result" in self.said:
            return at + SECOND
        if all(subscriber.probed >= set(subscriber.hears) for subscriber in self.subscribers):
            self.once("ready")
        again = min([publisher.step() for publisher in self.publishers], default=at + SECOND)
        if self.window and len(self.used) < 2 and at >= (self.window.begin, self.window.end)[len(self.used)]:
            self.used.append(usage())
        if self.window and at >= self.progress:
            self.progress += SECOND
            say("progress", sent=sum(publisher.sent for publisher in self.publishers),
                received=sum(subscriber.counts["received"] for subscriber in self.subscribers))
        if self.window and self.publishers and all(publisher.done for publisher in self.publishers):
            self.once("sent", publishers=[publisher.total() for publisher in self.publishers])
        if self.deadline and (at >= self.deadline or all(s.complete(self.totals) for s in self.subscribers)):
            self.once("drained")
        return min(again, at + 5 * MILLISECOND)

    def result(self):
        self.used += [usage() for _ in range(2 - len(self.used))]
        for subscriber in self.subscribers if self.totals else []:
            subscriber.close(self.totals)
        of = lambda clients, name: [getattr(client, name) for client in clients if client.window]
        times = lambda clients, name: histogram(of(clients, name))
        columns = lambda clients, name: [sum(column) for column in zip(*of(clients, name))]
        counts = sum(of(self.subscribers, "counts"), Counter())
        names = ("expected", "delivered", "duplicated", "reordered", "corrupted", "unidentified", "negative")
        flow = {
            "publishers": [publisher.total() for publisher in self.publishers],
            "ledger": {name: counts[name] for name in names}, "arrived": counts["arrived"],
            "first_sent_ns": min(filter(None, of(self.publishers, "first_sent")), default=None),
            "last_arrival_ns": max(filter(None, of(self.subscribers, "last")), default=None),
            "histograms": {
                "latency": times(self.subscribers, "latency"), "receive_lag": None,
                "intended_latency": times(self.subscribers, "intended"),
                "service_latency": times(self.subscribers, "service"),
                "send_lag": times(self.publishers, "send_lag"), "own_lag": times(self.publishers, "own_lag")},
            "jitter_sum_ns": sum(of(self.subscribers, "jitter")), "jitter_pairs": sum(of(self.subscribers, "pairs")),
            "series": {
                "slice_ns": self.window.slice if self.window else 0, "sent": columns(self.publishers, "series"),
                "delivered": columns(self.subscribers, "delivered"),
                "latency": [histogram(counters, 2) for counters in zip(*of(self.subscribers, "slices"))]},
            "stalls": None,  # it cannot tell
        }
        before, after = self.used
        used = {name: [before[name], after[name]] if name.endswith("_bytes") else after[name] - before[name]
                for name in after}
        self.once("result", flows=[flow], usage=used, versions={"library": "kernel", "version": platform.release()},
                  applied={"tcp_nodelay": True, "batch_messages": 1}, loops=1, pauses=None, remarks=[])

    def run(self):
        orders = b""
        while True:
            wait = max(0, self.look() - now()) / SECOND
            bound = {publisher.listener: publisher for publisher in self.publishers}
            heard = {peer: subscriber for subscriber in self.subscribers for peer in subscriber.peers if peer.stream}
            for ready in select.select([0, *bound, *heard], [], [], wait)[0]:
                if ready == 0:
                    data = os.read(0, 1 << 16)
                    if not data:
                        sys.exit(1)  # the coordinator has gone
                    *lines, orders = (orders + data).split(b"\n")
                    for line in lines:
                        self.hear(line)
                elif ready in bound:
                    bound[ready].peers.append(Peer(ready.accept()[0]))
                else:
                    for message in ready.messages():
                        heard[ready].take(message, now())


Agent().run()
