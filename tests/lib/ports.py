"""Ports for programs that cannot pick a free one themselves and say which."""
import socket

_given = set()


def free_port(host="127.0.0.1"):
    """A TCP port that nobody listens on, and that this process has not given out before. The kernel
    could hand it to someone else before it is used; it hands out others first."""
    while True:
        with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as s:
            s.bind((host, 0))
            port = s.getsockname()[1]
        if port not in _given:
            _given.add(port)
            return port
