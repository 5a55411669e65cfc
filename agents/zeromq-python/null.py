"""The driver `null`: a queue of Python in place of a socket. It is the floor of the language."""

import queue
import time

from pubmark_agent import Refused, queue_length

WAIT_S, FULL_S = 0.01, 0.0001


class Null:
    name = "null"
    options = {"queue_messages", "queue_bytes"}
    patterns = ("pairs", "fan-out", "fan-in", "request-reply", "pipeline")
    transports = ("inproc",)
    crash = True

    def __init__(self, options, work):
        self.limit, self.bound, self.rotates = queue_length(options, work), {}, work["pattern"] == "pipeline"
        self.spin = work["receive"] == "spin"

    @staticmethod
    def versions():
        return {}

    def loaded(self):
        return {"library": "queue.SimpleQueue", "version": "of Python"}

    def made(self):
        return {
            "binding": "none",
            "call": "blocking",
            "library": "queue.SimpleQueue of Python",
            "copies": "one on send, none on receive",
        }

    def socket(self, client):
        return Socket(self, client)


class Socket:
    """A client with a queue that others put messages into."""

    def __init__(self, driver, client):
        self.inbox, self.peers, self.turn, self.limit = queue.SimpleQueue(), [], 0, driver.limit
        self.rotates, self.wait = driver.rotates, None if driver.spin else WAIT_S
        self.endpoint = client.get("bind")
        self.applied = {"queue_messages": driver.limit}
        if self.endpoint:
            driver.bound[self.endpoint] = self
        for endpoint in client.get("connect", ()):
            if endpoint not in driver.bound:
                raise Refused(f"nobody is bound to {endpoint}")
            self.peers.append(driver.bound[endpoint].inbox)
            driver.bound[endpoint].peers.append(self.inbox)

    def send(self, message):
        return self.echo(bytes(message))  # whoever sends writes into his buffer again

    def echo(self, message):
        peers = self.peers
        if self.rotates and peers:
            self.turn = (self.turn + 1) % len(peers)
            peers = peers[self.turn : self.turn + 1]
        for inbox in peers:
            if inbox.qsize() >= self.limit:
                time.sleep(FULL_S)
                return False
        for inbox in peers:
            inbox.put(message)
        return bool(peers)

    def recv(self):
        try:
            return self.inbox.get(self.wait is not None, self.wait)
        except queue.Empty:
            return None

    def close(self):
        self.peers = []
