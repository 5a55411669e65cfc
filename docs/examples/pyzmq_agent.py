#!/usr/bin/env python3
"""Plays publishers and subscribers over libzmq, through pyzmq."""
import re
import zmq
from pubmark_agent import Agent, queue_length

WAIT_MS = 10  # a call comes back by then, so that a stop is heard


class PyZmq:
    name = "zeromq"  # pubmark's own name for these sockets
    options = {"queue_messages", "queue_bytes"}  # of those that a study may set, these are known
    patterns = ("pairs", "fan-out", "fan-in", "pipeline")
    transports = ("ipc", "tcp")
    crash = True  # a socket can be closed at once, whatever waits in it

    def __init__(self, options, work):
        """Once a run, with `options` and `workload` of its `prepare`."""
        self.work, self.queue = work, queue_length(options, work)
        self.context = zmq.Context()

    @staticmethod
    def versions():
        """For `hello`."""
        return {"pyzmq": zmq.__version__, "libzmq": zmq.zmq_version()}

    def loaded(self):
        """`versions` of the result."""
        return {"library": "libzmq", "version": zmq.zmq_version(), "binding": f"pyzmq {zmq.__version__}"}

    def made(self):
        return {"binding": f"pyzmq {zmq.__version__}", "call": "blocking", "copies": "one on send, one on receive"}

    def socket(self, client):
        """A client's, on the thread that uses it."""
        return Socket(self, client)


class Socket:
    def __init__(self, driver, client):
        sends = client["role"] == "publisher"
        kind = zmq.PUB if sends else zmq.SUB
        if driver.work["pattern"] == "pipeline":
            kind = zmq.PUSH if sends else zmq.PULL
        self.socket = driver.context.socket(kind)
        self.socket.sndhwm = self.socket.rcvhwm = driver.queue
        self.socket.sndtimeo = self.socket.rcvtimeo = WAIT_MS
        if kind == zmq.SUB:
            self.socket.subscribe(b"")
        self.endpoint = None  # where others can connect to, if it is bound
        if "bind" in client:
            self.socket.bind(re.sub(r"^(tcp://.*):0$", r"\1:*", client["bind"]))
            self.endpoint = self.socket.last_endpoint.rstrip(b"\0").decode()
        for endpoint in client.get("connect", ()):
            self.socket.connect(endpoint)
        self.applied = {"send_queue_messages": self.socket.sndhwm, "receive_queue_messages": self.socket.rcvhwm}

    def send(self, message):
        """False: it was refused, and is offered again."""
        try:
            self.socket.send(bytes(message))  # the agent writes into its buffer again
            return True
        except zmq.Again:
            return False

    def recv(self):
        """None: nothing came."""
        try:
            return self.socket.recv()
        except zmq.Again:
            return None

    def close(self):
        self.socket.close(linger=0)


if __name__ == "__main__":
    Agent("pyzmq-agent", [PyZmq]).run()
