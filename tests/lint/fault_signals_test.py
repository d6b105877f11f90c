"""tests/faults/README.md names what each fault is seen by: metrics and events that the daemons have."""
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[2]
OTHERS = {"up", "process_start_time_seconds"}  # Prometheus' own; one that all programs have


def named():
    text = (ROOT / "tests" / "faults" / "README.md").read_text()
    table = text.split("## By what each is seen from outside")[1].split("\n## ")[0]
    return set(re.findall(r"`([a-z]+(?:_[a-z]+)+)(?:\{[^`]*\})?`", table))


def said():
    events = (ROOT / "tests" / "faults" / "signals.py").read_text()
    return set(re.findall(r'"([a-z]+(?:_[a-z]+)+)"', events))


def test_each_is_in_the_code_of_a_daemon():
    code = "\n".join(file.read_text() for folder in ("common", "ingest", "dispatcher", "reporter")
                     for file in (ROOT / folder).rglob("*.c"))
    assert len(named()) > 40
    assert not [name for name in named() | said() if name not in OTHERS and f'"{name}"' not in code]


def test_what_the_rows_ask_for_is_in_the_table():
    assert not said() - named()
