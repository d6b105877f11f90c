"""deploy/clickhouse: the table has the columns of the relay's record."""
import re

from lib.processes import ROOT

HERE = ROOT / "deploy" / "clickhouse"
SCHEMA = (HERE / "schema.sql").read_text()
OURS = {"kafka_offset", "stored_at"}


def columns_of(table):
    body = re.search(rf"CREATE TABLE IF NOT EXISTS crcr\.{table}\n\(\n(.*?)\n\)\n", SCHEMA, re.DOTALL).group(1)
    body = re.sub(r"--.*", "", body)
    return dict(re.findall(r"(?:^|,)\s*(\w+)\s+((?:\w+)(?:\((?:[^()]|\([^()]*\))*\))?)", body))


def record_columns():
    """The columns of the JSON record with their types, in the relay's own table."""
    table = (ROOT / "common/model/result_record.c").read_text()
    found = re.findall(r'^    \{ "(\w+)", (\w+), AT\(\w+\), \S+, true, \S+ \},', table, re.MULTILINE)
    assert len(found) == 28
    return dict(found)


def test_the_tables_have_the_columns_of_the_record():
    wanted = record_columns()
    assert columns_of("results_queue").keys() == wanted.keys()
    assert columns_of("results").keys() == wanted.keys() | OURS


def test_numbers_are_numbers_and_what_may_be_unknown_may_be_null():
    for name, kind in record_columns().items():
        for table in ("results", "results_queue"):
            column = columns_of(table)[name]
            expected = {"NUMBER": "UInt64", "SECONDS": "Float64"}.get(kind)
            if name.endswith("_at") and table == "results":
                expected = "DateTime64"
            assert (expected or "String") in column, f"{table}.{name}: {column}"
            assert ("Nullable" in column) == (name not in ("dynamoKey", "status", "downstream_repo")), name
