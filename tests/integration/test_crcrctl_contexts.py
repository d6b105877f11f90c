"""Contexts of crcrctl: which settings count, and what is said of a wrong file. Nothing here answers."""
import json
import re
import shutil

import pytest

from lib.ctl import Ctl
from lib.processes import ROOT

PROD = "# the one that counts\n\nKAFKA_BROKERS=127.0.0.1:2\n  REDIS_ENDPOINT=127.0.0.1:3 \nCRCR_TOPIC_PREFIX=x.\nCRCR_TOPIC_PREFIX=prod.\nREDIS_LOGIN_FILE=SECRET"


@pytest.fixture
def ctl(tmp_path):
    """Without settings of its own but HOME."""
    (tmp_path / "secret").write_text("me:hidden\n")
    one = Ctl("", "")
    one.folder = tmp_path / ".config/crcr"
    one.folder.mkdir(parents=True)
    (one.folder / "prod.env").write_text(PROD.replace("SECRET", str(tmp_path / "secret")))
    (one.folder / "dev.env").write_text("KAFKA_BROKERS=127.0.0.1:4\r\n")
    (one.folder / "other").write_text("no context\n")
    one.run = lambda *arguments, expect=0, **more: one(*arguments, expect=expect, **{"HOME": str(tmp_path), "GITHUB_APP_SECRET": "", **more})
    return one


def shown(ctl, *arguments, **environment):
    said = json.loads(ctl.run("context", "--json", *arguments, **environment).stdout)
    return said["from"], said["settings"]


def test_of_a_chosen_context_nothing_is_mixed_with_the_environment(ctl):
    mixed = {"KAFKA_BROKERS": "127.0.0.1:9", "REDIS_LOGIN": "other:one", "CRCR_TOPIC_PREFIX": "y.", "GITHUB_APP_ID": "7", "CRCR_NO_SUCH_NAME": "1",
             "CRCR_KAFKA_CLIENT_RACK": "a", "GITHUB_APP_SECRET": "one"}
    where, settings = shown(ctl, "--context", "prod", **mixed)
    assert where == str(ctl.folder / "prod.env") and "GITHUB_APP_ID" not in settings
    assert settings["KAFKA_BROKERS"] == "127.0.0.1:2" and settings["REDIS_ENDPOINT"] == "127.0.0.1:3"
    assert settings["CRCR_TOPIC_PREFIX"] == "prod." and settings["REDIS_LOGIN"] == "(set)" and "kafka client.rack" not in settings
    assert "GITHUB_APP_SECRET" not in settings
    assert "REDIS_ENDPOINT" not in shown(ctl, "--context", "dev", REDIS_ENDPOINT="127.0.0.1:9")[1]
    assert "hidden" not in ctl.run("context", "--context", "prod").stdout
    assert "cannot reach Kafka at 127.0.0.1:4" in ctl.run("lag", "--context", "dev", expect=3, **mixed).stderr


def test_the_context_default_counts_where_nothing_else_says_where(ctl):
    assert shown(ctl)[0] == "the environment"
    assert "KAFKA_BROKERS is not set" in ctl.run("lag", expect=2).stderr
    (ctl.folder / "default.env").symlink_to("dev.env")
    assert shown(ctl, CRCR_TOPIC_PREFIX="x.") == (str(ctl.folder / "default.env"), {**shown(ctl)[1], "KAFKA_BROKERS": "127.0.0.1:4"})
    assert shown(ctl, "--context", "prod")[0] == str(ctl.folder / "prod.env")
    for name in ("KAFKA_BROKERS", "REDIS_ENDPOINT"):
        assert shown(ctl, **{name: "127.0.0.1:9"})[0] == "the environment"
    assert shown(ctl, "--redis", "127.0.0.1:9")[0] == "the environment"
    assert shown(ctl, HOME="/nowhere", XDG_CONFIG_HOME=str(ctl.folder.parent))[0] == str(ctl.folder / "default.env")


def test_the_verb_context_lists_them_and_what_is_in_force(ctl):
    assert json.loads(ctl.run("context", "--json").stdout)["contexts"] == ["dev", "prod"]
    lines = ctl.run("context", "--context", "dev").stdout.splitlines()
    assert lines[:3] == ["dev", "prod", f"# from {ctl.folder / 'dev.env'}"] and "KAFKA_BROKERS=127.0.0.1:4" in lines
    assert ctl.run("context", HOME="/nowhere").stdout.startswith("# from the environment\n")
    assert ctl.run("__complete", "lag", "--context", "").stdout == "dev\nprod\n"
    assert ctl.run("__complete", "lag", "--context", "p").stdout == "prod\n"


def test_brokers_and_redis_replace_one_setting(ctl, tmp_path):
    given = ("--brokers", "127.0.0.1:7", "--redis", "127.0.0.1:8")
    where, settings = shown(ctl, "--context", "prod", *given)
    assert where == str(ctl.folder / "prod.env") and settings["CRCR_TOPIC_PREFIX"] == "prod."
    assert settings["KAFKA_BROKERS"] == "127.0.0.1:7" and settings["REDIS_ENDPOINT"] == "127.0.0.1:8"
    (tmp_path / "brokers").write_text("127.0.0.1:9\n")
    for environment in ({"KAFKA_BROKERS": "127.0.0.1:9"}, {"KAFKA_BROKERS_FILE": str(tmp_path / "brokers")}, {}):
        assert shown(ctl, *given, **environment)[1]["KAFKA_BROKERS"] == "127.0.0.1:7"
    assert "cannot reach Kafka at 127.0.0.1:7" in ctl.run("tail", *given, expect=3).stderr
    assert "KAFKA_BROKERS" in ctl.run("tail", "--brokers", "nothing", expect=2).stderr


@pytest.mark.parametrize("text,says", (
    ("a\n", "a.env:1: accepted are NAME=value"), ("# it\n\ncolour=red\n", "a.env:3: accepted are"), ("KAFKA_BROKER=x:1", "a.env:1: "),
    ("KAFKA_BROKERS = x:1\n", "a.env:1: "), ("REDIS_ENDPOINT=x:1\nKAFKA_BROKERS='x:1'\n", "a.env:2: accepted are NAME=value, without quotes"),
    ('KAFKA_BROKERS="x:1"\n', "without quotes"), ("export KAFKA_BROKERS=x:1\n", "a.env:1: "),
    ("KAFKA_BROKERS=nothing\n", "a.env: KAFKA_BROKERS=")), ids=str)
def test_a_fault_in_the_file_has_its_place(ctl, text, says):
    (ctl.folder / "a.env").write_text(text)
    assert says in ctl.run("lag", "--context", "a", expect=2).stderr


def test_of_a_name_that_is_none_the_nearest_is_named(ctl):
    assert "--context 'prd': accepted is a name of `crcrctl context`; did you mean prod?" in ctl.run("lag", "--context", "prd", expect=2).stderr
    for name in ("../crcr/prod", ""):
        assert "accepted is a name of `crcrctl context`" in ctl.run("lag", "--context", name, expect=2).stderr


def test_the_example_of_the_readme_and_the_file_of_the_units_are_read(ctl, tmp_path):
    text = re.search(r"<!-- context -->\n\n((?:    .*\n)+)", (ROOT / "deploy/crcrctl/README.md").read_text())[1].replace("\n    ", "\n")
    text = text.removeprefix("    ").replace("/home/me/.config/crcr", str(tmp_path))
    for name in ("redis_login", "kafka_password"):
        (tmp_path / name).write_text("me:hidden\n")
    (ctl.folder / "example.env").write_text(text)
    settings = shown(ctl, "--context", "example")[1]
    assert settings["CRCR_TOPIC_PREFIX"] == "crcr." and settings["REDIS_LOGIN"] == "(set)" and settings["kafka sasl.mechanism"] == "SCRAM-SHA-512"
    shutil.copy(ROOT / "deploy/systemd/crcr.env", ctl.folder / "units.env")
    assert shown(ctl, "--context", "units")[1]["KAFKA_BROKERS"] == "127.0.0.1:9092"
