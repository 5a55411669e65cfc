#!/usr/bin/env python3
"""Plays the clients of pubmark over libzmq, through pyzmq. `agent.py null` plays without it, and `agent.py rows` by
protocol 3 of the agent protocol."""

import asyncio
import re
import sys

if sys.version_info < (3, 11):
    sys.exit(f"this agent needs Python 3.11 or newer, and this is {sys.version.split()[0]}: apt-get install python3")

from books import SECOND
from null import Null
from pubmark_agent import Agent, Refused, mapped, queue_length

try:
    import zmq
    import zmq.asyncio
except ImportError as error:
    zmq = None
    if "null" not in sys.argv[1:]:
        sys.exit(f"the module zmq cannot be loaded ({error}): pip install pyzmq==27.3.0")

WAIT_MS = 10
UNITS = {"ns": 1, "us": 10**3, "ms": 10**6, "s": SECOND, "m": 60 * SECOND, "min": 60 * SECOND, "h": 3600 * SECOND}
KINDS = {"publisher": "PUB", "subscriber": "SUB", "requester": "REQ", "replier": "REP"}
CHOICES = {
    "api": ("blocking", "asyncio"),
    "idiom": ("copy", "zero-copy", "into"),
    "request_reply": ("req-rep", "dealer-router"),
    "pairs": ("pub-sub", "pair"),
}
COPIES = {
    "copy": "one on send, one on receive (a new bytes object each)",
    "zero-copy": "send: one into a new bytes object, and below 64 KiB another by pyzmq; receive: none (Frame)",
    "into": "one on send, one on receive (into a bytearray that is kept)",
}


def milliseconds(text):
    if not (parts := re.fullmatch(r"(\d+(?:\.\d+)?)(ns|us|ms|s|m|min|h)", text)):
        raise Refused(f"linger = {text!r} is no time: write it as 10s or 500ms")
    return min(int(float(parts[1]) * UNITS[parts[2]]) // 10**6, 2**31 - 1)


class ZeroMq:
    name = "zeromq"
    options = {"linger", "io_threads", "queue_messages", "queue_bytes", "socket_buffer", "tcp_nodelay", *CHOICES}
    patterns = ("pairs", "fan-out", "fan-in", "request-reply", "pipeline")
    transports = ("inproc", "ipc", "tcp")
    crash = True

    def __init__(self, options, work):
        if options.get("tcp_nodelay") is False:
            raise Refused("tcp_nodelay = false: libzmq has no way to turn TCP_NODELAY off, leave it at true")
        if options.get("io_threads", 1) < 1:
            raise Refused("io_threads = 0 leaves no thread to move messages: set it to 1 or more")
        self.chosen = {name: options.get(name, choices[0]) for name, choices in CHOICES.items()}
        for name, choice in self.chosen.items():
            if choice not in CHOICES[name]:
                raise Refused(f"{name} = {choice!r} is none of: {', '.join(CHOICES[name])}")
        if self.chosen["api"] == "asyncio" and self.chosen["idiom"] == "into":
            raise Refused("idiom = into: the sockets of zmq.asyncio have no recv_into, choose copy or zero-copy")
        self.work, self.queue = work, queue_length(options, work)
        self.linger, self.buffer = milliseconds(options.get("linger", "10s")), options.get("socket_buffer", 0)
        self.context = zmq.Context(options.get("io_threads", 1))
        self.context.set(zmq.MAX_SOCKETS, 16383)

    @staticmethod
    def versions():
        return {"pyzmq": zmq.__version__, "libzmq": zmq.zmq_version()}

    def loaded(self):
        version, path = zmq.zmq_version(), mapped("libzmq")
        return {"library": "libzmq", "version": version, "path": path, "binding": f"pyzmq {zmq.__version__}"}

    def made(self):
        return {
            "binding": f"pyzmq {zmq.__version__}", "library": f"libzmq {zmq.zmq_version()}", "call": self.chosen["api"],
            "copies": COPIES[self.chosen["idiom"]], "build": "wheel" if "pyzmq.libs" in mapped("libzmq")
            else "from source",
        }  # fmt: skip

    def kind(self, role):
        pattern, sends = self.work["pattern"], role in ("publisher", "requester")
        if pattern == "pipeline":
            return "PUSH" if sends else "PULL"
        if pattern == "request-reply" and self.chosen["request_reply"] == "dealer-router":
            return "DEALER" if sends else "ROUTER"
        return "PAIR" if pattern == "pairs" and self.chosen["pairs"] == "pair" else KINDS[role]

    def socket(self, client):
        return Socket(self, client) if self.chosen["api"] == "blocking" else AsyncSocket(self, client)


class Socket:
    """A socket of libzmq; its idiom is chosen once."""

    def __init__(self, driver, client):
        self.driver, kind = driver, driver.kind(client["role"])
        self.socket = socket = self.opened(getattr(zmq, kind))
        socket.sndhwm = socket.rcvhwm = driver.queue
        socket.linger, socket.reconnect_ivl, socket.maxmsgsize = driver.linger, 10, -1
        socket.sndtimeo, socket.rcvtimeo = WAIT_MS, 0 if driver.work["receive"] == "spin" else WAIT_MS
        if driver.buffer and driver.work["transport"] != "inproc":
            socket.sndbuf = socket.rcvbuf = driver.buffer
        if kind == "SUB":
            socket.subscribe(b"")
        if kind == "REQ":
            socket.req_relaxed = 1
        self.calls(kind)
        self.endpoint = None
        if bind := client.get("bind"):
            socket.bind(re.sub(r"^(tcp://.*):0$", r"\1:*", bind))
            self.endpoint = socket.last_endpoint.rstrip(b"\0").decode()
        for endpoint in client.get("connect", ()):
            socket.connect(endpoint)
        self.applied = self.read_back()

    def opened(self, kind):
        return self.driver.context.socket(kind)

    def calls(self, kind):
        """`send`, `echo` and `recv` of the idiom and the kind."""
        socket, again, idiom = self.socket, zmq.Again, self.driver.chosen["idiom"]
        copy, length = idiom != "zero-copy", self.driver.work["payload_bytes"]
        kept = bytearray(length)
        identity = b""

        def echo(message):
            try:
                socket.send(message, copy=copy)
                return True
            except again:
                return False

        def send(message):  # libzmq keeps the bytes, and the agent writes into its buffer again
            return echo(bytes(message))

        def recv_copy():
            try:
                return socket.recv()
            except again:
                return None

        def recv_frame():
            try:
                return socket.recv(copy=False).buffer
            except again:
                return None

        def recv_into():
            try:
                size = socket.recv_into(kept)
                return kept if size == length else kept[:size] if size < length else kept + b"longer"
            except again:
                return None

        recv = {"copy": recv_copy, "zero-copy": recv_frame, "into": recv_into}[idiom]

        def recv_relaxed():
            try:
                return recv()
            except zmq.ZMQError as error:
                if error.errno != zmq.EFSM:
                    raise
                # A late reply was taken for the one awaited, so none is due.
                socket.poll(WAIT_MS)
                return None

        def recv_from():
            nonlocal identity
            try:
                identity = socket.recv()
                return recv()
            except again:
                return None

        def echo_to(message):
            try:
                socket.send(identity, zmq.SNDMORE)
                return echo(message)
            except again:
                return False

        self.send, self.echo = echo if copy else send, echo_to if kind == "ROUTER" else echo
        self.recv = {"REQ": recv_relaxed, "ROUTER": recv_from}.get(kind, recv)

    def read_back(self):
        """Options as they took effect."""
        socket, linger = self.socket, self.socket.linger
        applied = {
            "linger": f"{linger // 1000}s" if linger % 1000 == 0 else f"{linger}ms",
            "io_threads": self.driver.context.get(zmq.IO_THREADS),
            "send_queue_messages": socket.sndhwm,
            "receive_queue_messages": socket.rcvhwm,
        }
        if self.driver.work["transport"] == "tcp":
            applied["tcp_nodelay"] = True
        if self.driver.work["transport"] != "inproc":
            for name, asked, limit in (("send", socket.sndbuf, "wmem"), ("receive", socket.rcvbuf, "rmem")):
                with open(f"/proc/sys/net/core/{limit}_max") as most:
                    granted = min(asked, int(most.read()))
                applied[f"{name}_buffer_bytes"] = granted if asked > 0 else "automatic"
        return {**applied, **self.driver.chosen}

    def close(self):
        self.socket.close(linger=0)


class AsyncSocket(Socket):
    """A socket of zmq.asyncio, on an event loop of its thread's own. A future that is done at once is taken at once, as
    `await` does; for others the loop is entered."""

    def opened(self, kind):
        self.loop = loop = asyncio.new_event_loop()
        asyncio.set_event_loop(loop)  # where futures are made

        class OnLoop(zmq.asyncio.Socket):
            def _default_loop(self):  # the usual one looks for a running loop in each call, and warns
                return loop

        return OnLoop(self.driver.context, kind)

    def calls(self, kind):
        """`send`, `echo` and `recv` of the idiom and the kind."""
        socket, again, enter = self.socket, asyncio.CancelledError, self.loop.run_until_complete
        later, wait = self.loop.call_later, max(0, socket.rcvtimeo) / 1000
        socket.sndtimeo = socket.rcvtimeo = -1  # else each call has a timer, waited for or not
        copy = self.driver.chosen["idiom"] != "zero-copy"
        identity = b""

        def finished(future):
            if not future.done():
                late = later(wait, future.cancel)
                enter(future)
                late.cancel()
            return future.result()

        def echo(message):
            try:
                finished(socket.send(message, copy=copy))
                return True
            except again:
                return False

        def send(message):  # libzmq keeps the bytes, and the agent writes into its buffer again
            return echo(bytes(message))

        def recv():
            try:
                frame = finished(socket.recv(copy=copy))
                return frame if copy else frame.buffer
            except again:
                return None
            except zmq.ZMQError as error:
                if kind != "REQ" or error.errno != zmq.EFSM:
                    raise
                return None

        def recv_from():
            nonlocal identity
            try:
                identity = finished(socket.recv())
                return recv()
            except again:
                return None

        def echo_to(message):
            try:
                finished(socket.send(identity, zmq.SNDMORE))
                return echo(message)
            except again:
                return False

        self.send, self.echo = echo if copy else send, echo_to if kind == "ROUTER" else echo
        self.recv = recv_from if kind == "ROUTER" else recv

    def close(self):
        super().close()
        self.loop.close()


if __name__ == "__main__":
    only_null = "null" in sys.argv[1:]
    if "rows" in sys.argv[1:]:
        from row_agent import Agent
    Agent("zeromq-python", [Null] if only_null else [ZeroMq, Null]).run()
