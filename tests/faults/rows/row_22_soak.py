"""Half load for a long time: memory and file descriptors stand still once the caches are full (growth.py)."""
import contextlib
import os
import pathlib
import time

from growth import growth

ROW, NAME = "22", "soak at half load"
PARTS = ("ingest", "dispatcher", "reporter")
RSS_MOST = 0.2  # MB a minute, 12 MB an hour: what ten minutes of samples that waver can tell from nothing
FD_MOST = 0.5   # a minute
# Connections that a client keeps for its next request come and go with what is under way. At most: one for each call, and each
# sender of the load, at once.
KEPT_MOST = {"ingest": 80, "dispatcher": 4 * 64 + 32, "reporter": 2 * 32}
ESTABLISHED = "01"  # in /proc/PID/net/tcp
MINUTES = 10    # in longer ones a smaller growth can be seen
SAMPLE_S = 5
# Sent at once before: more than can be under way, so that whatever grows with that is as large as it gets.
BURST = 1000
RATE = 25       # what two cores with everything on them keep up with
# Seconds that the last minute's webhooks may have waited, and that commits may have to wait at the end: with more, memory is
# that of a backlog.
BEHIND_MAX = 10


def descriptors(pid, ports):
    """How many are open: connections with one of these ports, as long as both ends keep them; and all others."""
    lines = pathlib.Path(f"/proc/{pid}/net/tcp").read_text(encoding="ascii").splitlines()[1:]
    kept = {f"socket:[{inode}]" for _, ours, theirs, state, _, _, _, _, _, inode, *_ in map(str.split, lines)
            if state == ESTABLISHED and not ports.isdisjoint(int(end.rpartition(":")[2], 16) for end in (ours, theirs))}
    opened = []
    for descriptor in pathlib.Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):  # closed meanwhile
            opened.append(os.readlink(descriptor))
    return sum(one in kept for one in opened), sum(one not in kept for one in opened)


def sample(case):
    row, ports = {}, {case.relay.ports[name] for name in ("ingest", "github")}
    for part in PARTS:
        pid = case.relay.parts[part].pid
        for line in pathlib.Path(f"/proc/{pid}/status").read_text(encoding="ascii").splitlines():
            if line.startswith("VmRSS"):
                row[part, "rss"] = int(line.split()[1]) / 1024
        row[part, "kept"], row[part, "fd"] = descriptors(pid, ports)
    return row


def evaluate(times, samples):
    """What is to be said of each daemon, and what is wrong."""
    notes, problems = [], []
    finer = min(1, 60 * MINUTES / times[-1])
    rss_most, fd_most = RSS_MOST * finer, FD_MOST * finer
    for part in PARTS:
        rss = growth(times, [row[part, "rss"] for row in samples])
        fds = growth(times, [row[part, "fd"] for row in samples])
        kept = max(row[part, "kept"] for row in samples)
        notes.append(f"{part} {samples[-1][part, 'rss']:.0f} MB, {60 * rss.slope:+.1f} MB/h "
                     f"({60 * rss.least:+.1f} to {60 * rss.most:+.1f}), {fds.slope:+.2f} fd/min "
                     f"({fds.least:+.2f} to {fds.most:+.2f}), at most {kept} kept connections")
        if rss.leaks(rss_most):
            problems.append(f"{part} grows by {60 * rss.slope:.1f} MB an hour")
        elif not rss.stands_still(rss_most):
            problems.append(f"{part} is not shown to stand still: it may grow by {60 * rss.most:.1f} MB an hour")
        if fds.leaks(fd_most):
            problems.append(f"{part} has {fds.slope:+.1f} file descriptors a minute")
        elif not fds.stands_still(fd_most):
            problems.append(f"{part}'s file descriptors are not shown to stand still: perhaps {fds.most:+.1f} a minute")
        if kept > KEPT_MOST[part]:
            problems.append(f"{part} had {kept} kept connections open, {KEPT_MOST[part]} can be of use")
    return notes, problems


def run(world, short=False):
    minutes = 2 if short else 60 if world.long else 10
    case = world.case("row-22", hud=True).start()
    case.load(rate=200, count=BURST).wait()
    case.wait_done()
    load = case.load(rate=RATE)
    began, times, samples = time.monotonic(), [], []
    while time.monotonic() - began < minutes * 60:
        time.sleep(SAMPLE_S)  # a sample every so often
        times.append(time.monotonic() - began)
        samples.append(sample(case))
        if len(times) % 12 == 0:
            case.checker.look()  # all of it at the end would take as long as a minute of load
            case.say(f"row 22: {times[-1] / 60:.0f} of {minutes} min, " +
                     ", ".join(f"{part} {samples[-1][part, 'rss']:.1f} MB" for part in PARTS))
    marks, last_minute_ms = case.unread()["crcr-reconcile"], int(time.time() * 1000) - 60_000
    load.stop()
    result = case.result(ROW, NAME, f"{minutes} min at {load.rate}/s × {len(case.downstreams)}")
    notes, problems = evaluate(times, samples)
    result.note = "second half: " + "; ".join(notes)
    result.problems += problems
    waited = case.checker.waits_ms(last_minute_ms).values()
    behind = max(marks / len(case.downstreams) / load.rate, max(waited, default=float("inf")) / 1000)
    if behind > BEHIND_MAX:
        result.problems.append(f"the load was not kept up with ({behind:.0f} s behind): memory is that of a backlog")
    return result
