"""Processes that stand still (SIGSTOP), and connections that stop them at a given moment."""
import pathlib
import signal
import socket
import threading

from lib.processes import wait_for


class Link:
    """A TCP connection from a client to a server, of which what the client sends can be held up."""

    def __init__(self, port):
        self.to = port
        self.needle, self.caught, self.go = None, threading.Event(), threading.Event()
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.endpoint = f"127.0.0.1:{self.listener.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def catch(self, needle, process):
        """When the client has sent this it stands still, and what it has sent does not arrive before let_go()."""
        self.process, self.needle = process, needle.encode()

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
                to.sendall(data)
        except OSError:
            pass
        finally:
            to.close()


def stand_still(process):
    process.signal(signal.SIGSTOP)

    def stopped():
        tasks = pathlib.Path(f"/proc/{process.pid}/task").iterdir()
        return all((task / "stat").read_text().rsplit(")", 1)[1].split()[0] == "T" for task in tasks)
    wait_for(f"{process.name} to stand still", stopped)


def go_on(process):
    process.signal(signal.SIGCONT)
