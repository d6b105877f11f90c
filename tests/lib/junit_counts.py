"""Prints "passed failed skipped" of a JUnit file; exits 1 when it is missing or holds no test."""
import sys
import xml.etree.ElementTree as ET


def counts(path):
    failed = skipped = total = 0
    for case in ET.parse(path).getroot().iter("testcase"):
        total += 1
        if case.find("failure") is not None or case.find("error") is not None:
            failed += 1
        elif case.find("skipped") is not None or case.get("status") in ("disabled", "notrun"):
            skipped += 1
    return total - failed - skipped, failed, skipped, total


if __name__ == "__main__":
    try:
        passed, failed, skipped, total = counts(sys.argv[1])
    except (OSError, ET.ParseError):
        sys.exit(1)
    print(passed, failed, skipped)
    sys.exit(0 if total else 1)
