#!/usr/bin/env python3
"""Which lines of the product's C the tests ran, a module (a .c file) a line; fails below the limits.

usage: coverage.py BUILD-DIRECTORY

The build is that of the preset `coverage`, and the tests have run. Lines that more than one program
compiles count once.
"""

import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/lint"))
sys.dont_write_bytecode = True
import tree  # noqa: E402

PRODUCT = ("common/", "ingest/", "dispatcher/", "reporter/", "deploy/")
PURE_LIMIT, LIMIT = 95.0, 85.0

# A module below its limit: what it reaches today, and why. It may only rise.
EXCEPTIONS = {
    "common/base/fault.c": (0.0, "runs only in the build of tests/faults"),
    "common/base/mem.c": (76.0, "the rest ends the process when there is no memory"),
    "common/io/redis_tls.c": (66.0, "without hiredis_ssl, as on Debian 12, its start is never reached; tests/debian13 has the rest"),
}


def lines_of(notes):
    """{(file, line): times run} of one object."""
    command = ["gcov", "--json-format", "--stdout", notes.name]
    done = subprocess.run(command, cwd=notes.parent, capture_output=True, text=True)
    if done.returncode:  # built again since the tests ran
        sys.exit(f"{notes}: {done.stderr.strip()}; remove the .gcda files and run the tests again")
    counts = {}
    report = json.loads(done.stdout)
    for file in report["files"]:
        path = (Path(report["current_working_directory"]) / file["file"]).resolve()
        if not path.is_relative_to(ROOT):
            continue
        name = str(path.relative_to(ROOT))
        for line in file["lines"]:
            key = (name, line["line_number"])
            counts[key] = counts.get(key, 0) + line["count"]
    return counts


def main():
    build = Path(sys.argv[1]).resolve()
    objects = [notes for notes in sorted(build.rglob("*.gcno")) if "/tests/CMakeFiles/" not in str(notes)]
    total = {}
    with ThreadPoolExecutor() as pool:
        for counts in pool.map(lines_of, objects):
            for key, times in counts.items():
                total[key] = total.get(key, 0) + times
    modules = {name: [0, 0] for name in tree.tracked(ROOT, ".c") if name.startswith(PRODUCT)}
    for (name, _), times in total.items():
        if name in modules:
            modules[name][0] += times > 0
            modules[name][1] += 1
    faults = []
    sums = {"PURE": [0, 0], "other": [0, 0]}
    for name, (run, lines) in sorted(modules.items()):
        kind = "PURE" if tree.is_pure(ROOT, name) else "other"
        share = 100 * run / lines if lines else 100.0
        least = PURE_LIMIT if kind == "PURE" else LIMIT
        accepted = EXCEPTIONS.get(name, (least, ""))[0]
        sums[kind][0] += run
        sums[kind][1] += lines
        print(f"{share:6.1f} %  {run:4} of {lines:4}  {kind:5}  {name}")
        if share < accepted:
            faults.append(f"{name}: {share:.1f} % of its lines are run by a test; {accepted:.1f} % are wanted")
        elif name in EXCEPTIONS and share >= least:
            faults.append(f"{name}: needs no exception any more: {share:.1f} %")
    faults += [f"{name}: an exception for a file that is not there" for name in EXCEPTIONS if name not in modules]
    for kind, (run, lines) in sums.items():
        print(f"{100 * run / max(lines, 1):6.1f} %  {run} of {lines} lines, {kind}")
    for fault in faults:
        print(fault)
    if not sums["PURE"][0]:
        print("nothing has run")
        sys.exit(2)
    sys.exit(1 if faults else 0)


main()
