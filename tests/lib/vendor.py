"""A downstream repository that a test plays itself: it waits for its dispatch, and calls back by hand."""
import json
from hashlib import sha1

from lib import upstream_action
from lib.processes import wait_for
from lib.relay import http, pull_request


def sha_of(number):
    return sha1(str(number).encode()).hexdigest()


class Downstream:
    def __init__(self, relay, repo, folder):
        self.relay, self.repo, self.folder = relay, repo, folder
        settings = json.dumps({"repo": "*", "answer": "never"}).encode()
        assert http("POST", relay.url("github", "/_sim/downstreams"), settings)[0] < 300

    def wait_admitted(self):
        """Ready is ingest without an allowlist, too; it reads the topic by itself."""
        wait_for("ingest to have read the allowlist", lambda: self.report({}, "in_progress")[0] != 503)

    def opened(self, number, **changes):
        """Opens a pull request; the client_payload that this repository's workflow is started with."""
        _, _, delivery = self.relay.deliver(pull_request(number=number, sha=sha_of(number), **changes))
        return self.payload_of(delivery)

    def payload_of(self, delivery):
        def sent():
            return [one["client_payload"] for one in self.relay.state()["dispatches"]
                    if one["repo"] == self.repo and one["client_payload"]["delivery_id"] == delivery]
        return wait_for(f"the dispatch to {self.repo}", sent, 60)[0]

    def token(self, **claims):
        body = json.dumps({"repo": self.repo, "claims": claims}).encode()
        return json.loads(http("POST", self.relay.url("github", "/_sim/oidc"), body)[1])["token"]

    def report(self, payload, status, conclusion=None, fields=None, claims=None, **changes):
        """(HTTP status, answer) of one report in the shape of the upstream's action."""
        fields = fields or upstream_action.workflow(status, conclusion, **changes)
        claims = {**upstream_action.run_claims(fields), **(claims or {})}
        code, answer, _ = upstream_action.send(self.relay.url("ingest", "/github/callback"),
                                               self.token(**claims), payload, fields, self.folder)
        return code, answer

    def rows(self, delivery):
        found = self.relay.api(f"/api/crcr/deliveries/{delivery}") or {"jobs": []}
        return [row for row in found["jobs"] if row["downstream_repo"] == self.repo and row.get("job_name")]

    def wait_rows(self, delivery, *states, timeout=60):
        """The rows, once their (status, conclusion) are these, in any order."""
        def there():
            rows = self.rows(delivery)
            return sorted(rows, key=lambda row: row["run_attempt"]) if \
                sorted((row["status"], row["conclusion"] or "") for row in rows) == \
                sorted((status, conclusion or "") for status, conclusion in states) else None
        return wait_for(f"{self.repo} to have {states}", there, timeout)

    def check_runs(self, sha):
        return [run for run in self.relay.state()["check_runs"]
                if run["head_sha"] == sha and run["name"].startswith(f"crcr/{self.repo}/")]
