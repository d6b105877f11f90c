"""The tracked files of the tree that a lint looks at, and how it says what it found."""

import re
import subprocess
import sys
from pathlib import Path


def root_of(arguments):
    """The folder given on the command line (tests use one of their own), else this repository."""
    if arguments:
        return Path(arguments[0]).resolve()
    return Path(__file__).resolve().parents[2]


def tracked(root, *suffixes):
    """Tracked files below root that end in one of the suffixes, as paths relative to root, sorted."""
    listed = subprocess.run(
        ["git", "-C", str(root), "ls-files", "-z"], check=True, capture_output=True, text=True
    ).stdout
    names = [name for name in listed.split("\0") if name.endswith(suffixes or ("",))]
    return sorted(name for name in names if (root / name).is_file())


def lines_of(root, name):
    """(number, text) of each line; bytes that are not UTF-8 are replaced."""
    text = (root / name).read_text(encoding="utf-8", errors="replace")
    return list(enumerate(text.splitlines(), 1))


FIRST_COMMENT = re.compile(r"\s*/\*(.*?)\*/", re.S)


def is_pure(root, name):
    """True for a .c file whose first comment, or its header's, says so: "PURE." or "PURE: …"."""
    for source in (root / name, (root / name).with_suffix(".h")):
        comment = FIRST_COMMENT.match(source.read_text(errors="replace")) if source.is_file() else None
        if comment and re.search(r"\bPURE[.:;]", comment[1]):
            return True
    return False


def end(faults, looked_at):
    """Prints the faults (file:line: text) and exits: 1 when there are any, 2 when nothing was looked at."""
    for fault in faults:
        print(fault)
    if not looked_at:
        print("nothing to look at", file=sys.stderr)
        sys.exit(2)
    sys.exit(1 if faults else 0)
