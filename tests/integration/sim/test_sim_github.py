"""GitHub's endpoints, the HUD's, and who may call them. lib.sim holds every answer to GitHub's OpenAPI description."""
import base64
import http.client
import subprocess
import time

import pytest

from lib.processes import wait_for
from lib.sim import SHA


# ---- who may call --------------------------------------------------------------------------------


def test_an_installation_token_opens_the_owners_repositories_only(sim):
    assert sim.call("GET", f"/repos/org/a/commits/{SHA}")[0] == 200
    foreign = {"Authorization": "Bearer " + sim.token("org")}
    assert sim.send("GET", f"/repos/other/a/commits/{SHA}", headers=foreign)[0] == 403


@pytest.mark.parametrize("method, path, permissions, status", [
    ("POST", "/repos/org/a/dispatches", {"contents": "write"}, 204),
    ("POST", "/repos/org/a/dispatches", {"contents": "read"}, 403),
    ("POST", "/repos/org/b/dispatches", {"contents": "write"}, 403),
    ("GET", "/repos/org/a/commits/" + SHA, {"contents": "write"}, 200),
    ("POST", "/repos/org/a/check-runs", {"contents": "write"}, 403),
    ("POST", "/repos/org/a/check-runs", {"checks": "write"}, 201),
])
def test_a_narrowed_token_opens_its_repository_with_its_permissions_only(sim, method, path, permissions, status):
    _, _, found = sim.as_app("GET", "/repos/org/a/installation")
    _, _, made = sim.as_app("POST", f"/app/installations/{found['id']}/access_tokens",
                            {"repositories": ["a"], "permissions": permissions})
    body = None if method == "GET" else {"event_type": "x", "client_payload": {}} if "dispatches" in path else {
        "name": "x", "head_sha": SHA}
    headers = {"Authorization": "Bearer " + made["token"]}
    assert sim.send(method, path, body, headers)[0] == status


def test_a_token_with_more_than_the_app_has_is_422(sim):
    _, _, found = sim.as_app("GET", "/repos/org/a/installation")
    status, _, said = sim.as_app("POST", f"/app/installations/{found['id']}/access_tokens",
                                 {"permissions": {"administration": "write"}})
    assert status == 422 and "not granted" in said["message"]


@pytest.mark.parametrize("changes, said", [
    ({"exp": int(time.time()) + 3600}, "too far in the future"),
    ({"exp": int(time.time()) - 300}, "could not be decoded"),
    ({"iss": "999"}, "'iss'"),
])
def test_a_wrong_app_jwt_is_refused(sim, changes, said):
    bearer = {"Authorization": "Bearer " + sim.app_jwt(**changes)}
    status, _, body = sim.send("GET", "/app", headers=bearer)
    assert status == 401 and said in body["message"]


def test_an_app_jwt_of_another_key_and_none_at_all_are_refused(sim, tmp_path):
    other = tmp_path / "other.pem"
    subprocess.run(["openssl", "genrsa", "-out", other, "2048"], check=True, capture_output=True)
    assert sim.send("GET", "/app", headers={"Authorization": "Bearer " + sim.app_jwt(other)})[0] == 401
    assert sim.send("GET", "/app")[0] == 401
    assert sim.send("POST", "/repos/org/a/dispatches", {}, {"Authorization": "Bearer ghs_unknown"})[0] == 401


def test_a_token_expires(start):
    sim = start("--token-ttl", "1")

    def answer():
        return sim.call("GET", f"/repos/org/a/commits/{SHA}")[0]

    def answer_to_a_new_one():  # a second may be over before it is used
        sim.tokens.clear()
        return answer()
    wait_for("a new token to be taken", lambda: answer_to_a_new_one() == 200)
    wait_for("the token to expire", lambda: answer() == 401)


def test_a_budget_is_counted_and_ends(start):
    sim = start("--rate-limit", "2")
    left = []
    for _ in range(3):
        status, headers, body = sim.call("GET", f"/repos/org/a/commits/{SHA}")
        left.append((status, headers["x-ratelimit-remaining"]))
    assert left == [(200, "1"), (200, "0"), (403, "0")]
    assert "rate limit exceeded" in body["message"]
    assert int(headers["x-ratelimit-reset"]) > time.time()


def create(sim, name):
    return sim.call("POST", "/repos/org/a/check-runs", {"name": name, "head_sha": SHA})


def test_one_content_too_many_in_a_window_is_the_secondary_limit(start):
    sim = start("--content-limit", "2", "--content-window-ms", "60000")
    said = [create(sim, name) for name in ("one", "two", "three")]
    assert [status for status, _, _ in said] == [201, 201, 403]
    assert said[2][1]["retry-after"] == "60" and "secondary rate limit" in said[2][2]["message"]
    made = said[0][2]["id"]
    assert sim.call("PATCH", f"/repos/org/a/check-runs/{made}", {"status": "in_progress"})[0] == 200


def test_the_window_of_contents_slides_on(start):
    sim = start("--content-limit", "1", "--content-window-ms", "1000")
    refused = wait_for("a refusal", lambda: next((said for said in [create(sim, "one")] if said[0] == 403), None))
    assert refused[1]["retry-after"] == "1"
    wait_for("the window to slide on", lambda: create(sim, "two")[0] == 201)


def test_a_request_without_user_agent_is_forbidden(sim):
    connection = http.client.HTTPConnection("127.0.0.1", sim.port, timeout=5)
    connection.putrequest("GET", "/app", skip_accept_encoding=True)
    connection.endheaders()
    assert connection.getresponse().status == 403
    connection.close()


# ---- check runs ----------------------------------------------------------------------------------


def check_run(sim, name="crcr/org/a", sha=SHA, **fields):
    return sim.call("POST", "/repos/up/stream/check-runs", {"name": name, "head_sha": sha, **fields})


def test_a_check_run_lives_from_queued_to_completed(sim):
    status, _, made = check_run(sim, external_id="7:42", details_url="https://github.com/org/a/actions/runs/7")
    assert status == 201 and (made["status"], made["conclusion"]) == ("queued", None)
    assert made["app"]["id"] == 12345 and made["external_id"] == "7:42"
    path = f"/repos/up/stream/check-runs/{made['id']}"
    assert sim.call("PATCH", path, {"status": "in_progress"})[2]["status"] == "in_progress"
    done = sim.call("PATCH", path, {"conclusion": "success", "output": {"title": "t", "summary": "s"}})[2]
    assert (done["status"], done["conclusion"]) == ("completed", "success") and done["completed_at"]
    assert sim.call("GET", path)[2] == done
    assert sim.state()["check_runs"][0]["output"]["title"] == "t"
    assert sim.call("GET", "/repos/up/other/check-runs/%d" % made["id"])[0] == 404


@pytest.mark.parametrize("fields", [
    {"status": "completed"},
    {"status": "waiting"},
    {"conclusion": "stale"},
    {"output": {"title": "t"}},
    {"output": {"title": "t", "summary": "x" * 65536}},
    {"sha": "0" * 40},
])
def test_a_wrong_check_run_is_refused(sim, fields):
    assert check_run(sim, **fields)[0] == 422
    assert sim.state()["check_runs"] == []


def test_check_runs_are_found_by_commit_name_and_suite(sim):
    first = check_run(sim, "crcr/org/a/CI (x)")[2]
    second = check_run(sim, "crcr/org/a/CI (x)")[2]
    other = check_run(sim, "crcr/org/b")[2]
    check_run(sim, "crcr/org/b", "b" * 40)
    path = f"/repos/up/stream/commits/{SHA}/check-runs"

    def ids(path):
        return [run["id"] for run in sim.call("GET", path)[2]["check_runs"]]

    assert ids(path) == [other["id"], second["id"]]
    assert ids(path + "?filter=all&check_name=crcr/org/a/CI%20(x)") == [second["id"], first["id"]]
    suite = f"/repos/up/stream/check-suites/{first['check_suite']['id']}"
    assert ids(suite + "/check-runs?filter=all") == [other["id"], second["id"], first["id"]]
    assert sim.call("GET", suite)[2]["head_sha"] == SHA


def test_lists_are_paged_with_links(sim):
    for i in range(5):
        check_run(sim, f"name {i}")
    path = f"/repos/up/stream/commits/{SHA}/check-runs?per_page=2"
    seen, pages = [], 0
    while path:
        _, headers, body = sim.call("GET", path)
        assert body["total_count"] == 5
        seen += [run["name"] for run in body["check_runs"]]
        following = [part for part in (headers["Link"] or "").split(", ") if 'rel="next"' in part]
        path = following[0][1:].split(">")[0].split(str(sim.port), 1)[1] if following else None
        pages += 1
    assert pages == 3 and seen == [f"name {i}" for i in (4, 3, 2, 1, 0)]


# ---- contents, commits, comments, HUD ------------------------------------------------------------


def test_contents_come_as_base64_and_raw_and_not_modified(sim):
    path = "/repos/up/stream/contents/.github/allowlist.yml?ref=main"
    _, headers, document = sim.call("GET", path)
    text = (sim.contents / ".github" / "allowlist.yml").read_bytes()
    assert base64.b64decode(document["content"]) == text and document["size"] == len(text)
    status, _, raw = sim.call("GET", path, Accept="application/vnd.github.raw+json")
    assert status == 200 and raw == text
    assert sim.call("GET", path, **{"If-None-Match": headers["ETag"]})[0] == 304
    (sim.contents / ".github" / "allowlist.yml").write_text("L2: [org/a]\n" * 50)
    status, _, changed = sim.call("GET", path, **{"If-None-Match": headers["ETag"]})
    assert status == 200 and base64.b64decode(changed["content"]) == b"L2: [org/a]\n" * 50


def test_a_folder_is_listed_and_one_that_is_not_there_is_404(sim):
    folder = sim.contents / "up" / "own" / ".github" / "workflows"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "b.yml").write_text("on: push\n")
    (folder / "a.yml").write_text("")
    (folder / "inner").mkdir(exist_ok=True)
    status, _, listed = sim.call("GET", "/repos/up/own/contents/.github/workflows")
    assert status == 200
    assert [(entry["name"], entry["type"], entry["size"]) for entry in listed] == [
        ("a.yml", "file", 0), ("b.yml", "file", 9), ("inner", "dir", 0)]
    assert listed[1]["path"] == ".github/workflows/b.yml"
    assert sim.call("GET", "/repos/up/own/contents/.github/nowhere")[0] == 404


def test_a_repositorys_own_file_comes_first_and_nothing_outside_the_folder(sim):
    own = sim.contents / "up" / "own"
    own.mkdir(parents=True, exist_ok=True)
    (own / "f.txt").write_text("own")
    (sim.contents / "f.txt").write_text("shared")
    (sim.folder / "secret.txt").write_text("secret")
    assert base64.b64decode(sim.call("GET", "/repos/up/own/contents/f.txt")[2]["content"]) == b"own"
    assert base64.b64decode(sim.call("GET", "/repos/up/other/contents/f.txt")[2]["content"]) == b"shared"
    assert sim.call("GET", "/repos/up/own/contents/../secret.txt")[0] == 404
    assert sim.call("GET", "/repos/up/own/contents/none.txt")[0] == 404


@pytest.mark.parametrize("ref, status", [(SHA, 200), ("0" * 40, 422), ("nonsense", 422)])
def test_commits_are_known_by_their_full_sha(sim, ref, status):
    assert sim.call("GET", f"/repos/up/stream/commits/{ref}")[0] == status


def test_comments_are_made_found_and_changed(sim):
    made = sim.call("POST", "/repos/up/stream/issues/7/comments", {"body": "first"})[2]
    sim.call("POST", "/repos/up/stream/issues/8/comments", {"body": "elsewhere"})
    changed = sim.call("PATCH", f"/repos/up/stream/issues/comments/{made['id']}", {"body": "second"})[2]
    assert changed["id"] == made["id"]
    listed = sim.call("GET", "/repos/up/stream/issues/7/comments")[2]
    assert [comment["body"] for comment in listed] == ["second"]
    assert sim.call("PATCH", "/repos/up/stream/issues/comments/1", {"body": "x"})[0] == 404
    assert sim.call("POST", "/repos/up/stream/issues/7/comments", {})[0] == 422


def test_the_hud_takes_results_under_its_key_only(sim):
    body = {"trusted": {"verified_repo": "org/a", "downstream_repo_level": "L2", "ci_metrics": {}},
            "untrusted": {"callback_payload": {"workflow": {"status": "completed"}}}}
    assert sim.send("POST", "/crcr/results", body)[0] == 401
    assert sim.send("POST", "/crcr/results", body, {"x-hud-internal-bot": "wrong"})[0] == 401
    assert sim.send("POST", "/crcr/results", {}, {"x-hud-internal-bot": "hud"})[0] == 400
    assert sim.send("POST", "/crcr/results", body, {"x-hud-internal-bot": "hud"})[0] == 200
    body["untrusted"]["callback_payload"]["callback_token"] = "leaked"
    assert sim.send("POST", "/crcr/results", body, {"x-hud-internal-bot": "hud"})[0] == 400
    assert len(sim.state()["hud"]) == 1
