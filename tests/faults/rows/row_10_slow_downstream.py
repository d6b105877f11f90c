"""One downstream's GitHub answers in 30 s; the others must not notice. Measured before, during and after it in one run, so that
what the machine does meanwhile is seen; against ingest's answers at the same moment, which wait for the same processors, broker
and disk but for no dispatch; and against the other tiers, which have threads of their own: what slows both is the machine, what
slows the neighbours alone is the slow one."""
import collections
import statistics

ROW, NAME = "10", "one downstream answers in 30 s"
SLOW = "org-l/backend"
NEIGHBOURS = ("org-j/backend", "org-k/backend")  # of its tier
WORSE_MAX, NOISE_MS = 1.10, 20
RATE = 44  # half of what row 14 drains in a second (1,055 dispatches to 12 downstreams)
WINDOW_MS = 5000
WORST_MS = 1000  # so much worse than the worst one of before and after no window may be: the median does not see one
CPU_MAX = 1.5    # a dispatcher that turned in circles would slow ingest, too
PLAIN_S, SLOW_S = 15, 30  # the first calls run into their time-out after 20 s, then the breaker opens

Measured = collections.namedtuple("Measured", "p99 against_ingest part more_ms cpu_s")


def windows_of(case, load, wanted):
    """p99 from a webhook of that load to its dispatch, of the downstreams that are wanted, for each 5 s."""
    sent = load.sent_ms
    windows = collections.defaultdict(list)
    for (delivery, repo), lines in case.checker.dispatches.items():
        if delivery in sent and wanted(repo):
            windows[sent[delivery] // WINDOW_MS].append(lines[0]["at_ms"] - sent[delivery])
    return {at: sorted(took)[len(took) * 99 // 100] for at, took in windows.items()}


def answers_of(load):
    """How long nine of ten webhooks waited at most for their 202, for each 5 s."""
    windows = collections.defaultdict(list)
    for delivery, at in load.sent_ms.items():
        windows[at // WINDOW_MS].append(load.took_ms[delivery])
    return {at: sorted(took)[len(took) * 9 // 10] for at, took in windows.items()}


def median(field, *measured):
    """Of their windows: a hiccup of the machine spoils one, a slow neighbour all of them."""
    return statistics.median([window for one in measured for window in getattr(one, field)])


def beside(case, load):
    """How much longer the neighbours take than the other tiers in the same window: the median, in parts and in ms."""
    near = windows_of(case, load, lambda repo: repo in NEIGHBOURS)
    far = windows_of(case, load, lambda repo: repo not in (SLOW, *NEIGHBOURS))
    return (statistics.median(near[at] / max(far[at], 1) for at in near),
            statistics.median(near[at] - far[at] for at in near))


def measure(case, seconds):
    """Of a load that everybody but the slow one has answered."""
    cpu_s = case.relay.metric("dispatcher", "process_cpu_seconds_total")
    load = case.load(rate=RATE, count=RATE * seconds).wait()
    others = [repo for repo in case.downstreams if repo != SLOW]
    case.wait("the others' dispatches", lambda: not [
        pair for pair in case.checker.look().open_dispatches() if pair[1] in others], 120)
    cpu_s = case.relay.metric("dispatcher", "process_cpu_seconds_total") - cpu_s
    p99, answers = windows_of(case, load, lambda repo: repo != SLOW), answers_of(load)
    return Measured(list(p99.values()), [p99[at] / max(answers[at], 1) for at in p99], *beside(case, load),
                    cpu_s / (RATE * seconds))


def run(world, short=False):
    plain_s, slow_s = (5, 25) if short else (PLAIN_S, SLOW_S)
    case = world.case("row-10").start()
    measure(case, plain_s)  # tokens, connections, caches
    before = measure(case, plain_s)
    case.relay.script({"method": "POST", "path": f"/repos/{SLOW}/dispatches", "delay_ms": 30000})
    meanwhile = measure(case, slow_s)
    late = sum(repo == SLOW for _, repo in case.checker.open_dispatches())
    case.relay.script({"clear": True})
    case.wait_done(120)
    after = measure(case, plain_s)
    during, plain = median("p99", meanwhile), median("p99", before, after)
    against = median("against_ingest", meanwhile) / median("against_ingest", before, after)
    cpu = meanwhile.cpu_s / statistics.mean([before.cpu_s, after.cpu_s])
    result = case.result(ROW, NAME, "30 s", done_s=120, note=(
        f"p99 of the others {median('p99', before):.0f} ms, {during:.0f} ms meanwhile, {median('p99', after):.0f} ms after: "
        f"{(against - 1) * 100:+.0f} % against ingest's answers at the same moment; of its neighbours "
        f"{(meanwhile.part - 1) * 100:+.0f} % against the other tiers; the dispatcher's CPU time {(cpu - 1) * 100:+.0f} %"))
    if during > plain * WORSE_MAX and during - plain > NOISE_MS and against > WORSE_MAX:
        result.problems.append(f"the others' p99 went from {plain:.0f} ms, before and after, to {during:.0f} ms, and ingest's "
                               "answers did not")
    worst, most = max(meanwhile.p99), max(before.p99 + after.p99)
    if worst > most + WORST_MS:
        result.problems.append(f"for {WINDOW_MS // 1000} s the others' p99 was {worst} ms, at most {most} ms before and after")
    if meanwhile.part > WORSE_MAX and meanwhile.more_ms > NOISE_MS:
        result.problems.append(f"its neighbours' p99 was {meanwhile.part:.2f} times that of the other tiers "
                               f"({meanwhile.more_ms:.0f} ms more)")
    if cpu > CPU_MAX:
        result.problems.append(f"the dispatcher took {cpu:.1f} times as much CPU time for each webhook")
    if late < RATE:
        result.problems.append(f"the fault was none: only {late} dispatches of {SLOW} were late")
    return result
