"""A dispatcher around a real Kafka, a real Redis and the simulated GitHub. Events are written into the topic as
ingest writes them."""
import itertools
import json
import time
import uuid

from lib.kafka import read_topic, write, write_all
from lib.processes import wait_for
from lib.relay import Relay, http, pull_request
from openapi.validate import problems

REPOS = {"L1": "org-one/backend-one", "L2": "org-two/backend-two",
         "L3": "org-three/backend-three", "L4": "org-four/backend-four"}
SHA = "c" * 40
NUMBERS = itertools.count(1)  # of pull requests: Redis, and so the order of each, is shared by all


class Bench:
    """A dispatcher and a GitHub; what is written, and what came of it."""

    def __init__(self, folder, kafka, redis_node, **options):
        self.relay = Relay(folder, kafka.brokers, redis_node.endpoint, **options)
        self.kafka, self.redis_node, self.redis = kafka, redis_node, redis_node.client(self.relay.prefix)
        self.redis.set("crcr:epoch", "1")  # no reporter here: Redis has forgotten nothing
        self.relay.start_github()
        # Nobody calls back here, and nothing but our calls is in GitHub's record.
        http("POST", self.relay.url("github", "/_sim/downstreams"),
             json.dumps({"repo": "*", "reports": False, "run_ms": 1}).encode())
        self.numbers = NUMBERS

    def start(self, instance="dispatcher", **environment):
        self.relay.start("dispatcher", instance, **environment)
        return self

    def ready(self, instance="dispatcher"):
        self.relay.wait_ready(instance)
        return self

    def not_ready(self, word):
        """Whether /readyz names it; what it says instead is shown when a test waits in vain."""
        _, body = http("GET", self.relay.url("admin_dispatcher", "/readyz"))
        if word.encode() not in body.lower():
            raise ValueError(body)
        return True

    def close(self):
        self.relay.stop()
        record = self.relay.folder / "github-requests.jsonl"
        wrong = []
        for line in record.read_text().splitlines():
            request = json.loads(line)
            wrong += [f"{request['method']} {request['path']}: {problem}" for problem in problems(request)]
        assert not wrong, "\n".join(wrong[:20])

    # ---- what goes in ----
    def _event(self, body, kind="pull_request", delivery=None, key=None, received_ms=None, **headers):
        """Key, value and headers."""
        delivery = delivery or str(uuid.uuid4())
        raw = body if isinstance(body, bytes) else json.dumps(body).encode()
        number = body.get("number", 0) if isinstance(body, dict) else 0
        known = {"event": kind, "action": body.get("action", "") if isinstance(body, dict) else "",
                 "delivery": delivery, "pr": str(number), "head_sha": SHA,
                 "received_ms": str(received_ms or int(time.time() * 1000)), "source": "webhook"}
        known.update(headers)
        return key or f"pytorch/pytorch#{number}", raw, {name: value for name, value in known.items() if value is not None}

    def event(self, body, *how, **more):
        key, raw, headers = self._event(body, *how, **more)
        write(self.kafka.brokers, self.relay.topic("events"), key, raw, headers)
        return headers["delivery"]

    def pull_request(self, number=None, delivery=None, **changes):
        return self.event(pull_request(number=number or next(self.numbers), **changes), delivery=delivery)

    def pull_requests(self, count):
        """Different ones, all at once."""
        return self.all_at_once(pull_request(number=next(self.numbers)) for _ in range(count))

    def all_at_once(self, bodies):
        events = [self._event(body) for body in bodies]
        write_all(self.kafka.brokers, self.relay.topic("events"), [(*event, 0) for event in events])
        return [headers["delivery"] for _, _, headers in events]

    def wait_claim_met(self, claim, instance="dispatcher"):
        """Another's claim of a task of L2 holds until a sender has met it, and for 6 s after that at most."""
        def met():
            self.redis.hset(claim, "until_ms", str(int(time.time() * 1000) + 6000))
            return self.metric("crcr_claims_total", instance, tier="L2", verdict="busy")
        wait_for("the claim to be seen", met)

    # ---- what came out ----
    def topic(self, name):
        return read_topic(self.kafka.brokers, self.relay.topic(name))

    def outcomes(self, delivery, repo=None):
        found = [json.loads(record.value) for record in self.topic("dispatches")
                 if record.headers["delivery"] == delivery]
        return [outcome for outcome in found if repo in (None, outcome["repo"])]

    def pairs(self, kind):
        """(delivery, repo) of every outcome for which kind(outcome) holds."""
        outcomes = [json.loads(record.value) for record in self.topic("dispatches")]
        return {(one["delivery_id"], one["repo"]) for one in outcomes if kind(one)}

    def wait_outcomes(self, delivery, count, repo=None, timeout=60):
        def there():
            found = self.outcomes(delivery, repo)
            return found if len(found) >= count else None
        return wait_for(f"{count} outcomes of {delivery}", there, timeout)

    def wait_outcome(self, delivery, repo, kind, timeout=60):
        def there():
            return [one for one in self.outcomes(delivery, repo) if one["outcome"] == kind]
        return wait_for(f"{repo}: {kind}", there, timeout)[0]

    def dispatches(self, delivery=None, repo=None):
        """What GitHub took, each with its repo, from its record of requests."""
        taken = []
        for one in self.relay.requests():
            if one["path"].endswith("/dispatches") and (one["status"] == 204 or one["fault"] == "reset"):
                name = one["path"][len("/repos/"):-len("/dispatches")]
                if repo in (None, name) and \
                        delivery in (None, one["body"]["client_payload"]["delivery_id"]):
                    taken.append(dict(one["body"], repo=name))
        return taken

    def calls(self, repo, ending="/dispatches"):
        """Every request for it, answered or not."""
        return [one for one in self.relay.requests()
                if one["path"] == f"/repos/{repo}{ending}"]

    def script(self, *rules):
        for rule in rules:
            self.relay.script(rule)

    def clear_script(self):
        self.relay.script({"clear": True})

    def metric(self, name, instance="dispatcher", **labels):
        return self.relay.metric(instance, name, **labels)
