"""Contexts of crcrctl: which settings count, and what is said of a wrong file. Nothing here answers."""
import json
import re

import pytest

from lib.ctl import Ctl
from lib.processes import ROOT

FILE = """\
prod: { brokers: "127.0.0.1:2", redis: "127.0.0.1:3", prefix: "prod.", REDIS_LOGIN_FILE: SECRET }
dev: { brokers: "127.0.0.1:4" }
"""


@pytest.fixture
def ctl(tmp_path):
    """Without settings of its own but HOME."""
    (tmp_path / "secret").write_text("me:hidden\n")
    folder = tmp_path / ".config/crcr"
    folder.mkdir(parents=True)
    file = folder / "contexts.yml"
    file.write_text(FILE.replace("SECRET", str(tmp_path / "secret")))
    one = Ctl("", "")
    one.file = file
    one.run = lambda *arguments, expect=0, **more: one(*arguments, expect=expect, **{"HOME": str(tmp_path), "GITHUB_APP_SECRET": "", **more})
    return one


def shown(ctl, *arguments, **environment):
    said = json.loads(ctl.run("context", "show", "--json", *arguments, **environment).stdout)
    return said["from"], said["settings"]


def test_of_a_chosen_context_nothing_is_mixed_with_the_environment(ctl):
    where, settings = shown(ctl, "--context", "prod", KAFKA_BROKERS="127.0.0.1:9", REDIS_LOGIN="other:one", CRCR_TOPIC_PREFIX="x.",
                            GITHUB_APP_ID="7")
    assert where == f"context prod of {ctl.file}" and "GITHUB_APP_ID" not in settings
    assert settings["KAFKA_BROKERS"] == "127.0.0.1:2" and settings["REDIS_ENDPOINT"] == "127.0.0.1:3"
    assert settings["CRCR_TOPIC_PREFIX"] == "prod." and settings["REDIS_LOGIN"] == "(set)"
    assert "REDIS_ENDPOINT" not in shown(ctl, "--context", "dev", REDIS_ENDPOINT="127.0.0.1:9")[1]
    assert "hidden" not in ctl.run("context", "show", "--context", "prod").stdout
    assert "cannot reach Kafka at 127.0.0.1:4" in ctl.run("lag", "--context", "dev", expect=3).stderr


def test_the_current_context_counts_where_the_environment_says_nothing(ctl):
    assert shown(ctl)[0] == "the environment"
    assert "KAFKA_BROKERS is not set" in ctl.run("lag", expect=2).stderr
    assert ctl.run("context", "use", "dev").stdout == "current: dev\n"
    assert [line.split()[:2] for line in ctl.run("context", "list").stdout.splitlines()] == [["prod", "127.0.0.1:2"], ["*", "dev"]]
    assert shown(ctl)[1]["KAFKA_BROKERS"] == "127.0.0.1:4" and shown(ctl, "--context", "prod")[0].startswith("context prod")
    assert shown(ctl, KAFKA_BROKERS="127.0.0.1:9")[0] == "the environment"
    assert shown(ctl, REDIS_ENDPOINT="127.0.0.1:9")[0] == "the environment"
    moved = ctl.file.parents[1]
    assert shown(ctl, HOME="/nowhere", XDG_CONFIG_HOME=str(moved))[0] == f"context dev of {ctl.file}"
    assert "contexts.yml has none, or is not there" in ctl.run("context", "list", HOME="/nowhere", expect=1).stderr


def test_brokers_and_redis_replace_one_setting(ctl, tmp_path):
    given = ("--brokers", "127.0.0.1:7", "--redis", "127.0.0.1:8")
    where, settings = shown(ctl, "--context", "prod", *given)
    assert where.startswith("context prod") and settings["CRCR_TOPIC_PREFIX"] == "prod."
    assert settings["KAFKA_BROKERS"] == "127.0.0.1:7" and settings["REDIS_ENDPOINT"] == "127.0.0.1:8"
    (tmp_path / "brokers").write_text("127.0.0.1:9\n")
    for environment in ({"KAFKA_BROKERS": "127.0.0.1:9"}, {"KAFKA_BROKERS_FILE": str(tmp_path / "brokers")}, {}):
        assert shown(ctl, *given, **environment)[1]["KAFKA_BROKERS"] == "127.0.0.1:7"
    assert "cannot reach Kafka at 127.0.0.1:7" in ctl.run("tail", *given, expect=3).stderr
    assert "KAFKA_BROKERS" in ctl.run("tail", "--brokers", "nothing", expect=2).stderr


@pytest.mark.parametrize("text,says", (
    ("a: 1\n", "contexts.yml:1:1: accepted is a name"), ("- a\n", "contexts.yml:1:1: accepted is a mapping"),
    ("a:\n  colour: red\n", "contexts.yml:2:3: accepted are brokers, redis, prefix"),
    ("a:\n  brokers: [x]\n", "contexts.yml:2:3: accepted are"), ("a: {\n", "contexts.yml:"),
    ("ab: { brokers: 'x:1' }\n", "no context 'a' in")), ids=str)
def test_a_fault_in_the_file_has_its_place_and_the_nearest_name(ctl, text, says):
    ctl.file.write_text(text)
    assert says in ctl.run("lag", "--context", "a", expect=2).stderr
    ctl.file.write_text(FILE)
    assert "did you mean prod?" in ctl.run("context", "use", "prd", expect=1).stderr
    assert ctl.run("__complete", "context", "use", "p").stdout == "prod\n"
    assert ctl.run("__complete", "lag", "--context", "").stdout == "prod\ndev\n"


def test_the_example_of_the_readme_is_read(ctl, tmp_path):
    text = re.search(r"<!-- contexts -->\n\n((?:    .*\n)+)", (ROOT / "deploy/crcrctl/README.md").read_text())[1].replace("\n    ", "\n")
    ctl.file.write_text(text.removeprefix("    ").replace("/home/me/.config/crcr/redis_login", str(tmp_path / "secret")).replace(
        "/home/me/.config/crcr/kafka_password", str(tmp_path / "secret")))
    assert shown(ctl, "--context", "prod")[1]["CRCR_TOPIC_PREFIX"] == "crcr."
    assert shown(ctl, "--context", "local")[1]["KAFKA_BROKERS"] == "127.0.0.1:9094"
