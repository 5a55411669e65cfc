#!/usr/bin/env python3
"""Plays requesters and repliers of pubmark over ZeroRPC: the system `zerorpc-python`."""

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
    import zerorpc
    import zmq
except ImportError as error:
    sys.exit(f"the module {error.name} cannot be loaded: pip install zerorpc==0.6.3 ({error})")


class ZeroRpc:
    name = "zerorpc"
    options = ("heartbeat",)
    patterns = ("request-reply",)
    transports = ("inproc", "ipc", "tcp")
    crash = False

    def __init__(self, options, work):
        self.heartbeat = options.get("heartbeat", 5)
        if self.heartbeat < 1:
            raise Refused(
                "heartbeat = 0: ZeroRPC takes a silent peer for lost after twice as long, set it to 1 or more"
            )
        # A call cannot be interrupted, and a stop has to be answered within 10 s.
        self.patience_s = min(work["drain_ns"], 5 * SECOND) / SECOND

    @staticmethod
    def versions():
        versions = {"zerorpc": version("zerorpc"), "gevent": gevent.__version__, "pyzmq": zmq.__version__}
        return {**versions, "libzmq": zmq.zmq_version()}

    def loaded(self):
        return {"library": "zerorpc", "version": version("zerorpc"), "path": mapped("libzmq"), **self.versions()}

    def made(self):
        versions = self.versions()
        return {
            "binding": f"zerorpc {versions['zerorpc']} on pyzmq {versions['pyzmq']} and gevent {versions['gevent']}",
            "library": f"libzmq {versions['libzmq']}",
            "call": "blocking, in a greenlet",
            "copies": "two on send (msgpack, libzmq below 64 KiB), one on receive (msgpack), at either end",
            "build": "wheel",
        }

    def socket(self, client):
        return (Server if client["role"] == "replier" else Caller)(self, client)


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
        self.server.bind(client["bind"])
        self.endpoint = self.server._events._socket.last_endpoint.rstrip(b"\0").decode()
        self.applied = {"heartbeat": driver.heartbeat, "batch_messages": 1}
        gevent.spawn(self.server.run)

    def answer(self, message):
        self.served += 1
        return message

    def recv(self):
        gevent.sleep(NAP / SECOND)


if __name__ == "__main__":
    Agent("zerorpc-python", [ZeroRpc]).run()
