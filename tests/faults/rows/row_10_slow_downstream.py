"""One downstream's GitHub answers in 30 s; the others must not notice. Measured before, during and after it in one run, so that
what the machine does meanwhile is seen; and against the other tiers at the same moment, which have threads of their own: what
slows both is the machine, what slows the neighbours alone is the slow one."""
import collections
import statistics

ROW, NAME = "10", "one downstream answers in 30 s"
SLOW = "org-l/backend"
NEIGHBOURS = ("org-j/backend", "org-k/backend")  # of its tier
WORSE_MAX, NOISE_MS = 1.10, 20
RATE = 25
WINDOW_MS = 5000
WORST_MS = 1000  # so much worse than the worst one of before and after no window may be: the median does not see one
PLAIN_S, SLOW_S = 15, 30  # the first calls run into their time-out after 20 s, then the breaker opens


def windows_of(case, load, wanted):
    """p99 from a webhook of that load to its dispatch, of the downstreams that are wanted, for each 5 s."""
    sent = load.sent_ms
    windows = collections.defaultdict(list)
    for (delivery, repo), lines in case.checker.dispatches.items():
        if delivery in sent and wanted(repo):
            windows[sent[delivery] // WINDOW_MS].append(lines[0]["at_ms"] - sent[delivery])
    return {at: sorted(took)[len(took) * 99 // 100] for at, took in windows.items()}


def p99_ms(*measured):
    """The median of their windows: a hiccup of the machine spoils one, a slow neighbour all of them."""
    return int(statistics.median([window for windows, *_ in measured for window in windows]))


def beside(case, load):
    """How much longer the neighbours take than the other tiers in the same window: the median, in parts and in ms."""
    near = windows_of(case, load, lambda repo: repo in NEIGHBOURS)
    far = windows_of(case, load, lambda repo: repo not in (SLOW, *NEIGHBOURS))
    return (statistics.median(near[at] / max(far[at], 1) for at in near),
            statistics.median(near[at] - far[at] for at in near))


def measure(case, seconds):
    """Those windows of the others, and beside(), of a load that everybody but the slow one has answered."""
    load = case.load(rate=RATE, count=RATE * seconds).wait()
    others = [repo for repo in case.downstreams if repo != SLOW]
    case.wait("the others' dispatches", lambda: not [
        pair for pair in case.checker.look().open_dispatches() if pair[1] in others], 120)
    return windows_of(case, load, lambda repo: repo != SLOW).values(), *beside(case, load)


def run(world, short=False):
    plain_s, slow_s = (5, 25) if short else (PLAIN_S, SLOW_S)
    case = world.case("row-10").start()
    measure(case, plain_s)  # tokens, connections, caches
    before = measure(case, plain_s)
    case.relay.script({"method": "POST", "path": f"/repos/{SLOW}/dispatches", "delay_ms": 30000})
    meanwhile = measure(case, slow_s)
    _, part, more_ms = meanwhile
    late = sum(repo == SLOW for _, repo in case.checker.open_dispatches())
    case.relay.script({"clear": True})
    case.settle(120)
    after = measure(case, plain_s)
    during, plain = p99_ms(meanwhile), p99_ms(before, after)
    result = case.result(ROW, NAME, "30 s", settle_s=120, note=(
        f"p99 of the others {p99_ms(before)} ms, {during} ms meanwhile, {p99_ms(after)} ms after; of its neighbours "
        f"{(part - 1) * 100:+.0f} % "
        "against the other tiers at the same moment"))
    if during > plain * WORSE_MAX and during - plain > NOISE_MS:
        result.problems.append(f"the others' p99 went from {plain} ms, before and after, to {during} ms")
    worst, most = max(meanwhile[0]), max(*before[0], *after[0])
    if worst > most + WORST_MS:
        result.problems.append(f"for {WINDOW_MS // 1000} s the others' p99 was {worst} ms, at most {most} ms before and after")
    if part > WORSE_MAX and more_ms > NOISE_MS:
        result.problems.append(f"its neighbours' p99 was {part:.2f} times that of the other tiers ({more_ms:.0f} ms more)")
    if late < RATE:
        result.problems.append(f"the fault was none: only {late} dispatches of {SLOW} were late")
    return result
