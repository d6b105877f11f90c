"""`crcrctl app`: the App's manifest against the code and GitHub's description; create and check against the simulator, the
test being the browser and the owner who confirms."""
import html.parser
import json
import re
import stat
import subprocess
import urllib.parse

import pytest

from lib.ctl import Ctl
from lib.github_app import sim, simulator  # noqa: F401 (fixtures)
from lib.ports import free_port
from lib.processes import BIN, ROOT, Process, wait_for
from lib.relay import http, pull_request

MANIFEST = json.loads((ROOT / "deploy" / "github-app" / "manifest.json").read_text())
HOST = "https://relay.example"


@pytest.fixture
def ctl(sim):
    one = Ctl("127.0.0.1:1", "unused.")
    one.app = {**sim.settings(), "UPSTREAM_REPO": "org/upstream"}
    one.api = {name: one.app[name] for name in ("CRCR_GITHUB_API_URL", "UPSTREAM_REPO")}
    return one


# ---- the manifest ------------------------------------------------------------------------------------------------------
def test_the_manifest_asks_for_what_the_code_asks_for_and_no_more():
    """On-call comments (off by default) need pull_requests: write, which the runbook says."""
    code = (ROOT / "common" / "github" / "app_token.c").read_text()
    asked = {}
    for name, value in re.findall(r'\[GITHUB_\w+\] = \{ "(\w+)", "(\w+)" \}', code):
        asked[name] = max(asked.get(name, ""), value)  # read < write
    assert asked.pop("pull_requests") == "write"
    assert MANIFEST["default_permissions"] == {**asked, "pull_requests": "read", "metadata": "read"}
    events = re.findall(r'\{ "(\w+)", EVENT_\w+ \}', (ROOT / "common" / "model" / "event.c").read_text())
    assert sorted(MANIFEST["default_events"]) == sorted(set(events) - {"ping"}) and len(events) == 5


def test_the_manifest_asks_for_what_github_knows():
    known = json.loads((ROOT / "tests/openapi/github.json").read_text())["components"]["schemas"]["app-permissions"]["properties"]
    for name, value in MANIFEST["default_permissions"].items():
        assert value in known[name]["enum"]
    assert MANIFEST["public"] is True and MANIFEST["hook_attributes"]["active"] is True  # downstreams install it, too


def test_the_runbook_says_the_same():
    table = (ROOT / "deploy" / "README.md").read_text().split("## Set up the GitHub App")[1]
    said = {name.lower().replace(" ", "_"): "write" if value.startswith("Read and write") else "read" for name, value in
            re.findall(r"^\| (?:Repository permissions: |… )([\w ]+) \| (Read and write|Read)", table, re.MULTILINE)}
    assert said == MANIFEST["default_permissions"]


# ---- create ------------------------------------------------------------------------------------------------------------
class Form(html.parser.HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        at = dict(attrs)
        if tag == "form":
            assert at["method"] == "post"
            self.action = urllib.parse.urlsplit(at["action"])
            [self.state] = urllib.parse.parse_qs(self.action.query)["state"]
        if tag == "input":
            assert at["name"] == "manifest"
            self.manifest = json.loads(at["value"])


class Creating:
    def __init__(self, ctl, folder, *arguments, **environment):
        self.port, self.dir = free_port(), folder / "secrets"
        self.dir.mkdir(exist_ok=True)
        self.process = Process("app-create", [BIN / "crcrctl", "app", "create", "--url", HOST, "--dir", self.dir, "--port", str(self.port),
                                              *arguments], folder, ctl.environment(**{**ctl.api, **environment}))
        self.process.wait_text(f"open http://127.0.0.1:{self.port}/ in a browser")

    def get(self, path):
        status, body = http("GET", f"http://127.0.0.1:{self.port}{path}")
        return status, body.decode()

    def form(self):
        return Form(self.get("/")[1])

    def back(self, state, code):
        return self.get(f"/created?code={code}&state={state}")


def confirmed(sim, form):
    status, _, said = sim.send("POST", "/_sim/manifest", {"owner": "org", "manifest": form.manifest})
    assert status == 200, said
    return said["code"]


def test_an_app_is_registered_and_its_key_and_secret_are_files_of_mode_600(ctl, sim, tmp_path):
    creating = Creating(ctl, tmp_path)
    form = creating.form()
    assert (form.action.netloc, form.action.path) == (f"127.0.0.1:{sim.port}", "/organizations/org/settings/apps/new")
    assert form.manifest == {**MANIFEST, "name": "crcr-org", "url": HOST, "hook_attributes": {"url": f"{HOST}/github/webhook", "active": True},
                             "redirect_url": f"http://127.0.0.1:{creating.port}/created"}
    assert creating.back(form.state, confirmed(sim, form)) == (200, "Registered. Go on where crcrctl runs.")
    assert creating.process.popen.wait(30) == 0
    key, secret = creating.dir / "app_private_key", creating.dir / "webhook_secret"
    assert key.read_text().strip() == sim.key.read_text().strip() and re.fullmatch(r"[0-9a-f]{40}\n", secret.read_text())
    assert [stat.S_IMODE(file.stat().st_mode) for file in (key, secret)] == [0o600] * 2
    said = creating.process.text()
    assert "next: set GITHUB_APP_ID=12345 " in said and "install it on org/upstream: https://github.com/apps/crcr-sim/installations/new" in said
    assert f"then: crcrctl app check --url {HOST}\n" in said
    assert key.read_text() not in said and secret.read_text().strip() not in said
    sim.send("POST", "/_sim/webhook", {"event": "ping", "payload": {}, "status_code": 200})
    ctl("app", "check", "--url", HOST, **{**ctl.app, "GITHUB_APP_PRIVATE_KEY_FILE": str(key)}, expect=1)  # its webhook is the simulator's


def test_what_is_not_githubs_answer_to_this_page_is_refused_and_it_goes_on(ctl, sim, tmp_path):
    creating = Creating(ctl, tmp_path)
    form = creating.form()
    code = confirmed(sim, form)
    for state, wrong in (("0" * 32, code), ("", code), (form.state, ""), (form.state, "../x"), (form.state, "a" * 65)):
        assert creating.back(state, urllib.parse.quote(wrong, safe=""))[0] == 400
    assert creating.back(form.state, code)[0] == 200
    assert creating.process.popen.wait(30) == 0


def test_a_code_that_github_refuses_makes_no_file(ctl, sim, tmp_path):
    creating = Creating(ctl, tmp_path)
    status, said = creating.back(creating.form().state, "0" * 40)
    assert status == 502 and f"/app-manifests/{'0' * 40}/conversions: 404" in said
    assert creating.process.popen.wait(30) == 1 and list(creating.dir.iterdir()) == []


def test_nothing_is_overwritten(ctl, tmp_path):
    for file in ("app_private_key", "webhook_secret"):
        folder = tmp_path / file
        folder.mkdir()
        (folder / file).write_text("mine")
        said = ctl("app", "create", "--url", HOST, "--dir", folder, **ctl.api, expect=1).stderr
        assert f"{folder}/{file} is there, and nothing is overwritten" in said
        assert [(one.name, one.read_text()) for one in folder.iterdir()] == [(file, "mine")]
    assert "No such file" in ctl("app", "create", "--url", HOST, "--dir", tmp_path / "none", **ctl.api, expect=1).stderr


@pytest.mark.parametrize("api,arguments,page", [
    ("https://api.github.com", [], "https://github.com/organizations/org/settings/apps/new"),
    ("https://ghe.example/api/v3", ["--organization", "other"], "https://ghe.example/organizations/other/settings/apps/new"),
    ("https://api.github.com", ["--personal"], "https://github.com/settings/apps/new")], ids=["github", "enterprise", "personal"])
def test_the_form_goes_to_the_owners_page(ctl, tmp_path, api, arguments, page):
    creating = Creating(ctl, tmp_path, *arguments, "--timeout", "1m", CRCR_GITHUB_API_URL=api)
    assert creating.form().action._replace(query="").geturl() == page
    creating.process.popen.terminate()
    assert creating.process.popen.wait(30) == 3 and list(creating.dir.iterdir()) == []


@pytest.mark.parametrize("url", [[], ["--url", "relay.example"], ["--url", HOST + "/"]], ids=str)
def test_a_url_is_wanted(ctl, url):
    assert "where GitHub reaches the proxy of ingest" in ctl("app", "create", *url, **ctl.api, expect=2).stderr


# ---- check -------------------------------------------------------------------------------------------------------------
def check(ctl, *arguments, expect):
    return ctl("app", "check", *arguments, **ctl.app, expect=expect).stdout.splitlines()


def test_an_app_that_is_right_has_nothing_to_do(ctl, sim):
    hook = next(word for word in sim.process.popen.args if str(word).endswith("/github/webhook")).removesuffix("/github/webhook")
    sim.send("POST", "/_sim/webhook", {"event": "ping", "payload": {}, "status_code": 200})
    said = check(ctl, "--url", hook, expect=0)
    assert [line.split()[:2] for line in said] == [["ok", name] for name in ("app", "permissions", "events", "webhook", "delivery")]


def test_what_is_missing_comes_first(ctl, sim):
    _, _, app = sim.as_app("GET", "/app")
    app["permissions"] |= {"checks": "read"}
    del app["permissions"]["actions"]
    app["events"].remove("push")
    sim.script({"method": "GET", "path": "/app", "status": 200, "body": app})
    sim.send("POST", "/_sim/webhook", {"event": "pull_request", "payload": pull_request(), "status_code": 401})
    said = check(ctl, "--url", HOST, expect=1)
    assert said[0].startswith("next: the App's settings, Permissions & events; then each installation")
    assert [line.split(":")[0] for line in said[:4]] == ["next", "then", "then", "then"]
    found = [json.loads(line) for line in check(ctl, "--json", "--url", HOST, expect=1)]
    assert [one["name"] for one in found if not one["ok"]] == ["permissions", "events", "webhook", "delivery"]
    assert found[0]["todo"] is None and found[2]["text"] == "without push"
    text = "\n".join(said)
    assert "MISSING  permissions  without actions: write checks: write" in text and "MISSING  events       without push" in text
    assert "Webhook URL: https://HOST/github/webhook" in text and "give ingest the App's webhook secret" in text


@pytest.mark.parametrize("deliveries,todo", [
    ([], "save the App's settings: GitHub sends a ping"),
    ([{"event": "push", "payload": {}, "status_code": 502}], "see that GitHub reaches ingest; then crcrctl redeliver")], ids=["none", "502"])
def test_the_last_delivery_says_whether_ingest_is_reached(ctl, sim, deliveries, todo):
    for one in deliveries:
        sim.send("POST", "/_sim/webhook", one)
    assert f"next: {todo}" == check(ctl, expect=1)[0]


def test_without_a_key_or_an_answer_it_says_so(ctl, sim):
    assert "GITHUB_APP_ID is not set" in ctl("app", "check", **ctl.api, expect=2).stderr
    sim.script({"method": "GET", "path": "/app/hook/config", "status": 401})
    assert "/app/hook/config: 401" in ctl("app", "check", **ctl.app, expect=3).stderr
