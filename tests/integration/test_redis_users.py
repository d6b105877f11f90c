"""The Redis users of deploy/redis: what each may do suffices for its program, and what is another's is refused."""
import itertools
import re
import subprocess
import threading

import pytest
import redis as redis_client

from lib.processes import ROOT, wait_for
from lib.redis_server import USERS, RedisServer, set_user
from lib.relay import Relay, pull_request

SOURCES = ("ingest", "dispatcher", "reporter", "common/io", "common/view", "deploy/crcrctl")
# One key of each kind, and who may not write it, who may not read it.
ALL, INGEST, DISPATCHER, REPORTER, CTL = set(USERS), *({user} for user in USERS)
STRINGS = {"epoch": (INGEST | DISPATCHER | CTL, set()), "seq:org/two|pytorch/pytorch#1": (INGEST | CTL, INGEST | CTL),
           "commit:abc": (ALL - REPORTER, ALL - REPORTER), "tallied:d/org/two": (ALL - REPORTER, ALL - REPORTER)}
HASHES = {"claim:d|org/two|dispatch|": (INGEST | CTL, CTL), "rate:org/two": (ALL - INGEST, ALL - INGEST),
          "job:org/two/d": (ALL - REPORTER, set()), "spent:org/two": (ALL - REPORTER, ALL - REPORTER),
          "labels:7": (ALL - REPORTER, ALL - REPORTER), "check:abc/ci": (ALL - REPORTER, INGEST | DISPATCHER),
          "rebuild": (INGEST | DISPATCHER, INGEST | DISPATCHER), "budget:org": (INGEST | CTL, INGEST | CTL), "budget:us:org": (INGEST | CTL, INGEST | CTL),
          "allowlist": (ALL - DISPATCHER, ALL - REPORTER), "hours:org/two|1": (ALL - REPORTER, ALL - REPORTER),
          "day:org/two|1": (ALL - REPORTER, ALL - REPORTER)}
SETS = {"zombies": (ALL - REPORTER, ALL), "leases:due": (ALL - REPORTER, ALL), "due": (ALL - REPORTER, ALL), "tally": (ALL - REPORTER, ALL), "repos": (ALL - REPORTER, ALL - REPORTER),
        "delivery:d": (ALL - REPORTER, ALL - REPORTER - CTL)}
DANGEROUS = ("FLUSHALL", "FLUSHDB", "KEYS *", "CONFIG GET *", "CONFIG SET maxmemory 1", "ACL LIST", "ACL SETUSER default +@all",
             "SHUTDOWN", "REPLICAOF 127.0.0.1 1", "MONITOR", "SAVE", "SCAN 0", "RANDOMKEY", "CLIENT LIST",
             "SCRIPT FLUSH", "FUNCTION FLUSH", "FUNCTION KILL", "MODULE LIST", "DUMP crcr:epoch", "RENAME crcr:epoch crcr:x", "SUBSCRIBE x",
             "GET other:epoch", "SET other:epoch 1", "EVAL return(redis.call('FLUSHALL')) 0",
             "EVAL return(redis.call('GET','other:epoch')) 0", "EVAL return(1) 1 other:epoch")


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """Its users may use keys that begin with crcr:, as deploy/redis has it."""
    one = RedisServer(tmp_path_factory.mktemp("redis")).start()
    for user in USERS:
        set_user(one.client(), user, prefix="crcr:")
    yield one
    one.stop()


def connect(server, user):
    return redis_client.Redis(port=server.port, username=user, password=f"of {user}", decode_responses=True)


def refused(client, *command):
    try:
        client.execute_command(*command)
    except redis_client.exceptions.NoPermissionError:
        return True
    except redis_client.ResponseError as error:
        return "The user executing the script can't" in str(error) or "ACL failure in script" in str(error)  # Redis 7, 8
    return False


def test_one_round_of_the_relay_is_refused_nothing(kafka_node, server, tmp_path):
    relay = Relay(tmp_path, kafka_node.brokers, server.endpoint)
    own = relay.prefix.removesuffix(".") + ":"
    for user in USERS:
        set_user(server.client(), user, prefix=own)
    try:
        relay.start_all()
        status, _, delivery = relay.deliver(pull_request(number=77, labels=["ciflow/crcr/npu"]))
        assert status == 202

        def ended():
            jobs = (relay.api(f"/api/crcr/deliveries/{delivery}") or {"jobs": []})["jobs"]
            checks = relay.state()["check_runs"]
            return len(jobs) == 3 and all(job["status"] == "completed" for job in jobs) and \
                len(checks) == 3 and all(run["status"] == "completed" for run in checks)
        wait_for("three rows and three check runs", ended)
        relay.ctl("trace", delivery)
        relay.ctl("rebuild-hud", "--wait", "--timeout", "60s")
    finally:
        relay.stop()
        for user in USERS:
            set_user(server.client(), user, prefix="crcr:")
    kinds = {key.split(":")[1] for key in server.client(relay.prefix).keys("crcr:*")}
    assert kinds >= {"epoch", "claim", "job", "dispatch", "labels", "check", "allowlist"}
    denied = server.client().execute_command("ACL", "LOG")
    assert denied == [], "\n".join(map(str, denied))


def test_the_user_of_ingest_ends_a_quota_as_its_readme_says(server):
    """But for it nobody may: there is no administrator in Redis."""
    key = "crcr:rate:org/quota"
    server.client().hset(key, "day_over", 1)
    assert "`PEXPIRE crcr:rate:<repo> 1` as the Redis user `crcr-ingest`" in (ROOT / "ingest/README.md").read_text()
    connect(server, "crcr-ingest").execute_command("PEXPIRE", key, 1)
    wait_for("the quota to be gone", lambda: not server.client().exists(key))


@pytest.mark.parametrize("user", USERS)
def test_a_user_is_refused_what_is_dangerous_and_keys_of_others(server, user):
    client, admin = connect(server, user), server.client()
    admin.set("other:epoch", "1")
    for command in DANGEROUS:
        assert refused(connect(server, user), *command.split()), command
    for keys, write, read in ((STRINGS, ("SET", "1"), ("GET",)), (HASHES, ("HSET", "a", "b"), ("HGETALL",)),
                              (SETS, ("ZADD", "1", "a"), ("ZRANGE", "0", "-1"))):
        for key, (no_writers, no_readers) in keys.items():
            key = f"crcr:{key}"
            if user in no_writers:
                assert refused(client, write[0], key, *write[1:]), f"{user} writes {key}"
                assert refused(client, "DEL", key) or (user, key) == ("crcrctl", "crcr:epoch"), f"{user} deletes {key}"
                script = f"return redis.call('{write[0]}', KEYS[1], unpack(ARGV))"
                assert refused(client, "EVAL", script, "1", key, *write[1:]), f"{user} writes {key} by a script"
            if user in no_readers:
                assert refused(client, read[0], key, *read[1:]), f"{user} reads {key}"
    assert admin.get("other:epoch") == "1"


def test_one_user_may_end_a_script_that_holds_up_redis_as_the_runbook_says(server):
    admin, answers = server.client(), []
    admin.config_set("busy-reply-threshold", 100)

    def hang():
        try:
            server.client().eval("while true do end", 0)
        except redis_client.ResponseError as error:
            answers.append(str(error))
    hanging = threading.Thread(target=hang)
    hanging.start()
    clients = {user: connect(server, user) for user in USERS}

    def busy():
        try:
            return not admin.ping()
        except redis_client.ResponseError as error:
            return "BUSY" in str(error)
    try:
        wait_for("Redis to be busy", busy)
        for user in ALL - CTL:
            assert refused(clients[user], "SCRIPT KILL"), user
        command = re.search(r"docker compose exec redis (redis-cli --user (\w+) .* script kill)", (ROOT / "deploy/README.md").read_text())
        said = subprocess.run(["redis-cli", "-p", str(server.port), *command[1].split()[1:]],
                              input=f"of {command[2]}\n", capture_output=True, text=True, timeout=60)
        assert "OK" in said.stdout.splitlines(), said
    finally:
        hanging.join(10)
        if hanging.is_alive():
            admin.execute_command("SCRIPT KILL")
            hanging.join(60)
    assert len(answers) == 1 and "killed by user" in answers[0], answers
    assert refused(clients["crcrctl"], "SCRIPT FLUSH") and not refused(clients["crcrctl"], "SCRIPT KILL")  # NOTBUSY


def test_the_default_user_of_the_acl_file_may_only_ping(server, tmp_path):
    made = subprocess.run([ROOT / "deploy/compose/make-secrets", "--demo", "--dir", tmp_path], capture_output=True, text=True,
                          timeout=60)
    assert made.returncode == 0, made.stderr
    first, *lines = (tmp_path / "redis_users").read_text().splitlines()
    assert first == "user default reset on nopass +ping" and [line.split()[1] for line in lines] == list(USERS)
    admin = server.client()
    for line in lines:
        user, password = (tmp_path / f"redis_login_{line.split()[1].removeprefix('crcr-')}").read_text().strip().split(":")
        assert user == line.split()[1] and password not in line
    admin.execute_command("ACL", "SETUSER", "probe", *first.split()[2:])
    probe = redis_client.Redis(port=server.port, username="probe", password="any")
    assert probe.ping() and refused(probe, "GET", "crcr:epoch") and refused(probe, "INFO")
    admin.execute_command("ACL", "DELUSER", "probe")


def test_the_users_have_the_commands_that_the_code_uses_and_no_other():
    """A command that is new in the code gets its rule in deploy/redis/users."""
    files = [file for folder in SOURCES for file in (ROOT / folder).rglob("*") if file.suffix in (".c", ".lua")]
    used = set(itertools.chain.from_iterable(
        re.findall(r"redis\.call\('([A-Z]+)'" if file.suffix == ".lua" else r'REDIS_ARGS\(STR_LIT\("([A-Z]+)"\)',
                   file.read_text()) for file in files))
    used |= {"SCRIPT|KILL"}  # by people, deploy/README.md
    used |= {"TYPE"}  # by the release before this one, beside which replicas run during an upgrade
    used |= {"EVAL", "EVALSHA", "SCRIPT|LOAD", "PING", "HMGET", "HGETALL", "HSET"}  # redis.c; jobs.c; allowlist_source.c
    given = set(re.findall(r"\+([a-z|]+)", (ROOT / "deploy/redis/users").read_text()))
    assert {command.upper() for command in given} == used
