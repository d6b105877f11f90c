"""The invariant of README.md, checked over histories that nobody rewrites: what was sent and acknowledged
(sent.jsonl), what took effect at GitHub and what it got through (github.jsonl), and our topics. Knows nothing
of the relay's inside; can be run over the files of a run that is over."""
import collections
import datetime
import itertools
import json
import re

from history import Lines

# What ends a task without a dispatch, and says why.
TERMINAL = {"failed", "superseded", "skipped"}
# After these the first call may have worked.
RANK = {"in_progress": 1, "timed_out": 2, "completed": 3}
# Outcomes of calls that may have taken effect.
CALLS = {"dispatched", "unknown"}
# After these nothing is done for a task any more.
FINAL = TERMINAL | {"dispatched", "duplicate"}
KNOWN_MS, KNOWN_MAX_MS = 1000, 60_000  # from a call's effect until its outcome is known: by clocks of one machine
LATE_MS = 5000  # after Redis is back: calls that were begun without it
# What lies in the dead-letter queue from these is no task.
NO_TASKS = ("callbacks", "dispatches", "results", "reconcile", "allowlist")
TASK_TOPICS = tuple(f"dispatch.l{tier}" for tier in range(1, 5))
DELAY_TOPICS = tuple(f"delay.{wait}" for wait in ("10s", "1m", "10m", "1h"))
REPOS_MAX = 16  # downstreams of one record
POISON = "kind_of_poison"  # the header that row 13 gives what it writes: nobody's task
# Why a call may be the second one. Today's releases write only that it may be ("1", true).
REASONS = ("answer_unseen", "claim_expired", "no_claim")
NO_REASON, UNREPORTED = "no reason given", "the sender was killed"


def updated_at(body):
    """Of a pull request, as text that sorts; what has none is in the order of its offsets."""
    try:
        return json.loads(body)["pull_request"]["updated_at"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return ""


def at_ms(outcome):
    try:
        return datetime.datetime.fromisoformat(outcome["at"]).timestamp() * 1000
    except (KeyError, ValueError):
        return 0


def known_ms(outcome):
    """When the call's end was known; `at` is when it began."""
    if outcome.get("received_ms") and "latency_ms" in outcome:
        return outcome["received_ms"] + outcome["latency_ms"]
    return at_ms(outcome)


def origin(topic, headers):
    """The topic that a record is of: past the dead-letter queue, and past the delay topics."""
    topic = headers.get("source_topic", "") if topic == "dlq" else topic
    return headers.get("to_topic", "") if "delay." in topic else topic


def is_a_task(headers):
    """Whether it is a task, or the event of tasks, that was parked, not a callback, a result, …"""
    return not origin("dlq", headers).endswith(NO_TASKS)


def downstreams(headers):
    """Whom a record is for, in lower case: header `repos`, up to 16 of them; or `repo`, as it was
    before the router grouped them."""
    names = (headers.get("repos") or headers.get("repo") or "").lower().split(",")
    return [name.strip() for name in names if name.strip()]


def mark_of(value):
    """Why a call, or a task, may be the second one; None where it is not."""
    if value in (None, False, "", "0"):
        return None
    return NO_REASON if value in (True, "1") else value


def is_marked(outcome):
    return mark_of(outcome.get("maybe_duplicate")) is not None


class Findings:
    """What is wrong, by kind; each a list of texts."""

    KINDS = ("acknowledged but not stored", "lost", "second dispatch although the first was known",
             "more dispatches than marked ones", "dispatched and ended otherwise", "ended without a reason",
             "failed without a dead letter", "out of order", "superseded by nothing", "dispatch without a final outcome",
             "record names no downstream", "record names too many downstreams", "record under another key",
             "marked for no known reason", "callback lost in results", "callback lost in Redis", "state went back")

    def __init__(self):
        self.by_kind = {kind: [] for kind in self.KINDS}

    def add(self, kind, text):
        self.by_kind[kind].append(text)

    def problems(self):
        return [f"{len(texts)} × {kind}, such as {texts[0]}"
                for kind, texts in self.by_kind.items() if texts]


class Checker:
    """Reads on at each look(); the follower of each topic is given, so that dumps do as well."""

    def __init__(self, eligible, sent_file, github_file, topics, without_redis=(), senders_killed=False):
        self.without_redis = without_redis              # (from, until) in ms: what is unknown may follow a newer one then
        self.senders_killed = senders_killed            # twice in the same task, too: neither call is stored
        self.eligible = [repo.lower() for repo in eligible]
        self.sent, self.github = Lines(sent_file), Lines(github_file)
        self.topics = topics                           # name → object with read()
        self.attempts = {}                             # delivery → what was sent first
        self.acknowledged, self.stored = {}, {}        # delivery → what was sent; → (pr, position)
        self.seq = {}                                  # delivery → (updated_at, offset)
        self.event_keys = {}                           # delivery → key of its record in events
        self.dispatches = collections.defaultdict(list)  # (delivery, repo) → lines of github.jsonl
        self.calls = collections.defaultdict(list)     # (repo, pr) → deliveries in order of effect
        self.outcomes = collections.defaultdict(list)  # (delivery, repo) → outcomes
        self.parked = collections.defaultdict(list)    # (delivery, repo) → headers in the dlq; repo "": of an event
        self.dead = set()                              # of these the keys of tasks, and of events, which are for all
        self.tasks = set()                             # (delivery, repo) that a record of dispatch.* or delay.* names
        self.replays = collections.Counter()           # (delivery, repo) → how often it was put back from the dlq
        self.callbacks = {}                            # job → state that was answered with 2xx, or stored
        self.called_ms = {}                            # job → when its first callback that was answered with 2xx was sent
        self.refusals = []                             # callbacks that were answered with 4xx
        self.hud = collections.defaultdict(list)       # job → states that the HUD was sent, in order of arrival
        self.results, self.findings = {}, Findings()
        self.rows, self.last = collections.defaultdict(set), {}  # job key → rows so far; → rank of the last
        self.states = collections.defaultdict(collections.Counter)  # job → in how many rows of results it is in which state
        self.counts, self.late = collections.Counter(), []  # late: what followed a newer one without Redis

    # ---- reading on ---------------------------------------------------------------------------------
    def look(self):
        for line in self.sent.read():
            self.counts["sent"] += 1
            self.attempts.setdefault(line["delivery"], line)
            if line["status"] == 202:
                self.acknowledged.setdefault(line["delivery"], line)
        for line in self.github.read():
            getattr(self, "_" + line["kind"])(line)
        for name, read in (("events", self._event), ("callbacks", self._stored_callback), ("dispatches", self._outcome),
                           ("results", self._result), ("dlq", self._dead)):
            if name in self.topics:
                for record in self.topics[name].read():
                    read(*record)
        return self

    def _dispatch(self, line):
        key = line["delivery"], line["repo"].lower()
        self.dispatches[key].append(line)
        self.calls[line["repo"].lower(), line["pr"]].append(line["delivery"])

    def _callback(self, line):
        job = line["repo"].lower(), line["delivery_id"], str(line["run_id"]), line["job"]
        self.called_ms.setdefault(job, line.get("at_ms", 0))
        self._called_back(job, line["status"])

    def _stored_callback(self, key, value, headers, *_):
        """Stored counts as taken: who was answered 503 may have given up, and the record may be there all the same."""
        try:
            body = json.loads(value)
            workflow = body["workflow"]
            job = (headers["repo"].lower(), body["delivery_id"], str(workflow["run_id"]), workflow.get("job_name") or workflow["name"])
            self._called_back(job, workflow["status"])
            self.counts["stored callbacks"] += 1
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            self.counts["foreign records"] += 1

    def _called_back(self, job, status):
        self.callbacks[job] = max(self.callbacks.get(job, (0, "")), (RANK[status], status))

    def _refusal(self, line):
        self.refusals.append(line)

    def _hud(self, line):
        self.hud[line["repo"].lower(), line["delivery_id"], str(line["run_id"]), line["job"]].append(line["status"])

    def _event(self, key, value, headers, partition, offset):
        if headers.get("event") in ("pull_request", "push") and headers.get("delivery"):
            self.stored.setdefault(headers["delivery"], (headers.get("pr"), partition, offset))
            self.seq.setdefault(headers["delivery"], (updated_at(value), offset))
            self.event_keys.setdefault(headers["delivery"], key)

    def _outcome(self, key, value, headers, *_):
        try:
            outcome = json.loads(value)
            if outcome["kind"] == "dispatch":
                self.outcomes[outcome["delivery_id"], outcome["repo"].lower()].append(outcome)
                self._check_mark(outcome.get("maybe_duplicate"), f"{outcome['delivery_id']} for {outcome['repo']}")
        except (ValueError, KeyError, TypeError, RecursionError):
            self.counts["foreign records"] += 1

    def _dead(self, key, value, headers, *_):
        self.counts["dlq " + headers.get("class", "?")] += 1
        delivery, is_of = headers.get("delivery"), origin("dlq", headers)
        if "resolves" not in headers:
            self._check_record("dlq", key, headers)
        # An event is for all downstreams because it is one, never because a record names none.
        for repo in downstreams(headers) or [""]:
            if "resolves" in headers:  # what an operator did with a record of it
                self.replays[delivery, repo] += headers.get("class") == "replayed"
                continue
            self.parked[delivery, repo].append(headers)
            if is_of.endswith("events") or repo and is_of.endswith(TASK_TOPICS):
                self.dead.add((delivery, repo))

    def read_task(self, topic, key, headers):
        """A record of dispatch.* or delay.*, by its name without the prefix. Of a re-run nothing more
        is known here than that its record is well."""
        if not self._check_record(topic, key, headers) or headers.get("kind") != "dispatch":
            return
        self.tasks.update((headers.get("delivery"), repo) for repo in downstreams(headers))

    def _check_record(self, topic, key, headers):
        """Whether it is a task's, of ours, and for whom is known. One that names no downstream is an
        error, and never the whole event."""
        if POISON in headers or not origin(topic, headers).endswith(TASK_TOPICS):
            return False
        names, kind, where = downstreams(headers), headers.get("kind"), f"{headers.get('delivery')} in {topic}"
        if not names:
            self.findings.add("record names no downstream", where)
            return False
        if len(names) > (REPOS_MAX if kind == "dispatch" else 1):
            self.findings.add("record names too many downstreams", f"{where}: {kind} for {len(names)}")
        if kind == "dispatch" and (event_key := self.event_keys.get(headers.get("delivery"))) is not None:
            if key != (event_key if "repos" in headers else f"{headers.get('repo')}|{event_key}"):
                self.findings.add("record under another key", f"{where}: {key}")
        self._check_mark(headers.get("maybe_duplicate"), where)
        return True

    def _check_mark(self, value, where):
        if mark_of(value) not in (None, NO_REASON, *REASONS):
            self.findings.add("marked for no known reason", f"{where}: {value!r}")

    def _result(self, key, value, headers, *_):
        if value is None:
            return
        try:
            row = json.loads(value)
            if row["status"] not in RANK:
                return
        except (ValueError, KeyError, TypeError, RecursionError):
            self.counts["foreign records"] += 1
            return
        attempt = row.get("run_attempt")
        before = self.results.get(key)
        repeated = value in self.rows[key]
        job = (row["downstream_repo"].lower(), row["delivery_id"], str(row["run_id"]), row["job_name"])
        self.states[job][row["status"]] += not repeated
        self.counts["repeated rows"] += repeated
        self.rows[key].add(value)
        self.last[key] = RANK[row["status"]]
        if before and before[0] == attempt and RANK[row["status"]] < before[1]:
            if not repeated:  # the producer may write a batch twice: the same rows, in the same order
                self.findings.add("state went back", f"{key}: {row['status']} after rank {before[1]}")
            return
        self.results[key] = (attempt, RANK[row["status"]], job)

    # ---- how far it is ------------------------------------------------------------------------------
    def _ended(self, delivery, repo):
        """A dispatch, or a record that says why there is none."""
        key = delivery, repo
        return (key in self.dispatches or any(o["outcome"] in TERMINAL for o in self.outcomes[key])
                or key in self.dead or (delivery, "") in self.dead)

    def open_dispatches(self):
        """Of what is stored; and, once they were read, of what a task names."""
        wanted = [(d, r) for d in self.stored for r in self.eligible]
        return [key for key in wanted + sorted(self.tasks.difference(wanted)) if not self._ended(*key)]

    def open_callbacks(self):
        reached = {}
        for _, rank, job in self.results.values():
            reached[job] = max(rank, reached.get(job, 0))
        return [(job, state) for job, (rank, state) in self.callbacks.items()
                if reached.get(job, 0) < rank]

    def unreported(self):
        """Dispatches that are not over yet: no outcome names them, or one that is followed by another try."""
        return [key for key in self.dispatches if key not in self.dead and (key[0], "") not in self.dead
                and FINAL.isdisjoint(o["outcome"] for o in self.outcomes[key])]

    def waits_ms(self, since_ms=0):
        """(delivery, repo) → from the 202 to the first dispatch, of webhooks that were answered since then. Both by this machine's
        clock."""
        answered = {delivery: line["at_ms"] for delivery, line in self.acknowledged.items() if line["at_ms"] >= since_ms}
        return {key: lines[0]["at_ms"] - answered[key[0]] for key, lines in self.dispatches.items() if key[0] in answered}

    def given_up(self, deliveries=None):
        """What was parked, and what ended without a dispatch although nothing newer took its place; of these deliveries, or of all."""
        dead = [f"dlq {headers.get('class')}: {headers.get('error')}" for (delivery, _), all_of_it in self.parked.items()
                for headers in all_of_it if deliveries is None or delivery in deliveries]
        return dead + [f"{delivery} for {repo}: {o['outcome']}: {o.get('error')}"
                       for (delivery, repo), outcomes in self.outcomes.items() if (delivery, repo) not in self.dispatches
                       and (deliveries is None or delivery in deliveries)
                       for o in outcomes if o["outcome"] in ("failed", "skipped")]

    def is_done(self):
        return not (self.open_dispatches() or self.open_callbacks() or self.unreported())

    # ---- the verdict --------------------------------------------------------------------------------
    def unknown(self):
        """(delivery, repo) of which a call's end was not seen, as the relay itself counts them."""
        return {key for key, outcomes in self.outcomes.items()
                if any(o["outcome"] == "unknown" or is_marked(o) for o in outcomes)}

    def duplicates(self):
        return {key: len(lines) - 1 for key, lines in self.dispatches.items() if len(lines) > 1}

    def reasons(self):
        """Why each second call was made: reason → how many. Of a task's calls the last ones count, for
        of those that were not seen to work some had no effect."""
        found = collections.Counter()
        for key, extra in self.duplicates().items():
            calls = sorted((o for o in self.outcomes[key] if o["outcome"] in CALLS), key=at_ms)
            marks = [mark for o in calls if (mark := mark_of(o.get("maybe_duplicate")))][-extra:]
            found.update(marks + [UNREPORTED if self.senders_killed else NO_REASON] * (extra - len(marks)))
        return found

    def verdict(self, jobs_in_redis=None, tasks=()):
        """jobs_in_redis: job → state, or None where Redis is not looked at. tasks: the records of
        dispatch.* and delay.*, as (topic without its prefix, key, headers)."""
        found = self.findings
        for record in tasks:
            self.read_task(*record)
        for delivery in self.acknowledged:
            if delivery not in self.stored:
                found.add("acknowledged but not stored", delivery)
        for delivery, repo in self.open_dispatches():
            found.add("lost", f"{delivery} for {repo}")
        unknown = self.unknown()
        for key, extra in self.duplicates().items():
            if key not in unknown or self._was_known(key):
                found.add("second dispatch although the first was known", f"{key} {extra + 1} times")
            elif extra > self._accounted_for(key):
                found.add("more dispatches than marked ones", f"{key} {extra + 1} times")
        for job, state in self.open_callbacks():
            found.add("callback lost in results", f"{job} {state}")
        if jobs_in_redis is not None:
            for job, (rank, state) in self.callbacks.items():
                if RANK.get(jobs_in_redis.get(job), 0) < rank:
                    found.add("callback lost in Redis", f"{job} {state}")
        for key, (_, rank, _) in self.results.items():
            if self.last[key] < rank:
                found.add("state went back", f"{key}: the last row is not the furthest")
        for delivery, repo in self.unreported():
            found.add("dispatch without a final outcome", f"{delivery} for {repo}")
        self._check_ends(unknown)
        self._check_order(unknown)
        self._check_superseded()
        return found

    def _was_known(self, key):
        """Whether one call was known to have worked well before the next one. Redis, where that was stored, may have lost it."""
        known = [(at_ms(o), known_ms(o)) for o in self.outcomes[key] if o["outcome"] == "dispatched"]
        # What is further from a call is another's outcome, or by a clock that was set.
        return any(not self._without_redis(second) and any(
            began_ms - KNOWN_MS < first["at_ms"] < min(ended_ms, began_ms + KNOWN_MAX_MS) + KNOWN_MS
            and ended_ms < second["at_ms"] - KNOWN_MS for began_ms, ended_ms in known)
            for first, second in itertools.pairwise(self.dispatches[key]))

    def _accounted_for(self, key):
        """Dispatches beyond the first that there may be: each was marked. Only the first goes without a mark; where it has
        one, that pays for none."""
        calls = sorted((o for o in self.outcomes[key] if o["outcome"] in CALLS), key=at_ms)
        if not all(is_marked(o) for o in calls[1:]):
            return 0
        marked = sum(is_marked(o) for o in calls)
        unstored = max(0, len(self.dispatches[key]) - len(calls)) if self.senders_killed else 0  # nobody was left to store them
        if unstored:  # the first one may be among them
            unknown_first = calls and calls[0]["outcome"] == "unknown" and not is_marked(calls[0])
            return marked + unstored - (not unknown_first)
        return marked - (marked == len(calls))

    def _check_ends(self, unknown):
        """What was dispatched for certain has no other end but those that an operator resolved by a replay; and each end
        says why. Without Redis the twin of what was dispatched is superseded, where a newer one was called. What was
        overtaken while it waited, and is read again before the one that overtook it, is called and says so: in order
        (_check_order). Where the sender died before it could, a duplicate says so."""
        for key in self.dispatches.keys() - unknown:
            outcomes = [o["outcome"] for o in self.outcomes[key]]
            called = next((i for i, one in enumerate(outcomes) if one in CALLS or one == "duplicate"), -1)
            ends = [one for i, one in enumerate(outcomes) if one in TERMINAL
                    and not (one == "superseded" and (self.without_redis or i < called))]
            of_all = key[0], ""  # the event was parked
            parked = [one for at in (key, of_all) for one in self.parked.get(at, ()) if is_a_task(one)]
            replays = self.replays[key] + self.replays[of_all]
            if any(kind != "failed" for kind in ends) or max(len(ends), len(parked)) > replays:
                self.findings.add("dispatched and ended otherwise", f"{key}: {ends}, {[one.get('error') for one in parked]}")
        for key, outcomes in self.outcomes.items():
            for o in outcomes:
                if o["outcome"] in TERMINAL and not o.get("error"):
                    self.findings.add("ended without a reason", f"{key}: {o['outcome']}")
            ends = {o["outcome"] for o in outcomes}
            if "failed" in ends and key not in self.dispatches and key not in self.dead and (key[0], "") not in self.dead:
                self.findings.add("failed without a dead letter", f"{key}: {outcomes[-1].get('error')}")
        for key, parked in self.parked.items():
            for one in parked:
                if not (one.get("class") and one.get("error")):
                    self.findings.add("ended without a reason", f"{key} in the dlq: {one}")

    def superseded_twins(self):
        """(delivery, repo) that were dispatched although a twin was superseded, as may be without Redis: _check_ends."""
        return {key for key in self.dispatches if self.without_redis and any(o["outcome"] == "superseded" for o in self.outcomes[key])}

    def _check_superseded(self):
        """What is superseded, is so by a later event of its pull request that was called, or parked after a call."""
        latest = {}
        for delivery, repo in self.dispatches.keys() | self.parked.keys() | self.outcomes.keys():
            if delivery in self.stored and self._was_called(delivery, repo):
                pr = self.stored[delivery][0]
                latest[repo, pr] = max(latest.get((repo, pr), ("", -1)), self.seq[delivery])
        for (delivery, repo), outcomes in self.outcomes.items():
            if "superseded" in {o["outcome"] for o in outcomes} and delivery in self.stored:
                if latest.get((repo, self.stored[delivery][0]), ("", -1)) <= self.seq[delivery]:
                    self.findings.add("superseded by nothing", f"{delivery} for {repo}")

    def _was_called(self, delivery, repo):
        return (delivery, repo) in self.dispatches or (delivery, repo) in self.parked or any(
            o["outcome"] in ("dispatched", "unknown", "failed", "waiting") for o in self.outcomes[delivery, repo])

    def _without_redis(self, call):
        return any(since <= call["at_ms"] <= until + LATE_MS for since, until in self.without_redis)

    def _check_order(self, unknown):
        """Of one pull request and downstream, calls go out in the order of seq: when the pull request was updated, then
        offset. A repeat may come late; the first call only where Redis was unavailable, and as what may be a second one
        (dispatcher/README.md, without Redis)."""
        self.late, self.counts["repeats behind a newer call"] = [], 0
        for (repo, _), deliveries in self.calls.items():
            last, first = ("", -1), set()
            for delivery in deliveries:
                if delivery not in self.stored:
                    continue
                seq = self.seq[delivery]
                if delivery in first:
                    self.counts["repeats behind a newer call"] += seq < last
                    continue
                first.add(delivery)
                if seq < last and (delivery, repo) in unknown and self._without_redis(self.dispatches[delivery, repo][0]):
                    self.late.append((delivery, repo))
                elif seq < last:
                    self.findings.add("out of order", f"{delivery} for {repo}")
                last = max(last, seq)
