"""topic_follower to the ends, as a rebuild reads, against a real broker whose topic loses its end meanwhile (span_driver.c)."""
import secrets
import subprocess

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, NewTopic

from lib.kafka import write, write_all
from lib.processes import BIN, wait_for

BEFORE = 10  # records that the span counts on


class Span:
    """Two topics; what is in the second is fetched only when the first was read."""

    def __init__(self, brokers):
        self.brokers, self.admin = brokers, AdminClient({"bootstrap.servers": brokers})
        self.first, self.second = (f"span-{secrets.token_hex(4)}-{number}" for number in (1, 2))
        self.make(self.first)
        self.make(self.second)
        write(brokers, self.first, "k", b"first")
        self.fill("old", BEFORE)
        self.driver = subprocess.Popen([BIN.parent / "integration" / "span_driver", brokers, self.first, self.second],
                                       stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self.driver.stdout.readline() == f"total {1 + BEFORE}\n"

    def make(self, topic):
        def made():
            try:
                self.admin.create_topics([NewTopic(topic, 1, 1)])[topic].result(20)
            except KafkaException as error:  # the one of that name is not quite gone yet
                assert error.args[0].name() == "TOPIC_ALREADY_EXISTS", error
                return False
            return True
        wait_for(f"{topic} to be made", made, 60)
        wait_for(f"{topic} to be reported",
                 lambda: len(self.admin.list_topics(topic, 10).topics[topic].partitions) == 1, 60)

    def fill(self, word, n):
        write_all(self.brokers, self.second, [("k", f"{word}-{number}".encode(), {}, 0) for number in range(n)])

    def make_anew(self):
        self.admin.delete_topics([self.second])[self.second].result(20)
        self.make(self.second)

    def go(self):
        self.driver.stdin.write("\n")
        self.driver.stdin.flush()

    def rest(self):
        text, _ = self.driver.communicate(timeout=90)
        return text.split("\n")[:-1]


@pytest.fixture
def span(kafka_node):
    one = Span(kafka_node.brokers)
    yield one
    one.driver.kill()
    one.driver.wait(10)


def test_records_that_come_late_are_waited_for(span):
    span.make_anew()
    span.fill("new", 3)
    span.go()
    assert [span.driver.stdout.readline() for _ in range(4)] == ["first\n", "new-0\n", "new-1\n", "new-2\n"]
    span.fill("late", BEFORE)
    assert span.rest() == [f"late-{number}" for number in range(BEFORE - 3)] + ["end"]
