"""pytorch/pytorch as its webhooks show it: one pull request that lives on, pushes to branches and tags. Each event
is GitHub's own example of it (tests/payloads), made to be about this pull request."""
import hashlib
import itertools
import json
import time

from lib.relay import payload

ZERO = "0" * 40
_numbers = itertools.count(7001)


def sha_of(text):
    return hashlib.sha1(text.encode()).hexdigest()


def _from_pytorch(body):
    body["repository"]["full_name"] = "pytorch/pytorch"
    body["repository"]["default_branch"] = "main"
    return body


class PullRequest:
    """Every event is later than the one before, as GitHub's are: updated_at rises by a minute."""

    def __init__(self, relay, number=None, sha=None, draft=False):
        self.relay = relay
        self.number = number or next(_numbers)
        self.pushes = 0
        self.sha = sha or sha_of(f"{self.number}/0")
        self.draft, self.state, self.merged = draft, "open", False
        self.labels = []
        self.updated = 1_790_000_000

    def event(self, action, **more):
        """The webhook's body; time goes on by a minute."""
        self.updated += 60
        body = _from_pytorch(payload(f"pull_request/{action}.json"))
        body["number"] = self.number
        request = body["pull_request"]
        request.update(number=self.number, draft=self.draft, state=self.state, merged=self.merged,
                       labels=[{"name": name} for name in self.labels], updated_at=self.time())
        request["head"]["sha"] = self.sha
        request["base"]["ref"] = "main"
        request["closed_at"] = self.time() if self.state == "closed" else None
        body.update(more)
        return body

    def time(self):
        return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(self.updated))

    def send(self, body, delivery=None):
        """The delivery; the relay must have taken it."""
        status, answer, delivery = self.relay.deliver(body, delivery=delivery)
        assert (status, answer.get("ok")) == (202, True), (status, answer)
        return delivery

    def opened(self):
        return self.send(self.event("opened"))

    def pushed_event(self):
        """A commit on the pull request's branch."""
        before, self.pushes = self.sha, self.pushes + 1
        self.sha = sha_of(f"{self.number}/{self.pushes}")
        return self.event("synchronize", before=before, after=self.sha)

    def pushed(self):
        return self.send(self.pushed_event())

    def labeled_event(self, label):
        self.labels.append(label)
        return self.event("labeled", label={"name": label})

    def labeled(self, label):
        return self.send(self.labeled_event(label))

    def unlabeled(self, label):
        self.labels.remove(label)
        return self.send(self.event("unlabeled", label={"name": label}))

    def closed(self):
        """As a merge bot closes: it pushes the commits itself, so GitHub knows of no merge."""
        self.state = "closed"
        return self.send(self.event("closed"))

    def reopened(self):
        self.state = "open"
        return self.send(self.event("reopened"))

    def ready_for_review(self):
        """The relay gets it, and has no use for it."""
        self.draft = False
        status, answer, _ = self.relay.send_webhook(self.event("ready_for_review"))
        assert (status, answer) == (200, {"ignored": True, "reason": "other_action"})


def push(relay, ref, sha, before=ZERO):
    """A push to the upstream repository; the delivery."""
    body = _from_pytorch(payload("push/1.json"))
    body.update(ref=ref, before=before, after=sha, created=before == ZERO, deleted=False)
    if isinstance(body.get("head_commit"), dict):
        body["head_commit"]["id"] = sha
    status, answer, delivery = relay.deliver(body, event="push")
    assert status == 202, (status, answer)
    return delivery


def outcomes_of(rows, delivery):
    """{repo: [outcome, …]} of one delivery, from the records of the topic dispatches."""
    outcomes = {}
    for row in rows:
        if row.headers.get("delivery") == delivery:
            document = json.loads(row.value)
            outcomes.setdefault(document["repo"], []).append(document["outcome"])
    return outcomes
