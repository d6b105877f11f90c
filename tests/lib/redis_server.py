"""A private redis-server that keeps nothing on disk. The default user may all, for the tests; the programs log in as those
users that deploy/redis gives them."""
import contextlib
import functools
import pathlib
import re
import subprocess
import tempfile

import redis as redis_client

from lib.ports import free_port
from lib.processes import ROOT, Process, wait_for

USERS = ("crcr-ingest", "crcr-dispatcher", "crcr-reporter", "crcrctl")
with_users = set()  # the endpoints that know them


def login_of(program, endpoint):
    """The settings of a program (crcr-ingest, crcrctl, …) with which it logs in there."""
    return {"REDIS_LOGIN": f"{program}:of {program}"} if endpoint in with_users else {}


@functools.cache
def users(prefix):
    """The lines of the ACL file for keys that begin so."""
    with tempfile.TemporaryDirectory() as folder:
        for user in USERS:
            (pathlib.Path(folder) / user).write_text(f"{user}:of {user}\n")
        made = subprocess.run([ROOT / "deploy/redis/make-users", "--prefix", prefix, *sorted(pathlib.Path(folder).iterdir())],
                              capture_output=True, text=True, check=True, timeout=60)
    return made.stdout.splitlines()


def client_of(endpoint, topic_prefix="crcr."):
    """Tests write keys as they are with the default prefix, crcr:job:…; in Redis they are those of the installation that has
    this CRCR_TOPIC_PREFIX. Keys that come back are crcr: again."""
    host, port = endpoint.split(":")
    own = (topic_prefix.removesuffix(".") or "crcr") + ":"

    def renamed(value, old, new):
        if isinstance(value, (list, tuple)):
            return type(value)(renamed(one, old, new) for one in value)
        return new + value[len(old):] if isinstance(value, str) and value.startswith(old) else value

    class Connection(redis_client.Connection):
        def send_command(self, *words, **how):
            return super().send_command(*renamed(words, "crcr:", own), **how)

        def pack_commands(self, commands):
            return super().pack_commands(renamed([tuple(words) for words in commands], "crcr:", own))

        def read_response(self, *how, **more):
            return renamed(super().read_response(*how, **more), own, "crcr:")
    return redis_client.Redis(connection_pool=redis_client.ConnectionPool(
        Connection, host=host, port=int(port), decode_responses=True))


def set_user(client, program, without=(), prefix="*:"):
    """Gives that program's user its rights, but for some commands: without ["zrem"]."""
    line = next(line for line in users(prefix) if line.split()[1] == program)
    for command in without:
        line = re.sub(rf"\+{command} ", "", line)
    client.execute_command("ACL", "SETUSER", *re.findall(r"\([^)]*\)|\S+", line)[1:])


class RedisServer:
    topic_prefix = "crcr."  # of the installation that clients look at

    def __init__(self, folder, also_on=None):
        """also_on: a second address where clients reach it."""
        self.also_on = [also_on] if also_on else []
        self.folder = pathlib.Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.port = free_port()
        self.endpoint = f"127.0.0.1:{self.port}"
        self.process = None
        self.under = []  # a program and its arguments that it runs under, such as valgrind

    def start(self):
        # Several relays with prefixes of their own share it.
        acl = self.folder / "users.acl"
        acl.write_text("\n".join(["user default on nopass ~* &* +@all", *users("*:")[1:]]) + "\n")
        with_users.add(self.endpoint)
        self.process = Process("redis", [*self.under, "redis-server", "--bind", "127.0.0.1", *self.also_on,
                                         "--port", self.port, "--protected-mode", "no", "--aclfile", acl,
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

    def client(self, topic_prefix=None):
        return client_of(self.endpoint, topic_prefix or self.topic_prefix)

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
