"""What a client in Python keeps of its messages: rows of numbers on the way, books once there is time for them."""

import base64
import threading
import time
import zlib
from array import array
from bisect import bisect_left
from collections import Counter
from functools import cache
from itertools import islice
from math import log
from operator import sub
from struct import Struct

PROBE, END = 0xFFFFFFFF, 0xFFFFFFFE
MICROSECOND, MILLISECOND, SECOND, NEVER = 10**3, 10**6, 10**9, 2**62
WAITED = 20 * MICROSECOND  # a call to receive that takes longer found nothing at first
CHUNK = 1 << 16  # rows that a table grows by, at most
COUNTS = ("expected", "delivered", "duplicated", "reordered", "corrupted", "unidentified", "negative")
TIMES = ("latency", "intended_latency", "service_latency", "send_lag", "own_lag", "receive_lag")
HEADER = Struct("<QIIQQ")  # intended, publisher, sequence, sent, free

now = time.monotonic_ns  # CLOCK_MONOTONIC


def random(state):
    """SplitMix64."""
    mask = 2**64 - 1
    while True:
        state = (state + 0x9E3779B97F4A7C15) & mask
        word = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) & mask
        word = ((word ^ (word >> 27)) * 0x94D049BB133111EB) & mask
        yield word ^ (word >> 31)


@cache
def body(length):
    """The bytes that every message has, before the header covers their beginning."""
    words = islice(random(0x7075626D61726B31), -(-length // 8))
    return b"".join(word.to_bytes(8, "little") for word in words)[:length]


def rate_per_ks(work):
    """Messages of a publisher in 1,000 s; None at `max`."""
    return None if work["rate"] == "max" else round(work["rate"] * 1000)


def burst_of(work):
    return int(work["arrival"].partition(":")[2] or 1)


def schedule(work, publisher):
    """When the messages of a publisher are due, ns from the start."""
    per_ks, burst, index, at = rate_per_ks(work), burst_of(work), 0, 0.0
    if work["arrival"] == "poisson":
        for draw in random(next(random(work["seed"] ^ (publisher << 32)))):
            at += -log(1.0 - (draw >> 11) / 2**53) * 1e12 / per_ks
            yield int(at)
    offset = burst * 10**12 // per_ks * publisher // work["publishers"]
    while True:
        yield offset + index // burst * burst * 10**12 // per_ks
        index += 1


class Window:
    """The measured part of a run; a message belongs to it by its intended time."""

    def __init__(self, work, start):
        per_ks, self.count, length = rate_per_ks(work), work["extent"].get("count"), work["extent"].get("time_ns")
        if self.count and per_ks:
            length = self.count * 10**12 // per_ks
        self.open = length is None  # a count at `max`: nobody knows its end
        self.start, self.begin = start, start + work["warmup_ns"]
        self.end = NEVER if self.open else self.begin + length
        self.slice = SECOND if self.open else max(10 * MILLISECOND, min(SECOND, length // 20), -(-length // 3600))
        self.slices = 3600 if self.open else max(1, -(-length // self.slice))


class Gaps:
    """Counts the silences, pauses or collections of a window, and keeps the longest."""

    def __init__(self, window):
        self.window, self.total = window, 0
        self.found = {"count": 0, "longest_ns": 0, "longest_at_ns": 0}

    def add(self, begin, length):
        self.total += length
        self.found["count"] += 1
        if length > self.found["longest_ns"]:
            self.found.update(longest_ns=length, longest_at_ns=max(0, begin - self.window.begin))


def rounded(times, bits=12):
    """Times as a histogram holds them: their upper 12 bits, three digits and a half."""
    most = 1 << bits
    return [at if at < most else at >> (shift := at.bit_length() - bits) << shift for at in times]


class Figures:
    """What all clients of this process measured. Each enters its own when it has the lock."""

    def __init__(self, window):
        self.window, self.lock, self.stalls = window, threading.Lock(), Gaps(window)
        self.times = {name: Counter() for name in TIMES}
        self.counts, self.sent, self.delivered, self.latency = Counter(), Counter(), Counter(), {}
        self.first_sent, self.last_arrival, self.arrived, self.jitter, self.jitter_pairs = NEVER, 0, 0, 0, 0
        self.seen, self.pacing = [], None

    def fields(self, publishers):
        pairs = lambda counter: sorted(counter.items()) or None
        places = range(self.window.slices)
        if self.window.open:
            places = range(max([*self.sent, *self.delivered], default=-1) + 1)
        return {
            "publishers": publishers, "ledger": {name: self.counts[name] for name in COUNTS}, "arrived": self.arrived,
            "first_sent_ns": self.first_sent if self.first_sent < NEVER else None,
            "last_arrival_ns": self.last_arrival or None,
            "histograms": {name: pairs(counter) for name, counter in self.times.items()}, "pacing": self.pacing,
            "jitter_sum_ns": self.jitter, "jitter_pairs": self.jitter_pairs, "stalls": self.stalls.found,
            "series": {
                "slice_ns": self.window.slice, "sent": [self.sent[place] for place in places if self.sent],
                "delivered": [self.delivered[place] for place in places if self.delivered],
                "latency": [pairs(self.latency.get(place, {})) for place in places if self.latency],
            },
            "seen": self.seen,
        }  # fmt: skip


class Table:
    """Rows of numbers in memory that is there beforehand: nothing is allocated for a message."""

    def __init__(self, types, work, publishers):
        per_ks, length = rate_per_ks(work), work["warmup_ns"] + work["extent"].get("time_ns", 0)
        due = (length * (per_ks or 0) // 10**12 + work["extent"].get("count", 0)) * publishers
        rows = min(32 * CHUNK, due * 5 // 4 + 1024) if per_ks else CHUNK // 4
        self.columns = [array(kind, bytes(array(kind).itemsize * rows)) for kind in types]
        self.count = 0

    def grow(self):
        more = min(CHUNK, len(self.columns[0]))
        for column in self.columns:
            column.frombytes(bytes(column.itemsize * more))


class Outgoing(Table):
    """What a publisher sends: rows of intended, sent, free."""

    def __init__(self, work, id):
        super().__init__("QQQ", work, 1)
        self.work, self.id, self.message = work, id, bytearray(body(work["payload_bytes"]))
        self.room = max(room for room in (16, 24, 32) if room <= len(self.message))
        self.first = self.worst = self.unsent = 0
        self.ahead = work.get("ahead_ns", 0)  # what is added to this machine's clock in messages

    def stamp(self, intended, sequence, sent, free):
        """The message with this header."""
        ahead, id = self.ahead, self.id
        if self.room == 32:
            HEADER.pack_into(self.message, 0, intended + ahead, id, sequence, sent + ahead, free + ahead)
        else:
            header = HEADER.pack(intended + ahead, id, sequence, sent + ahead, free + ahead)
            self.message[: self.room] = header[: self.room]
        return self.message

    def accepted(self, intended, sent, free):
        row, columns = self.count, self.columns
        if row == len(columns[0]):
            self.grow()
        columns[0][row] = intended
        columns[1][row] = sent
        columns[2][row] = free
        self.count = row + 1
        if sent - free > self.worst:
            self.worst = sent - free

    def end(self, window, dues, due, left, until):
        """All is sent: counts what was due until then and is not."""
        self.first = bisect_left(self.columns[0], window.begin, 0, self.count)
        while dues and due <= until and left != 0 and (left or due < window.end):
            if due >= window.begin:
                self.unsent += 1
                left = left and left - 1
            due = window.start + next(dues)

    def total(self):
        sent, first = self.count, min(self.first, self.count)
        offered = sent - first + self.unsent
        return {"publisher": self.id, "sent": sent, "window_first": first, "window_end": sent, "offered": offered}

    def enter(self, figures):
        window, (intended, sent, free) = figures.window, (column[: self.count] for column in self.columns)
        figures.first_sent = min([figures.first_sent, *sent[self.first : self.first + 1]])
        bounds = [window.begin + place * window.slice for place in range(window.slices)] + [window.end]
        rows = [bisect_left(sent, bound) for bound in bounds]
        figures.sent.update({place: count for place, count in enumerate(map(sub, rows[1:], rows)) if count})
        if rate_per_ks(self.work):
            intended, sent, free = (column[self.first :] for column in (intended, sent, free))
            figures.times["send_lag"].update(rounded(map(sub, sent, intended)))
            figures.times["own_lag"].update(rounded(map(sub, sent, free)))


class Stream:
    """What a subscriber heard of one publisher."""

    def __init__(self, sent):
        self.seen, self.strays = bytearray(sent), set()  # a byte a message; those that were never sent
        self.next, self.before, self.latency = 0, -2, 0

    def bits(self):
        digits = self.seen.translate(b"01" + bytes(254))[::-1] or b"0"
        deflate = zlib.compressobj(wbits=-15)
        packed = deflate.compress(int(digits, 2).to_bytes(-(-len(digits) // 8), "little")) + deflate.flush()
        return base64.b64encode(packed).decode()


class Incoming(Table):
    """What a subscriber or requester hears: rows of listened, at, intended, publisher, sequence, sent, free."""

    def __init__(self, work, hears, lagging):
        super().__init__("QQQIIQQ", work, len(hears))
        self.work, self.hears, self.lagging, self.length = work, hears, lagging, work["payload_bytes"]
        self.body_at = max(room for room in (16, 24, 32) if room <= self.length)
        self.body = body(self.length)[self.body_at :] if work["verify"] == "full" else b""
        self.probed, self.ended, self.damaged, self.unsound, self.distinct = set(), set(), 0, set(), (0, 0)

    def take(self, message, listened, at):
        """A message came at `at`, asked for since `listened` (0: nothing was there before). False for what is none."""
        if len(message) != self.length:
            self.damaged += 1
            return False
        if self.body_at == 32:
            intended, publisher, sequence, sent, free = HEADER.unpack_from(message)
        else:
            intended, publisher, sequence, sent, free = HEADER.unpack(bytes(message[: self.body_at]).ljust(32, b"\0"))
        if sequence >= END:
            if publisher in self.hears:
                (self.probed if sequence == PROBE else self.ended).add(publisher)
            else:
                self.damaged += 1
            return False
        row, columns = self.count, self.columns
        if row == len(columns[0]):
            self.grow()
        columns[0][row] = listened
        columns[1][row] = at
        columns[2][row] = intended
        columns[3][row] = publisher
        columns[4][row] = sequence
        columns[5][row] = sent
        columns[6][row] = free
        if self.body and bytes(message[self.body_at :]) != self.body:
            self.unsound.add(row)
        self.count = row + 1
        return True

    def complete(self, totals):
        """Whether nothing more can come, by what was sent."""
        sent = sum(totals[publisher]["sent"] for publisher in self.hears)
        if len(self.ended) == len(self.hears) or self.work["pattern"] == "pipeline" or self.count < sent:
            return len(self.ended) == len(self.hears)
        if self.distinct[0] < self.count:
            publishers, sequences = (column[: self.count] for column in self.columns[3:5])
            self.distinct = self.count, len(set(zip(publishers, sequences)))
        return self.distinct[1] >= sent

    def stall(self):
        """The silence that counts, ns."""
        work, per_ks = self.work, rate_per_ks(self.work)
        if not per_ks:
            return SECOND // 2
        sharing = work["subscribers"] if work["pattern"] == "pipeline" else 1
        return max(100 * MILLISECOND, 20 * (burst_of(work) * sharing * 10**12 // (per_ks * max(1, len(self.hears)))))

    def enter(self, figures, totals, killed):
        """The books, when nothing more is received. `totals` is what was sent, empty where nobody said it."""
        window, competing = figures.window, self.work["pattern"] == "pipeline"
        streams = {one: Stream(totals[one]["sent"] if one in totals else 0) for one in self.hears}
        self.measure(figures, streams, competing)
        for publisher, stream in streams.items() if totals else ():
            first, end = totals[publisher]["window_first"], totals[publisher]["window_end"]
            figures.counts["delivered"] += stream.seen.count(1, first, end)
            figures.counts["expected"] += 0 if competing else end - first
            self.damaged += len(stream.strays)
        figures.counts.update({"corrupted": self.damaged, "unidentified": self.damaged})
        if competing:
            figures.seen += [{"publisher": one, "bits": stream.bits()} for one, stream in streams.items()]
        arrivals = self.columns[1][: self.count]
        arrivals = arrivals[bisect_left(arrivals, window.begin) : bisect_left(arrivals, window.end)]
        if totals and not competing and not window.open:
            arrivals.append(max([*arrivals[-1:], min(window.end, killed)]))
        arrivals.insert(0, window.begin)
        stall = self.stall()
        for at, length in zip(arrivals, map(sub, arrivals[1:], arrivals)):
            if length > stall:
                figures.stalls.add(at, length)

    def measure(self, figures, streams, competing):
        """One pass over all that came."""
        window, counts, slice_ns = figures.window, figures.counts, figures.window.slice
        ahead = self.work.get("ahead_ns", 0)
        start, begin, end, unsound = window.start, window.begin, window.end, self.unsound
        timed, lagging = self.work["rate"] != "max" or self.work["pattern"] == "request-reply", self.lagging
        latencies, wholes, services, lags = (array("Q") for _ in range(4))
        marks, turn, place, inside = [], begin, -1, 0  # where in `latencies` the slices begin
        backlog = taken = last = row = 0
        for listened, at, intended, publisher, sequence, sent, free in zip(
            *(memoryview(column)[: self.count] for column in self.columns)
        ):
            row += 1
            intended, sent, free = intended - ahead, sent and sent - ahead, free and free - ahead
            backlog = backlog + listened - taken if listened and at - listened <= WAITED else 0
            taken = at
            stream = streams.get(publisher)
            if stream is None or intended < start or intended > at + SECOND:
                self.damaged += 1
                continue
            measured = begin <= intended < end
            try:
                new = not stream.seen[sequence]
                stream.seen[sequence] = 1
            except IndexError:
                new = sequence not in stream.strays
                stream.strays.add(sequence)
            if not new:
                counts["duplicated"] += measured
                continue
            if sequence >= stream.next:
                stream.next = sequence + 1
            elif measured:
                counts["reordered"] += 1
            if at >= turn:  # another slice
                figures.delivered[place] += inside
                figures.arrived += inside
                place = (at - begin) // slice_ns if at < end else window.slices
                turn = begin + (place + 1) * slice_ns if at < end else NEVER
                marks.append((place, len(latencies)))
                inside = 0
            if begin <= at < end and (measured or not window.open):
                inside += 1
            if not measured:
                continue
            last = at
            if row - 1 in unsound:
                counts["corrupted"] += 1
            elif at < intended:
                counts["negative"] += 1
            elif timed:
                whole = at - intended
                latency = max(0, whole - sent + free) if intended <= free <= sent else whole
                latencies.append(latency)
                wholes.append(whole)
                if sent:
                    services.append(max(0, at - sent))
                if lagging:
                    lags.append(backlog)
                if stream.before + 1 == sequence or competing and stream.before >= 0:
                    figures.jitter += abs(latency - stream.latency)
                    figures.jitter_pairs += 1
                stream.before, stream.latency = sequence, latency
        if 0 <= place < window.slices:
            figures.delivered[place] += inside
            figures.arrived += inside
        figures.last_arrival = max(figures.last_arrival, last)
        for name, times in zip(TIMES, (latencies, wholes, services, (), (), lags)):
            figures.times[name].update(rounded(times))
        for (place, first), (_, after) in zip(marks, [*marks[1:], (0, len(latencies))]):
            if place < window.slices and after > first:
                figures.latency.setdefault(place, Counter()).update(rounded(latencies[first:after], 9))
