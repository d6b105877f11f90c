"""What ingest takes and answers is what ingest/openapi.json says: in both directions, for each field."""
import concurrent.futures
import copy
import http.client
import itertools
import json
import random
import re
import threading

import jsonschema
import pytest

from ingest_env import BUILDKITE, ORGANIZATION, PIPELINE, SHA, callback, callback_token, detail
from lib.processes import ROOT

DOCUMENT = json.loads((ROOT / "ingest" / "openapi.json").read_text())
SCHEMAS = DOCUMENT["components"]["schemas"]


# ---- the schema ---------------------------------------------------------------------------------------

def max_bytes(_, limit, value, __):
    if isinstance(value, str) and len(value.encode("utf-8", "surrogatepass")) > limit:
        yield jsonschema.ValidationError(f"more than {limit} bytes")


CLASS = jsonschema.validators.extend(jsonschema.Draft202012Validator, {"x-maxBytes": max_bytes})
FORMATS = jsonschema.FormatChecker(())
FORMATS.checks("date-time")(lambda value: not isinstance(value, str) or bool(
    re.fullmatch(r"(19[7-9]|20\d)\d-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)", value)))


def validator(schema):
    return CLASS({**schema, "components": DOCUMENT["components"]}, format_checker=FORMATS)


CALLBACK = validator(SCHEMAS["Callback"])


def fault_of(document):
    """Why the schema refuses it, or None."""
    found = next(CALLBACK.iter_errors(document), None)
    return found and f"{list(found.absolute_path)}: {found.message[:200]}"


def faults(path, method, status, body):
    """What the description does not say of an answer."""
    answer = DOCUMENT["paths"][path][method]["responses"][str(status)]
    return [one.message[:300] for one in validator(answer["content"]["application/json"]["schema"]).iter_errors(body)]


def resolved(schema):
    return SCHEMAS[schema["$ref"].rsplit("/", 1)[-1]] if "$ref" in schema else schema


def left_out(value, schema, path=""):
    """Paths of the members that the schema accepts, and says are not read as they come."""
    schema = resolved(schema)
    if value in (None, ""):
        return
    if "x-readIf" in schema and not validator(schema["x-readIf"]).is_valid(value):
        yield path
    if isinstance(value, dict) and path != "payload":
        known = schema.get("properties", {})
        for name, inner in value.items():
            inner_path = f"{path}.{name}" if path else name
            if name not in known and "properties" in schema:
                yield inner_path
            else:
                yield from left_out(inner, known.get(name, {}), inner_path)
    elif isinstance(value, list):
        for inner in value:
            yield from left_out(inner, schema.get("items", {}), path + "[]")


def warned_of(document):
    """The members that warnings must name."""
    workflow = document["workflow"]
    expected = set(left_out(document, SCHEMAS["Callback"]))
    missing = workflow["status"] == "completed" and not workflow.get("conclusion")
    if missing and document.get("event_type") not in ("nightly", "periodic"):
        expected.add("workflow.conclusion")
    rows = workflow.get("failed_tests_detail")
    if isinstance(rows, list) and not all(isinstance(row, dict) and isinstance(row.get("name"), str) and row["name"] for row in rows):
        expected.add("workflow.failed_tests_detail")
    return expected


# ---- documents ----------------------------------------------------------------------------------------

GONE = object()
VERDICT = {"schema_version": 1, "category": "upstream", "confidence": "high", "summary": "It broke."}
VALUES = [
    GONE, None, True, False, 0, 1, -1, 17, 1.5, 10**9, 10**9 + 1, 2**63 - 1, 2**63, [], {}, ["x"], ["\0"], {"a": 1}, "", " ", "0",
    "000", "17", "1000000001", "true", "x y", "a\tb", "\n", "a\n", "\0", "a\0", "\ud83d", "\u200f", "a\u202eb", "\u0085", "\u00a0",
    "\x7f", "\u061c", "😀", "d-1", "d_1", "nightly", "periodic", "push", "in_progress", "completed", "timed_out", "success", "Success",
    "stale", "https://x.example/a", "https://x.example/a b", "http://x.example/", "https://x.example/" + "y" * 2030,
    "https://x.example/" + "y" * 2031, "2026-11-21T03:20:00Z", "1969-12-31T23:59:59Z", "yesterday", SHA, SHA[:39],
    *(unit * (size // len(unit.encode()) + more) for size in (31, 64, 128, 160, 255, 512, 1024, 4095, 4096) for unit in ("x", "é")
      for more in (0, 1))]
PATHS = ["event_type", "delivery_id", "callback_token", "pytorch_head_sha", "payload", "payload.head_sha", "payload.after",
         "payload_trimmed", "unheard_of", "workflow", *(f"workflow.{name}" for name in SCHEMAS["Workflow"]["properties"]),
         "workflow.unheard_of", *(f"workflow.test_results.{name}" for name in ("passed", "failed", "skipped", "total", "errors")),
         *(f"workflow.failed_tests_detail.{name}" for name in ("name", "classname", "message", "stacktrace", "duration", "file"))]
BASES = [
    callback(job_name="build", run_attempt=1, started_at="2026-11-21T03:20:00Z"),
    callback("completed", conclusion="failure", test_results={"passed": 1, "failed": 1, "skipped": 0, "total": 2},
             failed_tests_detail=[{"name": "t", "message": "no", "duration": 0.5}], triage_verdict=VERDICT, run_complete=True),
    callback("completed", event_type="nightly", delivery=SHA),
]
VERDICTS = [VERDICT, {**VERDICT, "schema_version": "1"}, {**VERDICT, "schema_version": 2}, {**VERDICT, "category": "weather"},
            {**VERDICT, "summary": "  "}, {**VERDICT, "summary": "s" * 5000}, {**VERDICT, "suspected_upstream": {"pr": 0}},
            {**VERDICT, "suspected_upstream": {"pr": 7, "commit": SHA}}, {**VERDICT, "suspected_upstream": {"commit": "abc"}},
            {**VERDICT, "evidence": [{"job": "build", "log_url": "ftp://x"}]}, {**VERDICT, "evidence": [1]},
            {**VERDICT, "evidence": [{"job": "build", "log_url": "https://x.example/log"}]}, {**VERDICT, "reproduced_on_retry": 1}]


def changed(document, path, value):
    """A copy with that member; a row of failed_tests_detail is the first one."""
    document = at = copy.deepcopy(document)
    *outer, name = path.split(".")
    for step in outer:
        if isinstance(at, dict):
            at = at.setdefault(step, [{}] if step == "failed_tests_detail" else {})
            at = at[0] if isinstance(at, list) and at else at
    if isinstance(at, dict):
        at.pop(name, None) if value is GONE else at.update({name: copy.deepcopy(value)})
    return document


def documents():
    """Each value of each member once, and others by chance, always the same."""
    yield from BASES
    for number, (path, value) in enumerate(itertools.product(PATHS, VALUES)):
        yield changed(BASES[number % len(BASES)], path, value)
    yield from (changed(BASES[0], "workflow.triage_verdict", verdict) for verdict in VERDICTS)
    chance = random.Random(20261128)
    for _ in range(1500):
        document = chance.choice(BASES)
        for _ in range(chance.randint(1, 4)):
            document = changed(document, chance.choice(PATHS), chance.choice(VALUES))
        yield document


@pytest.fixture
def buildkite(issuer):
    """Its jobs report on any run."""
    return issuer.token(issuer=BUILDKITE, without=["repository"], organization_id=ORGANIZATION, pipeline_id=PIPELINE, build_branch="main")


def answers_of(ingest, token, bodies):
    """(status, answer) of each body, over few connections."""
    local = threading.local()

    def ask(body):
        for _ in range(3):
            if not hasattr(local, "link"):
                local.link = http.client.HTTPConnection("127.0.0.1", ingest.port, timeout=60)
            try:
                local.link.request("POST", "/github/callback", body, {"Authorization": f"Bearer {token}"})
                answer = local.link.getresponse()
                return answer.status, json.loads(answer.read())
            except (http.client.RemoteDisconnected, ConnectionResetError, BrokenPipeError):
                del local.link  # a refusal closes it
        raise AssertionError("no answer")
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        return list(pool.map(ask, bodies))


# ---- both directions ----------------------------------------------------------------------------------

def test_the_schema_and_ingest_take_the_same(ingest, buildkite, redis_node):
    redis_node.client().delete("crcr:epoch")  # no dispatch need be known
    every = list(documents())
    taken = refused = 0
    wrong = []
    for document, (status, answer) in zip(every, answers_of(ingest, buildkite, map(json.dumps, every))):
        fault = fault_of(document)
        said = faults("/github/callback", "post", status, answer)
        assert status in (200, 400, 403) and not said, (status, answer, said)
        taken, refused = taken + (status != 400), refused + (status == 400)
        if (status == 400) != bool(fault):
            wrong.append(f"{status} {answer}, the schema: {fault}\n{json.dumps(document)[:600]}")
        elif status == 200 and len(answer.get("warnings", [])) <= 10:
            named = {re.split(r"[ :]", one)[0] for one in answer.get("warnings", []) if not one.startswith("no commit")}
            if named != warned_of(document):
                wrong.append(f"{answer}, to be named: {warned_of(document)}\n{json.dumps(document)[:600]}")
    print(f"wire: {taken} documents taken, {refused} refused")
    assert not wrong, f"{len(wrong)} documents:\n" + "\n\n".join(wrong[:10])
    assert taken > 2000 and refused > 1000


@pytest.mark.parametrize("old, new, says", [
    (b'"run_id": 99', b'"run_id": 99.0', "workflow.run_id must be"), (b'"run_id": 99', b'"run_id": 9.9e1', "workflow.run_id must be"),
    (b'"run_id": 99', b'"run_id": 99, "run_attempt": -0', "workflow.run_attempt must be"),
    (b'"run_id": 99', b'"run_id": 99, "run_id": 99', "twice"), (b'"number": 42', b'"number": 42, "number": 42', "twice"),
    (b'"number": 42', b'"number": ' + b"[" * 63 + b"]" * 63, "nested too deeply"), (b'"name": "CI"', b'"name": "C\xff"', "invalid UTF-8"),
    (b'"number": 42', b'"number": 042', "begins with 0"), (b'"number": 42', b'"number": NaN', "no value of JSON"),
])
def test_what_no_schema_can_say_is_said_in_words(ingest, issuer, old, new, says):
    whole = json.dumps(callback(token=callback_token())).encode()
    body = whole.replace(old, new)
    assert whole.count(old) == 1 and ingest.callback(whole, issuer.token())[0] == 200
    status, answer, _ = ingest.callback(body, issuer.token())
    assert status == 400 and says in detail(answer), answer


def test_every_field_that_is_read_is_described():
    code = (ROOT / "common" / "model" / "callback.c").read_text()
    read = set(re.findall(r'"((?:workflow|payload)\.[\w.\[\]]+)"', code)) | set(re.findall(r'FIELD\("([\w.]+)"', code))
    read = {path.replace("[]", "") for path in read} - {"workflow.run_id is "}
    for path in read:
        schema = SCHEMAS["Callback"]
        for name in path.split("."):
            schema = resolved(schema)
            schema = schema.get("properties", schema.get("items", {}).get("properties"))[name]
    assert len(read) > 20


# ---- the answer says what was left out ----------------------------------------------------------------

def answer_to(ingest, issuer, raw=None, **workflow):
    body = callback("completed", token=callback_token(), **{"conclusion": "success", **workflow})
    status, answer, _ = ingest.callback(raw or body, issuer.token())
    assert status == 200, answer
    answer = json.loads(answer)
    assert faults("/github/callback", "post", 200, answer) == []
    return answer


@pytest.mark.parametrize("workflow, says", [
    ({"url": "http://x.example/"}, "workflow.url is not an https:// URL without blanks, of at most 2048 bytes: left out"),
    ({"started_at": "now"}, "workflow.started_at is not a time in RFC 3339 from 1970 to 2099: left out"),
    ({"test_results": {"passed": "many"}}, "workflow.test_results.passed is not a whole number from 0 to 1000000000: left out"),
    ({"test_results": "3 passed"}, "workflow.test_results is no object: left out"),
    ({"failed_tests_detail": {}}, "workflow.failed_tests_detail is no array: left out"),
    ({"failed_tests_detail": [{"name": "t", "message": "x" * 1025}]}, "workflow.failed_tests_detail[].message is longer than 1024 bytes: cut"),
    ({"failed_tests_detail": [{"name": "t"}] * 1002}, "workflow.failed_tests_detail: 2 left out; kept are 1000 that have a name"),
    ({"environment": "x" * 300}, "workflow.environment has 300 bytes: cut to 255"),
    ({"triage_verdict": {"category": "backend"}}, "workflow.triage_verdict is not as described: left out"),
    ({"run_complete": "yes"}, "workflow.run_complete is neither true nor false: left out"),
    ({"conclusion": None}, "workflow.conclusion is missing: counts as failure"),
    ({"conclusions": "success"}, "workflow.conclusions is not known: left out"),
    ({"a\x1b\"b": 1}, "workflow.a\x1b\"b is not known: left out"),
])
def test_what_is_left_out_is_named(ingest, issuer, workflow, says):
    assert answer_to(ingest, issuer, **workflow) == {"ok": True, "status": "completed", "warnings": [says]}


def test_warnings_have_an_end_and_come_once(ingest, issuer):
    many = {f"unknown_{number}": 1 for number in range(15_000)}
    said = answer_to(ingest, issuer, **many)["warnings"]
    assert said == [*(f"workflow.unknown_{number} is not known: left out" for number in range(10)), "more was left out"]
    assert len(answer_to(ingest, issuer, **{"x" * 500_000: 1, "failed_tests_detail": [{"name": 1}] * 900})["warnings"]) == 3


def test_what_is_as_described_has_no_warnings(ingest, issuer, redis_node):
    assert answer_to(ingest, issuer, url="", started_at=None, check_run_id=0) == {"ok": True, "status": "completed"}
    whole = {**callback(token=callback_token()), "payload": {"any": {"thing": [1]}, "head_sha": "x"}, "payload_trimmed": ["a"]}
    status, answer, _ = ingest.callback(whole, issuer.token())
    assert (status, json.loads(answer)) == (200, {"ok": True, "status": "in_progress"})


def test_a_nightly_run_without_a_commit_is_told(ingest, issuer):
    status, answer, _ = ingest.callback(callback("completed", event_type="nightly", delivery="2026-11-28", conclusion="success"), issuer.token())
    assert status == 200 and json.loads(answer)["warnings"] == [
        "no commit of 40 or 64 hex digits in payload.head_sha, payload.after, pytorch_head_sha or delivery_id"]


@pytest.mark.parametrize("repo, reason", [("org/unknown", "not_listed"), ("org/one", "level_1"), ("org/pulls", "event_not_wanted")])
def test_ignored_has_a_reason(ingest, issuer, repo, reason):
    body = callback("completed", event_type="nightly", delivery=SHA)
    status, answer, _ = ingest.callback(body, issuer.token(repo))
    answer = json.loads(answer)
    assert (status, answer) == (200, {"ok": True, "status": "ignored", "reason": reason})
    assert faults("/github/callback", "post", 200, answer) == []


def test_a_body_that_is_cut_short_names_the_byte_at_which_it_ends(ingest, issuer):
    whole = json.dumps({**callback(token=callback_token(), done=True), "name": "é\\"}, ensure_ascii=False).encode()
    whole = whole.replace("é".encode(), "é\\u00e9".encode())
    for length in range(1, len(whole)):
        status, answer, _ = ingest.callback(whole[:length], issuer.token())
        assert status == 400 and re.fullmatch(rf"JSON, byte {length}: .*; the text ends there", detail(answer)), (whole[:length], answer)


def test_a_missing_callback_token_is_said(ingest, issuer):
    status, answer, _ = ingest.callback_checked(callback(delivery="nobody-knows"), issuer.token())
    assert status == 400 and faults("/github/callback", "post", 400, json.loads(answer)) == []
    assert detail(answer) == ("no matching dispatch record, and the body has no callback_token: send back the whole client_payload of "
                              "the dispatch, unchanged")
