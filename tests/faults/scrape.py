"""What the daemons' metrics did in a row, from scrapes as Prometheus makes them; only oftener, since the faults are short."""
import dataclasses
import re
import threading
from http.client import HTTPException

from lib.relay import http

EVERY_S = 1.0
STARTED = "process_start_time_seconds"  # another one: a new process, which counts from 0
SERIES = re.compile(r"([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? (\S+)")


@dataclasses.dataclass(frozen=True)
class Wanted:
    """A daemon's metric and what it must have done. of: the labels of its series that count."""
    daemon: str
    name: str
    of: tuple
    what: str
    limit: float = 0.0

    def __str__(self):
        labels = ",".join(f'{name}="{value}"' for name, value in self.of)
        return f"{self.name}{{{labels}}} of {self.daemon} never {self.what}"


def grows(daemon, name, **labels):
    return Wanted(daemon, name, tuple(labels.items()), "grew")


def restarts(daemon):
    return Wanted(daemon, STARTED, (), "changed")


def reaches(daemon, name, limit, **labels):
    return Wanted(daemon, name, tuple(labels.items()), f"reached {limit:g}", limit)


def falls(daemon, name, limit, **labels):
    return Wanted(daemon, name, tuple(labels.items()), f"fell to {limit:g}", limit)


class Metrics:
    """What is still wanted, after each scrape. The first one of a process that was there at the beginning is what it grew from."""

    def __init__(self, wanted):
        self.left = list(wanted)
        self.names = {one.name for one in wanted} | {STARTED}
        self.last = {}  # part → series → value

    def take(self, part, text):
        now = {}
        for line in text.splitlines():
            if (found := SERIES.fullmatch(line)) and found[1] in self.names:
                now[found[1], found[2] or ""] = float(found[3])
        if STARTED not in {name for name, _ in now}:
            return
        before = self.last.get(part)
        if before and before[STARTED, ""] != now[STARTED, ""]:
            before = {(STARTED, ""): before[STARTED, ""]}
        self.last[part] = now
        daemon = part.rstrip("0123456789")
        self.left = [one for one in self.left if one.daemon != daemon or not self._did(one, before, now)]

    @staticmethod
    def _did(one, before, now):
        for (name, labels), value in now.items():
            if name != one.name or not all(f'{label}="{text}"' in labels for label, text in one.of):
                continue
            if (one.what in ("grew", "changed") and before and value != before.get((name, labels), 0.0) or
                    one.what.startswith("reached") and value >= one.limit or
                    one.what.startswith("fell") and value <= one.limit):
                return True
        return False


class Scraper:
    """Scrapes all daemons of a relay that are there, until it is stopped or nothing is wanted any more."""

    def __init__(self, relay, wanted):
        self.relay, self.metrics = relay, Metrics(wanted)
        self.stopped = threading.Event()
        self._scrape()
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def _scrape(self):
        for part in [part for part in self.relay.parts if part != "github"]:
            try:
                status, text = http("GET", self.relay.url(f"admin_{part}", "/metrics"), timeout=2)
            except (OSError, HTTPException):  # it is dead, stands still or has no descriptor left
                continue
            if status == 200:
                self.metrics.take(part, text.decode())

    def _run(self):
        while self.metrics.left and not self.stopped.wait(EVERY_S):
            self._scrape()

    def stop(self):
        """What no scrape has shown."""
        self.stopped.set()
        self.thread.join()
        return [str(one) for one in self.metrics.left]
