"""An agent of protocol 3 in Python: it sends and receives, and writes a row for each message. Drivers, conversation
and clients are those of `pubmark_agent`."""

import threading
import time

import pubmark_agent
from books import NEVER, SECOND, WAITED, now
from pubmark_agent import LATE, NAP, TooLate
from rows import WAS_IDLE, Incoming, Outgoing, Ticks, mapped_file


class Window:
    """The instants of the run."""

    def __init__(self, start):
        self.start, self.begin = start["at_ns"], start["from_ns"]
        self.end, self.give_up = start["to_ns"] or NEVER, start["give_up_ns"] or NEVER


class Pacer(pubmark_agent.Pacer):
    """Wakes up no earlier than the coordinator allows."""

    def __init__(self, work, most, window):
        self.window, self.spent = window, 0
        self.margin = {"sleep": 0, "hybrid": min(LATE, most), "spin": NEVER}[work["pacing"]]


class Client(pubmark_agent.Client):
    """A client that writes rows."""

    def __init__(self, order, sections, file, prepare, *others):
        self.sections, self.file, self.rows = sections, file, prepare["rows"]
        super().__init__(order, prepare, *others)

    def open_books(self, _):
        if self.sends:
            self.outgoing = Outgoing(self.work, self.id, self.file, self.sections)
        if (hears := self.hears()) is not None:
            self.incoming = Incoming(self.work, hears, self.rows["is_timed"], self.file, self.sections)

    def close_books(self):
        if self.incoming:
            self.incoming.finish()

    def facts(self):
        """What the coordinator has to know beside the rows."""
        incoming, pacer = self.incoming, self.pacer
        facts = {"received_rows": incoming.written() if incoming else 0}
        facts["has_heard"] = not incoming or len(incoming.probed) == len(incoming.hears)
        if pacer:
            facts.update(spent_ns=pacer.spent, margin_ns=pacer.margin % NEVER)
        return facts

    def marking(self):
        return self.rows["marker_copies"], self.rows["marker_ns"]

    def send_all(self, ask=None):
        """Sends what is due; `ask` waits for the answer to each."""
        control, outgoing, window = self.control, self.outgoing, self.control.window
        self.pacer = Pacer(self.work, self.rows["margin_ns"], window)
        (self.send_as_fast if self.work["rate"] == "max" else self.send_due)(control, outgoing, window, ask)
        self.report("sent", self)

    def send_due(self, control, outgoing, window, ask):
        send, stamp, accepted, wait = self.socket.send, outgoing.stamp, outgoing.accepted, self.pacer.wait
        quantum, drain, start, give_up = (
            self.work["pacing_quantum_ns"],
            self.work["drain_ns"],
            window.start,
            window.give_up,
        )
        at, ready, woke, sequence = now(), 0, 0, 0
        for due in outgoing.dues:
            due += start
            while True:
                if at >= control.until or at >= give_up:
                    return
                if at < due:
                    at = woke = wait(max(due, woke + quantum))
                    continue
                ready = max(ready, due)
                if send(stamp(due, sequence, at, ready)):
                    break
                at = ready = now()
            ended = now()
            accepted(due, ready, at, 1)
            ready += ended - at  # the call was the system's
            at = ended
            sequence += 1
            if ask:
                at = ready = ask(at + drain)

    def send_as_fast(self, control, outgoing, window, ask):
        send, stamp, stamp_later, accepted = self.socket.send, outgoing.stamp, outgoing.stamp_later, outgoing.accepted
        stride, left, drain = self.rows["stride"], self.rows["count"], self.work["drain_ns"]
        end, begin = NEVER if left else window.end, window.begin
        at, ready, sequence = now(), 0, 0
        while at < window.start and at < control.until:
            at = self.pacer.wait(window.start)
        while at < control.until and at < end and left != 0:
            most = min(stride, left) if left and at >= begin else stride
            ready = max(ready, at)
            message, taken = stamp(at, sequence, at, ready), 0
            while send(message):
                taken += 1
                if taken == most:
                    break
                message = stamp_later(sequence + taken)
            ended = now()
            if taken:
                accepted(at, ready, at, taken)
                ready += ended - at
                sequence += taken
                if left and at >= begin:
                    left -= taken
            if taken < most:
                ready = ended
            at = ended
            if ask and taken:
                at = ready = ask(at + drain)

    def subscribe(self):
        recv, incoming, control = self.socket.recv, self.incoming, self.control
        take, spin, stride = incoming.take, self.work["receive"] == "spin", self.rows["stride"]
        idle, started, asked, at, left = WAS_IDLE, False, 0, 0, 0
        while not self.is_drained and now() < control.until:
            for _ in range(256):  # messages between two checks of the control flags
                if stride == 1:
                    asked = now()
                message = recv()
                if message is None:
                    idle, left = WAS_IDLE, 0
                    break
                if left == 0:
                    at, left = now(), stride
                left -= 1
                if not started:
                    started = control.window is not None
                if not take(message, asked, at, idle, started):
                    break
                idle = 0
            if not self.is_ready and len(incoming.probed) == len(incoming.hears):
                self.ready()
            if control.draining.is_set() and incoming.complete():
                break
            if spin and message is None:
                time.sleep(0)

    def take_reply(self, reply, at):
        self.incoming.take(reply, 0, at, 0, self.control.window is not None)


class Watch(threading.Thread):
    """Notes when it is awake."""

    def __init__(self, ticks):
        super().__init__(daemon=True)
        self.ticks, self.stop = ticks, threading.Event()
        self.start()

    def run(self):
        while not self.stop.wait(NAP / SECOND):
            self.ticks.add(now())


class Agent(pubmark_agent.Agent):
    """The conversation of protocol 3."""

    PROTOCOL, WAY_OUT, HELLO = 3, "start it by `pubmark rows`", {"waited_ns": WAITED}

    def clients_of(self, command):
        self.rows, others = command["rows"], (command, self.driver, self.control, self.post)
        self.file = mapped_file(self.rows["path"], self.rows["bytes"])
        orders = zip(command["clients"], self.rows["clients"])
        return [Client(order, sections, self.file, *others) for order, sections in orders]

    def sent(self):
        killed = self.control.killed
        rows = [client.outgoing.written() for client in self.clients if client.outgoing]
        return {"rows": rows, "killed_ns": killed if killed < NEVER else None}

    def start(self, command):
        if command["at_ns"] <= now():
            raise TooLate("the start has passed: the orders came too late")
        self.control.window = window = Window(command)
        self.watch, self.progress = Watch(Ticks(self.file, self.rows["ticks"])), window.start + SECOND
        self.control.started.set()

    def drain(self, command):
        super().drain({**command, "publishers": []})  # their rows say what they sent

    def result(self):
        runtime, ticks, window = None, 0, self.control.window
        if window:
            self.watch.stop.set()
            self.watch.join()
            ticks = self.watch.ticks.written()
            stops = [(length, began - window.begin) for began, length in self.collections
                     if window.begin <= began < min(window.end, self.ended)]  # fmt: skip
            longest, longest_at = max(stops, default=(0, 0))
            runtime = {"collections": len(stops), "pauses": {
                "count": len(stops), "total_ns": sum(length for length, _ in stops), "longest_ns": longest,
                "longest_at_ns": longest_at}}  # fmt: skip
        clients = [client.facts() for client in self.clients]
        self.once("result", clients=clients, sent=self.sent(), ticks=ticks, runtime=runtime, **self.facts())
