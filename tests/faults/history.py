"""Append-only histories, one JSON object a line, and followers that read on where they stopped."""
import json
import pathlib
import threading
import time

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaException, TopicPartition


class History:
    """What somebody did, in the order in which they wrote it down. Any thread may write."""

    def __init__(self, path):
        self.path = pathlib.Path(path)
        self._file = open(self.path, "a", buffering=1)
        self._lock = threading.Lock()

    def write(self, line):
        with self._lock:
            self._file.write(json.dumps(line) + "\n")

    def close(self):
        self._file.close()


class Lines:
    """The lines of a history so far; read() gives what came since."""

    def __init__(self, path):
        self.path, self.at, self.rest = pathlib.Path(path), 0, b""

    def read(self):
        if not self.path.exists():
            return []
        with open(self.path, "rb") as file:
            file.seek(self.at)
            text = file.read()
        self.at += len(text)
        lines = (self.rest + text).split(b"\n")
        self.rest = lines.pop()
        return [json.loads(line) for line in lines]


class Topic:
    """The records of a topic so far, without a group; read() gives what came since, as
    (key, value bytes, headers, partition, offset). A broker that is unavailable is waited for."""

    def __init__(self, brokers, topic, **settings):
        self.topic = topic
        self.consumer = Consumer({
            "bootstrap.servers": brokers, "group.id": "faults-read-only", "enable.auto.commit": False,
            "fetch.message.max.bytes": 27 << 20, "queued.max.messages.kbytes": 65536, "log_level": 2,
            "reconnect.backoff.max.ms": 1000, **settings})
        self.next = {}

    def _assign(self, timeout):
        partitions = self.consumer.list_topics(self.topic, timeout).topics[self.topic].partitions
        self.next = {number: 0 for number in partitions}
        self.consumer.assign([TopicPartition(self.topic, number, OFFSET_BEGINNING)
                              for number in partitions])

    def _ends(self, timeout):
        return {number: self.consumer.get_watermark_offsets(TopicPartition(self.topic, number), timeout)
                for number in self.next}

    def read(self, timeout=30):
        return [record for batch in self.batches(timeout) for record in batch]

    def batches(self, timeout=30):
        """As read(), some at a time: the bodies of a long run's tasks are too much for memory."""
        deadline = time.monotonic() + timeout
        while True:
            try:
                if not self.next:
                    self._assign(10)
                ends = self._ends(10)
                break
            except KafkaException:
                if time.monotonic() > deadline:
                    raise
        while any(self.next[number] < high for number, (low, high) in ends.items() if high > low):
            messages, records = self.consumer.consume(1000, 1.0), []
            for message in messages:
                if message.error() is None:
                    self.next[message.partition()] = message.offset() + 1
                    records.append((message.key().decode() if message.key() is not None else None,
                                    message.value(),
                                    {k: (v or b"").decode(errors="replace")
                                     for k, v in message.headers() or []},
                                    message.partition(), message.offset()))
            assert messages or time.monotonic() < deadline, f"{self.topic}: nothing came in {timeout} s"
            yield records

    def close(self):
        self.consumer.close()
