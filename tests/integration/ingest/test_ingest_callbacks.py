"""POST /github/callback, against real Kafka and Redis and an OIDC issuer of the test's own."""
import concurrent.futures
import contextlib
import json
import random
import re
import socket
import time
import uuid

import jwt
import pytest

from ingest_env import (ACTIONS, BUILDKITE, ORGANIZATION, PIPELINE, SHA, Ingest, Issuer, callback,
                        callback_token, detail, payload)
from lib.processes import wait_for

TWO_JOB = "crcr:job:Org%2FTwo/d-1/CI/CI/99-1"


def test_callback_with_token_stands_in_callbacks_byte_for_byte(ingest, issuer):
    raw = json.dumps(callback(delivery="cb-1", token=callback_token(delivery_id="cb-1")), indent=1)
    status, answer, _ = ingest.callback(raw.encode(), issuer.token("ORG/two"))
    assert (status, json.loads(answer)) == (200, {"ok": True, "status": "in_progress"})
    [record] = ingest.records("callbacks", "cb-1")
    assert record.value == raw.encode()
    assert record.key == "cb-1/Org/Two"
    head = dict(record.headers)
    assert abs(int(head.pop("received_ms")) - time.time() * 1000) < 60000
    assert head == {"repo": "Org/Two", "level": "L2", "issuer": ACTIONS, "run_attempt": "1", "provenance": "token",
                    "delivery": "cb-1", "pr": "42", "head_sha": SHA, "dispatched_ms": "1763700000001"}


def forged(issuer, kind):
    now = int(time.time())
    good = {"iss": ACTIONS, "aud": "pytorch-cross-repo-ci-relay", "repository": "Org/Two",
            "iat": now, "nbf": now, "exp": now + 300}
    return {
        "none": lambda: None,
        "no JWT": lambda: "abc",
        "alg none": lambda: jwt.encode(good, None, algorithm="none", headers={"kid": "kid-1"}),
        "HS256": lambda: jwt.encode(good, "s" * 32, algorithm="HS256", headers={"kid": "kid-1"}),
        "another key": lambda: issuer.token(key=Issuer().keys["kid-1"]),
        "expired": lambda: issuer.token(exp=now - 61),
        "not yet valid": lambda: issuer.token(nbf=now + 90),
        "another audience": lambda: issuer.token(aud="somebody-else"),
        "another issuer": lambda: issuer.token(issuer="https://evil.example"),
        "no repository": lambda: issuer.token(without=["repository"]),
    }[kind]()


@pytest.mark.parametrize("kind", ["none", "no JWT", "alg none", "HS256", "another key", "expired",
                                  "not yet valid", "another audience", "another issuer",
                                  "no repository"])
def test_bad_oidc_token_is_401(ingest, issuer, kind):
    status, answer, _ = ingest.callback(callback(token=callback_token()), forged(issuer, kind))
    assert status == 401 and detail(answer)


def test_clocks_may_differ_by_60_s(ingest, issuer):
    now = int(time.time())
    body = callback(token=callback_token())
    assert ingest.callback(body, issuer.token(exp=now - 40))[0] == 200
    assert ingest.callback(body, issuer.token(nbf=now + 40))[0] == 200


@pytest.mark.parametrize("body", [b"", b"[]", b"{", b'{"a":1,"a":2}', b'{"a":{"b":1,"\\u0062":2}}',
                                  b'{"a":"\xff"}', b'{"delivery_id":"\\u0000"}', b'{"delivery_id":"\\ud83d"}',
                                  b'{"a":' + b"[" * 64 + b"]" * 64 + b"}"])
def test_callback_that_two_parsers_could_read_differently_is_400(ingest, issuer, body):
    status, answer, _ = ingest.callback(body, issuer.token())
    assert status == 400 and detail(answer)


def test_token_is_checked_before_the_body(ingest):
    assert ingest.callback(b"{", None)[0] == 401


def test_callback_over_2_mib_is_413(ingest, issuer):
    """By what it declares: a client that sends all of it before it reads may see a reset instead."""
    head = (f"POST /github/callback HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {issuer.token()}\r\n"
            f"Content-Length: {2 * 1024 * 1024 + 1}\r\n\r\n")
    with socket.create_connection(("127.0.0.1", ingest.port), 20) as link:
        link.sendall(head.encode())
        answer = link.recv(4096)
        assert answer.startswith(b"HTTP/1.1 413") and b"the body is too large; at most 2097152 bytes are accepted" in answer


@pytest.mark.parametrize("repo, reason", [("org/unknown", "not_listed"), ("org/one", "level_1")])
def test_unlisted_and_level_1_repos_are_ignored(ingest, issuer, repo, reason):
    status, answer, _ = ingest.callback(b"{}", issuer.token(repo))
    assert (status, json.loads(answer)) == (200, {"ok": True, "status": "ignored", "reason": reason})


@pytest.mark.parametrize("changes", [
    {"delivery": ""}, {"status": "queued"}, {"status": "completed", "conclusion": 1}, {"run_id": 0}, {"name": ""},
    {"status": "completed", "conclusion": "splendid"}, {"job_name": "build\u202egnp"}, {"name": "CI\x1b[31m"},
])
def test_bad_fields_are_400(ingest, issuer, changes):
    status, answer, _ = ingest.callback(callback(token=callback_token(), **changes), issuer.token())
    assert status == 400 and detail(answer)


@pytest.mark.parametrize("changes", [
    {"delivery_id": "d-2"}, {"repo": "org/three"}, {"exp": 1}, {"key": "k1:" + "x" * 32},
    {"key": "k9:" + "s" * 32}, None,
])
def test_bad_callback_token_is_403(ingest, issuer, changes):
    token = "abc" if changes is None else callback_token(**changes)
    status, answer, _ = ingest.callback(callback(token=token), issuer.token())
    assert status == 403 and detail(answer)


def buildkite_claims(**changes):
    return {"issuer": BUILDKITE, "without": ["repository"], "organization_id": ORGANIZATION,
            "pipeline_id": PIPELINE, "build_branch": "main", **changes}


def test_buildkite_speaks_for_the_repo_it_is_registered_for(ingest, issuer):
    body = callback(delivery="bk-1", token=callback_token(delivery_id="bk-1", repo="org/four"),
                    run_id="018e5c1a-0000-4000-8000-000000000000")
    assert ingest.callback(body, issuer.token(**buildkite_claims()))[0] == 200
    [record] = ingest.records("callbacks", "bk-1")
    assert record.headers["repo"] == "org/four" and record.headers["issuer"] == BUILDKITE
    assert record.headers["level"] == "L4" and "run_attempt" not in record.headers


@pytest.mark.parametrize("status,changes", [
    (403, {"pipeline_id": ORGANIZATION}), (403, {"build_branch": "dev"}),
    (401, {"without": ["repository", "pipeline_id"]}),
])
def test_buildkite_without_registration(ingest, issuer, status, changes):
    body = callback(token=callback_token(repo="org/four"))
    assert ingest.callback(body, issuer.token(**buildkite_claims(**changes)))[0] == status


def test_dispatch_record_proves_a_callback_without_a_token(ingest, issuer, redis_node):
    redis_node.client().hset("crcr:claim:rec-1|org/two|dispatch|", mapping={
        "state": "done", "pr": "7", "head_sha": SHA, "level": "2", "event_type": "pull_request",
        "dispatched_ms": "1763700000500"})
    assert ingest.callback_checked(callback(delivery="rec-1"), issuer.token())[0] == 200
    record = ingest.records("callbacks", "rec-1")[-1]
    assert record.headers["provenance"] == "record"
    assert (record.headers["pr"], record.headers["head_sha"]) == ("7", SHA)
    assert record.headers["dispatched_ms"] == "1763700000500"


def test_no_record_in_a_consistent_view_is_400(ingest, issuer):
    status, answer, _ = ingest.callback_checked(callback(delivery="nobody-knows"), issuer.token())
    assert status == 400 and detail(answer).startswith("no matching dispatch record")


def version_1_id(age_s):
    ticks = int((time.time() - age_s) * 1e7) + 0x01B21DD213814000
    return (f"{ticks & 0xffffffff:08x}-{ticks >> 32 & 0xffff:04x}-1{ticks >> 48 & 0xfff:03x}-"
            f"8000-{random.randrange(1 << 48):012x}")


def test_record_may_be_late_by_60_s(ingest, issuer):
    fresh = version_1_id(5)
    assert ingest.callback(callback(delivery=fresh), issuer.token())[0] == 200
    assert ingest.records("callbacks", fresh)[0].headers["provenance"] == "pending"
    assert ingest.callback_checked(callback(delivery=version_1_id(70)), issuer.token())[0] == 400


def test_callback_is_pending_while_the_view_is_rebuilt(ingest, issuer, redis_node):
    redis_node.client().delete("crcr:epoch")
    assert ingest.callback(callback(delivery="pend-1"), issuer.token())[0] == 200
    [record] = ingest.records("callbacks", "pend-1")
    assert record.headers["provenance"] == "pending"
    assert "pr" not in record.headers and "head_sha" not in record.headers


def test_nightly_needs_neither_token_nor_record(ingest, issuer):
    body = callback("completed", delivery="night-1", event_type="nightly", conclusion=None)
    status, answer, _ = ingest.callback(body, issuer.token())
    said, [warning] = json.loads(answer), json.loads(answer)["warnings"]
    assert (status, said) == (200, {"ok": True, "status": "completed", "warnings": [warning]}) and "no commit" in warning
    assert ingest.records("callbacks", "night-1")[0].headers["provenance"] == "self"
    body = callback("in_progress", event_type="nightly")
    assert ingest.callback(body, issuer.token())[0] == 400


def test_view_tells_duplicates_and_contradictions(ingest, issuer, redis_node):
    view = redis_node.client()
    started = callback(token=callback_token())
    done = callback("completed", token=callback_token(), conclusion="success")
    for state, body, expected in [("in_progress", started, "duplicate"),
                                  ("in_progress", done, "completed"),
                                  ("completed", started, "duplicate"),
                                  ("completed", done, "duplicate")]:
        view.hset(TWO_JOB, mapping={"status": state, "conclusion": "success", "run_attempt": "1"})
        status, answer, _ = ingest.callback_checked(body, issuer.token())
        assert (status, json.loads(answer)) == (200, {"ok": True, "status": expected})
    failed = callback("completed", token=callback_token(), conclusion="failure")
    status, answer, _ = ingest.callback_checked(failed, issuer.token())
    assert status == 409 and "success" in detail(answer)


def test_none_is_the_same_conclusion_as_failure(ingest, issuer, redis_node):
    view = redis_node.client()
    for known, reported, expected in [("failure", None, 200), ("failure", "failure", 200), ("success", None, 409)]:
        view.hset(TWO_JOB, mapping={"status": "completed", "conclusion": known, "run_attempt": "1"})
        body = callback("completed", token=callback_token(), conclusion=reported)
        status, answer, _ = ingest.callback_checked(body, issuer.token())
        assert status == expected, (known, reported, answer)
        assert status == 409 or json.loads(answer)["status"] == "duplicate"


def test_another_attempt_under_the_same_check_run_id_is_news(ingest, issuer, redis_node):
    view = redis_node.client()
    own_id = TWO_JOB.rsplit("/", 1)[0] + "/own-id"
    view.hset(own_id, mapping={"status": "completed", "conclusion": "failure", "run_attempt": "1"})
    again = callback("completed", token=callback_token(), conclusion="success",
                     check_run_id="own-id", run_attempt=2)
    status, answer, _ = ingest.callback(again, issuer.token(run_attempt="2"))
    assert (status, json.loads(answer)) == (200, {"ok": True, "status": "completed"})


@pytest.mark.parametrize("claims, says", [
    ({"run_id": "98"}, "workflow.run_id differs from the claim run_id of the token; accepted is 98"),
    ({"run_attempt": "2"}, "workflow.run_attempt differs from the claim run_attempt of the token; accepted is 2"),
    ({"without": ["run_id"]}, "the token has no claim run_id"),
    ({"without": ["run_attempt"]}, "the token has no claim run_attempt"),
], ids=["another run", "another attempt", "no run_id", "no run_attempt"])
def test_a_job_of_actions_reports_on_its_own_run_only(ingest, issuer, claims, says):
    for body in (callback(delivery="run-1", token=callback_token(delivery_id="run-1"), run_attempt=1),
                 callback("completed", delivery="run-1", event_type="nightly", conclusion=None, run_attempt=1)):
        status, answer, _ = ingest.callback(body, issuer.token(**claims))
        assert status == 403 and says in detail(answer)
    assert ingest.records("callbacks", "run-1") == []


def test_a_name_that_was_registered_anew_is_403(ingest, issuer):
    body = callback(token=callback_token(repo="org/kept"))
    ours = {"repository_id": "71", "repository_owner_id": "7"}
    assert ingest.callback(body, issuer.token("org/kept", **ours))[0] == 200
    for anew in ({"repository_id": "72"}, {"repository_owner_id": "8"}):
        status, answer, _ = ingest.callback(body, issuer.token("org/kept", **{**ours, **anew}))
        assert status == 403 and "registered anew" in detail(answer)


def test_an_issuer_of_a_vendor_speaks_for_its_owners_only(own, issuer):
    vendor = "https://ci.vendor.example"
    one = own(CRCR_OIDC_ISSUERS=f"{vendor}={issuer.url} org")
    one.publish_allowlist()
    one.start().wait_ready()
    body = callback(token=callback_token())
    wait_for("the list", lambda: one.callback(body, issuer.token(issuer=vendor))[0] == 200)
    status, answer, _ = one.callback(body, issuer.token("other/two", issuer=vendor))
    assert status == 403 and "may not speak for the owner of other/two" in detail(answer)


def test_fields_are_checked_before_the_run(ingest, issuer):
    status, answer, _ = ingest.callback(callback("queued", token=callback_token()), issuer.token(run_id="98"))
    assert status == 400 and "workflow.status" in detail(answer)


def test_an_absent_run_attempt_is_the_claims(ingest, issuer, redis_node):
    """The body is stored as it came; the attempt goes along as a header. The view is asked for that attempt."""
    body = callback(delivery="run-2", token=callback_token(delivery_id="run-2"))
    redis_node.client().hset("crcr:job:Org%2FTwo/run-2/CI/CI/99-3", mapping={
        "status": "in_progress", "conclusion": "", "run_attempt": "3"})
    status, answer, _ = ingest.callback_checked(body, issuer.token(run_attempt="3"))
    assert (status, json.loads(answer)["status"]) == (200, "duplicate")
    record = ingest.records("callbacks", "run-2")[-1]
    assert record.headers["run_attempt"] == "3" and "run_attempt" not in json.loads(record.value)["workflow"]


def test_without_an_allowlist_callbacks_wait(own, issuer):
    vendor = "https://ci.vendor.example"
    one = own(CRCR_OIDC_ISSUERS=",".join(f"{iss}={issuer.url}{owner}" for iss, owner in (
        (ACTIONS, ""), (BUILDKITE, ""), (vendor, " org")))).start().wait_ready()
    buildkite = issuer.token(issuer=BUILDKITE, organization_id=ORGANIZATION, pipeline_id=PIPELINE,
                             without=["repository"])
    mapped = issuer.token(issuer=vendor, project_path="vendor/oot", without=["repository"])  # perhaps, once there is a file
    for token in issuer.token(), buildkite, mapped:
        for status, answer, headers in one.callback(callback(token=callback_token()), token), one.whoami(token):
            assert status == 503 and int(headers["Retry-After"]) > 0 and "allowlist" in detail(answer)
    one.publish_allowlist()
    wait_for("the callback to be taken",
             lambda: one.callback(callback(token=callback_token()), issuer.token())[0] == 200)


def test_the_tier_is_that_of_the_allowlist_in_force(own, issuer):
    one = own()
    one.publish_allowlist("L2: [Org/Two]\n")
    one.start().wait_ready()
    body = callback(delivery="tier-1", token=callback_token(delivery_id="tier-1"))

    def level():
        assert one.callback(body, issuer.token())[0] in (200, 503)
        stored = one.records("callbacks", "tier-1")
        return stored[-1].headers["level"] if stored else None
    wait_for("the first list", lambda: level() == "L2")
    one.publish_allowlist("L4:\n  - Org/Two: carol\n")
    wait_for("the second list", lambda: level() == "L4")
    one.publish_allowlist("L1: [Org/Two]\n")
    wait_for("the third list", lambda: json.loads(one.callback(body, issuer.token())[1])["status"] == "ignored")


def send_until_429(one, issuer, limit):
    """A bucket of ten minutes' worth, at one request a minute."""
    for number in range(limit):
        assert one.callback(callback(token=callback_token()), issuer.token())[0] == 200, number
    status, answer, headers = one.callback(callback(token=callback_token()), issuer.token())
    assert status == 429 and 1 <= int(headers["Retry-After"]) <= 60 and detail(answer)


def test_rate_limit_is_shared_through_redis(own, issuer, redis_node):
    redis_node.client().flushall()
    first = own(RATE_LIMIT_PER_MIN="1")
    second = own(prefix=first.prefix, RATE_LIMIT_PER_MIN="1")
    for one in (first, second):
        one.publish_allowlist()
        one.start().wait_ready()
        wait_for("the allowlist", lambda one=one: one.callback(b"{}", issuer.token("org/one"))[0] == 200)
    send_until_429(first, issuer, 10)
    assert second.callback(callback(token=callback_token()), issuer.token())[0] == 429
    other = callback(token=callback_token(repo="org/three"))
    assert second.callback(other, issuer.token("org/three"))[0] == 200
    # The limit is checked before the body is parsed, and so a body that is refused counts too.
    assert second.callback(b"{", issuer.token())[0] == 429
    assert [second.callback(b"{", issuer.token("org/hasty"))[0] for _ in range(11)] == [400] * 10 + [429]


def test_bytes_have_a_limit_too(own, issuer, redis_node):
    redis_node.client().flushall()
    one = own()
    one.publish_allowlist()
    one.start().wait_ready()
    wait_for("the allowlist", lambda: one.callback(b"{}", issuer.token("org/one"))[0] == 200)
    body = callback(token=callback_token())
    body["payload"] = {"x": "x" * (2 * 1024 * 1024 - 2000)}
    full = 600 * 1_000_000 + int(time.time() * 1e6)  # then the bucket holds nothing
    redis_node.client().hset("crcr:rate:org/two", mapping={"requests_full_us": 0, "bytes_full_us": full})
    status, _, headers = one.callback(body, issuer.token())
    assert status == 429 and 1 <= int(headers["Retry-After"]) <= 6  # 2 MiB of 20 a minute
    redis_node.client().delete("crcr:rate:org/two")
    assert one.callback(body, issuer.token())[0] == 200


def test_a_day_has_a_quota_of_bytes_for_each_repository(own, issuer, redis_node):
    redis_node.client().flushall()
    one = own(CRCR_CALLBACK_BYTES_DAY="3MiB")
    one.publish_allowlist()
    one.start().wait_ready()
    wait_for("the allowlist", lambda: one.callback(b"{}", issuer.token("org/one"))[0] == 200)
    body = callback(token=callback_token())
    body["payload"] = {"x": "x" * (2 * 1024 * 1024 - 2000)}

    def taken():  # and rated by Redis; callback_checked would send it again, as a large one takes long
        redis_node.client().flushall()
        before = one.rated_alone()
        assert one.callback(body, issuer.token())[0] == 200
        return one.rated_alone() == before
    wait_for("Redis to count one", taken)
    status, answer, headers = one.callback_checked(body, issuer.token())
    assert status == 429 and 1 <= int(headers["Retry-After"]) <= 86_400
    assert "the quota of 3145728 bytes of callbacks a day is used up; it ends at 20" in detail(answer)
    assert one.callback_checked(callback(token=callback_token()), issuer.token())[0] == 200  # a small one still fits
    other = callback(token=callback_token(repo="org/three"))
    assert one.callback_checked(other, issuer.token("org/three"))[0] == 200


def unknown_dispatch():
    """Of a delivery of this moment, which nobody dispatched."""
    return callback(delivery=str(uuid.uuid1()))


def test_few_callbacks_of_unknown_dispatches_are_stored_and_only_small_ones(ingest, issuer, redis_node):
    large = {**unknown_dispatch(), "payload": {"x": "x" * (64 * 1024)}}
    status, answer, headers = ingest.callback_checked(large, issuer.token())
    assert status == 429 and int(headers["Retry-After"]) == 60 and "at most 64 KiB" in detail(answer)
    assert [ingest.callback_checked(unknown_dispatch(), issuer.token())[0] for _ in range(10)] == [200] * 10
    status, answer, headers = ingest.callback_checked(unknown_dispatch(), issuer.token())
    assert status == 429 and 1 <= int(headers["Retry-After"]) <= 6 and "not known yet" in detail(answer)
    # One whose dispatch is known goes on, and so does another repository.
    assert ingest.callback(callback(token=callback_token()), issuer.token())[0] == 200
    assert ingest.callback(unknown_dispatch(), issuer.token("org/three"))[0] == 200
    redis_node.client().delete("crcr:epoch")  # now a missing record says nothing
    assert ingest.callback_checked(unknown_dispatch(), issuer.token())[0] == 200


def test_the_body_of_a_repo_that_is_not_listed_is_not_parsed(ingest, issuer):
    for garbage in (b"{", b"\xff", b'{"a":1,"a":2}', b"{" * (2 << 20)):
        status, answer, _ = ingest.callback(garbage, issuer.token("org/unknown"))
        assert (status, json.loads(answer)) == (200, {"ok": True, "status": "ignored", "reason": "not_listed"})


def test_more_than_20_000_members_are_400(ingest, issuer):
    body = callback(token=callback_token())
    body["payload"] = {f"k{number}": 1 for number in range(20_000)}
    status, answer, _ = ingest.callback(body, issuer.token())
    assert status == 400 and "too many members" in detail(answer)
    body["payload"] = {f"k{number}": 1 for number in range(19_000)}
    assert ingest.callback(body, issuer.token())[0] == 200


def test_redis_unavailable_local_limiter_decides_and_callbacks_are_pending(own, issuer):
    one = own(redis_endpoint="127.0.0.1:1", RATE_LIMIT_PER_MIN="1")
    one.publish_allowlist()
    one.start().wait_ready()
    wait_for("the allowlist", lambda: one.callback(b"{}", issuer.token("org/one"))[0] == 200)
    assert one.callback(callback(delivery="away-1"), issuer.token("org/three"))[0] == 200
    assert one.records("callbacks", "away-1")[0].headers["provenance"] == "pending"
    send_until_429(one, issuer, 10)
    assert "crcr_ingest_limiter_fallbacks_total 12" in one.get_admin("/metrics")[1]


def test_redis_unavailable_the_day_ends_at_midnight_utc_all_the_same(own, issuer):
    one = own(redis_endpoint="127.0.0.1:1", CRCR_CALLBACK_BYTES_DAY="1MiB")
    one.publish_allowlist()
    one.start().wait_ready()
    wait_for("the allowlist", lambda: one.callback(b"{}", issuer.token("org/one"))[0] == 200)
    body = callback(token=callback_token())
    body["payload"] = {"x": "x" * (2 * 1024 * 1024 - 2000)}
    status, answer, _ = one.callback(body, issuer.token())
    assert status == 429 and re.search(r"it ends at \d{4}-\d\d-\d\dT00:00:0[0-2]", detail(answer)), answer


def test_new_key_of_an_issuer_is_fetched_at_once_but_not_all_the_time(own, kafka_node, redis_node, tmp_path):
    rotating = Issuer()
    one = Ingest(tmp_path / "rotation", kafka_node.brokers, redis_node.endpoint, rotating,
                 RATE_LIMIT_PER_MIN="1000")
    one.publish_allowlist()
    one.start().wait_ready()
    body = callback(token=callback_token())
    wait_for("the first keys", lambda: one.callback(body, rotating.token())[0] == 200)
    fetches = rotating.fetches
    rotating.add_key("kid-2")
    # Within 30 s of the last fetch an unknown key is not asked for.
    assert one.callback(body, rotating.token(kid="kid-2"))[0] == 401
    assert rotating.fetches == fetches
    rotating.down = True
    assert one.callback(body, rotating.token())[0] == 200
    one.stop()
    rotating.close()


def test_first_keys_are_waited_for(own, kafka_node, redis_node, tmp_path):
    late = Issuer()
    late.down = True
    one = Ingest(tmp_path / "late", kafka_node.brokers, redis_node.endpoint, late)
    one.publish_allowlist()
    one.start().wait_ready()
    body = callback(token=callback_token())
    status, answer, headers = one.callback(body, late.token())
    assert status == 503 and int(headers["Retry-After"]) > 0 and ACTIONS in detail(answer)
    late.down = False
    wait_for("the keys", lambda: one.callback(body, late.token())[0] == 200, 20)
    assert "crcr_ingest_jwks_age_seconds" in one.get_admin("/metrics")[1]
    one.stop()
    late.close()


def test_an_issuer_that_hangs_holds_up_nobody_and_is_asked_once(own, issuer):
    """A token with a key that nobody knows costs a stranger nothing."""
    with socket.create_server(("127.0.0.1", 0)) as hangs:
        hangs.settimeout(30)
        jwks = f"http://127.0.0.1:{hangs.getsockname()[1]}/jwks"
        one = own(CRCR_OIDC_ISSUERS=f"{ACTIONS}={issuer.url},{BUILDKITE}={jwks}")
        one.publish_allowlist()
        one.start().wait_ready()
        wait_for("the other issuer's keys", lambda: one.callback({}, issuer.token())[0] == 400)
        hangs.settimeout(0)
        with contextlib.suppress(BlockingIOError):
            while True:
                hangs.accept()[0].close()  # since the start, which may have taken long; 5 s later it is asked again
        hangs.settimeout(30)
        unknown = issuer.token(issuer=BUILDKITE, key=issuer.keys["kid-1"], kid="nobody's")
        with hangs.accept()[0], concurrent.futures.ThreadPoolExecutor(16) as pool:
            waiting = [pool.submit(one.callback, {}, unknown) for _ in range(16)]
            wait_for("all to wait", lambda: "crcr_ingest_requests_in_hand 16" in one.get_admin("/metrics")[1])
            began = time.monotonic()
            assert one.callback({}, issuer.token())[0] == 400
            assert one.webhook(payload("pull_request/opened.json"))[0] == 202
            took = time.monotonic() - began
            print(f"flood: 16 callbacks wait for keys; one with keys and a webhook took {took * 1000:.0f} ms")
            assert took < 1 and not any(future.done() for future in waiting)
            assert {future.result()[0] for future in waiting} == {503}
            assert time.monotonic() - began < 4
            hangs.settimeout(0)
            with pytest.raises(BlockingIOError):
                hangs.accept()


def test_logs_and_metrics_tell_no_body_and_no_secret(ingest, issuer):
    token = issuer.token()
    body = callback(token=callback_token(), name="very-special-name")
    assert ingest.callback(body, token)[0] == 200
    assert ingest.webhook(payload("pull_request/opened.json"), delivery="logged")[0] == 202
    ingest.process.wait_text('"delivery":"logged"')  # written after the answer
    log = ingest.process.text()
    for secret in (token, body["callback_token"], "very-special-name", "the-secret"):
        assert secret not in log
