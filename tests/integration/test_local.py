"""deploy/local and the in-memory broker: what deploy/try and these tests start."""
import hashlib
import os
import re
import shutil
import signal
import socket
import subprocess

import pytest

from lib.kafka import create_topics
from lib.ports import free_port
from lib.processes import BIN, ROOT, Process, wait_for

LOCAL = ROOT / "deploy" / "local"


def run(*arguments, **more):
    return subprocess.run([str(part) for part in arguments], capture_output=True, text=True, timeout=120,
                          **more)


def environment(**more):
    """Ours without what the test run itself is configured with."""
    return {**{name: value for name, value in os.environ.items() if not name.startswith("CRCR_")}, **more}


def gone(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


@pytest.mark.parametrize("script", ["kafka", "redis", "packages", "fetch-kafka", "fetch-kustomize"])
def test_help_and_wrong_usage(script):
    assert run(LOCAL / script, "--help").stdout.startswith(f"usage: deploy/local/{script}")
    assert run(LOCAL / script, "--nonsense").returncode == 2


def test_packages_asks_nothing_when_all_is_there():
    done = run(LOCAL / "packages", "build", "run")
    assert done.returncode == 0 and done.stdout == "" and done.stderr == ""


def test_a_node_takes_its_classes_from_the_archive_that_fetch_kafka_made(kafka_node):
    """Java says nothing of one that does not fit: it starts in twice the time."""
    pid = (kafka_node.folder / "kafka.pid").read_text().strip()
    with open(f"/proc/{pid}/maps", encoding="ascii") as maps:
        assert any(re.search(r"/classes-[0-9.]+\.jsa$", line) for line in maps)


@pytest.fixture
def mirror(tmp_path):
    """fetch-kafka with a version of two small jars, and a Maven that copies them out of a folder, as from ~/.m2."""
    class Mirror:
        here, jars = tmp_path / "local", tmp_path / "home/.m2/repository/org"
        kept = tmp_path / "cache/kafka-0.0.0"
        good = {name: f"the right {name}".encode() for name in ("kafka_2.13-0.0.0.jar", "slf4j.jar")}
        sums = {name: hashlib.sha256(content).hexdigest() for name, content in good.items()}

        def fetch(self, *options, version="0.0.0"):
            return run(self.here / "fetch-kafka", *options, env={
                **os.environ, "PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}", "KAFKA_VERSION": version,
                "CRCR_CACHE": str(tmp_path / "cache"), "HOME": str(tmp_path / "home"), "MIRROR": str(self.jars)})

        def put(self):
            for name, content in self.good.items():
                (self.jars / name).write_bytes(content)
    for folder in (Mirror.here, Mirror.jars, tmp_path / "bin"):
        folder.mkdir(parents=True)
    for name in ("fetch-kafka", "lib.sh"):
        shutil.copy(LOCAL / name, Mirror.here)
    (tmp_path / "bin/mvn").write_text(
        '#!/bin/sh\nfor word; do case $word in -DoutputDirectory=*) to=${word#*=} ;; esac; done\n'
        'mkdir -p "$to" && cp "$MIRROR"/* "$to"\n')
    (tmp_path / "bin/mvn").chmod(0o755)
    one = Mirror()
    one.put()
    (one.here / "kafka-0.0.0.sha256").write_text("".join(f"{value}  {name}\n" for name, value in one.sums.items()))
    return one


@pytest.mark.parametrize("jar", ["kafka_2.13-0.0.0.jar", "slf4j.jar", "another.jar"])
def test_a_jar_with_another_sum_than_the_trees_is_named_removed_and_not_used(mirror, jar):
    (mirror.jars / jar).write_bytes(b"tampered")
    found, wanted = hashlib.sha256(b"tampered").hexdigest(), mirror.sums.get(jar, "none")
    for _ in "fetched", "already kept":
        done = mirror.fetch()
        assert done.returncode == 1 and done.stdout == "", done.stderr
        assert re.search(rf"{jar}: wanted SHA-256 {wanted}.*, found {found}; removed", done.stderr), done.stderr
        assert not (mirror.kept / "jars" / jar).exists()
        assert b"tampered" not in [path.read_bytes() for path in mirror.jars.iterdir()]
        mirror.put()
        done = mirror.fetch()
        assert done.returncode == 0 and done.stdout == f"{mirror.kept}\n", done.stderr
        assert {path.name for path in (mirror.kept / "jars").iterdir()} == set(mirror.good)
        (mirror.kept / "jars" / jar).write_bytes(b"tampered")


def test_a_jar_that_is_missing_and_a_version_without_sums_are_refused(mirror):
    (mirror.jars / "slf4j.jar").unlink()
    done = mirror.fetch()
    assert done.returncode == 1 and f"slf4j.jar is missing (wanted SHA-256 {mirror.sums['slf4j.jar']})" in done.stderr
    done = mirror.fetch(version="0.0.1")
    assert done.returncode == 1 and "kafka-0.0.1.sha256 is not there: make it with" in done.stderr
    assert not mirror.kept.exists()


def test_one_command_prints_the_sums_of_another_version(mirror):
    done = mirror.fetch("--sums")
    assert done.returncode == 0 and done.stdout == (mirror.here / "kafka-0.0.0.sha256").read_text(), done.stderr
    assert not mirror.kept.exists()
    version = re.search(r"KAFKA_VERSION:-([0-9.]+)", (LOCAL / "lib.sh").read_text())[1]
    assert (LOCAL / f"kafka-{version}.sha256").exists()


@pytest.mark.long
def test_kafka_keeps_its_topics_over_a_restart_and_leaves_no_process(tmp_path):
    port, controller = free_port(), free_port()
    arguments = [LOCAL / "kafka", "--dir", tmp_path / "data", "--port", port, "--controller-port",
                 controller]
    first = Process("kafka", arguments, tmp_path)
    first.wait_text(f"ready 127.0.0.1:{port}", 90)
    pid = int((tmp_path / "data" / "kafka.pid").read_text())
    create_topics(f"127.0.0.1:{port}", "kept.")
    assert first.stop(40) == 0
    assert gone(pid) and not (tmp_path / "data" / "kafka.pid").exists()

    # The process that stays must not hold our pipes, or nobody would ever see their end.
    assert subprocess.run([str(part) for part in arguments] + ["--background"], timeout=120,
                          stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode == 0
    try:
        kept = environment(KAFKA_BROKERS=f"127.0.0.1:{port}", CRCR_TOPIC_PREFIX="kept.")
        assert run(BIN / "crcrctl", "topics", "check", env=kept).returncode == 0
        second = run(*arguments)
        assert second.returncode == 2 and f"port {port} on 127.0.0.1 is in use" in second.stderr
        pid = int((tmp_path / "data" / "kafka.pid").read_text())
    finally:
        assert run(LOCAL / "kafka", "--dir", tmp_path / "data", "--stop").returncode == 0
    assert gone(pid)
    assert run(LOCAL / "kafka", "--dir", tmp_path / "data", "--stop").returncode == 1


def test_redis_names_a_port_in_use(tmp_path):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        done = run(LOCAL / "redis", "--dir", tmp_path, "--port", port)
        assert done.returncode == 2 and f"port {port} on 127.0.0.1 is in use" in done.stderr


def test_the_broker_in_memory_has_our_topics_and_ends_when_asked(tmp_path):
    broker = Process("broker", [BIN / "crcr-sim", "broker", "--port-file", tmp_path / "port", "--topics",
                                ROOT / "deploy" / "topics" / "topics.conf"], tmp_path)
    address = wait_for("the port file", lambda: (tmp_path / "port").read_text().strip())
    broker.wait_text("IN MEMORY ONLY")
    for _ in range(2):
        done = run(BIN / "crcrctl", "topics", "check", env=environment(KAFKA_BROKERS=address))
        assert done.returncode == 0, done.stdout + done.stderr
        assert done.stdout.count("ok ") == 19
    broker.signal(signal.SIGINT)
    assert broker.stop() == 0


def test_the_broker_in_memory_refuses_a_bad_topics_file(tmp_path):
    (tmp_path / "topics.conf").write_text("events x\n")
    done = run(BIN / "crcr-sim", "broker", "--topics", tmp_path / "topics.conf")
    assert done.returncode == 1 and "topics.conf:1:8: " in done.stderr
