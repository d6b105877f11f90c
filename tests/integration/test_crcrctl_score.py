"""`crcrctl score`: the scorecard of a compute platform, with what the relay's own results say of its CI."""
import json
import re
import secrets

import pytest

from lib.ctl import Ctl
from lib.processes import ROOT


@pytest.fixture(scope="module")
def example():
    """The file that the README shows."""
    text = (ROOT / "deploy" / "crcrctl" / "README.md").read_text()
    return re.search(r"<!-- score -->\n\n((?:    .*\n|\n)+)", text)[1].replace("\n    ", "\n").removeprefix("    ")


@pytest.fixture
def nobody():
    return Ctl("127.0.0.1:1", "nowhere.")


@pytest.fixture
def card(tmp_path, example):
    def write(text=example):
        (tmp_path / "platform.yml").write_text(text)
        return tmp_path / "platform.yml"
    return write


def test_what_the_results_say_is_measured_whatever_the_file_says(kafka_node, tmp_path, card, example):
    ctl = Ctl(kafka_node.brokers, f"t{secrets.token_hex(4)}.").create_topics()
    for run, conclusion in ((1, "success"), (2, "failure")):
        key = f"org/backend/d/CI/test/{run}"
        ctl.write("results", key, json.dumps({
            "dynamoKey": key, "status": "completed", "conclusion": conclusion, "downstream_repo": "org/backend",
            "downstream_repo_level": "L2", "run_id": str(run), "workflow_name": "CI", "job_name": "test"}).encode())
    said = json.loads(ctl("score", "--json", card()).stdout)
    items = {item["name"]: item for item in said["items"]}
    measured = {name for name, item in items.items() if item["measured"]}
    assert measured == {"ci_cd.accessibility", "ci_cd.tests_stability", "ci_cd.stability"}
    assert [items[name]["score"] for name in sorted(measured)] == [2, 4, 4]
    assert said["of"] == 124 and said["total"] == sum(item["score"] for item in items.values())
    text = ctl("score", card()).stdout
    assert "measured" in text and f"{said['total']} of 124 points" in text and said["grade"] in text
    assert "not measured: no job of org/none ended" in ctl(
        "score", card(example.replace("org/backend", "org/none"))).stdout


def test_without_a_repository_kafka_is_not_asked(nobody, card, example):
    assert "measured" not in nobody("score", card(example.replace("repo: org/backend", ""))).stdout
    assert "is it running?" in nobody("score", card(), expect=3).stderr
    assert "KAFKA_BROKERS is not set" in nobody("score", card(), expect=2, KAFKA_BROKERS="").stderr


def test_a_fault_is_exit_1_with_its_place(nobody, card, tmp_path):
    assert re.match(r"\S+platform.yml:1:1: ", nobody("score", card("colour: red\n"), expect=1).stderr)
    assert "absent.yml" in nobody("score", tmp_path / "absent.yml", expect=1).stderr


@pytest.mark.parametrize("arguments", ([], ["a", "b"], ["--items", "a"], ["--since", "soon", "a"]), ids=str)
def test_wrong_usage_of_score_is_exit_2(nobody, arguments):
    assert nobody("score", *arguments, expect=2).stderr


def test_items_lists_them_all(nobody):
    assert len(nobody("score", "--items").stdout.splitlines()) == 30
