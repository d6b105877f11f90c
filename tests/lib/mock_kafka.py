"""`crcr-sim broker`: brokers in memory that refuse what they are asked to refuse."""
import os
import pathlib
import secrets

from lib.processes import BIN, ROOT, Process, wait_for


class MockKafka:
    """Its topics are there from the start, under `prefix`; it makes no others and keeps nothing."""

    # A request behind a fetch is answered after it, and each partition's end is two requests.
    reader_settings = {"fetch.wait.max.ms": 10}

    def __init__(self, folder, brokers=1):
        self.folder = pathlib.Path(folder)
        self.count = brokers
        self.prefix = f"m{secrets.token_hex(4)}."
        self.pipe = self.folder / "control"
        self.process, self.brokers = None, None

    def start(self):
        self.folder.mkdir(parents=True, exist_ok=True)
        address = self.folder / "address"
        self.process = Process("broker", [BIN / "crcr-sim", "broker", "--prefix", self.prefix, "--topics",
                                          ROOT / "deploy" / "topics" / "topics.conf", "--port-file", address,
                                          "--brokers", self.count, "--control", self.pipe], self.folder)
        wait_for("the broker's address", address.exists)
        wait_for("the broker's control", self.pipe.exists)
        self.brokers = address.read_text().strip()
        return self

    def order(self, *words):
        """What the broker answers between the last order and the end of this one."""
        line, before = " ".join(map(str, words)), len(self.process.text())
        pipe = os.open(self.pipe, os.O_WRONLY)
        try:
            os.write(pipe, f"{line}\n".encode())
        finally:
            os.close(pipe)

        def answered():
            text = self.process.text()[before:]
            assert f"refused: {line}" not in text, text
            return f"done: {line}\n" in text and (text,)
        return wait_for(f"the broker to do: {line}", answered)[0]

    def errors(self, api, name, count):
        """The next `count` such requests at each broker fail so."""
        self.order("errors", api, name, count)

    def left(self, api):
        return int(self.order("left", api).split()[2])

    def stop(self):
        if self.process is not None:
            self.process.stop()
