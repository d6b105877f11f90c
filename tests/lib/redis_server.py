"""A private redis-server that keeps nothing on disk."""
import contextlib
import pathlib

import redis as redis_client

from lib.ports import free_port
from lib.processes import Process, wait_for


class RedisServer:
    def __init__(self, folder, also_on=None):
        """also_on: a second address where clients reach it."""
        self.also_on = [also_on] if also_on else []
        self.folder = pathlib.Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.port = free_port()
        self.endpoint = f"127.0.0.1:{self.port}"
        self.process = None

    def start(self):
        self.process = Process("redis", ["redis-server", "--bind", "127.0.0.1", *self.also_on,
                                         "--port", self.port, "--protected-mode", "no",
                                         "--save", "", "--appendonly", "no"], self.folder)
        client = self.client()
        wait_for("redis-server to answer", lambda: self._answers(client))
        return self

    @staticmethod
    def _answers(client):
        try:
            return client.ping()
        except redis_client.RedisError:
            return False

    def client(self):
        return redis_client.Redis(port=self.port, decode_responses=True)

    def stop(self):
        if self.process is not None:
            self.process.stop()


@contextlib.contextmanager
def redis_server(folder):
    """Its endpoint, host:port, for as long as the block runs."""
    server = RedisServer(folder).start()
    try:
        yield server.endpoint
    finally:
        server.stop()
