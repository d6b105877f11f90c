"""deploy/monitoring: rules, dashboard and README are held to what the daemons have; a real Prometheus scrapes them.
What needs Prometheus is skipped where it is not installed, but not in tests/run --all, which installs it."""
import contextlib
import json
import re
import shutil
import subprocess
import urllib.parse

import pytest
import yaml

from lib.metric_families import TABLES, all_families, families, labels_in, named_in
from lib.ports import free_port
from lib.processes import ROOT, Process, wait_for
from lib.redis_server import redis_server
from lib.relay import Relay, http, pull_request

HERE = ROOT / "deploy" / "monitoring"
KUBERNETES = "alerts_kubernetes.yml" # by kube-state-metrics, not by a daemon
ADDED = {"job", "instance", "le"} # by Prometheus; by a histogram


def alerts(file="alerts.yml"):
    groups = yaml.safe_load((HERE / file).read_text())["groups"]
    return [rule for group in groups for rule in group["rules"]]


def dashboard_expressions():
    dashboard = json.loads((HERE / "dashboard.json").read_text())
    return [(panel["title"], target["expr"]) for panel in dashboard["panels"]
            for target in panel.get("targets", [])]


def expressions():
    return [(rule["alert"], rule["expr"]) for rule in alerts()] + dashboard_expressions()


@pytest.fixture(scope="module")
def relay(kafka_node, tmp_path_factory):
    folder = tmp_path_factory.mktemp("monitoring")
    with redis_server(folder / "redis") as redis:
        one = Relay(folder, kafka_node.brokers, redis)
        try:
            yield one.start_all()
        finally:
            one.stop()


def scraped(relay, part):
    status, text = http("GET", relay.url(f"admin_{part}", "/metrics"))
    assert status == 200
    return text.decode()


# ---- without Prometheus ------------------------------------------------------------------------------


def test_alerts_and_dashboard_name_only_metrics_and_labels_that_a_daemon_has():
    known = all_families()
    for where, expression in expressions():
        named = named_in(expression, known)
        has = {label for name in named for label in known[name][1]} | ADDED
        assert labels_in(expression) <= has, f"{where}: {labels_in(expression) - has} is no label of {named}"


def test_a_name_or_label_that_no_daemon_has_is_seen():
    known = all_families()
    with pytest.raises(AssertionError, match="crcr_no_such_total"):
        named_in('rate(crcr_no_such_total{role="x"}[5m])', known)
    assert labels_in('sum by (a, b) (rate(x{c="1",d=~"2"}[5m]))') == {"a", "b", "c", "d"}


def test_every_metric_is_on_the_dashboard_but_for_a_few():
    known = all_families()
    shown = set().union(*(named_in(expression, known) for _, expression in expressions()))
    assert known.keys() - shown == {"process_start_time_seconds", "crcr_tasks_total",
                                    "crcr_due_marked_total", "crcr_pages_total", "crcr_pages_waiting",
                                    "crcr_rebuild_seconds"}


def test_a_panels_unit_is_that_of_all_that_it_shows():
    sign = {"bytes": "_bytes", "s": "_seconds", "reqps": "rate(", "ops": "rate("}
    for panel in json.loads((HERE / "dashboard.json").read_text())["panels"]:
        field = panel.get("fieldConfig", {"defaults": {}, "overrides": []})
        own = {one["matcher"]["options"]: prop["value"] for one in field["overrides"]
               for prop in one["properties"] if prop["id"] == "unit"}
        for target in panel.get("targets", []):
            unit = own.get(target["legendFormat"], field["defaults"].get("unit"))
            assert sign.get(unit, "") in target["expr"], f"{panel['title']}: {target['expr']} is not in {unit}"
            assert unit != "short" or "rate(" not in target["expr"] or "/s" in target["legendFormat"], panel["title"]


def test_the_readme_lists_every_metric_with_type_labels_and_daemon():
    text = (HERE / "README.md").read_text().split("<!-- metrics:begin -->")[1]
    rows = re.findall(r"^\| `(\w+)` \| (\w+)(?: `([\w,]+)`)? \| ([\w, ]+) \|", text, re.MULTILINE)
    documented = {name: (kind, labels.split(",") if labels else [], who) for name, kind, labels, who in rows}
    daemons = {}
    for who in TABLES:
        for name in families(who):
            daemons.setdefault(name, []).append(who)
    assert documented == {name: (*family, ", ".join(daemons[name])) for name, family in all_families().items()}


def test_the_readme_says_of_every_alert_what_to_do():
    """The runbook, in a section, not only in its index."""
    index, sections = (HERE.parent / "README.md").read_text().split("| alert | section |")[1].split("\n\n", 1)
    named = {rule["alert"] for rule in [*alerts(), *alerts(KUBERNETES)]}
    assert set(re.findall(r"`(Crcr\w+)`", index)) == named == set(re.findall(r"`(Crcr\w+)`", sections))


def test_the_readmes_prometheus_rules_are_those_of_the_files():
    script = re.search(r"^      for file in alerts .*?^      done", (HERE / "README.md").read_text(), re.MULTILINE | re.DOTALL)[0]
    made = subprocess.run(["bash", "-c", script], cwd=ROOT, capture_output=True, text=True, check=True, timeout=60).stdout
    rules = [one for one in yaml.safe_load_all(made) if one]
    assert [one["kind"] for one in rules] == ["PrometheusRule"] * 2
    assert [one["spec"] for one in rules] == [yaml.safe_load((HERE / file).read_text()) for file in ("alerts.yml", KUBERNETES)]


def test_in_compose_prometheus_has_the_same_jobs_by_the_names_of_services():
    here, composed = (yaml.safe_load((HERE / f"prometheus{kind}.yml").read_text()) for kind in ("", "_compose"))
    services = yaml.safe_load((ROOT / "docker-compose.yml").read_text())["services"]
    for one, other in zip(here["scrape_configs"], composed["scrape_configs"], strict=True):
        [found] = other["dns_sd_configs"]
        assert one["job_name"] == other["job_name"] and found["names"] == [one["job_name"].removeprefix("crcr-")]
        assert one["static_configs"][0]["targets"] == [f"127.0.0.1:{found['port']}"]
        assert services[found["names"][0]]["environment"]["CRCR_ADMIN_LISTEN"] == f"0.0.0.0:{found['port']}"


@pytest.mark.parametrize("file", ["alerts.yml", KUBERNETES])
def test_every_alert_has_a_case_in_which_it_fires_and_one_in_which_it_does_not(file):
    tests = HERE / file.replace(".yml", "_test.yml")
    cases = [case for test in yaml.safe_load(tests.read_text())["tests"] for case in test["alert_rule_test"]]
    names = {rule["alert"] for rule in alerts(file)}
    assert {case["alertname"] for case in cases if case["exp_alerts"]} == names
    assert {case["alertname"] for case in cases if not case["exp_alerts"]} == names


def test_the_rule_about_missing_roles_names_every_role_and_no_other():
    roles = [role for daemon in ("ingest", "dispatcher", "reporter") for role in re.findall(
        r'^    \{ "(\w+)", "[^"]+", \w+ \},$', (ROOT / daemon / "main.c").read_text(), re.MULTILINE)]
    rule = next(rule["expr"] for rule in alerts() if rule["alert"] == "CrcrRoleMissing")
    assert sorted(re.findall(r'absent\(crcr_role_healthy\{role="(\w+)"\}\)', rule)) == sorted(roles)
    assert len(roles) == 6 + 5 + 1


def test_the_rule_about_redeliver_names_the_cronjobs_of_deploy_k8s():
    base = ROOT / "deploy" / "k8s" / "base"
    name = yaml.safe_load((base / "redeliver" / "cronjob.yaml").read_text())["metadata"]["name"]
    suffix = yaml.safe_load((base / "daily" / "kustomization.yaml").read_text())["nameSuffix"]
    named = {one for rule in alerts(KUBERNETES) for one in re.findall(r'cronjob="([^"]+)"', rule["expr"])}
    assert named == {name, name + suffix}


def test_the_daemons_expose_the_families_of_their_tables(relay):
    for part in ("ingest", "dispatcher", "reporter"):
        exposed = set(re.findall(r"^# TYPE (\w+) ", scraped(relay, part), re.MULTILINE))
        assert exposed == families(part).keys() | families("every daemon").keys()


def test_the_dlq_counter_starts_at_0_for_every_role_and_class(relay):
    text = {part: scraped(relay, part) for part in ("dispatcher", "reporter")}
    for part, roles in (("dispatcher", ("router", "l1", "l2", "l3", "l4", "delay")),
                        ("reporter", ("fold", "reconcile", "forward"))):
        for role in roles:
            for cls in ("poison", "refused", "exhausted"):
                assert f'crcr_dlq_total{{role="{role}",class="{cls}"}} 0\n' in text[part]


def test_what_an_alert_takes_the_rate_of_starts_at_0(relay):
    wanted = {"ingest": [f'crcr_ingest_requests_total{{route="{route}",status="503",reason="{reason}"}}'
                         for route, reason in (
                             ("webhook", "publish_failed"), ("webhook", "late"), ("webhook", "no_memory"),
                             ("webhook", "overloaded"),
                             ("callback", "publish_failed"), ("callback", "late"), ("callback", "overloaded"),
                             ("callback", "issuer_keys"), ("callback", "no_allowlist"))] +
                        [f'crcr_ingest_produce_failures_total{{topic="{relay.topic(topic)}",error="{error}"}}'
                         for topic in ("events", "callbacks") for error in ("refuse", "retry", "unknown", "stop")],
              "dispatcher": [f'crcr_records_not_stored_total{{topic="{relay.topic(topic)}"}}'
                             for topic in ("dispatches", "dlq", "delay.1m", "dispatch.l1", "callbacks", "allowlist")] +
                            [f'crcr_claims_total{{tier="{tier}",verdict="none"}}' for tier in ("L1", "L4")] +
                            [f'crcr_dispatches_maybe_duplicate_total{{tier="{tier}",reason="{reason}"}}' for tier in ("L1", "L4")
                             for reason in ("answer_unseen", "claim_expired", "no_claim")],
              "reporter": ['crcr_results_posted_total{outcome="refused"}']}
    for part, series in wanted.items():
        text = scraped(relay, part)
        assert [one for one in series if f"{one} 0\n" not in text] == []


def test_every_503_of_ingest_is_declared():
    code = {path.name: path.read_text() for path in (ROOT / "ingest").glob("*.c")}
    said = {reason for text in code.values() for reason in re.findall(r'answer_later\(&?a, 503, "(\w+)"', text)}
    declared = {reason for _, reason in re.findall(r'\{ "(webhook|callback)", "(\w+)" \}', code["responder.c"])}
    assert declared == said | {"late"}


def test_the_backlog_of_a_tier_grows_in_seconds_while_its_task_waits_and_ends_with_it(relay):
    def backlog():
        return relay.metric("dispatcher", "crcr_role_backlog_seconds", role="l2")

    def outcomes():
        return {outcome: relay.metric("dispatcher", "crcr_dispatch_repo_outcomes_total",
                                      repo="org-two/backend-two", outcome=outcome, reason=reason)
                for outcome, reason in (("waiting", "http_429"), ("dispatched", "none"))}

    wait_for("the lag of l2 to be known", lambda: backlog() == 0)
    for times, wait_s in enumerate((4, 9), 1):  # a busy machine may look too seldom to see the short one
        relay.script({"method": "POST", "path": "/repos/org-two/backend-two/dispatches", "status": 429,
                      "headers": {"Retry-After": str(wait_s)}, "count": 1})
        status, _, _ = relay.deliver(pull_request(number=900 + 10 * times, updated_at="2026-11-21T04:00:00Z"))
        assert status in (200, 202)
        seen = []
        wait_for("a backlog of more than 2 s, or its end", lambda: seen.append(backlog()) or seen[-1] > 2 or
                 outcomes()["dispatched"] == times, every=0.2)
        wait_for("the backlog to end", lambda: outcomes()["dispatched"] == times and backlog() == 0, every=0.2)
        if max(seen) > 2:
            break
    assert max(seen) > 2
    assert outcomes() == {"waiting": times, "dispatched": times}


def test_githubs_own_number_is_reported_by_each_tier_and_for_the_upstreams_installation(relay):
    relay.send_webhook(pull_request(number=904, updated_at="2026-11-21T07:00:00Z"))
    for part, tier in (("dispatcher", "L1"), ("dispatcher", "L4"), ("reporter", "reconcile")):
        wait_for(f"what is left to {tier}",
                 lambda: relay.metric(part, "crcr_github_budget_left", tier=tier) > 0, timeout=60)


# ---- with Prometheus -----------------------------------------------------------------------------------


def promtool(*arguments):
    done = subprocess.run(["promtool", *arguments], cwd=HERE, capture_output=True, text=True, timeout=600)
    return done.returncode, done.stdout + done.stderr


def test_the_alert_rules_hold():
    for arguments in (["check", "config", "prometheus.yml", "prometheus_compose.yml"],
                      ["test", "rules", "alerts_test.yml", "alerts_kubernetes_test.yml"]):
        code, output = promtool(*arguments)
        assert code == 0, output


class Prometheus:
    """A real one with our configuration; only targets, interval and port are the test's own."""

    def __init__(self, folder, relay):
        text = (HERE / "prometheus.yml").read_text().replace("15s", "1s")
        for part, port in (("ingest", 9101), ("dispatcher", 9102), ("reporter", 9103)):
            assert f"127.0.0.1:{port}" in text
            text = text.replace(f"127.0.0.1:{port}", f"127.0.0.1:{relay.ports[f'admin_{part}']}")
        (folder / "prometheus.yml").write_text(text)
        shutil.copy(HERE / "alerts.yml", folder)
        self.url = f"http://127.0.0.1:{free_port()}"
        self.process = Process("prometheus", ["prometheus", "--config.file=prometheus.yml",
                                              "--storage.tsdb.path=tsdb",
                                              f"--web.listen-address={self.url.removeprefix('http://')}"],
                               folder)
        wait_for("Prometheus to be ready", lambda: http("GET", self.url + "/-/ready")[0] == 200)

    def get(self, path, **query):
        status, body = http("GET", f"{self.url}/api/v1/{path}?{urllib.parse.urlencode(query)}")
        assert status == 200, body
        return json.loads(body)["data"]

    def value(self, expression):
        """The sum of what an expression gives now; None: nothing."""
        result = self.get("query", query=expression)["result"]
        return sum(float(series["value"][1]) for series in result) if result else None


@pytest.fixture(scope="module")
def prometheus(relay, tmp_path_factory):
    one = Prometheus(tmp_path_factory.mktemp("prometheus"), relay)
    yield one
    one.process.stop()


def test_a_real_prometheus_scrapes_the_three_daemons(relay, prometheus):
    wait_for("three targets", lambda: prometheus.value('sum(up{job=~"crcr-.*"})') == 3)
    _, _, delivery = relay.send_webhook(pull_request(number=902, updated_at="2026-11-21T05:00:00Z"))
    wait_for("the dispatch to be measured", lambda: prometheus.value(
        'sum(crcr_dispatch_latency_seconds_count{tier="L1"})'))
    wait_for("the webhook to be counted", lambda: prometheus.value(
        'sum(crcr_ingest_requests_total{route="webhook",reason="stored"})'))
    assert prometheus.value("count(crcr_role_backlog_seconds)") == 6 + 5 + 1
    problems = [target["lastError"] for target in prometheus.get("targets")["activeTargets"]]
    assert problems == ["", "", ""]


def test_prometheus_evaluates_every_rule_and_every_panel(prometheus):
    def rules():
        found = [rule for group in prometheus.get("rules")["groups"] for rule in group["rules"]]
        return found if found and all(rule["health"] == "ok" for rule in found) else None
    assert {rule["name"] for rule in wait_for("the rules to be evaluated", rules)} == {
        rule["alert"] for rule in alerts()}
    for title, expression in dashboard_expressions():
        expression = expression.replace("$__rate_interval", "1m").replace("$__range", "1h")
        status, body = http("GET", f"{prometheus.url}/api/v1/query?" +
                            urllib.parse.urlencode({"query": expression}))
        assert status == 200, f"{title}: {body}"


# Series that are born when something happens that the relay of this test does not do.
BORN_LATER = {
    "crcr_canary_result_timestamp_seconds": "the canary repository reported (the panel leaves out 0)",
    "crcr_breaker_open": "a downstream failed again and again (and the panel shows only open ones)",
    "crcr_budget_waits_total": "our budget held a call back", "crcr_parked_total": "a task had to wait",
    "crcr_delay_released_total": "a wait ended", "crcr_delayed_total": "a check run or a callback had to wait",
    "crcr_rebuild_records_total": "the view was lost", "crcr_sweep_timed_out_total": "a job was lost",
    "crcr_dispatch_repo_outcomes_total": "a dispatch failed (the panel leaves out what went well)",
    "crcr_upstream_calls_total": "an on-call comment (off by default), or a nightly run's commit was looked for"}


def test_every_panel_shows_something_once_a_pull_request_went_through_or_is_explained(relay, prometheus):
    _, _, delivery = relay.send_webhook(pull_request(number=903, updated_at="2026-11-21T06:00:00Z"))
    wait_for("the results", lambda: len([row for row in relay.state()["callbacks"]
                                         if row["delivery_id"] == delivery and row["http_status"] == 200]) >= 4, 60)
    known = all_families()

    def empty():
        return [(title, expression) for title, expression in dashboard_expressions() if not prometheus.get(
            "query", query=expression.replace("$__rate_interval", "5m").replace("$__range", "1h"))["result"]
            and not named_in(expression, known) & BORN_LATER.keys()]
    wait_for("data in every other panel", lambda: not empty(), 60, every=2)


def test_no_alert_fires_or_is_about_to_on_a_relay_that_is_well(prometheus):
    threads = 6 + 5 + 1 + 3 + 1  # of roles, in each daemon that which follows the allowlist, and the pipeline's
    wait_for("every role to be seen", lambda: prometheus.value("count(crcr_role_healthy)") == threads)
    found = []
    # What other tests held up for seconds stays in a percentile of minutes. That these are silent where nothing
    # is slow, alerts_test.yml shows.
    of_the_machine = ("CrcrIngestSlow", "CrcrDispatchSlow")

    def quiet(): # pending: until the first round after the last role was seen
        found[:] = [(alert["state"], alert["labels"]) for alert in prometheus.get("alerts")["alerts"]
                    if alert["labels"]["alertname"] not in of_the_machine]
        return not found
    with contextlib.suppress(AssertionError): # the next line says which
        wait_for("no alert", quiet, 15)
    assert found == []
