"""The JSON API of the pages: its description, its cache, and live requests."""
import concurrent.futures
import json
import re
import signal
import urllib.error
import urllib.parse
import urllib.request

import jsonschema
import pytest

from lib.ctl import Ctl
from lib.processes import ROOT, wait_for
from test_reporter import Job, Reporter, label_event
from test_reporter_commits import push_event, report, sha_of

WEB = ROOT / "reporter" / "web"
DOCUMENT = json.loads((WEB / "openapi.json").read_text())


@pytest.fixture(scope="module")
def reporter(kafka_node, tmp_path_factory):
    one = Reporter(tmp_path_factory.mktemp("api"), kafka_node.brokers)
    try:
        yield one
    finally:
        one.close()


def get(reporter, path, timeout=40, **headers):
    """(status, headers, body) of an answer of the pages."""
    request = urllib.request.Request(reporter.relay.url("hud", path),
                                     headers={name.replace("_", "-"): value for name, value in headers.items()})
    try:
        with urllib.request.urlopen(request, timeout=timeout) as answer:
            return answer.status, answer.headers, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.headers, error.read().decode()


def live(reporter, path, etag, plain=False, **headers):
    """The answer of a live request, in the future. plain: of path as it is."""
    pool = concurrent.futures.ThreadPoolExecutor(1)
    of = path if plain else urllib.parse.quote(path, safe="")
    future = pool.submit(get, reporter, f"/api/crcr/live?of={of}&etag={etag.strip(chr(34))}", **headers)
    pool.shutdown(wait=False)
    return future


def etag_of(reporter, path):
    return get(reporter, path)[1]["ETag"]


def assets(reporter):
    """The files that the pages are made of, by their names without the hash: {"app.js": "/assets/app-….js", …}."""
    found = re.findall(r'/assets/[^"]+', get(reporter, "/")[2])
    found += re.findall(r'/assets/[^"]+', get(reporter, next(one for one in found if one.endswith(".js")))[2])
    return {re.sub(r"^/assets/|-[0-9a-f]{12}", "", one): one for one in found}


# ---- the description --------------------------------------------------------------------------------

def faults(path, status, body):
    """What the description does not say of an answer."""
    answer = DOCUMENT["paths"][path]["get"]["responses"][str(status)]
    if "$ref" in answer:
        answer = DOCUMENT["components"]["responses"][answer["$ref"].rsplit("/", 1)[-1]]
    schema = {**answer["content"]["application/json"]["schema"], "components": DOCUMENT["components"]}
    return [f"{list(one.absolute_path)}: {one.message[:300]}" for one in jsonschema.Draft202012Validator(schema).iter_errors(body)]


@pytest.fixture(scope="module")
def rich(reporter):
    """A view that holds something of everything."""
    job = Job(reporter, "org/three", "L3", pr=801).outcome("dispatched")
    job.call("in_progress", 1500).call("completed", 9000, conclusion="failure", test_results={"passed": 8, "failed": 1, "skipped": 1},
                                       failed_tests_detail=[{"name": "test_add", "message": "no"}],
                                       triage_verdict={"schema_version": "1", "category": "backend"})
    label_event(job, "labeled", ["ciflow/crcr/npu"], "ciflow/crcr/npu", 1)
    Job(reporter, "org/two", "L2", pr=801).outcome("failed", error="404", http_status=404)
    report(reporter, sha_of("described"), "org/two", "L2", conclusion="success")
    push_event(reporter, "0" * 40, [(sha_of(f"described {i}"), f"Change (#{i})") for i in (1, 2)])
    for i, result in ((1, "success"), (2, "failure")):
        report(reporter, sha_of(f"described {i}"), "org/two", "L2", job_name="kernels", run_id=7000 + i, conclusion=result)
    reporter.put("allowlist", "demotions", {"schema_version": 1, "demoted": [
        {"repo": "org/three", "since": "2026-11-20T03:20:00Z", "reason": "pass_rate 85.0 %"}]}, {"source": "test", "fetched_ms": "1"})
    job.wait_result()
    wait_for("the commits", lambda: (reporter.relay.api("/api/crcr/repos/org/two/since") or {}).get("failing"))
    wait_for("all of it", lambda: "ciflow/crcr/npu" in get(reporter, "/api/crcr/prs/801")[2] and
             reporter.relay.api(f"/api/crcr/deliveries/{sha_of('described')}"))
    return job


ONE = {"owner": "org", "repo": "two"}


@pytest.mark.parametrize("path, parts", [
    ("/api/crcr/summary", {}), ("/api/crcr/repos/{owner}/{repo}", ONE), ("/api/crcr/repos/{owner}/{repo}/since", ONE), ("/api/crcr/repos/{owner}/{repo}/trends", ONE), ("/api/crcr/repos/{owner}/{repo}/level", ONE), ("/api/crcr/trends", {}),
    ("/api/crcr/prs", {}), ("/api/crcr/prs/{number}", {"number": 801}), ("/api/crcr/deliveries/{id}", {"id": None}),
    ("/api/crcr/level-status", {}), ("/api/crcr/pipeline", {}), ("/api/crcr/health", {})])
def test_answers_are_as_they_are_described(reporter, rich, path, parts):
    """Every property is described, and there; so is each number's definition."""
    if "id" in parts:
        parts = {"id": rich.delivery}
    status, headers, body = wait_for("an answer", lambda: (got := get(reporter, path.format(**parts)))[0] != 503 and got)
    assert status == 200 and headers["Content-Type"].startswith("application/json")
    assert faults(path, 200, json.loads(body)) == []
    assert re.fullmatch(DOCUMENT["components"]["headers"]["ETag"]["schema"]["pattern"], headers["ETag"])
    if parts:
        status, _, body = get(reporter, path.format(**dict.fromkeys(parts, 999999)))
        assert status == 404 and faults(path, 404, json.loads(body)) == []
    if "400" in DOCUMENT["paths"][path]["get"]["responses"]:
        for name, value in (("days", "2"), ("state", "x"), ("limit", "9"), ("before", "x")):
            if any(one["name"] == name for one in DOCUMENT["paths"][path]["get"]["parameters"]):
                status, _, body = get(reporter, f"{path.format(**parts)}?{name}={value}")
                assert status == 400 and faults(path, 400, json.loads(body)) == [] and f"{name} must be" in body


def objects(node):
    if isinstance(node, dict):
        if node.get("type") == "object" and "properties" in node:
            yield node
        for value in node.values():
            yield from objects(value)
    elif isinstance(node, list):
        for value in node:
            yield from objects(value)


def test_every_path_and_every_property_is_described(reporter):
    in_code = set(re.findall(r'\.path = "(/api/crcr/[\w/*.-]+)"', (WEB / "paths.c").read_text()))
    in_code |= set(re.findall(r'"(/api/crcr/[\w/.]+)", \.handle', (WEB / "web.c").read_text()))
    assert in_code == {re.sub(r"\{.*\}", "*", path) for path in DOCUMENT["paths"]}
    for schema in objects(DOCUMENT):
        assert schema["additionalProperties"] is False and schema["required"] == list(schema["properties"])
        for name, one in schema["properties"].items():
            assert "$ref" in one or "anyOf" in one or one.get("description"), name
    assert json.loads(get(reporter, "/api/crcr/openapi.json")[2]) == DOCUMENT


def test_the_level_is_as_crcrctl_says_with_the_evidence(reporter, rich):
    for repo in ("org/two", "org/three"):
        shown = json.loads(get(reporter, f"/api/crcr/repos/{repo}/level")[2])
        levels = json.loads(Ctl(reporter.relay.kafka, reporter.relay.prefix)("levels", "--json").stdout)
        said = next(one for one in levels["repos"] if one["repo"] == repo)
        assert (shown["level"], shown["level_since"]) == (said["level"], said["level_since"])
        assert [{**one, "value": None} if one["name"] == "tenure" else one for one in shown["criteria"]] == \
            [{**one, "value": None} if one["name"] == "tenure" else one for one in said["criteria"]], repo
        assert said["state"] == {"org/two": "no_jobs", "org/three": "bad"}[repo]  # of org/two: none for pull requests
        assert shown["answer"] is {"no_jobs": None, "bad": False}[said["state"]]
        assert shown["history"] == [{"level": shown["level"], "since": "1970-01-01T00:00:00.001Z"}]


def test_a_vendor_sees_which_events_reached_it_and_what_github_answered(reporter):
    silent = Job(reporter, "org/five", pr=851).outcome("dispatched", action="opened")
    label_event(silent, "opened", [], "", 1)
    spoke = Job(reporter, "org/five", pr=852).outcome("dispatched", action="opened")
    label_event(spoke, "opened", [], "", 2)
    spoke.call("completed", 3000, conclusion="success").wait_result()
    gone = Job(reporter, "org/five", pr=853).outcome("failed", error="404: not found", http_status=404)
    label_event(gone, "opened", [], "", 3)

    def found():
        reach = reporter.relay.api("/api/crcr/repos/org/five") or {"events": []}
        rows = {one["pr_number"]: one for one in reach["events"]}
        return {851, 852, 853} <= set(rows) and rows[852]["reported"] and rows
    rows = wait_for("three events", found)
    assert not rows[851]["reported"]
    assert [rows[853][name] for name in ("outcome", "http_status", "error", "reported")] == ["failed", 404, "404: not found", False]
    assert rows[852]["delivery_id"] == spoke.delivery and rows[852]["outcome"] == "dispatched"
    event = wait_for("its check run", lambda: (one := found()[852])["check_run_state"] == "success" and one)
    assert event["check_run_id"] in [one["id"] for one in reporter.checks(spoke.sha) if one["name"] == "crcr/org/five/ci/build"]
    assert rows[851]["check_run_id"] is None


def test_the_failures_of_the_window_are_given_with_their_tests(reporter):
    """Not what is older, replaced, cancelled or well."""
    def runs(name, *conclusions, ago_ms=0, tests=()):
        for conclusion in conclusions:
            job = Job(reporter, "org/three", "L3", pr=0, job_name=name)
            job.started_ms -= ago_ms
            job.call("completed", 1000, conclusion=conclusion, failed_tests_detail=[{"name": one, "classname": "T", "message": "no"} for one in tests])
            job.wait_result()
        return job
    runs("old", "failure", ago_ms=8 * 86_400_000)
    runs("often", "failure", "timed_out", "success", tests=("test_a", "test_b"))
    runs("healed", "failure").call("completed", 2000, conclusion="success", run_attempt=2).wait_result(attempt="2")
    runs("well", "cancelled", "success")
    last = runs("last", "failure", tests=("test_a",))

    def failures():
        found = [one for one in reporter.relay.api("/api/crcr/repos/org/three")["failures"] if one["job_name"] in ("old", "often", "healed", "well", "last")]
        return found and found[0]["delivery_id"] == last.delivery and found
    found = wait_for("the last one", failures)
    assert [(one["workflow_name"], one["job_name"], [test["name"] for test in one["tests"]]) for one in found] == [
        ("ci", "last", ["test_a"]), ("ci", "often", ["test_a", "test_b"]), ("ci", "often", ["test_a", "test_b"])]
    older = reporter.relay.api("/api/crcr/repos/org/three?before=1")
    assert older["failures"] == older["events"] == []


# ---- which jobs count, and which delivery -----------------------------------------------------------

def listed(reporter, number, query=""):
    """That pull request in the list, and of each back end how it is."""
    row = next((one for one in reporter.relay.api(f"/api/crcr/prs?q={number}{query}")["prs"] if one["pr_number"] == number), None)
    return row and (row, {one["repo"]: one["conclusion"] or one["status"] for one in row["downstreams"]})


def test_a_failure_of_a_pull_request_says_whether_it_is_known(reporter, rich):
    """Where a delivery is shown; test_reporter_known.py has the reasons."""
    expected = {"reason": "only_here", "sentence": "only here", "since_sha": None, "since_at": None, "since_or_earlier": False,
                "flaky_commits": None, "commits": None, "other_pull_requests": 0}
    assert [job["known"] for job in reporter.relay.api(f"/api/crcr/deliveries/{rich.delivery}")["jobs"]] == [expected]
    shown = {one["delivery_id"]: one["jobs"] for one in reporter.relay.api("/api/crcr/prs/801")["deliveries"]}
    assert [job["known"] for job in shown[rich.delivery]] == [expected]
    assert {job["known"] for job in reporter.relay.api("/api/crcr/repos/org/three")["jobs"]} == {None}


def test_what_a_newer_run_replaced_is_left_out_as_by_the_check_run(reporter):
    """A CI that builds again under a new id."""
    job = Job(reporter, pr=811).outcome("dispatched", action="opened")
    label_event(job, "opened", [], "", 1)
    job.call("in_progress", 1000).call("completed", 3000, conclusion="failure")
    wait_for("the failure", lambda: (found := listed(reporter, 811, "&state=failing")) and found[1]["org/four"] == "failure")
    again = {"run_id": job.workflow["run_id"] + 1, "check_run_id": "again"}
    job.call("in_progress", 20_000, **again).call("completed", 30_000, conclusion="success", run_complete=True, **again)
    wait_for("the check run", lambda: [one for one in reporter.checks(job.sha)
                                       if one["name"] == "crcr/org/four" and one["conclusion"] == "success"])
    row, how = wait_for("the list", lambda: (found := listed(reporter, 811, "&state=passing")) and found)
    assert how == {"org/four": "success"} and [row["downstreams"][0][name] for name in ("jobs", "failed")] == [1, 0]
    for path in (f"deliveries/{job.delivery}", "repos/org/four"):
        jobs = [one for one in reporter.relay.api(f"/api/crcr/{path}")["jobs"] if one["delivery_id"] == job.delivery]
        assert {one["conclusion"]: one["replaced"] for one in jobs} == {"failure": True, "success": False}, path


def test_a_closed_pull_request_keeps_the_states_of_its_last_run(reporter):
    job = Job(reporter, pr=812).outcome("dispatched", action="opened")
    job.call("completed", 3000, conclusion="failure")
    closed = Job(reporter, pr=812)
    closed.sha = job.sha
    closed.outcome("dispatched", 50_000, action="closed")
    label_event(closed, "closed", [], "", 1)
    wait_for("both", lambda: len((reporter.relay.api("/api/crcr/prs/812") or {"deliveries": []})["deliveries"]) == 2)
    row, how = wait_for("the list", lambda: (found := listed(reporter, 812, "&state=failing")) and found)
    assert (row["delivery_id"], how) == (job.delivery, {"org/four": "failure"})


@pytest.mark.parametrize("repo, level, pr", [("org/four", "L4", 813), ("org/three", "L3", 816)])
def test_a_back_end_that_never_reports_is_timed_out_in_the_list(reporter, repo, level, pr):
    """At L3 no check run says so. Closing a pull request is not waited for."""
    for number, action in ((pr, "opened"), (pr + 1000, "closed")):
        job = Job(reporter, repo, level, pr=number)
        job.started_ms -= 2 * 86_400_000
        job.outcome("dispatched", action=action)
        label_event(job, action, [], "", 1)
    assert wait_for("the list", lambda: (found := listed(reporter, pr, "&state=failing")) and found)[1] == {repo: "timed_out"}
    assert wait_for("the other", lambda: (found := listed(reporter, pr + 1000)) and found[1]) == {repo: None}


def test_a_back_end_that_blocks_and_was_not_reached_fails_in_the_list(reporter):
    job = Job(reporter, "org/two", "L2", pr=815).outcome("dispatched", action="opened")
    job.call("completed", 3000, conclusion="success")
    label_event(job, "opened", [], "", 1)
    assert wait_for("the list", lambda: (found := listed(reporter, 815, "&state=passing")) and found)[1] == {"org/two": "success"}
    four = Job(reporter, pr=815)
    four.delivery, four.sha = job.delivery, job.sha
    four.outcome("failed", action="opened", http_status=404)
    wait_for("it to fail", lambda: listed(reporter, 815, "&state=failing"))
    wait_for("it to pass no more", lambda: not listed(reporter, 815, "&state=passing"))  # an answer is kept for 2 s


# ---- one rendering for all --------------------------------------------------------------------------

def test_an_answer_that_the_client_has_is_304_and_one_of_the_last_2_s_is_not_made_again(reporter, rich):
    path = f"/api/crcr/deliveries/{rich.delivery}"
    etag = etag_of(reporter, path)
    status, headers, body = get(reporter, path, If_None_Match=f'"other", W/{etag}')
    assert (status, headers["ETag"], body) == (304, etag, "")
    client = reporter.redis.client()

    def reads():
        return client.info("commandstats")["cmdstat_hgetall"]["calls"]
    before = reads()
    assert {get(reporter, path)[0] for _ in range(50)} == {200}
    assert reads() - before < 25, "one job, so one read a rendering"
    assert etag_of(reporter, f"{path}?limit=1000&unknown=2") == etag, "the same bytes have the same name"


def test_only_paths_of_the_api_are_answered(reporter):
    for path in ("/api/crcr/nothing", "/api/crcr/repos/org", "/api/crcr/prs/0", "/api/crcr/live", "/api/crcr/live?of=%2Fprs",
                 f"/api/crcr/prs?q={'x' * 2000}"):
        assert get(reporter, path)[0] == 404, path


def test_a_browser_gets_a_page_for_what_is_none_and_others_json(reporter):
    browser = "text/html,application/xhtml+xml,*/*;q=0.8"
    for path in ("/prz", "/pr/abc", "/delivery/a_b", "/repo/org", "/repo/org/four/x"):
        status, headers, body = get(reporter, path, Accept=browser)
        assert (status, headers["Content-Type"]) == (404, "text/html; charset=utf-8") and "/assets/app-" in body, path
        status, headers, body = get(reporter, path, Accept="application/json")
        assert (status, json.loads(body)) == (404, {"detail": "no such path"}) and headers["Content-Type"] == "application/json", path
    assert json.loads(get(reporter, "/api/crcr/nothing", Accept=browser)[2]) == {"detail": "no such path"}
    assert get(reporter, "/pr/7", Accept=browser)[0] == get(reporter, "/repo/no/such/since")[0] == 200


# ---- live -------------------------------------------------------------------------------------------

def test_a_live_request_is_answered_when_the_answer_changes(reporter):
    job = Job(reporter, "org/two", "L2", pr=802).outcome("dispatched").call("in_progress", 1000)
    job.wait_result("in_progress")
    path = "/api/crcr/prs/802"
    etag = wait_for("the job", lambda: "in_progress" in get(reporter, path)[2] and etag_of(reporter, path))
    waiting = live(reporter, path, etag)
    other = live(reporter, path, "0" * 32, Last_Event_ID=etag.strip('"'))  # as an EventSource that comes again
    job.call("completed", 5000, conclusion="success")
    status, headers, text = waiting.result()
    assert (status, headers["Content-Type"]) == (200, "text/event-stream")
    event = re.fullmatch(r"retry: 500\nid: ([0-9a-f]{32})\nevent: changed\ndata: \{\}\n\n", text)
    assert event, text
    assert "success" in get(reporter, path)[2] and etag_of(reporter, path) == f'"{event[1]}"'
    assert event[1] in other.result()[2], "what Last-Event-ID says goes before the address"
    assert event[1] in live(reporter, path, etag).result(5)[2], "who has an old one need not wait"


def test_a_live_request_follows_all_that_it_names(reporter, rich):
    job = Job(reporter, "org/two", "L2", pr=803).outcome("dispatched").call("in_progress", 1000)
    job.wait_result("in_progress")
    first, second = f"/api/crcr/deliveries/{rich.delivery}", "/api/crcr/prs/803"
    tags = [wait_for("the job", lambda path=path: get(reporter, path)[0] == 200 and etag_of(reporter, path)).strip('"') for path in (first, second)]
    waiting = live(reporter, f"{first}&of={second}", ".".join(tags), plain=True)
    job.call("completed", 5000, conclusion="success")
    event = re.search(r"id: ([0-9a-f]{32})\.([0-9a-f]{32})\nevent: changed", waiting.result()[2])
    assert event and event[1] == tags[0] and event[2] != tags[1]
    assert get(reporter, "/api/crcr/live?etag=x" + 9 * f"&of={first}")[0] == 404, "no more than eight"


def test_whoever_waits_is_sent_to_ask_when_redis_is_unavailable(reporter, rich):
    path = f"/api/crcr/deliveries/{rich.delivery}"
    waiting = live(reporter, path, etag_of(reporter, path))
    reporter.redis.process.signal(signal.SIGSTOP)
    try:
        assert "id:" not in waiting.result()[2] and "changed" in waiting.result()[2]
        assert get(reporter, path)[0] == 503
    finally:
        reporter.redis.process.signal(signal.SIGCONT)
    wait_for("it to be back", lambda: get(reporter, path)[0] == 200)


def test_what_strangers_read_names_no_component_and_no_host(reporter, rich):
    """What and why is in the log."""
    reporter.redis.process.signal(signal.SIGSTOP)
    try:
        for path in ("/api/crcr/prs", "/api/crcr/summary", f"/api/crcr/deliveries/{rich.delivery}", "/repo/org/four/badge.svg"):
            body = wait_for("it to be gone", lambda path=path: (found := get(reporter, path))[0] == 503 and found[2])
            assert json.loads(body) == {"detail": "the view is unavailable, try again"}, path
        wait_for("the budget to be unknown", lambda: json.loads(get(reporter, "/api/crcr/health")[2])["budget"]["error"] == "the view is unavailable")
    finally:
        reporter.redis.process.signal(signal.SIGCONT)
    log = reporter.relay.parts["reporter"].text()
    assert re.search(r'"event":"pipeline_not_seen".*edis', log) and re.search(r'"event":"page_failed".*edis', log)
    wait_for("it to be back", lambda: get(reporter, "/api/crcr/prs")[0] == 200)


@pytest.mark.long  # 20 s
def test_a_live_request_ends_after_20_s_without_a_change(reporter, rich):
    path = f"/api/crcr/deliveries/{rich.delivery}"
    assert live(reporter, path, etag_of(reporter, path)).result()[2] == "retry: 500\nevent: unchanged\ndata: {}\n\n"


def test_live_requests_end_with_the_server(reporter, rich):
    """The last one here."""
    path = f"/api/crcr/deliveries/{rich.delivery}"
    etag = etag_of(reporter, path)
    waiting = [live(reporter, path, etag) for _ in range(5)]
    wait_for("all to wait", lambda: reporter.relay.metric("reporter", "crcr_pages_waiting") == 5)
    reporter.relay.parts["reporter"].stop()
    for one in waiting:
        assert "leaving" in one.result()[2]
