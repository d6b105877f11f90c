"""One downstream's GitHub answers in 30 s; the others must not notice. Measured before, during and after it in one run, so that
what the machine does meanwhile is seen."""
import collections
import statistics

ROW, NAME = "10", "one downstream answers in 30 s"
SLOW = "org-l/backend"
WORSE_MAX, NOISE_MS = 1.10, 20
RATE = 25
WINDOW_MS = 5000
PLAIN_S, SLOW_S = 15, 30  # the first calls run into their time-out after 20 s, then the breaker opens


def p99_ms(case, load):
    """From a webhook of that load to its dispatch, of the other downstreams: the median of the p99 of each 5 s. A hiccup
    of the machine spoils one window; a slow neighbour all of them."""
    sent = load.sent_ms
    windows = collections.defaultdict(list)
    for (delivery, repo), lines in case.checker.dispatches.items():
        if delivery in sent and repo != SLOW:
            windows[sent[delivery] // WINDOW_MS].append(lines[0]["at_ms"] - sent[delivery])
    return int(statistics.median(sorted(took)[len(took) * 99 // 100] for took in windows.values()))


def measure(case, seconds):
    """That p99, of a load that everybody but the slow one has answered."""
    load = case.load(rate=RATE, count=RATE * seconds).wait()
    others = [repo for repo in case.downstreams if repo != SLOW]
    case.wait("the others' dispatches", lambda: not [
        pair for pair in case.checker.look().open_dispatches() if pair[1] in others], 120)
    return p99_ms(case, load)


def run(world, short=False):
    plain_s, slow_s = (5, 25) if short else (PLAIN_S, SLOW_S)
    case = world.case("row-10").start()
    case.load(rate=RATE, count=50).wait()  # tokens, connections
    case.settle(60)
    before = measure(case, plain_s)
    case.relay.script({"method": "POST", "path": f"/repos/{SLOW}/dispatches", "delay_ms": 30000})
    during = measure(case, slow_s)
    late = sum(repo == SLOW for _, repo in case.checker.open_dispatches())
    case.relay.script({"clear": True})
    case.settle(120)
    after = measure(case, plain_s)
    result = case.result(ROW, NAME, "30 s", note=f"p99 of the others {before} ms, {during} ms meanwhile, {after} ms after",
                         settle_s=120)
    plain = max(before, after)
    if during > plain * WORSE_MAX and during - plain > NOISE_MS:
        result.problems.append(f"the others' p99 went from {before} ms to {during} ms, and back to {after} ms")
    if late < RATE:
        result.problems.append(f"the fault was none: only {late} dispatches of {SLOW} were late")
    return result
