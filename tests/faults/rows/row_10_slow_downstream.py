"""One downstream's GitHub answers in 30 s; the others must not notice."""

ROW, NAME = "10", "one downstream answers in 30 s"
SLOW = "org-l/backend"
WORSE_MAX = 1.10


def p99_ms(case, load):
    """From a webhook of that load to its dispatch, of the other downstreams."""
    sent = load.sent_ms
    took = sorted(lines[0]["at_ms"] - sent[delivery]
                  for (delivery, repo), lines in case.checker.dispatches.items()
                  if delivery in sent and repo != SLOW)
    return took[len(took) * 99 // 100]


def run(world, short=False):
    events = 300 if short else 1500
    case = world.case("row-10").start()
    case.load(rate=25, count=50).wait()  # tokens, connections
    plain = case.load(rate=25, count=events).wait()
    case.settle(120)
    before = p99_ms(case, plain)
    case.relay.script({"method": "POST", "path": f"/repos/{SLOW}/dispatches", "delay_ms": 30000})
    slow = case.load(rate=25, count=events).wait()
    others = [repo for repo in case.downstreams if repo != SLOW]
    case.wait("the others' dispatches", lambda: not [
        pair for pair in case.checker.look().open_dispatches() if pair[1] in others], 120)
    during = p99_ms(case, slow)
    case.relay.script({"clear": True})
    result = case.result(ROW, NAME, "30 s", note=f"p99 of the others {before} ms → {during} ms", settle_s=400)
    if during > before * WORSE_MAX and during - before > 20:  # below that it is this machine's noise
        result.problems.append(f"the others' p99 went from {before} ms to {during} ms")
    return result
