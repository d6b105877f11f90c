"""deploy/log-events.md has each warning and error that a daemon logs, with its level and who logs it, and no other."""
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAMS = ("ingest", "dispatcher", "reporter")
# Their names stand in a table or an argument, not in log_warn(…) or log_error(…).
INDIRECT = {"allowlist_refused", "allowlist_unreachable", "dead_letter", "dispatch_failed", "dispatch_unknown",
            "due_not_published", "sweep_not_published"}
CODE = {folder: "\n".join(file.read_text() for file in sorted((ROOT / folder).rglob("*.c"))) for folder in (*PROGRAMS, "common")}


def described():
    """event → (level, who logs it)."""
    table = (ROOT / "deploy" / "log-events.md").read_text().split("<!-- events:begin -->")[1].split("<!-- events:end -->")[0]
    rows = re.findall(r"^\| `(\w+)` \| (\w+) \| ([\w, ]+) \|", table, re.MULTILINE)
    assert len(rows) == len(table.strip().splitlines()) - 2, "a row has another form"
    assert [row[0] for row in rows] == sorted({row[0] for row in rows}), "by name, each once"
    return {event: (level, set(PROGRAMS) if who == "all" else set(who.split(", "))) for event, level, who in rows}


def logged():
    """event → (level, folders with the line)."""
    found = {}
    for folder, text in CODE.items():
        for level, event in re.findall(r'\blog_(warn|error)\(\s*"(\w+)"', text):
            found.setdefault(event, (level, set()))[1].add(folder)
    return found


def test_each_warning_and_error_has_its_row_and_level():
    assert len(logged()) > 35
    assert {event: level for event, (level, _) in described().items() if event not in INDIRECT} == {
        event: level for event, (level, _) in logged().items()}


def test_each_row_names_who_logs_it():
    for event, (_, who) in described().items():
        _, folders = logged().get(event, ("", {folder for folder in CODE if f'"{event}"' in CODE[folder]}))
        assert folders == who or "common" in folders or event in INDIRECT and who <= folders, event
