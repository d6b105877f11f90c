"""Prints "passed failed skipped" of a JUnit file, then a line for each test that failed: its name, and what it said.
Exits 1 when the file is missing or holds no test."""
import sys
import xml.etree.ElementTree as ET

SAID = 300  # of a failure's text, in characters


def read(path):
    """passed, failed, skipped, and the lines."""
    failed, skipped, total = [], 0, 0
    for case in ET.parse(path).getroot().iter("testcase"):
        total += 1
        failure = next((part for part in case if part.tag in ("failure", "error")), None)
        if failure is not None:
            said = (failure.get("message") or failure.text or "").split("\n")[0]
            failed.append(f"{case.get('name')}: {said[:SAID]}")
        elif case.find("skipped") is not None or case.get("status") in ("disabled", "notrun"):
            skipped += 1
    return total - len(failed) - skipped, skipped, failed


if __name__ == "__main__":
    try:
        passed, skipped, failed = read(sys.argv[1])
    except (OSError, ET.ParseError):
        sys.exit(1)
    print("\n".join([f"{passed} {len(failed)} {skipped}", *failed]))
    sys.exit(0 if passed + len(failed) + skipped else 1)
