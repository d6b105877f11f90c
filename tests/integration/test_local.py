"""deploy/local and the in-memory broker: what deploy/try and these tests start."""
import os
import re
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


def test_the_broker_in_memory_has_our_topics_and_ends_when_told(tmp_path):
    broker = Process("broker", [BIN / "crcr-sim", "broker", "--port-file", tmp_path / "port", "--topics",
                                ROOT / "deploy" / "topics" / "topics.conf"], tmp_path)
    address = wait_for("the port file", lambda: (tmp_path / "port").read_text().strip())
    broker.wait_text("IN MEMORY ONLY")
    for _ in range(2):
        done = run(BIN / "crcrctl", "topics", "check", env=environment(KAFKA_BROKERS=address))
        assert done.returncode == 0, done.stdout + done.stderr
        assert done.stdout.count("ok ") == 15
    broker.signal(signal.SIGINT)
    assert broker.stop() == 0


def test_the_broker_in_memory_refuses_a_bad_topics_file(tmp_path):
    (tmp_path / "topics.conf").write_text("events x\n")
    done = run(BIN / "crcr-sim", "broker", "--topics", tmp_path / "topics.conf")
    assert done.returncode == 1 and "topics.conf:1:8: " in done.stderr
