#!/usr/bin/env python3
"""Plays the clients of pubmark over ZeroRPC: the system `zerorpc-python`."""

import sys
from importlib.metadata import version
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parent.parent / "zeromq-python"))
try:
    from pubmark_agent import NAP, SECOND, Agent, Refused, mapped
except ImportError as error:
    sys.exit(f"the folder zeromq-python has to lie beside this one, its protocol is played here ({error})")
try:
    import gevent
    import gevent.queue
    import zerorpc
    import zmq
except ImportError as error:
    sys.exit(f"the module {error.name} cannot be loaded: pip install zerorpc==0.6.3 ({error})")


class ZeroRpc:
    name = "zerorpc"
    options = ("heartbeat",)
    patterns = ("pairs", "fan-out", "fan-in", "request-reply")
    transports = ("inproc", "ipc", "tcp")
    crash = False

    def __init__(self, options, work):
        self.heartbeat = options.get("heartbeat", 5)
        if self.heartbeat < 1:
            raise Refused(
                "heartbeat = 0: ZeroRPC takes a silent peer for lost after twice as long, set it to 1 or more"
            )
        self.requests = work["pattern"] == "request-reply"
        # A call cannot be interrupted, and a stop has to be answered within 10 s.
        self.patience_s = min(work["drain_ns"], 5 * SECOND) / SECOND

    @staticmethod
    def versions():
        versions = {"zerorpc": version("zerorpc"), "gevent": gevent.__version__, "pyzmq": zmq.__version__}
        return {**versions, "libzmq": zmq.zmq_version()}

    def loaded(self):
        return {"library": "zerorpc", "version": version("zerorpc"), "path": mapped("libzmq"), **self.versions()}

    def made(self):
        versions, ends = self.versions(), ", at either end" if self.requests else ""
        return {
            "binding": f"zerorpc {versions['zerorpc']} on pyzmq {versions['pyzmq']} and gevent {versions['gevent']}",
            "library": f"libzmq {versions['libzmq']}",
            "call": "blocking, in a greenlet",
            "copies": "two on send (msgpack, libzmq below 64 KiB), one on receive (msgpack)" + ends,
            "build": "wheel",
        }

    def socket(self, client):
        kinds = {"publisher": Publisher, "subscriber": Subscriber, "requester": Caller, "replier": Server}
        return kinds[client["role"]](self, client)


def bound(socket, endpoint):
    """Binds a socket of ZeroRPC. Returns the endpoint with its port."""
    socket.bind(endpoint)
    return socket._events._socket.last_endpoint.rstrip(b"\0").decode()


class Publisher:
    """A publisher, which calls `hear` of all subscribers and gets no answer."""

    def __init__(self, driver, client):
        self.publisher, self.applied = zerorpc.Publisher(), {"batch_messages": 1}
        self.endpoint = bound(self.publisher, client["bind"]) if "bind" in client else None
        for endpoint in client.get("connect", ()):
            self.publisher.connect(endpoint)

    def send(self, message):
        self.publisher.hear(bytes(message))
        gevent.sleep(0)  # the library sends in a greenlet
        return True


class Subscriber:
    """A subscriber: its method `hear` is called in a greenlet, which runs while this thread waits."""

    def __init__(self, driver, client):
        self.heard, self.applied = gevent.queue.SimpleQueue(), {"batch_messages": 1}
        self.subscriber = zerorpc.Subscriber({"hear": self.heard.put})
        self.endpoint = bound(self.subscriber, client["bind"]) if "bind" in client else None
        for endpoint in client.get("connect", ()):
            self.subscriber.connect(endpoint)
        gevent.spawn(self.subscriber.run)

    def recv(self):
        try:
            return self.heard.get(timeout=NAP / SECOND)
        except gevent.queue.Empty:
            return None


class Caller:
    """A requester: a client of ZeroRPC, which calls `echo`."""

    def __init__(self, driver, client):
        self.patience_s, self.message = driver.patience_s, None
        self.client = zerorpc.Client(timeout=driver.patience_s, heartbeat=driver.heartbeat)
        self.endpoint, self.applied = None, {"heartbeat": driver.heartbeat, "batch_messages": 1}
        for endpoint in client["connect"]:
            self.client.connect(endpoint)

    def send(self, message):
        self.message = bytes(message)
        return True

    def recv(self):
        """Calls: sending and receiving are one."""
        message, self.message = self.message, None
        if message is None:  # its reply never came, or is no longer awaited
            gevent.sleep(NAP / SECOND)
            return None
        try:
            return self.client.echo(message)
        except zerorpc.TimeoutExpired:
            return None
        except zerorpc.LostRemote as error:
            raise Refused(f"the replier was lost: {error}") from error


class Server:
    """A replier: a server of ZeroRPC, whose greenlets run while this thread waits."""

    def __init__(self, driver, client):
        self.served = 0
        self.server = zerorpc.Server({"echo": self.answer}, heartbeat=driver.heartbeat)
        self.endpoint = bound(self.server, client["bind"])
        self.applied = {"heartbeat": driver.heartbeat, "batch_messages": 1}
        gevent.spawn(self.server.run)

    def answer(self, message):
        self.served += 1
        return message

    def recv(self):
        gevent.sleep(NAP / SECOND)


if __name__ == "__main__":
    Agent("zerorpc-python", [ZeroRpc]).run()
