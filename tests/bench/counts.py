"""Instructions of user space for one event of each path (callgrind.py counts them).

A daemon is counted from when it is ready and has done a few events, so neither its start nor what it does once for all is in
it. It is never asked for anything meanwhile: that it is done is seen in the topic that it writes, or at the sink. A driver is
counted from its start; it runs twice, and what differs between the runs, by what more it did, is the cost of one."""
import http.client
import time

import fold
import sender
from callgrind import Counted
from integration.ingest.ingest_env import ACTIONS, Issuer, callback_token
from lib.processes import wait_for
from lib.redis_server import RedisServer
from lib.relay import patient
from setting import Row

DOWNSTREAMS = 12
ALLOWLIST = "L1: [" + ", ".join(f"bench/r{i}" for i in range(DOWNSTREAMS)) + "]\n"
WARM_UP, EVENTS = 10, 100
REDIS_EVENTS = 25
ROUNDS = 3  # the least counts: while others delay the broker, librdkafka's threads poll
WAIT_S = 240
THOUSAND = 1000
BARS = [  # what, the counts of which it is the first / the second (or thousands of the first), bar
    ("webhook at ingest, against produce_loop", "ingest: a webhook", "produce_loop: a record", 15),
    ("dispatch at the sender, against bare_chain", "sender: a dispatch", "bare_chain: a dispatch", 2.7),
    ("Redis, a dispatch", "redis: a dispatch", None, 220),
    ("router, an event for 12", "router: an event for 12", None, 240),
    ("callback at ingest", "ingest: a callback", None, 1150),
    ("callback in the fold", "fold: a callback", None, 500),
    ("Redis, a callback", "redis: a callback", None, 750),
]


def measure(setting, _):
    counts = count_all(setting)
    return [Row(f"instructions: {name}", "", f"{count / THOUSAND:,.1f} thousand", count=(name, count))
            for name, count in counts.items()] + \
        [evaluate(counts, *bar) for bar in BARS]


def evaluate(counts, what, first, second, bar):
    if second:
        ratio = counts[first] / counts[second]
        return Row(what, f"≤ {bar} ×", f"{ratio:.1f} × ({counts[first] / THOUSAND:,.0f} and "
                   f"{counts[second] / THOUSAND:,.0f} thousand instructions)", ratio <= bar)
    return Row(what, f"≤ {bar:,} thousand instructions", f"{counts[first] / THOUSAND:,.0f}", counts[first] <= bar * THOUSAND)


def count_all(setting):
    """Instructions by path."""
    return {**webhooks(setting), **routed(setting), **sent(setting), "ingest: a callback": callbacks_at_ingest(setting),
            "fold: a callback": callbacks_in_the_fold(setting), **in_redis(setting)}


def start(relay, name, instance=None, **environment):
    """A daemon that is counted, once it is ready: (its process, Counted)."""
    counted = Counted(relay.folder)
    relay.under = counted.under
    process = relay.start(name, instance, **environment)
    relay.under = []
    relay.wait_ready(instance or name, WAIT_S)
    return process, counted


def per_event(process, counted, events, work):
    """Instructions of a process for one of the events that work() makes it do."""
    counted.begin(process)
    work()
    return counted.end() / events


def driver(setting, few, many, drive):
    """Instructions of a driver for one of its events; drive(events, under)."""
    counts = []
    for events in (few, many):
        counted = Counted(setting.folder)
        drive(events, counted.under)
        counts.append(counted.instructions())
    return (counts[1] - counts[0]) / (many - few)


def wait_records(setting, topic, count):
    wait_for(f"{count} records in {topic}", lambda: setting.records(topic) >= count, WAIT_S, 0.2)


def webhooks(setting):
    relay = setting.relay(ALLOWLIST)
    ingest = start(relay, "ingest")

    def send(events):
        sent = setting.end(setting.webhooks(relay, 0, events, 8), WAIT_S)
        assert sent["accepted"] == events, sent
    send(WARM_UP)
    webhook = per_event(*ingest, EVENTS, lambda: send(EVENTS))
    relay.stop()
    return {"ingest: a webhook": webhook, "produce_loop: a record": driver(
        setting, 1000, 3000, lambda n, under: setting.drive("produce_loop", setting.kafka.brokers, relay.topic("events"),
                                                            setting.bodies, n, under=under))}


def routed(setting):
    relay = setting.relay(ALLOWLIST)
    router = start(relay, "dispatcher", CRCR_ROLES="router")
    events(setting, relay, "dispatch.l1", WARM_UP)
    route = min(per_event(*router, EVENTS, lambda n=n: events(setting, relay, "dispatch.l1", WARM_UP + n * EVENTS))
                for n in range(1, ROUNDS + 1))
    relay.stop()
    return {"router: an event for 12": route}


def sent(setting):
    """The router, which is not counted, is faster than the sender: its records wait."""
    relay = setting.relay(ALLOWLIST)
    relay.start("dispatcher", "router", CRCR_ROLES="router")
    sender_ = start(relay, "dispatcher", "sender", CRCR_ROLES="l1")
    events(setting, relay, "dispatches", WARM_UP, DOWNSTREAMS)
    send = per_event(*sender_, EVENTS * DOWNSTREAMS,
                     lambda: events(setting, relay, "dispatches", WARM_UP + EVENTS, DOWNSTREAMS))
    relay.stop()
    chain = driver(setting, 20 * DOWNSTREAMS, EVENTS * DOWNSTREAMS,
                   lambda n, under: sender.bare_chain(setting, relay, n, under))
    return {"sender: a dispatch": send, "bare_chain: a dispatch": chain}


def events(setting, relay, topic, until, each=1):
    """Writes events until there are so many, and waits until there is one record, or `each`, of every one in a topic."""
    setting.drive("produce_loop", setting.kafka.brokers, relay.topic("events"), setting.bodies,
                  until - setting.records(relay.topic("events")))
    wait_records(setting, relay.topic(topic), until * each)


def callbacks_at_ingest(setting):
    with Callbacks(setting) as callbacks:
        ingest = start(callbacks.relay, "ingest")
        callbacks.send(WARM_UP)
        return per_event(*ingest, EVENTS, lambda: callbacks.send(EVENTS))


class Callbacks:
    """A relay that takes callbacks, signed by an issuer of our own; they are sent one after the other."""

    def __init__(self, setting, redis=None):
        self.setting, self.issuer, self.number = setting, Issuer(), 0
        self.relay = setting.relay("L2: [bench/r0]\n", redis, CRCR_OIDC_ISSUERS=f"{ACTIONS}={self.issuer.url}",
                                   RATE_LIMIT_PER_MIN="1000000")
        setting.publish_allowlist(self.relay)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.relay.stop()
        self.issuer.close()

    def send(self, count):
        connection = http.client.HTTPConnection("127.0.0.1", self.relay.ports["ingest"], timeout=WAIT_S)

        def post(*request):
            connection.request("POST", "/github/callback", *request)
            answer = connection.getresponse()
            return answer.status, answer.read()
        for _ in range(count):
            request = self.next()
            status, said = patient(lambda request=request: post(*request))  # ready is ingest without an allowlist, too
            assert status == 200, said
        connection.close()

    def next(self):
        """(body, headers) as a job sends them when it begins and when it ends."""
        job, completed = divmod(self.number, 2)
        self.number += 1
        token = callback_token(self.relay.environment()["CRCR_CALLBACK_TOKEN_KEY"], delivery_id=f"job-{job}", repo="bench/r0",
                               pr_number=job + 1, head_sha=f"{job:040x}", dispatched_at=int(time.time() * 1000) - 5000)
        body = fold.callback_body(self.setting, f"job-{job}", job + 1, completed, callback_token=token)
        return body.encode(), {"Authorization": f"Bearer {self.issuer.token('bench/r0', run_id=str(job + 1))}",
                               "Content-Type": "application/json"}


def callbacks_in_the_fold(setting):
    """The reporter is ready before the first is written: its rebuild is no part of it."""
    relay = setting.relay("L2: [bench/r0]\n")
    setting.publish_allowlist(relay)
    reporter = start(relay, "reporter", CRCR_ROLES="fold")

    def callbacks(begin, count):
        # Each is a batch of its own, as with few callbacks a second: what the broker compressed is unpacked once.
        fold.write_callbacks(setting, relay, range(begin, begin + count), **{"batch.num.messages": 1})
        wait_records(setting, relay.topic("results"), 2 * (begin + count))
    callbacks(0, WARM_UP)
    counts = min(per_event(*reporter, 2 * EVENTS, lambda n=n: callbacks(WARM_UP + n * EVENTS, EVENTS))
                 for n in range(ROUNDS))
    relay.stop()
    return counts


def in_redis(setting):
    """Redis is counted in runs of its own, with daemons that are not, and gets one event, or callback, after the other: under
    valgrind it is so slow that daemons would else give it up. Only the role router and the first sender run, of the reporter
    only the fold."""
    redis = RedisServer(setting.folder / "counted-redis")
    counted = Counted(setting.folder)
    redis.under = counted.under
    redis.start()
    redis.client().config_set("hz", 1)  # its own chores, ten times a second, are no part of an event
    try:
        return {"redis: a dispatch": dispatches_in_redis(setting, redis, counted),
                "redis: a callback": callbacks_in_redis(setting, redis, counted)}
    finally:
        redis.stop()


def dispatches_in_redis(setting, redis, counted):
    relay = setting.relay(ALLOWLIST, redis)
    relay.start("dispatcher", CRCR_ROLES="router,l1")
    relay.wait_ready("dispatcher")

    def one_by_one(begin, end):
        for number in range(begin, end):
            events(setting, relay, "dispatches", number + 1, DOWNSTREAMS)
    one_by_one(0, WARM_UP)
    count = per_event(redis.process, counted, REDIS_EVENTS * DOWNSTREAMS, lambda: one_by_one(WARM_UP, WARM_UP + REDIS_EVENTS))
    relay.stop()
    return count


def callbacks_in_redis(setting, redis, counted):
    """What ingest asks it and what the fold does."""
    with Callbacks(setting, redis) as callbacks:
        callbacks.relay.start("ingest")
        callbacks.relay.start("reporter", CRCR_ROLES="fold")
        for part in ("ingest", "reporter"):
            callbacks.relay.wait_ready(part)

        def folded(count):
            callbacks.send(count)
            wait_records(setting, callbacks.relay.topic("results"), callbacks.number)
        folded(WARM_UP)
        return per_event(redis.process, counted, EVENTS, lambda: folded(EVENTS))
