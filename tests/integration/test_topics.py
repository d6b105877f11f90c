"""topic_writer, topic_reader and topic_follower against a real broker: topic_*_live.c, a test each."""
import os
import pathlib
import re
import subprocess

import pytest

from lib.kafka import Kafka
from lib.processes import BIN

HERE = pathlib.Path(__file__).resolve().parent
PROGRAMS = ("topic_writer_live", "topic_reader_live", "topic_memory_live")
CASES = [(program, name) for program in PROGRAMS
         for name in re.findall(r"cmocka_unit_test\((\w+)\)", (HERE / f"{program}.c").read_text())]


@pytest.fixture(scope="module")
def node(tmp_path_factory):
    """A broker of their own: one of the tests stops it for a while."""
    one = Kafka(tmp_path_factory.mktemp("kafka")).start()
    yield one
    one.stop()


def test_there_are_cases():
    assert len(CASES) >= 16


@pytest.mark.parametrize("program,name", CASES, ids=[name for _, name in CASES])
def test_topic(program, name, node):
    environment = {**os.environ, "KAFKA_BROKERS": node.brokers,
                   "KAFKA_PID": (node.folder / "kafka.pid").read_text().strip()}
    done = subprocess.run([BIN.parent / "integration" / program, name], env=environment,
                          capture_output=True, text=True, timeout=180)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"OK ] {name}" in done.stdout, "the program has no such test"
