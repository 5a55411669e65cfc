"""What runs on a node: a shell for pubmark, whose streams are carried to the driver.

This module is sent to the nodes by value, so that they need nothing but Ray: it imports
nothing of this package.
"""

import os
import queue
import subprocess
import threading

STDOUT, STDERR, ENDED = 1, 2, 0

# So much is carried in one piece, bytes. Ray puts what is larger than some 100 KB, as the
# program on its way, into its object store by itself.
PIECE = 1 << 20


class Node:
    """An actor: one on each host."""

    def __init__(self):
        self._sessions = {}
        self._lock = threading.Lock()

    def facts(self):
        """Where this is: Ray's name of the node, and its address."""
        import ray

        return ray.get_runtime_context().get_node_id(), ray.util.get_node_ip_address()

    def start(self, command):
        """Starts a command with streams of its own: the number of the session."""
        process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            start_new_session=True,
        )
        # Bounded, so that nobody who does not read makes this grow.
        pieces = queue.Queue(maxsize=16)
        readers = [
            threading.Thread(target=_read, args=(stream, kind, pieces), daemon=True)
            for stream, kind in ((process.stdout, STDOUT), (process.stderr, STDERR))
        ]
        for reader in readers:
            reader.start()
        threading.Thread(target=_wait, args=(process, readers, pieces), daemon=True).start()
        with self._lock:
            number = len(self._sessions)
            self._sessions[number] = (process, pieces)
        return number

    def write(self, session, piece):
        """Writes to its standard input; without a piece that is closed."""
        process, _ = self._sessions[session]
        try:
            if piece:
                view = memoryview(piece)
                while view:
                    view = view[process.stdin.write(view) :]
            else:
                process.stdin.close()
        except (BrokenPipeError, ValueError):
            # It has ended, which its reader hears of.
            pass

    def read(self, session, wait_s):
        """The next piece as `(stream, bytes)`; none if there is none within this time."""
        _, pieces = self._sessions[session]
        try:
            return pieces.get(timeout=wait_s)
        except queue.Empty:
            return None


def _read(stream, kind, pieces):
    while True:
        piece = os.read(stream.fileno(), PIECE)
        if not piece:
            return
        pieces.put((kind, piece))


def _wait(process, readers, pieces):
    status = process.wait()
    for reader in readers:
        reader.join()
    pieces.put((ENDED, str(status).encode()))
