"""deploy/clickhouse: table, view and queries on records of the relay, in a ClickHouse within the process (the Python package
chdb; tests/conftest.py does not collect this without it). The Kafka engine is not run."""
import json
import re

import chdb.session
import pytest

from test_clickhouse import HERE, SCHEMA, record_columns

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def clickhouse(tmp_path_factory):
    session = chdb.session.Session(str(tmp_path_factory.mktemp("chdb")))
    # What comes from Kafka comes by INSERT here: a Null table with the engine's virtual columns.
    schema = re.sub(r"Nullable\(String\)\n\)\nENGINE = Kafka\nSETTINGS .*?;",
                    "Nullable(String),\n    _offset UInt64 MATERIALIZED toUnixTimestamp64Micro(now64(6)),\n"
                    "    _timestamp_ms Nullable(DateTime64(3)) MATERIALIZED now64(3)\n)\nENGINE = Null;",
                    SCHEMA, flags=re.DOTALL)
    assert "Kafka\n" not in schema
    for statement in re.sub(r"--.*", "", schema).split(";"):
        if statement.strip():
            session.query(statement)
    yield session
    session.close()


def put(session, job, status, conclusion, sha="a" * 40, **more):
    """A record as the relay writes it: every column, null where it is not known."""
    row = {**dict.fromkeys(record_columns()), "dynamoKey": f"o%2Fr/d/w/{job}/{sha}", "status": status, "conclusion": conclusion,
           "downstream_repo": "o/r", "downstream_repo_level": "L2", "pytorch_head_sha": sha, "workflow_name": "w",
           "job_name": job, "pr_number": 7, **more}
    session.query(f"INSERT INTO crcr.results_queue FORMAT JSONEachRow {json.dumps(row)}")


def ask(session, name, **parameters):
    text = re.search(rf"-- name: {name}\n(.*?);", (HERE / "queries.sql").read_text(), re.DOTALL).group(1)
    for key, value in parameters.items():
        text = re.sub(rf"\{{{key}:\w+\}}", repr(value), text)
    return [json.loads(line) for line in str(session.query(text, "JSONEachRow")).splitlines()]


def test_each_job_is_one_row_in_its_newest_state_and_the_queries_answer(clickhouse):
    done = {"completed_at": str(clickhouse.query("SELECT formatDateTime(now(), '%FT%TZ')")).strip().strip('"'),
            "queue_time": 1.5, "execution_time": 60.25}
    put(clickhouse, "build", "in_progress", None, queue_time=1.5)
    put(clickhouse, "build", "completed", "success", **done)
    put(clickhouse, "flaky", "completed", "failure", **done)
    put(clickhouse, "flaky", "completed", "success", **{**done, "dynamoKey": "o%2Fr/d/w/flaky/again"})
    rows = ask(clickhouse, "commit", sha="a" * 40)
    assert [(row["job_name"], row["status"], row["conclusion"]) for row in rows] == [
        ("flaky", "completed", "failure"), ("build", "completed", "success"), ("flaky", "completed", "success")]
    put(clickhouse, "silent", "timed_out", "timed_out", sha="b" * 40, **done)  # as the sweep writes it
    for kind, pr in (("nightly", 7), ("periodic", None), ("push", None), ("push", 0)):  # of no pull request
        put(clickhouse, f"{kind} {pr}", "completed", "failure", sha="c" * 40, **{**done, "event_type": kind, "pr_number": pr})
    rate, = ask(clickhouse, "pass_rate", days=7)
    assert rate["downstream_repo"] == "o/r" and int(rate["decided"]) == 4 and abs(rate["pass_rate"] - 2 / 4) < 1e-9
    times, = ask(clickhouse, "times", days=7)
    assert (times["queue_p50"], times["run_p90"]) == (1.5, 60.25)
    assert [(row["job_name"], int(row["commits"])) for row in ask(clickhouse, "flaky", days=7)] == [("flaky", 1)]
