"""The metric families that the daemons declare, read from their tables in C."""
import re

from lib.processes import ROOT

TABLES = {"every daemon": "common/daemon/admin.c", "ingest": "ingest/metrics.c",
          "dispatcher": "dispatcher/metrics.c", "reporter": "reporter/metrics.c"}
ENTRY = re.compile(r"^    \[\w+\] = \{(.*?)\},\n(?=    \[|\};)", re.MULTILINE | re.DOTALL)
HISTOGRAM_PARTS = ("_bucket", "_sum", "_count")


def families(who):
    """name → (type, [labels]) of one of TABLES."""
    found = {}
    for entry in ENTRY.findall((ROOT / TABLES[who]).read_text()):
        name = re.search(r'"((?:crcr|process)_\w+)"', entry)
        if name is None: # another table of that file
            continue
        kind = re.search(r"METRIC_(COUNTER|GAUGE|HISTOGRAM)", entry).group(1).lower()
        braces = re.findall(r"\{([^{}]*)\}", entry)
        found[name.group(1)] = (kind, re.findall(r'"(\w+)"', braces[-1]) if braces else [])
    assert found, f"no metric in {TABLES[who]}"
    return found


def all_families():
    merged = {}
    for who in TABLES:
        for name, family in families(who).items():
            assert merged.setdefault(name, family) == family, f"{name} differs between two daemons"
    return merged


def named_in(expression, known):
    """The families that a PromQL expression names; a name that is none of the known fails."""
    names = set()
    for name in re.findall(r"\b(?:crcr|process)_\w+", re.sub(r'"[^"]*"', '""', expression)):
        for part in HISTOGRAM_PARTS:
            base = name.removesuffix(part)
            if base != name and base in known and known[base][0] == "histogram":
                name = base
        assert name in known, f"no daemon has {name}: {expression}"
        names.add(name)
    return names


def labels_in(expression):
    """The label names that a PromQL expression asks for."""
    bare = re.sub(r'"[^"]*"', '""', expression)
    groups = re.findall(r"\bby \(([^)]*)\)", bare)
    selectors = re.findall(r"(\w+)\s*(?:=~|!=|!~|=)\s*\"\"", bare)
    return {label.strip() for group in groups for label in group.split(",")} | set(selectors)
