"""What every agent in Python shares: the agent protocol and the loops of clients.

A driver brings the sockets. It is a class with
  name, options, patterns, transports, crash   what it can play, as `hello` tells it
  versions()                                   what is known before it is opened
  Driver(options, work)                        opens it; raises Refused
  socket(client)                               a socket of a client, made on the thread that uses it
  loaded(), made()                             `versions` and `made` of the result
and a socket has `endpoint`, `applied`, `send(message)` and `echo(message)` (False: refused, offer it again),
`recv()` (None: nothing came) and `close()` (what waits in it is thrown away; where `crash` is). A replier that answers
by itself counts what it has `served`.
"""

import ctypes
import gc
import json
import os
import platform
import queue
import resource
import shutil
import sys
import threading
import time
import traceback
from collections import Counter

from books import (
    END, MICROSECOND, MILLISECOND, NEVER, PROBE, SECOND, Figures, Gaps, Incoming, Outgoing, Window,
    body, now, rate_per_ks, schedule,
)  # fmt: skip

VERSION = "1.0"
NAP, PAUSE = 50 * MILLISECOND, 150 * MILLISECOND
LATE = 150 * MICROSECOND  # what waking up may take: so long before a due time `hybrid` wakes


class Refused(Exception):
    """What was asked for cannot be honoured."""


class TooLate(Refused):
    """The start had passed: the run can be made again."""


def queue_length(options, work):
    """High-water mark of a queue, messages."""
    by_bytes = options.get("queue_bytes", NEVER) // max(1, work["payload_bytes"])
    return min(options.get("queue_messages", 1000), max(1, by_bytes), 2**31 - 1)


def mapped(name):
    """Where a shared object was loaded from, by the beginning of its name."""
    with open("/proc/self/maps") as lines:
        paths = (line.split(maxsplit=5)[-1].strip() for line in lines)
        return next((path for path in paths if os.path.basename(path).startswith(name)), "")


class Pacer:
    """Waits for due times: asleep, and awake for the rest as far as the budget allows."""

    def __init__(self, work, budget, window):
        per_ks, self.budget, self.window, self.spent = rate_per_ks(work), budget, window, 0
        affordable = min(LATE, int(budget * 10**12 / per_ks)) if per_ks else 0
        self.margin = {"sleep": 0, "hybrid": affordable, "spin": NEVER}[work["pacing"]]

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

    def enter(self, figures):
        mine = figures.pacing or {"budget_cores": 0, "spent_cores": 0, "margin_ns": self.margin % NEVER}
        mine["budget_cores"] += self.budget
        mine["spent_cores"] += self.spent / (self.window.end - self.window.begin)
        figures.pacing = mine


class Control:
    """What the main thread has told the clients."""

    def __init__(self):
        self.until = NEVER  # after this instant nothing is received or sent
        self.killed, self.totals, self.window, self.figures = NEVER, {}, None, None
        self.started, self.draining, self.silent, self.stopped = (threading.Event() for _ in range(4))


class Client(threading.Thread):
    """A client on a thread of its own."""

    def __init__(self, order, prepare, driver, control, report):
        super().__init__(daemon=True)
        self.order, self.driver, self.control, self.report = order, driver, control, report
        self.work = {**prepare["flows"][0]["workload"], "ahead_ns": prepare.get("clock_offset_ns", 0)}
        self.id, self.role = order["id"], order["role"]
        self.sends = self.role in ("publisher", "requester")
        self.cpus = prepare["publisher_cpus" if self.sends else "subscriber_cpus"]
        self.outgoing = self.incoming = self.socket = self.pacer = None
        self.echoed, self.is_ready, self.is_drained, self.remarks = 0, False, False, []
        self.open_books(prepare)

    def open_books(self, prepare):
        self.budget = prepare.get("spin_cores", 0) / sum(one["role"] == self.role for one in prepare["clients"])
        if self.sends:
            self.outgoing = Outgoing(self.work, self.id)
        if (hears := self.hears()) is not None:
            self.incoming = Incoming(self.work, hears, lagging=not self.sends)

    def hears(self):
        """The publishers whose messages it receives; None where it receives none."""
        order = self.order
        if self.role not in ("subscriber", "requester"):
            return None
        first, count = (self.id, 1) if self.sends else (order["hears_first"], order["hears_count"])
        return range(first, first + count)

    def run(self):
        try:
            self.pin()
            self.socket = self.driver.socket(self.order)
            self.report("bound", self)
            play = {"publisher": self.publish, "subscriber": self.subscribe, "requester": self.request}
            play.get(self.role, self.reply)()
            if self.control.killed < NEVER:
                self.socket.close()
            self.close_books()
            if not self.sends:
                self.control.draining.wait()
                self.drained()
            self.control.stopped.wait()
            self.report("ended", self)
        except Exception as error:
            reason = str(error) if isinstance(error, Refused) else traceback.format_exc()
            self.report("failed", self, f"{self.role} {self.id}: {reason}")

    def pin(self):
        try:
            if self.cpus:
                os.sched_setaffinity(0, self.cpus)  # of this thread
        except OSError as error:
            self.remarks.append(f"{self.role} {self.id} is not kept to the processors {self.cpus}: {error}")

    def close_books(self):
        if not self.control.window:
            return
        totals = self.control.totals
        if self.sends:
            totals = {self.id: self.outgoing.total()}
        elif self.control.killed < NEVER:
            self.control.draining.wait()
            totals = self.control.totals
        with self.control.figures.lock:
            if self.incoming:
                self.incoming.enter(self.control.figures, totals, self.control.killed)
            for books in filter(None, (self.outgoing, self.pacer)):
                books.enter(self.control.figures)

    def ready(self):
        self.is_ready = True
        self.report("ready", self)

    def drained(self):
        if not self.is_drained:
            self.is_drained = True
            self.report("drained", self)

    def marking(self):
        """How many markers are sent at once, and the time between two sendings."""
        copies = self.work["subscribers"] if self.work["pattern"] == "pipeline" else 1
        return copies, min(SECOND, self.work["publishers"] * 100 * MICROSECOND)

    def markers(self, sequence, over):
        """Sends markers until an event."""
        copies, between = self.marking()
        pause = max(5 * MILLISECOND, between) / SECOND
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
        """Sends by the schedule; `ask` waits for the answer to each."""
        work, control, outgoing, window = self.work, self.control, self.outgoing, self.control.window
        self.pacer = pacer = Pacer(work, self.budget, window)
        send, stamp, accepted = self.socket.send, outgoing.stamp, outgoing.accepted
        begin, left, quantum = window.begin, window.count, work["pacing_quantum_ns"]
        end = window.end if left is None else NEVER
        give_up = window.end + work["drain_ns"]
        dues = schedule(work, self.id) if rate_per_ks(work) else None
        due = window.start + next(dues) if dues else window.start
        at, free, woke, sequence = now(), 0, 0, 0
        while at < control.until and due < end and left != 0:
            if at < due:
                at = woke = pacer.wait(max(due, woke + quantum))
                continue
            if at >= give_up or at >= end and not dues:
                break
            intended = due if dues else at
            free = max(free, intended)
            if not send(stamp(intended, sequence, at, free)):
                at = free = now()
                continue
            ended = now()
            accepted(intended, at, free)
            free += ended - at  # the call was the system's
            at = ended
            sequence += 1
            if left is not None and intended >= begin:
                left -= 1
            if ask:
                at = free = ask(at + work["drain_ns"])
            if dues:
                due = window.start + next(dues)
        outgoing.end(window, dues, due, left, control.killed)
        self.report("sent", self)

    def subscribe(self):
        recv, incoming, control = self.socket.recv, self.incoming, self.control
        take, spin, busy = incoming.take, self.work["receive"] == "spin", False
        while not self.is_drained and (asked := now()) < control.until:
            message = recv()
            if message is not None and take(message, asked if busy else 0, now()):
                busy = True
                continue
            busy = message is not None
            if not self.is_ready and len(incoming.probed) == len(incoming.hears):
                self.ready()
            if control.draining.is_set() and (not busy or incoming.ended) and incoming.complete(control.totals):
                break
            if spin and not busy:
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
            self.control.silent.wait()  # the books would take processor time from those who still ask

    def await_reply(self, deadline):
        while True:
            reply = self.socket.recv()
            at = now()
            if reply is not None:
                self.take_reply(reply, at)
                return at
            if at >= deadline or at >= self.control.until:
                return at

    def take_reply(self, reply, at):
        self.incoming.take(reply, 0, at)

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


class Sampler(threading.Thread):
    """What the process uses over the window, and the pauses in which it does not run."""

    NAMES = ("cpu_ns", "user_ns", "voluntary_switches", "involuntary_switches")

    def __init__(self, window):
        super().__init__(daemon=True)
        self.window, self.stop = window, threading.Event()
        self.pauses, self.course, self.memory = Gaps(window), [], []
        self.start()

    def read(self):
        used = resource.getrusage(resource.RUSAGE_SELF)
        cpu = time.process_time_ns()
        user = int(cpu * used.ru_utime / max(1e-9, used.ru_utime + used.ru_stime))
        self.course.append((now(), (cpu, user, used.ru_nvcsw, used.ru_nivcsw), len(self.memory)))

    def sample(self):
        with open("/proc/self/smaps_rollup") as lines:
            kib = {line.split()[0]: int(line.split()[1]) for line in lines if line.endswith("kB\n")}
        self.memory.append((kib["Rss:"] << 10, (kib["Private_Clean:"] + kib["Private_Dirty:"]) << 10))

    def wait(self, until):
        """In naps; whatever is longer than three of them is a pause."""
        woke = now()
        while woke < until and not self.stop.is_set():
            self.stop.wait(min(until - woke, NAP) / SECOND)
            before, woke = max(woke, self.window.begin), now()
            if (length := min(woke, self.window.end) - before) >= PAUSE:
                self.pauses.add(before, length - NAP)
            if self.window.open and self.course:
                self.read()

    def run(self):
        begin, end = self.window.begin, self.window.end
        self.wait(begin)
        self.read()
        at = begin + min(SECOND // 4, end - begin) // 4
        while at < end and not self.stop.is_set():
            self.wait(at)
            self.sample()
            at += SECOND // 4 if len(self.memory) < 4 else SECOND
        self.wait(end)
        self.read()

    def usage(self):
        self.stop.set()
        self.join()
        began, first, _ = self.course[0]
        used = lambda read: {name: max(0, at - base) for name, at, base in zip(self.NAMES, read[1], first)}
        usage = {"wall_ns": self.course[-1][0] - began, **used(self.course[-1])}
        usage["rss_bytes"], usage["uss_bytes"] = ([sizes[place] for sizes in self.memory] for place in (0, 1))
        if self.window.open:
            usage["course"] = [{"at_ns": read[0], **used(read), "samples": read[2]} for read in self.course]
        return usage


class Agent:
    """The conversation with the coordinator."""

    PROTOCOL, WAY_OUT, HELLO = 2, "update the older of the two", {}

    def __init__(self, name, drivers):
        self.name, self.drivers, self.driver = name, {driver.name: driver for driver in drivers}, None
        self.output = os.fdopen(os.dup(1), "w", encoding="utf-8")  # the protocol's own
        os.dup2(2, 1)
        self.events, self.control, self.clients = queue.SimpleQueue(), Control(), []
        self.told, self.said, self.collections, self.collecting = Counter(), set(), [], 0
        self.work = self.sampler = None
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
            self.say("error", message=str(error), fatal=True, too_late=isinstance(error, TooLate))
        except Exception:
            self.fatal(f"{kind} cannot be obeyed: {traceback.format_exc()}")

    def hello(self, command):
        if command["protocol"] != self.PROTOCOL:
            raise Refused(f"this agent speaks protocol {self.PROTOCOL}, not {command['protocol']}: {self.WAY_OUT}")
        drivers, versions = self.drivers.values(), {"python": platform.python_version()}
        for driver in drivers:
            versions.update(driver.versions())
        self.say(
            "hello", protocol=self.PROTOCOL, **self.HELLO, name=self.name, version=VERSION, pid=os.getpid(),
            drivers=list(self.drivers),
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
        self.clients = self.clients_of(command)
        for client in self.clients:
            if "bind" in client.order:  # first, so that those who connect find them
                client.start()
        self.note("", None)

    def clients_of(self, command):
        return [Client(order, command, self.driver, self.control, self.post) for order in command["clients"]]

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
        return {"publishers": self.totals()}

    def totals(self):
        return [client.outgoing.total() for client in self.clients if client.outgoing]

    def start(self, command):
        if command["at_ns"] <= now():
            raise TooLate("the start has passed: the orders came too late")
        window = Window(self.work, command["at_ns"])
        self.control.figures, self.sampler, self.progress = Figures(window), Sampler(window), window.start + SECOND
        self.control.window = window
        self.control.started.set()

    def tell_progress(self):
        self.progress += SECOND
        sent = [client.outgoing for client in self.clients if client.outgoing]
        received = sum(client.echoed + (client.incoming.count if client.incoming else 0) for client in self.clients)
        fields = {"sent": sum(one.count for one in sent), "received": received}
        if sent and rate_per_ks(self.work):
            fields["own_lag_max_ns"] = max(one.worst for one in sent)
            for one in sent:
                one.worst = 0
        self.say("progress", **fields)

    def crash(self, _):
        self.control.killed = now()
        self.control.until = 0
        self.control.silent.set()

    def drain(self, command):
        self.control.totals = {total["publisher"]: total for total in command["publishers"]}
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
        figures = self.control.figures or Figures(Window(self.work, 0))
        usage, runtime, pauses = dict.fromkeys(("wall_ns", *Sampler.NAMES), 0), None, Gaps(None)
        usage.update(rss_bytes=[], uss_bytes=[])
        if self.sampler:
            usage, pauses, stops = self.sampler.usage(), self.sampler.pauses, Gaps(figures.window)
            for began, length in self.collections:
                if figures.window.begin <= began < min(figures.window.end, self.ended):
                    stops.add(began, length)
            runtime = {"pauses": {**stops.found, "total_ns": stops.total}, "collections": stops.found["count"]}
        self.once(
            "result", flows=[figures.fields(self.totals())], usage=usage, pauses=pauses.found, runtime=runtime,
            **self.facts(),
        )  # fmt: skip

    def facts(self):
        """What every result says beside its figures."""
        python = f"{platform.python_implementation()} {platform.python_version()}"
        made = {"language": "Python", "runtime": python, "memory": "reference counts, and a collector for cycles",
                "flags": f"global lock, handed over after {sys.getswitchinterval() * 1000:g} ms"}  # fmt: skip
        return {
            "loops": len(self.clients), "versions": {**self.driver.loaded(), "runtime": python},
            "remarks": [remark for client in self.clients for remark in client.remarks],
            "applied": self.clients[0].socket.applied if self.clients else {}, "made": {**made, **self.driver.made()},
        }  # fmt: skip
