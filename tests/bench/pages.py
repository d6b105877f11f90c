"""500 open pages, as browsers keep them (live requests), while callbacks are folded: what they cost the process
that serves them, how soon they have the news, and what else waits for Redis meanwhile."""
import asyncio
import json
import random
import statistics
import threading
import time
import urllib.parse

from confluent_kafka import Producer

from lib.processes import wait_for
from setting import Cpu, Row

REPOS, PRS, JOBS = 20, 50, 2        # so many jobs of each back end in each pull request
ON_HOME, ON_PR, ON_REPO = 100, 6, 5  # readers of the first page, of each pull request, of each back end
PAGES = ON_HOME + ON_PR * PRS + ON_REPO * REPOS
RATE = 20                           # callbacks/s while they read
SECONDS = 30
BAR = 0.05                          # of a core


def measure(setting, _):
    repos = [f"bench/r{i}" for i in range(REPOS)]
    relay = setting.relay(f"L2: [{', '.join(repos)}]\n")
    setting.publish_allowlist(relay)
    feed = Feed(setting, relay, repos)
    for pr in range(PRS):
        for repo in repos:
            for job in range(JOBS):
                feed.put(pr, repo, job, 1)
    feed.flush()
    relay.start("reporter", CRCR_ROLES="fold")
    wait_for("all callbacks to be folded", lambda: relay.metric("reporter", "crcr_facts_total", kind="callback") >= feed.sent, 300)
    web = relay.start("reporter", "pages", CRCR_ROLES="web")
    relay.wait_ready("pages")
    redis = setting.redis.client()
    readers = Readers(relay, feed, repos)
    readers.start()
    wait_for("all pages to be open", lambda: relay.metric("pages", "crcr_pages_waiting") >= PAGES * 0.95, 60)
    quiet, alone = feed.run(0, redis, web.pid)
    readers.changed, readers.news = 0, []
    busy, beside = feed.run(RATE, redis, web.pid)
    readers.stop()
    unread, without = feed.run(RATE, redis, web.pid)
    relay.stop()
    news = readers.news or [0]
    what = f"{PAGES} pages of {1 + PRS + REPOS}"
    return [
        Row(f"pages: {what}, {RATE} callbacks/s: CPU for the pages", "< 5 % of a core",
            f"{busy - unread:.1%}: {busy:.1%} in all, {unread:.1%} with no page open, {quiet:.1%} with nothing folded "
            f"({readers.changed / SECONDS:.0f} pages/s had news)", busy - unread < BAR),
        Row("pages: from the callback to the page that shows it", "",
            f"p50 {statistics.median(news):.1f} s, p99 {quantile(news, 0.99):.1f} s"),
        Row("pages: Redis answers a script, no page open / 500, quiet / 500, folded", "",
            " / ".join(f"p50 {quantile(one, 0.5):.2f}, p99 {quantile(one, 0.99):.2f} ms" for one in (without, alone, beside))),
    ]


def quantile(values, q):
    return sorted(values)[min(len(values) - 1, int(len(values) * q))]


class Feed:
    """Callbacks of real jobs, written as ingest does."""

    def __init__(self, setting, relay, repos):
        self.topic, self.repos, self.sent = relay.topic("callbacks"), repos, 0
        self.payload = setting.bodies.read_text().split("\n", 1)[0]
        self.producer = Producer({"bootstrap.servers": setting.kafka.brokers, "linger.ms": 5, "partitioner": "murmur2_random"})
        self.written = {}  # pull request: when its last callback was

    def put(self, pr, repo, job, attempt, **workflow):
        delivery, now_ms = f"pages-{pr}", int(time.time() * 1000)
        head = {"event_type": "pull_request", "delivery_id": delivery}
        workflow = {"schema_version": "1", "status": "completed", "conclusion": "success", "name": "ci", "job_name": f"build-{job}",
                    "run_id": pr + 1, "run_attempt": attempt, "url": f"https://github.com/{repo}/actions/runs/1",
                    "test_results": {"passed": 9, "failed": 0, "skipped": 1}, **workflow}
        value = json.dumps(head)[:-1] + ',"payload":' + self.payload + ',"workflow":' + json.dumps(workflow) + "}"
        headers = {"repo": repo, "level": "L2", "issuer": "bench", "provenance": "token", "delivery": delivery, "pr": str(pr + 1),
                   "head_sha": f"{pr:040x}", "dispatched_ms": str(now_ms - 5000), "received_ms": str(now_ms)}
        while True:
            try:
                self.producer.produce(self.topic, value.encode(), f"{delivery}/{repo}", headers=list(headers.items()))
                break
            except BufferError:
                self.producer.poll(0.1)
        self.sent += 1
        self.written[pr + 1] = time.monotonic()

    def flush(self):
        assert self.producer.flush(60) == 0

    def run(self, rate, redis, pid):
        """(share of a core that pid used, ms that Redis took for a script as short as a claim's)."""
        script = redis.register_script("return redis.call('SET', KEYS[1], ARGV[1], 'PX', 1000)")
        chance, asked, put, began = random.Random(1), [], 0, time.monotonic()
        with Cpu(pid) as cpu:
            while (passed := time.monotonic() - began) < SECONDS:
                if put < rate * passed:
                    self.put(chance.randrange(PRS), chance.choice(self.repos), chance.randrange(JOBS), 2 + int(passed))
                    self.producer.poll(0)
                    put += 1
                at = time.perf_counter()
                script(keys=["bench:claim"], args=["1"])
                asked.append((time.perf_counter() - at) * 1000)
                time.sleep(0.01)
        return cpu.us[0] / 1e6 / SECONDS, asked


class Readers:
    """Browsers, as live.js makes them behave: what a page is made of, a live request for all of that, and after each
    event all of it again."""

    def __init__(self, relay, feed, repos):
        self.host, self.port = "127.0.0.1", relay.ports["hud"]
        self.pages = ([["/api/crcr/summary?days=7", "/api/crcr/health"]] * ON_HOME +
                      [[f"/api/crcr/prs/{pr + 1}", f"/api/crcr/deliveries/pages-{pr}"] for pr in range(PRS)] * ON_PR +
                      [[f"/api/crcr/repos/{repo}{part}" for part in ("", "/trends?days=7", "/level", "/since")] for repo in repos] * ON_REPO)
        self.feed, self.news, self.changed = feed, [], 0
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self.loop.run_forever, daemon=True)

    def start(self):
        self.thread.start()
        self.tasks = [asyncio.run_coroutine_threadsafe(self.page(paths), self.loop) for paths in self.pages]

    def stop(self):
        for task in self.tasks:
            task.cancel()
        time.sleep(0.5)
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join()

    async def page(self, paths):
        await asyncio.sleep(random.random() * 5)
        reader, writer = await asyncio.open_connection(self.host, self.port)
        pr = int(paths[0].rsplit("/", 1)[1]) if "/prs/" in paths[0] else None
        of = "&".join(f"of={urllib.parse.quote(path, safe='')}" for path in paths)
        etags = [(await self.get(reader, writer, path))[1] for path in paths]
        while True:
            known = ".".join(etag.strip('"') for etag in etags)
            _, _, body = await self.get(reader, writer, f"/api/crcr/live?{of}&etag={known}")
            if b"changed\ndata" in body:
                await asyncio.sleep(random.random() * 0.5)
                for i, path in enumerate(paths):
                    status, etags[i], _ = await self.get(reader, writer, path, etags[i])
                    if status == 200 and i == 0:
                        self.changed += 1
                        if pr in self.feed.written:
                            self.news.append(time.monotonic() - self.feed.written[pr])
            await asyncio.sleep(0.5)

    async def get(self, reader, writer, path, etag=""):
        writer.write(f"GET {path} HTTP/1.1\r\nHost: {self.host}\r\nIf-None-Match: {etag or '-'}\r\n\r\n".encode())
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        lines = dict(line.split(": ", 1) for line in head.split("\r\n")[1:] if ": " in line)
        body = await reader.readexactly(int(lines.get("Content-Length", 0)))
        return int(head.split(" ", 2)[1]), lines.get("ETag", etag), body
