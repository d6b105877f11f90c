"""deploy/README.md, the runbook, is held to the tree: its commands are understood, and each metric, alert, setting, topic, log event,
section and file that it names is there. What its commands do was tried by hand; verbs have tests of their own."""
import re
import secrets
import shlex
import subprocess
import sys

import pytest
import yaml

from lib.ctl import Ctl
from lib.manifests import K8S, render
from lib.metric_families import all_families
from lib.processes import BIN, ROOT

RUNBOOK = ROOT / "deploy" / "README.md"
TEXT = RUNBOOK.read_text()
COMMANDS = [line[6:] for line in TEXT.splitlines() if line.startswith("    $ ")]
INLINE = re.findall(r"`([^`\n]+)`", re.sub(r"^    .*$", "", TEXT, flags=re.MULTILINE))
# What a person fills in.
FILLED_IN = {"DELIVERY": "72d3162e-cc78-11e3-81ab-4c9367dc0958", "OWNER/REPO": "org/backend", "PARTITION@OFFSET": "3@17"}
REFUSED = 2  # wrong arguments
SERVICES = yaml.safe_load((ROOT / "docker-compose.yml").read_text())["services"]
OF_TLS = yaml.safe_load((ROOT / "deploy/compose/tls/compose.yml").read_text())["services"]
[SYSTEMD] = [command for command in COMMANDS if command.startswith("set -a")]
[LOGINS] = [command for command in COMMANDS if command.startswith("REDIS_LOGIN_FILE=")]


def filled(command):
    for name, value in FILLED_IN.items():
        command = command.replace(name, value)
    return command


def of_crcrctl():
    """Every crcrctl line of the blocks, and in the text; without what stands in front of it."""
    found = [command for command in COMMANDS + INLINE if re.search(r"(^|\s)crcrctl [a-z]", command)]
    return sorted({filled(command[command.index("crcrctl "):]) for command in found})


@pytest.fixture(scope="module")
def ctl(kafka_node, tmp_path_factory):
    folder = tmp_path_factory.mktemp("runbook")
    one = Ctl(kafka_node.brokers, f"t{secrets.token_hex(4)}.").create_topics()
    for name, text in (("allowlist.yml", "L1: [org/a]\n"), ("allowlist.jsonl", "{}\n"), ("ping.json", "{}")):
        (folder / name).write_text(text)
    one.folder = folder
    return one


def ran(ctl, command):
    """Nothing it asks but Kafka is there, so that it changes nothing; what counts is that it is understood."""
    nowhere = {"REDIS_ENDPOINT": "127.0.0.1:1", "GITHUB_APP_ID": "1", "CRCR_GITHUB_API_URL": "http://127.0.0.1:1",
               "GITHUB_APP_PRIVATE_KEY_FILE": str(key_of(ctl.folder))}
    words = [part.replace(":8080/", ":1/") for part in shlex.split(command)[1:]]
    arguments = [word for word in words if word[0] not in "<>"]
    given = "".join((ctl.folder / word[1:]).read_text() for word in words if word.startswith("<"))
    if "--wait" in arguments:  # for a Redis that will not come
        arguments += ["--timeout", "1s"]
    return subprocess.run([BIN / "crcrctl", *arguments], cwd=ctl.folder, env=ctl.environment(**nowhere), input=given,
                          capture_output=True, text=True, timeout=120)


def key_of(folder):
    key = folder / "app-key.pem"
    if not key.exists():
        subprocess.run(["openssl", "genrsa", "-out", key, "2048"], check=True, capture_output=True)
    return key


def test_there_are_commands_to_look_and_to_mend_in_every_section():
    for section in re.split(r"^## ", TEXT, flags=re.MULTILINE)[1:]:
        assert "    $ " in section, section.splitlines()[0]


@pytest.mark.parametrize("command", of_crcrctl())
def test_every_crcrctl_command_is_understood(ctl, command):
    verbs = [line.split()[0] for line in ctl("--help").stdout.splitlines() if line.startswith("  ")]
    words = shlex.split(command)
    assert words[1] in verbs
    if words[2:] or words[1] in ("lag", "levels", "tail"):
        done = ran(ctl, command)
        assert done.returncode != REFUSED, f"{command}\n{done.stdout}{done.stderr}"


def test_a_command_that_is_not_understood_is_seen(ctl):
    assert ran(ctl, "crcrctl redeliver --since 4m --everything").returncode == REFUSED
    assert ran(ctl, "crcrctl dlq replay").returncode == REFUSED


def test_the_other_commands_are_of_programs_and_files_that_are_there():
    # What the overlay `full` makes, and what Strimzi and Kubernetes make of it.
    made = {one["metadata"]["name"] for one in render(K8S / "overlays/full")} | {"crcr-brokers-0", "data-redis-0", "redis-0", "crcrctl-0"}
    made |= {f"data-0-crcr-brokers-{number}" for number in range(3)}
    for command in set(COMMANDS) - {SYSTEMD, LOGINS}:
        word = next(part for part in shlex.split(command) if "=" not in part)
        if word.startswith("crcr-"):
            assert (BIN / word).exists() and "--check-config" in command, command
        elif "/" in word:
            assert (ROOT / word).exists(), command
        elif word == "kubectl":
            assert kubernetes_names(command) <= made, command
        else:
            assert word in ("crcrctl", "curl", "docker", "kafka-topics.sh", "kafka-configs.sh"), command


def kubernetes_names(command):
    """The names of things in a kubectl command: what stands behind their kind, and in a selector by name."""
    words = shlex.split(command)
    assert words[:3] == ["kubectl", "-n", "crcr"], command
    selected = re.search(r"app\.kubernetes\.io/name in \(([^)]+)\)", command)
    if selected:
        return set(selected[1].split(",")) - {"crcr-dispatcher"} | {f"crcr-dispatcher-l{tier}" for tier in "1234"}
    if words[3:5] == ["apply", "-f"]:
        return {one["metadata"]["name"] for one in yaml.safe_load_all((ROOT / words[5]).read_text())}
    plain = [word for word in words[3:words.index("--") if "--" in words else None] if not word.startswith("-")]
    keda = [word for word in plain if word.startswith("autoscaling.keda.sh/")]
    assert all(re.fullmatch(r"autoscaling\.keda\.sh/paused-replicas(=\d|-)", word) for word in keda)
    named = [word for word in plain if word not in keda][1 if plain[0] == "exec" else 2:]
    assert named or "--all" in words, command
    return set(named)


# ---- where: what stands in front of the commands --------------------------------------------------------------------

def test_no_command_reads_a_file_that_a_container_does_not_have():
    for command in of_crcrctl():
        assert not re.search(r"(?<![<>])\b[\w-]+\.(yml|json|jsonl)\b", command), command


def composed():
    """(subcommand, service) of each `docker compose` in the text; a service is scaled, or the first word that is no option."""
    for text in INLINE + COMMANDS:
        if not (found := re.search(r"docker[ -]compose (\w+)(.*)", text)):
            continue
        words = re.sub(r"--index \d+", "", found[2]).split()
        services = [re.split("[=:]", word)[0] for word in words if not word.startswith("-")]
        yield found[1], services[0] if services else None


def test_compose_commands_are_of_services_that_have_what_they_need():
    found = {one for one in composed() if one[1] not in (None, "SERVICE")}
    assert {("exec", "ingest"), ("up", "reporter"), ("up", "dispatcher"), ("run", "topics"), ("stop", "redis")} <= found
    assert {service for _, service in found} - OF_TLS.keys() <= SERVICES.keys()
    assert OF_TLS["rights"]["entrypoint"] == ["bash", "/etc/crcr-tls/kafka-rights"]  # with arguments it runs Kafka's tools
    # `docker compose run --rm -T crcrctl …`: the service is the program, with the keys that its verbs ask for.
    assert SERVICES["crcrctl"]["entrypoint"] == ["crcrctl"]
    assert {"GITHUB_APP_PRIVATE_KEY_FILE", "GITHUB_APP_SECRET_FILE", "REDIS_LOGIN_FILE"} <= SERVICES["crcrctl"]["environment"].keys()
    for service, port in (("ingest", 9101), ("dispatcher", 9102), ("reporter", 9103)):
        assert SERVICES[service]["environment"]["CRCR_ADMIN_LISTEN"].endswith(f":{port}")


def test_kubernetes_commands_are_of_deployments_that_have_what_they_need():
    def environment(file):
        one = next(yaml.safe_load_all((ROOT / "deploy/k8s/base" / file).read_text()))
        [container] = one["spec"]["template"]["spec"]["containers"]
        return one["metadata"]["name"], {e["name"]: e["value"] for e in container["env"]}
    for file, name, port, keys in (
            ("router.yaml", "crcr-dispatcher-router", 9102, set()),
            ("ingest.yaml", "crcr-ingest", 9101, {"GITHUB_APP_SECRET_FILE"}), ("reporter.yaml", "crcr-reporter", 9103, set())):
        deployment, values = environment(file)
        assert deployment == name and f"deploy/{name}" in TEXT
        assert keys <= values.keys() and values["CRCR_ADMIN_LISTEN"].endswith(f":{port}")
    pod, values = environment("crcrctl.yaml")
    assert pod == "crcrctl" and "sts/crcrctl" in TEXT
    assert {"GITHUB_APP_PRIVATE_KEY_FILE", "REDIS_LOGIN_FILE"} <= values.keys()


def test_a_shell_on_a_machine_with_systemd_gets_what_the_units_get(tmp_path):
    folder = tmp_path / "etc"
    (folder / "secrets").mkdir(parents=True)
    (folder / "crcr.env").write_text((ROOT / "deploy/systemd/crcr.env").read_text().replace("GITHUB_APP_ID=\n", "GITHUB_APP_ID=1\n"))
    (folder / "secrets/redis_login_crcrctl").write_text("crcrctl:a-password\n")
    (folder / "secrets/kafka_password_crcrctl").write_text("a-password\n")
    (folder / "secrets/app_private_key").write_text(key_of(tmp_path).read_text())
    (folder / "secrets/webhook_secret").write_text("a-secret\n")

    def shell(command, before=SYSTEMD.replace("/etc/crcr", str(folder))):
        done = subprocess.run(["bash", "-c", f"{before}\n{BIN}/{command}"], input="{}", capture_output=True, text=True,
                              timeout=60, env={"PATH": "/usr/bin:/bin"})
        return done.returncode, done.stdout + done.stderr
    code, said = shell("crcr-dispatcher --check-config")
    assert code == 0, said
    code, said = shell("crcrctl send-webhook - --event ping --url http://127.0.0.1:1/github/webhook")
    assert code == 3, said
    code, said = shell("crcr-dispatcher --check-config", f"{SYSTEMD}\n{LOGINS}".replace("/etc/crcr", str(folder)))
    assert code == 0 and "REDIS_LOGIN=\n" not in said and "crcrctl" in said, said
    assert shell("crcr-dispatcher --check-config", f"set -a; . {folder}/crcr.env")[0] == REFUSED, "it lacks the key"


def test_admin_ports_are_those_of_the_daemons():
    for port in re.findall(r"127\.0\.0\.1:(91\d\d)", "\n".join(COMMANDS)):
        assert port in ("9101", "9102", "9103")


def test_every_alert_has_a_section_and_no_other_is_named():
    groups = [group for file in ("alerts.yml", "alerts_kubernetes.yml") for group in
              yaml.safe_load((ROOT / "deploy" / "monitoring" / file).read_text())["groups"]]
    index = TEXT.split("| alert | section |")[1].split("\n\n")[0]
    assert set(re.findall(r"`(Crcr\w+)`", index)) == {rule["alert"] for group in groups for rule in group["rules"]}
    assert set(re.findall(r"`(Crcr\w+)`", TEXT)) == set(re.findall(r"`(Crcr\w+)`", index))


def sections():
    return {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in re.findall(r"^## (.*)$", TEXT, re.MULTILINE)}


def test_every_alert_links_to_its_section_and_says_what_it_means():
    index = TEXT.split("| alert | section |")[1].split("\n\n")[0]
    section = {name: anchor for names, anchor in re.findall(r"^\| (.*?) \| \[.*?\]\(#([\w-]+)\) \|$", index, re.MULTILINE)
               for name in re.findall(r"`(\w+)`", names)}
    assert set(section.values()) <= sections()
    for file in ("alerts.yml", "alerts_kubernetes.yml"):
        for group in yaml.safe_load((ROOT / "deploy" / "monitoring" / file).read_text())["groups"]:
            for rule in group["rules"]:
                has = rule["annotations"]
                assert has["runbook_url"] == f"https://github.com/ORG/REPO/blob/main/deploy/README.md#{section[rule['alert']]}"
                assert has["description"].endswith(".") and has["description"] != has["summary"], rule["alert"]


def test_links_lead_to_sections():
    anchors = sections()
    links = re.findall(r"\]\(#([\w-]+)\)", TEXT)
    assert links and set(links) <= anchors, set(links) - anchors


def test_every_metric_exists():
    known = set(all_families())
    for name in set(re.findall(r"\bcrcr_[a-z_]+", TEXT)):
        if name.endswith("_"):  # the beginning of several, in a grep
            assert any(one.startswith(name) for one in known), name
        else:
            assert name in known, name


def settings():
    table = (ROOT / "deploy" / "CONFIGURATION.md").read_text().split("<!-- config:begin -->")[1].split("<!-- config:end -->")[0]
    return set(re.findall(r"^\| `([A-Z_]+)", table, re.MULTILINE))


def test_every_setting_exists():
    known = settings() | {f"{name}_FILE" for name in settings()}
    known |= set(re.findall(r"\$\{(\w+)[:}]", (ROOT / "docker-compose.yml").read_text()))
    known |= {name for service in OF_TLS.values() for name in service.get("environment", {})}
    prefixes = r"(?:CRCR|GITHUB|KAFKA|REDIS|HUD|ALLOWLIST|ZOMBIE|RATE|UPSTREAM|CI)_[A-Z_]+"
    for name in set(re.findall(rf"\b{prefixes}\b", TEXT)):
        assert name in known or any(name.rstrip("_") + "_" in one for one in known if name.endswith("_")), name


def test_of_every_secret_it_is_said_whether_a_change_needs_a_restart():
    """A row that says "by itself" names a test (tests/lint/behaviours: it is there); no other row does."""
    table = (ROOT / "deploy" / "SECURITY.md").read_text().split("<!-- again:begin -->")[1].split("<!-- again:end -->")[0]
    rows = [[cell.strip() for cell in row.strip("|").split("|")] for row in table.strip().splitlines()[2:]]
    page = (ROOT / "deploy" / "CONFIGURATION.md").read_text()
    secret = set(re.findall(r"^\| `(\w+)` \|.* Secret\. \|", page, re.MULTILINE))
    files = set(re.findall(r"^\| `(\w+)` \|.*\| the path of a readable file \|$", page, re.MULTILINE))
    restart = {name for what, _, when in rows if when == "restart" for name in re.findall(r"`([A-Z_]+)`", what)}
    assert restart == secret | files | {"CRCR_KAFKA_SASL_PASSWORD"} and len(secret) == 5 and len(files) == 2
    for what, _, when in rows:
        assert when.startswith("restart") != bool(re.search(r"::test_\w+`$", when)), what


def sources():
    return "\n".join(path.read_text() for folder in ("ingest", "dispatcher", "reporter", "common", "deploy/crcrctl")
                     for path in sorted((ROOT / folder).rglob("*.c")))


def test_log_events_reasons_and_outcomes_are_said_by_a_program():
    code = sources()
    words = {word for text in INLINE for word in re.findall(r"^([a-z]+(?:_[a-z]+)+)$", text)}
    words -= {"timed_out", "in_progress", "redis_users", "kafka_users"}  # the last two: files
    assert {"publish_failed", "allowlist_held", "breaker_opened", "drain_given_up"} <= words
    assert [word for word in words if f'"{word}"' not in code] == []


def test_files_that_it_points_to_are_there():
    kubernetes = "\n".join(path.read_text() for path in (ROOT / "deploy" / "k8s" / "base").rglob("*.yaml"))
    for path in re.findall(r"\b((?:deploy|tests)/[\w./-]*\w)", TEXT):
        name = path.removeprefix("deploy/")
        assert (ROOT / path).exists() or name.startswith("crcr-") and f"name: {name}\n" in kubernetes, path


def test_the_table_of_capacity_is_what_the_program_calculates():
    done = subprocess.run([sys.executable, ROOT / "deploy" / "capacity", "10", "1000", "100000"], check=True,
                          capture_output=True, text=True)
    rows, column = {}, ""
    for line in done.stdout.splitlines():
        if not line.startswith("  "):
            column = line.split()[0]
            continue
        rows.setdefault(line[4:56].strip(), {})[column] = line[57:73].strip() + (" **!**" if line[2] == "!" else "")
    table = TEXT.split("<!-- capacity:begin -->")[1].split("<!-- capacity:end -->")[0]
    documented = {cells[1].strip(): [cell.strip() for cell in cells[2:5]] for cells in
            (line.split("|") for line in table.strip().splitlines()[2:])}
    assert documented == {what: list(values.values()) for what, values in rows.items()}


def test_capacity_says_what_does_not_fit():
    def marked(*arguments):
        done = subprocess.run([sys.executable, ROOT / "deploy" / "capacity", *arguments], check=True,
                              capture_output=True, text=True)
        return [line[4:30].strip() for line in done.stdout.splitlines() if line.startswith("  !")]
    assert marked("--checks", "0", "--peak", "60", "10") == []
    assert "entries of the allowlist" in marked("10001") and "entries of the allowlist" not in marked("10000")
