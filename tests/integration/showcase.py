"""A relay in which something of everything goes wrong, for people and tests to look at: deploy/hud/screenshots takes its pictures,
test_pages_look.py measures its pages. Everything is made up; what the dispatcher would write is written here."""
import collections
import contextlib
import hashlib
import json
import signal
import time

from confluent_kafka import Consumer, TopicPartition

from lib.kafka import write_all
from lib.processes import wait_for
from lib.relay import pull_request
from test_reporter import Job
from test_reporter_hours import Counting

ALLOWLIST = b"""\
L1: [corvus/torch-corvus]
L2: [pavo-chips/torch-pavo, indus-hardware/pytorch-indus, pytorch/crcr-test]
L3:
  npu: { draco-silicon/torch-draco: [erin] }
L4: [{ vega-compute/pytorch-vega: carol }, { lyra-systems/torch-lyra: dave }, { orion-semi/pytorch-orion: [frank, grace] }]
"""
CORVUS, PAVO, INDUS, DRACO, VEGA, LYRA, ORION = (
    "corvus/torch-corvus", "pavo-chips/torch-pavo", "indus-hardware/pytorch-indus", "draco-silicon/torch-draco",
    "vega-compute/pytorch-vega", "lyra-systems/torch-lyra", "orion-semi/pytorch-orion")
CANARY = "pytorch/crcr-test"
LEVELS = {CORVUS: "L1", PAVO: "L2", INDUS: "L2", DRACO: "L3", VEGA: "L4", LYRA: "L4", ORION: "L4", CANARY: "L2"}
ACTIONS, BUILDKITE = "https://token.actions.githubusercontent.com", "https://agent.buildkite.com"
GONE = "404 Not Found: the app is not installed there, or the repository is gone"
BREAKER = "the downstream failed again and again: its breaker is open"  # dispatcher/dispatch_decide.c
MINUTE, HOUR, DAY = 60, 3600, 86400
SHARDS = {"default": 6, "distributed": 4, "inductor": 6, "dynamo_wrapped": 5, "slow": 4, "onnx": 2, "jit_legacy": 2, "benchmark": 4}
NAMES = ["build", "build-wheels", "docs", "lint", "smoke", "perf"] + [
    f"test ({name}, {i + 1}, {n})" for name, n in SHARDS.items() for i in range(n)]  # 39
ON_MAIN, FLAKY, OTHERS, HERE = "test (default, 3, 6)", "test (distributed, 2, 4)", "test (inductor, 5, 6)", "test (onnx, 1, 2)"
PULLS = [("Fix the stride check of scaled_mm for transposed inputs", "nwalker"), ("Bump the submodule of fbgemm", "pytorchbot"),
         ("[dynamo] Guard on the dtype of optimizer states", "mlechner"), ("Support out= in torch.special.zeta", "akimura"),
         ("[inductor] Fuse a reduction with the pointwise epilogue behind it when both read the same buffer", "jdoe"),
         ("Remove a deprecated overload of torch.cholesky", "nwalker"), ("Make DataLoader workers inherit the log level", "sanne"),
         ("[c10d] Time out a barrier that a rank has left", "okoro"), ("Document the rounding of torch.round(decimals=)", "akimura"),
         ("[export] Keep names of symbols across decompositions", "mlechner"), ("Speed up TensorIterator for small tensors", "jdoe"),
         ("[MPS] Do not copy a tensor that is contiguous already", "sanne")]
FIRST, MAIN_PR, HELD_PR = 171300, 171320, 171330  # numbers of pull requests


class Batch:
    """Records that are written together; in the place of a reporter."""

    def __init__(self):
        self.records = collections.defaultdict(list)

    def put(self, topic, key, value, headers=None, **_):
        self.records[topic].append((key, value if isinstance(value, bytes) else json.dumps(value).encode(), headers or {}, 0))

    def send(self, relay):
        for topic in ("events", "dispatches", "callbacks", "dlq"):
            write_all(relay.kafka, relay.topic(topic), self.records.pop(topic, []))


def sha_of(text):
    return hashlib.sha1(text.encode()).hexdigest()


class Run(Job):
    """The jobs of one backend for one delivery; its times are in seconds from when GitHub sent the event."""

    def __init__(self, batch, repo, pr, ago, event_type="pull_request", delivery=None, sha=None, issuer=ACTIONS):
        super().__init__(batch, repo, LEVELS[repo], pr, issuer, name="linux")
        number = self.workflow["run_id"]
        self.workflow["url"] = f"https://github.com/{repo}/actions/runs/{number}" if issuer == ACTIONS else f"https://buildkite.com/vega/pytorch/builds/{number}"
        self.event_type = event_type
        self.started_ms = int((time.time() - ago) * 1000)
        self.sha = sha or sha_of(f"{repo} {pr} {ago}")
        self.delivery = delivery or "-".join((sha_of(self.sha)[:8], "4a7b", "11f1", "8b80", sha_of(self.sha)[8:20]))

    def sent(self, outcome="dispatched", at=1, **fields):
        return self.outcome(outcome, at * 1000, event_type=self.event_type, action="synchronize", received_ms=self.started_ms, **fields)

    def job(self, name, at=90, took=None, conclusion="success", attempt=1, **more):
        mine = {"job_name": name, "run_attempt": attempt, "check_run_id": f"{self.workflow['run_id']}{NAMES.index(name) if name in NAMES else name}{attempt}"}
        self.call("in_progress", at * 1000, **mine)
        if took is not None:
            self.call("completed", (at + took) * 1000, conclusion=conclusion, **mine, **more)
        return self


def took(name, salt=0):
    """Seconds; much alike each time."""
    return 240 + 6 * int(sha_of(name)[:2], 16) + int(sha_of(f"{name} {salt}")[:2], 16)


class Showcase(Counting):
    """fill() once; then paths has the address of each page."""

    def __init__(self, folder, brokers):
        super().__init__(folder, brokers)
        self.batch, self.paths = Batch(), {}
        self.put("allowlist", "allowlist", ALLOWLIST, {"source": "test", "sha": sha_of("allowlist"), "fetched_ms": str(int((time.time() - 40 * DAY) * 1000))})

    def start(self, **environment):
        super().start(CRCR_RUN_QUIET_SECONDS="3", **environment)

    def fill(self):
        self.history()
        self.main_branch()
        self.batch.send(self.relay)
        self.pull_request()
        self.dead_letters()
        self.canary()
        self.batch.send(self.relay)
        self.idle("crcr-router", "events", 0)
        self.waiting()
        now = time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime())
        self.redis.client(self.relay.prefix).hset("crcr:allowlist", "fetched_at", now)
        wait_for("the failing pull request", lambda: self.check(VEGA, self.main).get("status") == "completed", 120)
        self.count()
        self.hold_up()
        wait_for("the canary's card", lambda: self.relay.api("/api/crcr/health")["canary"], 100)  # looked at once a minute
        self.paths = {
            "home": "/", "prs": "/prs", "pr": f"/pr/{MAIN_PR}", "delivery": f"/delivery/{self.main}", "held": f"/delivery/{self.held}",
            "repo": f"/repo/{VEGA}", "dead": f"/repo/{ORION}", "since": f"/repo/{VEGA}/since", "metrics-board": "/metrics-board?runs=pull_requests",
            "pipeline": "/pipeline"}
        return self

    def check(self, repo, delivery):
        """Its check run as the pages have it."""
        rows = (self.relay.api(f"/api/crcr/deliveries/{delivery}") or {"downstreams": []})["downstreams"]
        return next((row["check_run"] or {} for row in rows if row["repo"] == repo), {})

    def event(self, run, title, author, labels=(), action="synchronize"):
        at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(run.started_ms / 1000))
        body = pull_request(action=action, number=run.pr, sha=run.sha, labels=labels, updated_at=at)
        body["pull_request"] |= {"title": title, "user": {"login": author}}
        self.batch.put("events", f"pytorch/pytorch#{run.pr}", body, {
            "event": "pull_request", "action": action, "delivery": run.delivery, "pr": str(run.pr), "head_sha": run.sha,
            "received_ms": str(run.started_ms), "source": "webhook"})

    # ---- what was ------------------------------------------------------------------------------------

    def history(self):
        """Twelve commits of four days, of which Vega ran 39 jobs; months of the others."""
        for i, (title, author) in enumerate(PULLS):
            ago = 4 * DAY - i * 8 * HOUR + 900
            run = Run(self.batch, VEGA, FIRST + i, ago).sent()
            self.event(run, title, author, action="opened")
            for name in (one for one in NAMES if one != FLAKY or i != 8):
                bad = (name == OTHERS and i in (9, 10, 11)) or int(sha_of(f"{name} {i}")[:2], 16) < 4
                run.job(name, took=took(name, i), conclusion="failure" if bad else "success", test_results={"passed": 812, "failed": 3 if bad else 0, "skipped": 31})
            if i == 8:
                run.job(FLAKY, took=900, conclusion="failure").job(FLAKY, at=1200, took=900, attempt=2)
            for repo in (DRACO, PAVO, CORVUS):
                other = Run(self.batch, repo, run.pr, ago, delivery=run.delivery, sha=run.sha).sent()
                if repo != CORVUS:
                    for name in NAMES[:4]:
                        other.job(name, at=200, took=took(name, repo), conclusion="failure" if repo == PAVO and i % 3 == 0 and name != "lint" else "success")
            if i >= 6:
                Run(self.batch, ORION, run.pr, ago, delivery=run.delivery, sha=run.sha).sent("failed", http_status=404, error=GONE)
        for repo, gone in ((ORION, 2), (LYRA, 0.15), (DRACO, 4.5), (PAVO, 4.5)):
            for i in range(20):
                run = Run(self.batch, repo, 170900 + i, (gone + i) * DAY + 3 * HOUR).sent()
                for name in NAMES[:6]:
                    bad = int(sha_of(f"{repo} {name} {i}")[:2], 16) < {PAVO: 50, LYRA: 20}.get(repo, 6)
                    run.job(name, at=120 + 30 * i, took=took(name, i), conclusion="failure" if bad else "success")
        for repo in (VEGA, PAVO):
            for day in range(6):
                run = Run(self.batch, repo, 0, day * DAY + 9 * HOUR, "nightly")
                for name in NAMES[:8]:
                    bad = repo == PAVO and name == "perf"
                    self.nightly(run, name, "failure" if bad else "success")

    def nightly(self, run, name, conclusion):
        """As its own CI reports it: it claims the commit."""
        ms = run.started_ms + 1000 * took(name)
        iso = [time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(at / 1000)) for at in (run.started_ms, ms)]
        self.batch.put("callbacks", f"{run.delivery}/{run.repo}", {
            "event_type": "nightly", "delivery_id": run.delivery, "payload": {"head_sha": run.sha},
            "workflow": {**run.workflow, "name": "nightly", "job_name": name, "check_run_id": f"n{NAMES.index(name)}", "status": "completed",
                         "conclusion": conclusion, "started_at": iso[0], "completed_at": iso[1]}},
            {"repo": run.repo, "level": run.level, "issuer": ACTIONS, "provenance": "self", "delivery": run.delivery, "head_sha": run.sha, "received_ms": str(ms)})

    def main_branch(self):
        """Six commits; a job of Vega's fails from the fourth on."""
        shas, now = [sha_of(f"main {i}") for i in range(6)], time.time()
        self.batch.put("events", "pytorch/pytorch@refs/heads/main", {
            "ref": "refs/heads/main", "before": "0" * 40, "after": shas[-1],
            "commits": [{"id": sha, "message": f"{PULLS[i][0]} (#{FIRST - 60 + i})\n\nmore"} for i, sha in enumerate(shas)],
            "repository": {"full_name": "pytorch/pytorch", "default_branch": "main", "pushed_at": int(now - 7 * HOUR)}},
            {"event": "push", "delivery": "push-1", "head_sha": shas[-1], "received_ms": str(int((now - 7 * HOUR) * 1000)), "source": "webhook"})
        for i, sha in enumerate(shas):
            run = Run(self.batch, VEGA, 0, 7 * HOUR - i * 1800, "push", sha=sha)
            for name in (ON_MAIN, "build", "lint"):
                run.job(name, took=took(name, i), conclusion="failure" if name == ON_MAIN and i >= 3 else "success")

    # ---- what is -------------------------------------------------------------------------------------

    def pull_request(self):
        """One of which each backend says something else."""
        ago = 50 * MINUTE
        run = Run(self.batch, VEGA, MAIN_PR, ago, issuer=BUILDKITE).sent(at=2)
        self.main = run.delivery
        self.event(run, "[inductor] Do not reorder a collective across a wait that another stream reads", "nwalker", ["ciflow/crcr/npu"], "opened")
        broken = {ON_MAIN, FLAKY, OTHERS, HERE}
        for name in NAMES:
            if name not in broken:
                run.job(name, took=took(name), test_results={"passed": 1280, "failed": 0, "skipped": 12})
        detail = [{"name": f"test_{op}_cpu_float{bits}", "classname": "TestOnnxExport", "message": f"AssertionError: Tensor-likes are not close! Greatest difference: 0.0{bits}"}
                  for op in ("conv", "pool", "norm", "attention") for bits in (16, 32)]
        verdict = {"schema_version": "1", "category": "upstream", "confidence": "high", "summary": "the export of attention changed its layout",
                   "suspected_upstream": {"pr": MAIN_PR - 63, "commit": sha_of("main 3"), "reason": "it is the only change of the exporter since the last green run"},
                   "evidence": [{"job": HERE, "test": "test_attention_cpu_float16", "excerpt": "Greatest absolute difference: 0.016 at index (3, 7)", "log_url": "https://example.org/log"}]}
        for name in sorted(broken):
            here = name == HERE
            run.job(name, took=took(name), conclusion="failure", test_results={"passed": 640, "failed": 40 if here else 1, "skipped": 8},
                    failed_tests_detail=detail if here else [{"name": "test_all_reduce", "classname": "TestDistributed", "message": "RuntimeError: timed out after 300 s"}],
                    **({"triage_verdict": verdict, "environment": "vega2, driver 5.1, Ubuntu 24.04", "run_complete": True} if here else {}))
        def beside(repo):
            return Run(self.batch, repo, MAIN_PR, ago, delivery=run.delivery, sha=run.sha)
        draco = beside(DRACO).sent().job("build", took=300).job("smoke", at=420, took=400, conclusion="failure", test_results={"passed": 30, "failed": 2, "skipped": 0},
                                                                 failed_tests_detail=detail[:2])
        draco.job("smoke", at=1200, took=380, attempt=2, test_results={"passed": 32, "failed": 0, "skipped": 0})
        beside(PAVO).sent().job("build", took=700).job("smoke", at=900)
        beside(CORVUS).sent()
        beside(ORION).sent("failed", http_status=404, error=GONE)
        beside(LYRA).sent("waiting", at=4, http_status=None, reason="breaker", error=BREAKER, next_ms=int(time.time() * 1000) + 8 * MINUTE * 1000)

    def dead_letters(self):
        now, prefix = int(time.time() * 1000), self.relay.prefix
        for i in range(12):
            self.batch.put("dlq", f"dead-{i}/{ORION}", b"{}", {"class": "refused", "source_topic": f"{prefix}dispatch.l4", "repos": ORION, "delivery": sha_of(f"dead {i}")[:32],
                                                               "error": f"404 Not Found, request {4100 + i}", "parked_ms": str(now - i * 3_600_000)})
        self.batch.put("dlq", "poison", b"{", {"class": "poison", "source_topic": f"{prefix}callbacks", "error": "not JSON: unexpected end at byte 1", "parked_ms": str(now - 7_200_000)})
        self.batch.put("dlq", "row", b"{}", {"class": "exhausted", "source_topic": f"{prefix}results", "repos": PAVO, "delivery": sha_of("row")[:32],
                                             "error": "the HUD answered 500", "parked_ms": str(now - 9_000_000)})

    def canary(self):
        run = Run(self.batch, CANARY, MAIN_PR - 4, 3 * HOUR).sent()
        run.job("l2-pass", took=200).job("l2-xfail", took=220, conclusion="failure")

    def idle(self, group, topic, left):
        """As if the dispatcher had read all but so much."""
        topic = self.relay.topic(topic)
        consumer = Consumer({"bootstrap.servers": self.relay.kafka, "group.id": self.relay.group(group), "enable.auto.commit": False})
        parts = [TopicPartition(topic, number) for number in consumer.list_topics(topic, 10).topics[topic].partitions]
        consumer.commit(offsets=[TopicPartition(topic, one.partition, max(0, consumer.get_watermark_offsets(one, 10)[1] - left)) for one in parts], asynchronous=False)
        consumer.close()

    def waiting(self):
        """Two tasks of L4, of 40 s ago: a warning."""
        for i in range(2):
            self.put("dispatch.l4", f"waits-{i}", b"{}", {"delivery": self.main, "repos": f"{VEGA},{LYRA}", "attempt": "2"}, timestamp_ms=int(time.time() * 1000) - 40_000)

    def hold_up(self):
        """The budget for GitHub is used up; gives one delivery whose check run waits for it."""
        self.relay.parts["reporter"].stop()
        self.start(CRCR_BUDGET_CONTENT_HOUR="8", CRCR_BUDGET_CONTENT_MINUTE="4")
        runs = [Run(self.batch, VEGA, HELD_PR + i, 5 * MINUTE - i).sent() for i in range(6)]
        for run, (title, author) in zip(runs, PULLS):
            self.event(run, title, author, action="opened")
            Run(self.batch, LYRA, run.pr, 5 * MINUTE, delivery=run.delivery, sha=run.sha).sent("waiting", http_status=502, reason="breaker", error=BREAKER, attempt=2)
        self.batch.send(self.relay)
        self.idle("crcr-router", "events", 0)
        self.held = wait_for("one to be held", lambda: next((one.delivery for one in runs if self.check(VEGA, one.delivery).get("absent") == "budget"), None))

    @contextlib.contextmanager
    def without_redis(self):
        self.redis.process.signal(signal.SIGSTOP)
        try:
            wait_for("the pages to know", lambda: self.relay.api("/api/crcr/health")["redis"]["error"])
            yield
        finally:
            self.redis.process.signal(signal.SIGCONT)
        wait_for("Redis to be back", lambda: self.relay.api("/api/crcr/health")["redis"]["error"] is None)
