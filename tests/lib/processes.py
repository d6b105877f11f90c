"""Starts programs for tests, keeps their logs, ends them by pid, and waits for conditions."""
import os
import pathlib
import signal
import subprocess
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
BIN = pathlib.Path(os.environ.get("CRCR_BIN", ROOT / "build" / "bin"))


EVERY_S, EVERY_MAX_S = 0.02, 0.2


def wait_for(what, condition, timeout=60.0, every=None):
    """Calls condition() until it gives something true, and returns that; fails naming `what`. Without `every`
    it asks ever more rarely: what takes long anyway is not to be slowed down by the asking. A minute: on a busy
    machine what takes a second may take twenty."""
    deadline = time.monotonic() + timeout
    last, pause = None, every or EVERY_S
    while time.monotonic() < deadline:
        try:
            last = condition()
        except (OSError, ValueError, KeyError, IndexError) as error:
            last = error
        else:
            if last:
                return last
        time.sleep(pause)
        pause = every or min(pause * 1.25, EVERY_MAX_S)
    raise AssertionError(f"waited {timeout:.0f} s in vain for: {what} (last: {last!r})")


class Process:
    """One running program. Its output goes to a file; the end of it is shown when a test fails."""

    def __init__(self, name, argv, folder, env=None):
        self.name, self.asked_to_end = name, False
        self.log = pathlib.Path(folder) / f"{name}-{time.monotonic_ns()}.log"
        environment = {key: value for key, value in os.environ.items()
                       if not key.startswith(("CRCR_", "GITHUB_", "KAFKA_", "REDIS_", "HUD_"))}
        environment.update(env or {})
        with open(self.log, "wb") as log:
            self.popen = subprocess.Popen([str(part) for part in argv], stdout=log,
                                          stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
                                          env=environment, cwd=folder)

    @property
    def pid(self):
        return self.popen.pid

    def running(self):
        return self.popen.poll() is None

    def text(self):
        return self.log.read_text(errors="replace")

    def wait_text(self, needle, timeout=60):
        def seen():
            if needle in self.text():
                return True
            if not self.running():
                raise AssertionError(f"{self.name} ended with {self.popen.returncode} before it said "
                                     f"{needle!r}:\n{self.tail()}")
            return False
        return wait_for(f"{self.name} to say {needle!r}", seen, timeout)

    def tail(self, lines=40):
        return "\n".join(self.text().splitlines()[-lines:])

    def signal(self, number):
        self.popen.send_signal(number)

    def kill(self):
        if self.running():
            self.popen.kill()
        return self.popen.wait(10)

    def stop(self, timeout=30):
        """SIGTERM, and the exit code; a program that does not end in time is killed and fails."""
        if self.running():
            self.asked_to_end = True
            self.popen.send_signal(signal.SIGTERM)
        try:
            return self.popen.wait(timeout)
        except subprocess.TimeoutExpired:
            self.popen.kill()
            self.popen.wait(10)
            raise AssertionError(f"{self.name} did not end within {timeout} s of SIGTERM:\n"
                                 f"{self.tail()}") from None
