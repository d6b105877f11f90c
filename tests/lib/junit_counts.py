"""Prints "passed failed skipped" of a JUnit file, then a line for each test that failed: its name, and what it said.
With a second file, of a second try: a test that failed in the first and passed in the second has passed. A line for each
such test comes last, with a ~ before it. Exits 1 when a file is missing or holds no test."""
import sys
import xml.etree.ElementTree as ET

SAID = 300  # of a failure's text, in characters


def read(path):
    """What each test ended with: {(file, name): (passed|failed|skipped, what it said)}."""
    ended = {}
    for case in ET.parse(path).getroot().iter("testcase"):
        failure = next((part for part in case if part.tag in ("failure", "error")), None)
        how, said = "passed", ""
        if failure is not None:
            how, said = "failed", (failure.get("message") or failure.text or "").split("\n")[0][:SAID]
        elif case.find("skipped") is not None or case.get("status") in ("disabled", "notrun"):
            how = "skipped"
        key = case.get("classname"), case.get("name")
        if ended.get(key, ("passed",))[0] != "failed":  # one that passed, and failed as it ended, is there twice
            ended[key] = how, said
    if not ended:
        raise OSError(f"{path} holds no test")
    return ended


def main(first, second=None):
    ended = read(first)
    again = read(second) if second else {}
    of = {how: [key for key in ended if ended[key][0] == how] for how in ("passed", "failed", "skipped")}
    late = [key for key in of["failed"] if again.get(key, ("",))[0] == "passed"]
    failed = [key for key in of["failed"] if key not in late]
    print(len(of["passed"]) + len(late), len(failed), len(of["skipped"]))
    for key in failed:
        print(f"{key[1]}: {ended[key][1]}")
    for key in late:
        print(f"~{key[1]}: {ended[key][1]}")


if __name__ == "__main__":
    try:
        main(*sys.argv[1:])
    except (OSError, ET.ParseError):
        sys.exit(1)
