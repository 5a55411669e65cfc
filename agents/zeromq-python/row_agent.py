"""An agent of protocol 3 in Python: it sends and receives, and writes a row for each message. Drivers are those of
`pubmark_agent`."""

import ctypes
import gc
import json
import os
import platform
import queue
import shutil
import sys
import threading
import time
import traceback
from collections import Counter

from rows import (
    END, MICROSECOND, MILLISECOND, NEVER, PROBE, SECOND, WAS_IDLE, Full, Incoming, Outgoing, Ticks,
    body, mapped_file, now,
)  # fmt: skip
from pubmark_agent import Refused

VERSION = "1.0"
NAP = 50 * MILLISECOND
WAITED = 20 * MICROSECOND  # a call to receive that takes longer found nothing at first
LATE = 150 * MICROSECOND  # what waking up may take: so long before a due time `hybrid` wakes


class Window:
    """The instants of the run."""

    def __init__(self, start):
        self.start, self.begin = start["at_ns"], start["from_ns"]
        self.end, self.give_up = start["to_ns"] or NEVER, start["give_up_ns"] or NEVER


class Pacer:
    """Waits for due times: asleep, and awake for the rest as far as the budget allows."""

    def __init__(self, work, most, window):
        self.window, self.spent = window, 0
        self.margin = {"sleep": 0, "hybrid": min(LATE, most), "spin": NEVER}[work["pacing"]]

    def wait(self, until):
        """Until an instant, or for 50 ms where that is sooner; the time after it."""
        at, alarm = now(), until - self.margin
        if at < alarm:
            time.sleep(min(alarm - at, NAP) / SECOND)
            at = now()
            if at < alarm:
                return at
        awake, until = at, min(until, at + NAP)
        while at < until:
            time.sleep(0)  # lets other threads have the interpreter
            at = now()
        if awake >= self.window.begin:
            self.spent += max(0, min(at, until) - awake)
        return at


class Control:
    """What the main thread has told the clients."""

    def __init__(self):
        self.until = NEVER  # after this instant nothing is received or sent
        self.killed, self.window = NEVER, None
        self.started, self.draining, self.silent, self.stopped = (threading.Event() for _ in range(4))


class Client(threading.Thread):
    """A client on a thread of its own."""

    def __init__(self, order, sections, file, prepare, driver, control, report):
        super().__init__(daemon=True)
        self.order, self.driver, self.control, self.report = order, driver, control, report
        self.work = {**prepare["flows"][0]["workload"], "ahead_ns": prepare.get("clock_offset_ns", 0)}
        self.id, self.role = order["id"], order["role"]
        self.sends = self.role in ("publisher", "requester")
        self.rows = prepare["rows"]
        self.cpus = prepare["publisher_cpus" if self.sends else "subscriber_cpus"]
        self.outgoing = Outgoing(self.work, self.id, file, sections) if self.sends else None
        self.incoming = self.socket = self.pacer = None
        self.echoed, self.is_ready, self.is_drained, self.remarks = 0, False, False, []
        if self.role in ("subscriber", "requester"):
            first, count = (self.id, 1) if self.sends else (order["hears_first"], order["hears_count"])
            hears = range(first, first + count)
            self.incoming = Incoming(self.work, hears, self.rows["is_timed"], file, sections)

    def run(self):
        try:
            self.pin()
            self.socket = self.driver.socket(self.order)
            self.report("bound", self)
            play = {"publisher": self.publish, "subscriber": self.subscribe, "requester": self.request}
            play.get(self.role, self.reply)()
            if self.control.killed < NEVER:
                self.socket.close()
            if self.incoming:
                self.incoming.finish()
            if not self.sends:
                self.control.draining.wait()
                self.drained()
            self.control.stopped.wait()
            self.report("ended", self)
        except Exception as error:
            reason = str(error) if isinstance(error, (Full, Refused)) else traceback.format_exc()
            self.report("failed", self, f"{self.role} {self.id}: {reason}")

    def pin(self):
        try:
            if self.cpus:
                os.sched_setaffinity(0, self.cpus)  # of this thread
        except OSError as error:
            self.remarks.append(f"{self.role} {self.id} is not kept to the processors {self.cpus}: {error}")

    def facts(self):
        """What the coordinator has to know beside the rows."""
        incoming, pacer = self.incoming, self.pacer
        facts = {"received_rows": incoming.count() if incoming else 0}
        facts["has_heard"] = not incoming or len(incoming.probed) == len(incoming.hears)
        if pacer:
            facts.update(spent_ns=pacer.spent, margin_ns=pacer.margin % NEVER)
        return facts

    def ready(self):
        self.is_ready = True
        self.report("ready", self)

    def drained(self):
        if not self.is_drained:
            self.is_drained = True
            self.report("drained", self)

    def markers(self, sequence, over):
        """Sends markers until an event."""
        copies, pause = self.rows["marker_copies"], max(5 * MILLISECOND, self.rows["marker_ns"]) / SECOND
        while not over.is_set():
            for _ in range(copies):
                while not self.socket.send(self.marker(sequence)) and not over.is_set():
                    pass
            over.wait(pause)

    def marker(self, sequence):
        return self.outgoing.stamp(at := now(), sequence, at, at)

    def publish(self):
        self.ready()
        self.markers(PROBE, self.control.started)
        if self.control.window:
            self.send_all()
            self.markers(END, self.control.silent)

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

    def request(self):
        while not self.incoming.probed:
            if now() >= self.control.until:
                return
            if self.socket.send(self.marker(PROBE)):
                self.await_reply(NEVER)
        self.ready()
        self.control.started.wait()
        if self.control.window:
            self.send_all(self.await_reply)

    def await_reply(self, deadline):
        while True:
            reply = self.socket.recv()
            at = now()
            if reply is not None:
                self.incoming.take(reply, 0, at, 0, self.control.window is not None)
                return at
            if at >= deadline or at >= self.control.until:
                return at

    def reply(self):
        recv, echo, control = self.socket.recv, getattr(self.socket, "echo", None), self.control
        self.ready()
        while now() < control.until:
            if control.draining.is_set():
                self.drained()
            request = recv()
            if request is None:
                self.echoed = getattr(self.socket, "served", self.echoed)
            else:
                self.echoed += 1
                while not echo(request) and now() < control.until:
                    pass


class Watch(threading.Thread):
    """Notes when it is awake."""

    def __init__(self, ticks):
        super().__init__(daemon=True)
        self.ticks, self.stop = ticks, threading.Event()
        self.start()

    def run(self):
        while not self.stop.wait(NAP / SECOND):
            self.ticks.add(now())


class Agent:
    """The conversation with the coordinator."""

    def __init__(self, name, drivers):
        self.name, self.drivers, self.driver = name, {driver.name: driver for driver in drivers}, None
        self.output = os.fdopen(os.dup(1), "w", encoding="utf-8")  # the protocol's own
        os.dup2(2, 1)
        self.events, self.control, self.clients = queue.SimpleQueue(), Control(), []
        self.told, self.said, self.collections, self.collecting = Counter(), set(), [], 0
        self.work = self.watch = None
        self.progress, self.ended = NEVER, 0

    def say(self, kind, **fields):
        self.output.write(json.dumps({"type": kind, **fields}, separators=(",", ":")) + "\n")
        self.output.flush()

    def once(self, word, **fields):
        if word not in self.said and not (self.ended and word != "result"):
            self.said.add(word)
            self.say(word, **fields)

    def fatal(self, message):
        self.say("error", message=message, fatal=True)
        os._exit(1)

    def read(self):
        """Takes orders, on a thread of its own: whatever the others do, the end of the input is the end."""
        for line in sys.stdin.buffer:
            self.events.put(("line", line))
        scratch = os.environ.get("PUBMARK_SCRATCH", "")
        ours = os.path.isabs(scratch) and os.path.basename(scratch).startswith("pubmark-")
        if ours and os.path.isfile(os.path.join(scratch, "lock")):
            shutil.rmtree(scratch, ignore_errors=True)
        os._exit(1)

    def collected(self, phase, _):
        """The garbage collector's own word."""
        if phase == "start":
            self.collecting = now()
        else:
            self.collections.append((self.collecting, now() - self.collecting))

    def run(self):
        ctypes.CDLL(None).prctl(29, 1, 0, 0, 0)  # PR_SET_TIMERSLACK: sleeps end when they should; threads inherit it
        gc.callbacks.append(self.collected)
        threading.Thread(target=self.read, daemon=True).start()
        while True:
            try:
                kind, *what = self.events.get(timeout=max(0, min(self.progress - now(), SECOND)) / SECOND)
                self.hear(what[0]) if kind == "line" else self.note(kind, *what)
            except queue.Empty:
                pass
            if now() >= self.progress:
                self.tell_progress()

    def hear(self, line):
        try:
            command = json.loads(line)
            kind = command["type"]
        except (ValueError, TypeError, KeyError):
            return self.say("error", message=f"this is no command: {line[:200]}", fatal=False)
        if kind not in ("hello", "prepare", "start", "crash", "drain", "stop", "exit"):
            return self.fatal(f"this agent knows no command {str(kind)[:100]}")
        try:
            getattr(self, kind)(command)
        except Refused as error:
            self.fatal(str(error))
        except Exception:
            self.fatal(f"{kind} cannot be obeyed: {traceback.format_exc()}")

    def hello(self, command):
        if command["protocol"] != 3:
            raise Refused(f"this agent speaks protocol 3, not {command['protocol']}: start it by `pubmark rows`")
        drivers, versions = self.drivers.values(), {"python": platform.python_version()}
        for driver in drivers:
            versions.update(driver.versions())
        self.say(
            "hello", protocol=3, waited_ns=WAITED, name=self.name, version=VERSION, pid=os.getpid(), drivers=list(self.drivers),
            clock_ns=now(), versions=versions, options={driver.name: sorted(driver.options) for driver in drivers},
            features={
                "patterns": sorted({pattern for driver in drivers for pattern in driver.patterns}),
                "transports": sorted({transport for driver in drivers for transport in driver.transports}),
                "arrivals": ["uniform", "poisson", "burst"], "verification": ["header", "full"],
                "pacing": ["sleep", "hybrid", "spin"], "profiles": ["constant", "max"], "faults": [], "flows": 1,
                "pauses": True, "crash": all(driver.crash for driver in drivers),
                "clock_offset": True,
            },
        )  # fmt: skip

    def prepare(self, command):
        driver, options = self.drivers.get(command["driver"]), command["options"]
        if driver is None:
            raise Refused(f"there is no driver {command['driver']}; there is: {', '.join(self.drivers)}")
        if unknown := sorted(options.keys() - driver.options):
            raise Refused(f"{driver.name} knows no option {', '.join(unknown)}")
        if len(command["flows"]) != 1:
            raise Refused(f"{len(command['flows'])} flows are asked for, and this agent plays one")
        self.work = work = command["flows"][0]["workload"]
        known = {"pattern": driver.patterns, "transport": driver.transports, "qos": (0,), "durable": (False,)}
        for name, has in known.items():
            if work[name] not in has:
                raise Refused(f"{driver.name} cannot play {name} {work[name]}; it has: {', '.join(map(str, has))}")
        body(work["payload_bytes"])  # once for all
        self.driver = driver(options, work)
        self.rows = command["rows"]
        self.file = mapped_file(self.rows["path"], self.rows["bytes"])
        self.clients = [
            Client(order, sections, self.file, command, self.driver, self.control, self.post)
            for order, sections in zip(command["clients"], self.rows["clients"])
        ]
        for client in self.clients:
            if "bind" in client.order:  # first, so that those who connect find them
                client.start()
        self.note("", None)

    def post(self, kind, client, *what):
        self.events.put((kind, client, *what))

    def note(self, kind, _, *what):
        """A client has said something: says what has become true of all."""
        if kind == "failed":
            self.fatal(what[0])
        self.told[kind] += 1
        binders = [one for one in self.clients if "bind" in one.order]
        senders = sum(one.sends for one in self.clients)
        if self.told["bound"] == len(binders) and "bound" not in self.said:
            endpoints = [{"role": one.role, "id": one.id, "endpoint": one.socket.endpoint} for one in binders]
            self.once("bound", endpoints=endpoints)
            for one in self.clients:
                if one not in binders:
                    one.start()
        if self.told["ready"] == len(self.clients):
            self.once("ready")
        if senders and self.told["sent"] == senders:
            self.once("sent", **self.sent())
        if self.control.draining.is_set() and self.told["drained"] == len(self.clients) - senders:
            self.once("drained")
        if self.ended and self.told["ended"] == len(self.clients) and "result" not in self.said:
            self.result()

    def sent(self):
        killed = self.control.killed
        rows = [client.outgoing.count() for client in self.clients if client.outgoing]
        return {"rows": rows, "killed_ns": killed if killed < NEVER else None}

    def start(self, command):
        if command["at_ns"] <= now():
            raise Refused("the start has passed: the orders came too late")
        self.control.window = window = Window(command)
        self.watch, self.progress = Watch(Ticks(self.file, self.rows["ticks"])), window.start + SECOND
        self.control.started.set()

    def tell_progress(self):
        self.progress += SECOND
        sent = [client.outgoing for client in self.clients if client.outgoing]
        received = sum(client.echoed + (client.incoming.received if client.incoming else 0) for client in self.clients)
        fields = {"sent": sum(one.sent for one in sent), "received": received}
        if sent and self.work["rate"] != "max":
            fields["own_lag_max_ns"] = max(one.worst for one in sent)
            for one in sent:
                one.worst = 0
        self.say("progress", **fields)

    def crash(self, _):
        self.control.killed = now()
        self.control.until = 0
        self.control.silent.set()

    def drain(self, command):
        self.control.until = min(self.control.until, command["deadline_ns"])
        self.control.draining.set()
        self.note("", None)

    def stop(self, _):
        self.progress, self.control.until, self.ended = NEVER, 0, now()
        for event in (self.control.stopped, self.control.silent, self.control.draining, self.control.started):
            event.set()
        self.note("", None)

    def exit(self, _):
        os._exit(0)

    def result(self):
        runtime, ticks, window = None, 0, self.control.window
        if window:
            self.watch.stop.set()
            self.watch.join()
            ticks = self.watch.ticks.count()
            stops = [(length, began - window.begin) for began, length in self.collections
                     if window.begin <= began < min(window.end, self.ended)]  # fmt: skip
            longest, longest_at = max(stops, default=(0, 0))
            runtime = {"collections": len(stops), "pauses": {
                "count": len(stops), "total_ns": sum(length for length, _ in stops), "longest_ns": longest,
                "longest_at_ns": longest_at}}  # fmt: skip
        python = f"{platform.python_implementation()} {platform.python_version()}"
        made = {"language": "Python", "runtime": python, "memory": "reference counts, and a collector for cycles",
                "flags": f"global lock, handed over after {sys.getswitchinterval() * 1000:g} ms"}  # fmt: skip
        self.once(
            "result", clients=[client.facts() for client in self.clients], sent=self.sent(), ticks=ticks,
            loops=len(self.clients), versions={**self.driver.loaded(), "runtime": python}, runtime=runtime,
            remarks=[remark for client in self.clients for remark in client.remarks],
            applied=self.clients[0].socket.applied if self.clients else {}, made={**made, **self.driver.made()},
        )  # fmt: skip
