"""What a client in Python writes of its messages: a row each, into memory that the coordinator reads afterwards."""

import mmap
import os
from struct import Struct

import books
from books import END, PROBE, body
from pubmark_agent import Refused

NAME = Struct("<QII")  # due, publisher, sequence
SENT = Struct("<QQQII")  # due, ready, sent, count
ARRIVAL = Struct("<QQ36sI")  # arrived, asked, head of the message, flags
RUN = Struct("<QQIIII")  # arrived, due, publisher, sequence, count, flags
BODY_DIFFERS, LENGTH_DIFFERS, WAS_IDLE = 1, 2, 4


class Full(Refused):
    """There is no room for more rows."""


def mapped_file(path, length):
    file = os.open(path, os.O_RDWR)
    try:
        return mmap.mmap(file, max(1, length))
    finally:
        os.close(file)


class Rows:
    """Rows of one kind."""

    def __init__(self, file, kind, section):
        self.file, self.width, self.first = file, kind.size, section["offset"]
        self.at, self.end = self.first, self.first + kind.size * section["rows"]

    def written(self):
        return (self.at - self.first) // self.width

    def full(self):
        raise Full(f"there is no room for more than {self.written()} rows")


class Ticks(Rows):
    """Instants at which a thread was awake."""

    def __init__(self, file, section):
        super().__init__(file, Struct("<Q"), section)

    def add(self, instant):
        if self.at < self.end:
            self.file[self.at : self.at + 8] = instant.to_bytes(8, "little")
            self.at += 8


class Outgoing(Rows):
    """What a publisher sends."""

    def __init__(self, work, id, file, sections):
        super().__init__(file, SENT, sections["sent"])
        due = sections["due"]
        self.dues = memoryview(file)[due["offset"] : due["offset"] + 8 * due["rows"]].cast("Q")  # from the start
        self.work, self.id, self.message = work, id, bytearray(body(work["payload_bytes"]))
        self.room = max(room for room in (16, 24, 32) if room <= len(self.message))
        self.count = self.worst = 0
        self.ahead = work["ahead_ns"]  # what is added to this machine's clock in messages

    stamp = books.Outgoing.stamp

    def stamp_later(self, sequence):
        """The message stamped last, with another sequence."""
        self.message[12:16] = sequence.to_bytes(4, "little")
        return self.message

    def accepted(self, intended, ready, sent, count):
        at = self.at
        if at == self.end:
            self.full()
        SENT.pack_into(self.file, at, intended, ready, sent, count, 0)
        self.at = at + 32
        self.count += count
        if sent - ready > self.worst:
            self.worst = sent - ready


class Incoming(Rows):
    """What a subscriber or requester hears; `stride` messages go by between two readings of the clock."""

    def __init__(self, work, hears, timed, file, sections):
        super().__init__(file, ARRIVAL if timed else RUN, sections["received"])
        self.hears, self.length = hears, work["payload_bytes"]
        self.body_at = max(room for room in (16, 24, 32) if room <= self.length)
        self.body = body(self.length)[self.body_at :] if work["verify"] == "full" else b""
        self.probed, self.ended, self.count = set(), set(), 0
        self.runs = {}  # by publisher: what a message has to be to go on with the last run, and where that stands
        self.take = self.take_timed if timed else self.take_run

    def mark(self, message):
        """Whether it is a probe or an end marker of one of those that are heard."""
        if len(message) != self.length:
            return False
        _, publisher, sequence = NAME.unpack_from(message)
        if sequence < END or publisher not in self.hears:
            return False
        (self.probed if sequence == PROBE else self.ended).add(publisher)
        return True

    def flags(self, message):
        if len(message) != self.length:
            return LENGTH_DIFFERS
        return BODY_DIFFERS if self.body and bytes(message[self.body_at :]) != self.body else 0

    def take_timed(self, message, asked, at, idle, started):
        """A message came at `at`, asked for at `asked`. False where it is no data."""
        head = bytes(message[:36])
        if len(message) != self.length or self.body or head[15] == 255:
            if self.mark(message):
                return False
            idle |= self.flags(message)
        if not started:
            return False
        row = self.at
        if row == self.end:
            self.full()
        ARRIVAL.pack_into(self.file, row, at, asked, head, idle)
        self.at = row + 56
        self.count += 1
        return True

    def take_run(self, message, asked, at, idle, started):
        flags = 0
        if len(message) != self.length or self.body:
            flags = self.flags(message)
        due, publisher, sequence = NAME.unpack_from(message) if len(message) >= 16 else (0, 0, 0)
        run = self.runs.get(publisher)
        if run and run[0] == sequence and run[1] == due and run[2] == at and not flags:
            run[0] = sequence + 1
            run[4] += 1
            self.count += 1
            return True
        if sequence >= END and self.mark(message):
            return False
        if not started:
            return False
        if run:
            self.close(run)
        row = self.at
        if row == self.end:
            self.full()
        RUN.pack_into(self.file, row, at, due, publisher, sequence, 1, flags)
        self.at = row + 32
        self.count += 1
        self.runs[publisher] = None if flags else [sequence + 1, due, at, row, 1]
        return True

    def close(self, run):
        """Writes how long a run has become."""
        row = run[3] + 24
        self.file[row : row + 4] = run[4].to_bytes(4, "little")

    def finish(self):
        for run in filter(None, self.runs.values()):
            self.close(run)

    def complete(self):
        return len(self.ended) == len(self.hears)
