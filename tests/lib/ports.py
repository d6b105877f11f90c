"""Ports for programs that cannot pick a free one themselves and say which."""
import fcntl
import os
import pathlib
import socket
import tempfile

_given = set()
# A byte for each port, locked by the process that gave it out for as long as it lives: workers run side by side.
_locks = os.open(pathlib.Path(tempfile.gettempdir()) / f"crcr-ports-{os.getuid()}", os.O_RDWR | os.O_CREAT, 0o600)


def free_port(host="127.0.0.1"):
    """A TCP port that nobody listens on, and that no process of the tests that runs has given out. The kernel
    could hand it to someone else before it is used; it hands out others first."""
    while True:
        with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as s:
            s.bind((host, 0))
            port = s.getsockname()[1]
        if port not in _given and _lock(port):
            _given.add(port)
            return port


def _lock(port):
    try:
        fcntl.lockf(_locks, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, port)
    except OSError:  # another's
        return False
    return True
