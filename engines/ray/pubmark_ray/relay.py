"""From pubmark to the nodes: a socket of the driver, and a command that reaches through it.

pubmark reaches a host by a command whose streams are a shell's over there. That command
is `pubmark-ray reach SOCKET HOST sh`: it says on the driver's socket which host and what
to run there, and passes its own streams on. The driver passes them on to the actor.
"""

import json
import os
import socket
import struct
import sys
import threading

from .node import ENDED, PIECE, STDERR, STDOUT

# stream, length
HEAD = struct.Struct("!BI")
# How long a node may take to start a shell or to take a piece, s.
ANSWER_S = 60
# How long an actor holds back an answer that there is nothing, s.
POLL_S = 5


class Relay:
    """Listens in a folder that only this user can enter."""

    def __init__(self, folder, hosts):
        self.path = os.path.join(folder, "socket")
        self._hosts = hosts
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(self.path)
        self._listener.listen(len(hosts) + 8)
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self):
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._carry, args=(connection,), daemon=True).start()

    def close(self):
        """Takes nobody any more."""
        self._listener.close()

    def _carry(self, connection):
        stream = connection.makefile("rb", buffering=0)
        try:
            asked = json.loads(_line(stream))
            host = self._hosts[asked["host"]]
            session = host.call("start", asked["command"], timeout_s=ANSWER_S)
            threading.Thread(target=_there, args=(stream, host, session), daemon=True).start()
            _back(connection, host, session)
        except OSError:
            # Whoever reached is gone: its input's end has ended the shell.
            pass
        except Exception as error:  # whatever Ray raises is the end of this one connection
            _say(connection, STDERR, f"{error}\n".encode())
            _say(connection, ENDED, b"1")
        finally:
            connection.close()


def _line(stream):
    line = b""
    while not line.endswith(b"\n") and len(line) < PIECE:
        byte = stream.read(1)
        if not byte:
            break
        line += byte
    return line


def _there(stream, host, session):
    try:
        while True:
            piece = stream.read(PIECE)
            host.carried_bytes[0] += len(piece or b"")
            # One after the other, so that their order stays.
            host.call("write", session, piece or b"", timeout_s=ANSWER_S)
            if not piece:
                return
    except Exception:
        # The same is heard by who reads, who says it.
        return


def _back(connection, host, session):
    while True:
        read = host.call("read", session, POLL_S, timeout_s=POLL_S + ANSWER_S)
        if read is None:
            continue
        kind, piece = read
        host.carried_bytes[1] += len(piece)
        connection.sendall(HEAD.pack(kind, len(piece)) + piece)
        if kind == ENDED:
            return


def _say(connection, kind, piece):
    try:
        connection.sendall(HEAD.pack(kind, len(piece)) + piece)
    except OSError:
        pass


def reach(path, host, command):
    """What `pubmark-ray reach` does: its exit status."""
    connection = socket.socket(socket.AF_UNIX)
    try:
        connection.connect(path)
    except OSError as error:
        print(f"the driver on Ray has gone: {error}", file=sys.stderr)
        return 1
    connection.sendall(json.dumps({"host": host, "command": command}).encode() + b"\n")
    threading.Thread(target=_pump, args=(connection,), daemon=True).start()
    stream = connection.makefile("rb")
    outputs = {STDOUT: sys.stdout.buffer, STDERR: sys.stderr.buffer}
    while True:
        head = stream.read(HEAD.size)
        if len(head) < HEAD.size:
            print("the driver on Ray has gone", file=sys.stderr)
            return 1
        kind, length = HEAD.unpack(head)
        piece = stream.read(length)
        if kind == ENDED:
            status = int(piece)
            return status if status >= 0 else 128 - status
        outputs[kind].write(piece)
        outputs[kind].flush()


def _pump(connection):
    while True:
        piece = os.read(0, PIECE)
        if not piece:
            break
        try:
            connection.sendall(piece)
        except OSError:
            return
    try:
        connection.shutdown(socket.SHUT_WR)
    except OSError:
        pass
