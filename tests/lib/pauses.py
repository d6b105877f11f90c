"""Processes that stand still (SIGSTOP), single threads of theirs that do, and connections that stop them at a given moment."""
import ctypes
import os
import pathlib
import signal
import socket
import threading
import time

from lib.processes import wait_for

PAUSED_S = 3.3  # longer than PROCESS_PAUSE_MS, shorter than a session, and than a connection may take to be made


class Link:
    """A TCP connection from a client to a server, of which what the client sends can be held up, and what it is
    answered slowed down."""

    def __init__(self, port):
        self.to = port
        self.needle, self.caught, self.go = None, threading.Event(), threading.Event()
        self.question, self.asker = None, None
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.endpoint = f"127.0.0.1:{self.listener.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def catch(self, needle, process):
        """When the client has sent this it stands still, and what it has sent does not arrive before let_go()."""
        self.process, self.needle = process, needle.encode()

    def answer_slowly(self, needle):
        """What the client is answered next when it has sent this comes in five pieces, each 0.8 s after the one before."""
        self.question = needle.encode()

    def wait_caught(self):
        assert self.caught.wait(30), "it was not sent"

    def let_go(self):
        self.go.set()

    def _accept(self):
        while True:
            client, _ = self.listener.accept()
            server = socket.create_connection(("127.0.0.1", self.to))
            for source, to in ((client, server), (server, client)):
                threading.Thread(target=self._pump, args=(source, to, source is client), daemon=True).start()

    def _pump(self, source, to, watched):
        try:
            while data := source.recv(1 << 20):
                if watched and self.needle and self.needle in data:
                    self.needle = None
                    stand_still(self.process)
                    self.caught.set()
                    self.go.wait()
                if watched and self.question and self.question in data:
                    self.question, self.asker = None, source
                self._send(data, to)
        except OSError:
            pass
        finally:
            to.close()


    def _send(self, data, to):
        if to is not self.asker:
            to.sendall(data)
            return
        self.asker, size = None, len(data) // 5 + 1
        for at in range(0, len(data), size):
            time.sleep(0.8)
            to.sendall(data[at:at + size])


def stand_still(process):
    process.signal(signal.SIGSTOP)

    def stopped():
        tasks = pathlib.Path(f"/proc/{process.pid}/task").iterdir()
        return all((task / "stat").read_text().rsplit(")", 1)[1].split()[0] == "T" for task in tasks)
    wait_for(f"{process.name} to stand still", stopped)


def go_on(process):
    process.signal(signal.SIGCONT)


SEIZE, INTERRUPT, DETACH = 0x4206, 0x4207, 17  # of linux/ptrace.h
WALL = 0x40000000  # of waitpid(2): threads, too


class HeldThread:
    """The thread of that name hangs, and the rest of its process goes on, until let_go() by the same thread of ours."""

    def __init__(self, process, name):
        tasks = pathlib.Path(f"/proc/{process.pid}/task").iterdir()
        self.number, = (int(task.name) for task in tasks if (task / "comm").read_text() == f"{name}\n")
        self._trace(SEIZE)
        self._trace(INTERRUPT)
        os.waitpid(self.number, WALL)

    def let_go(self):
        self._trace(DETACH)

    def _trace(self, request):
        libc = ctypes.CDLL(None, use_errno=True)
        libc.ptrace.argtypes, libc.ptrace.restype = [ctypes.c_long] * 4, ctypes.c_long
        if libc.ptrace(request, self.number, 0, 0) != 0:
            raise OSError(ctypes.get_errno(), f"ptrace {request:#x} of thread {self.number}")
