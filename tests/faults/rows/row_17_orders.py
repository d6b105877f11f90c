"""Label, dispatch outcome and callbacks of a pull request lie in different topics and partitions, and reach
different reporters. Every order of them must come to the same check runs."""
import collections
import hashlib
import itertools
import json
import random
import time

from lib.kafka import write_all
from lib.relay import pull_request

ROW, NAME = "17", "label, outcome, callbacks at 2 reporters in every order"
ALLOWLIST = b"L3:\n  npu: { org-x/l3: [alice] }\nL4: [org-x/l4]\n"
REPOS = {"org-x/l3": "L3", "org-x/l4": "L4"}
LABEL = "ciflow/crcr/npu"
ISSUER = "https://agent.buildkite.com"  # says itself when a run is complete
DONE_S = 240


class Story:
    """What happens to one pull request, fact by fact: one order of them for one downstream."""

    def __init__(self, number, repo, order, pending):
        self.number, self.repo, self.order, self.pending = number, repo, order, pending
        self.delivery = f"order-{number}"
        self.sha = hashlib.sha1(self.delivery.encode()).hexdigest()
        self.run_id = 1000 + number
        self.began_ms = int(time.time() * 1000) - 60_000

    def record(self, fact):
        """(topic, key, value, headers) as router, sender and ingest write them."""
        topic, key, value, headers = getattr(self, fact)()
        return topic, key, json.dumps(value).encode(), headers

    def labeled(self):
        body = pull_request(action="labeled", number=self.number, sha=self.sha, labels=[LABEL],
                            label={"name": LABEL})
        return "events", f"pytorch/pytorch#{self.number}", body, {
            "event": "pull_request", "action": "labeled", "delivery": f"label-{self.number}",
            "pr": str(self.number), "head_sha": self.sha, "received_ms": str(self.began_ms), "source": "webhook"}

    def dispatched(self):
        at = time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime(self.began_ms / 1000))
        return "dispatches", f"{self.delivery}/{self.repo}", {
            "delivery_id": self.delivery, "repo": self.repo, "tier": REPOS[self.repo], "kind": "dispatch",
            "event_type": "pull_request", "action": "synchronize", "pr_number": self.number,
            "head_sha": self.sha, "outcome": "dispatched", "http_status": 204, "attempt": 1, "latency_ms": 5,
            "error": None, "at": at, "maybe_duplicate": False, "received_ms": self.began_ms}, {
                "delivery": self.delivery, "repo": self.repo}

    def _callback(self, at_ms, status, job, **workflow):
        headers = {"repo": self.repo, "level": REPOS[self.repo], "issuer": ISSUER, "delivery": self.delivery,
                   "provenance": "pending" if self.pending else "token",
                   "received_ms": str(self.began_ms + at_ms)}
        if not self.pending:
            headers |= {"pr": str(self.number), "head_sha": self.sha, "dispatched_ms": str(self.began_ms)}
        return "callbacks", f"{self.delivery}/{self.repo}", {
            "event_type": "pull_request", "delivery_id": self.delivery, "payload": {},
            "workflow": {"schema_version": "1", "name": "ci", "run_id": self.run_id, "run_attempt": 1,
                         "job_name": job, "check_run_id": f"{self.run_id}-{job}", "status": status,
                         **workflow}}, headers

    def started(self):
        return self._callback(2_000, "in_progress", "build")

    def ended(self):
        return self._callback(9_000, "completed", "build", conclusion="success")

    def tested(self):
        return self._callback(12_000, "completed", "test", conclusion="failure", run_complete=True)

    def wanted(self):
        """(name, status, conclusion, external_id) of each check run that there should be."""
        of_a_job = f"{self.run_id}:{self.number}"
        wanted = collections.Counter({
            (f"crcr/{self.repo}/ci/build", "completed", "success", of_a_job): 1,
            (f"crcr/{self.repo}/ci/test", "completed", "failure", of_a_job): 1})
        if REPOS[self.repo] == "L4":
            wanted[f"crcr/{self.repo}", "completed", "failure", f"d:{self.delivery}:{self.number}"] = 1
        return wanted


KINDS = ("callback", "dispatch", "labels")  # of crcr_facts_total
REPORTERS = ("reporter1", "reporter2")
SHARED = 3 * 12  # partitions of the topics of these facts
FACTS = ("labeled", "dispatched", "started", "ended", "tested")


def stories(chance, first, pending, count):
    """One for each order (or for some of them), half of them at L3, half at L4; or, without a choice, at both."""
    orders = list(itertools.permutations(FACTS))
    chosen = chance.sample(orders, count) if count else orders
    return [Story(first + number, repo, order, pending)
            for number, (order, repo) in enumerate(itertools.product(chosen, REPOS))]


def put(case, stories_and_facts):
    """Each in its topic, in this order."""
    by_topic = collections.defaultdict(list)
    for story, fact in stories_and_facts:
        topic, key, value, headers = story.record(fact)
        by_topic[topic].append((key, value, headers, int(time.time() * 1000)))
    for topic, records in by_topic.items():
        write_all(case.kafka.brokers, case.relay.topic(topic), records)


def partitions(case, part):
    return case.relay.metric(part, "crcr_role_partitions", role="fold")


def folded(case):
    return not case.unread()["crcr-fold"]


def check_runs(case):
    """head_sha → how often there is each."""
    found = collections.defaultdict(collections.Counter)
    for run in case.relay.state()["check_runs"]:
        found[run["head_sha"]][run["name"], run["status"], run["conclusion"], run["external_id"]] += 1
    return found


def differing(case, all_stories):
    found = check_runs(case)
    return [(story, found[story.sha]) for story in all_stories if found[story.sha] != story.wanted()]


def never_apart(of_first):
    """Kinds of facts none of which is shown to have reached different reporters. of_first: kind → the part that the first reporter
    folded. Callbacks and outcomes of one dispatch have one key, labels another: these are apart as soon as either kind is
    shared."""
    shared = {kind for kind, part in of_first.items() if 0.02 < part < 0.98}
    return [f"{one} and {other}" for one, other in itertools.combinations(sorted(of_first), 2)
            if abs(of_first[one] - of_first[other]) < 0.02 and not ("label" in one + other and shared & {one, other})]


def run(world, short=False):
    chance = random.Random(f"{world.seed}.orders")
    case = world.case("row-17", downstreams=[])
    write_all(case.kafka.brokers, case.relay.topic("allowlist"), [
        ("allowlist", ALLOWLIST, {"source": "row 17", "sha": "0" * 40, "fetched_ms": "1"}, int(time.time() * 1000))])
    case.start("reporter1")
    case.start_part("reporter2")  # gets other partitions of one topic than of another: the first one keeps what it can
    case.relay.wait_ready("reporter2")
    case.wait("each to have half of them", lambda: {partitions(case, part) for part in REPORTERS} == {SHARED // 2})
    count = 24 if short else 0
    one_by_one = stories(chance, 1, False, count)
    at_once = stories(chance, 1001, False, count) + stories(chance, 2001, True, count)
    for place in range(len(FACTS)):  # each fact is folded before the next one is there
        put(case, [(story, story.order[place]) for story in one_by_one])
        case.wait("the facts to be folded", lambda: folded(case), DONE_S)
        case.say(f"row 17: {place + 1} of {len(FACTS)} facts")
    put(case, [(story, fact) for story in at_once for fact in story.order])  # these race
    every = one_by_one + at_once
    written = time.monotonic()
    while differing(case, every) and time.monotonic() < written + DONE_S:
        time.sleep(1)
    shown_s = time.monotonic() - written
    case.wait("the facts to be folded", lambda: folded(case), DONE_S)
    unread = case.read_to_the_end()  # a check run that is made twice may be made late
    wrong = differing(case, every)
    shares = [case.relay.metric(part, "crcr_facts_total") for part in REPORTERS]
    folded_by = {kind: [case.relay.metric(part, "crcr_facts_total", kind=kind) for part in REPORTERS]
                 for kind in KINDS}
    of_first = {kind: first / (first + second) for kind, (first, second) in folded_by.items()}
    made = sum(sum(runs.values()) for runs in check_runs(case).values())
    result = case.result(ROW, NAME, f"{len(every)} orders of {len(FACTS)} facts", recovery_s=shown_s, note=(
        f"{made} check runs, each once; facts folded by each reporter: {shares[0]:.0f}, {shares[1]:.0f}; "
        "by the first " + ", ".join(f"{100 * part:.0f} % of {kind}" for kind, part in of_first.items())))
    result.events = len(every) * len(FACTS)
    result.problems += unread
    for story, runs in wrong[:5]:
        result.problems.append(f"{story.repo}, {'pending, ' if story.pending else ''}{' '.join(story.order)}: "
                               f"{sorted(map(str, runs.items()))}")
    if len(wrong) > 5:
        result.problems.append(f"… and {len(wrong) - 5} orders more")
    result.problems += [f"never at different reporters: {kinds} ({of_first})" for kinds in never_apart(of_first)]
    if dead := {kind: n for kind, n in case.checker.counts.items() if kind.startswith("dlq")}:
        result.problems.append(f"in the DLQ: {dead}")
    return result
