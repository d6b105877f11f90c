"""What a release says of itself: one version wherever it stands, and a changelog in the form of Keep a Changelog."""
import pathlib
import re
import shutil
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
NAMES = ("Breaking", "Added", "Changed", "Deprecated", "Removed", "Fixed", "Security")
# Where the version stands, and how often: CMakeLists.txt has it, deploy/version writes the others.
PLACES = {"CMakeLists.txt": r"^project\(crcr VERSION (\S+) ",
          "deploy/Dockerfile": r'image\.version="([^"]+)"',
          "deploy/k8s/base/kustomization.yaml": r"app\.kubernetes\.io/version: (\S+) ",
          "deploy/k8s/components/strimzi/kustomization.yaml": r"app\.kubernetes\.io/version: (\S+) ",
          "deploy/k8s/overlays/full/kustomization.yaml": r"newTag: (\S+) ",
          "deploy/k8s/overlays/external/kustomization.yaml": r"newTag: (\S+) ",
          "deploy/k8s/examples/pinned/kustomization.yaml": r"(?:\?ref=v|newTag: )(\d[\d.]+)",
          "deploy/k8s/README.md": r"registry\.example\.org/crcr:(\S+)",
          "deploy/downstream/README.md": r"# v(\d+\.\d+\.\d+)",
          "deploy/compose/README.md": r"(?:`|crcr-|crcr:)(\d+\.\d+\.\d+)",
          "deploy/systemd/README.md": r"(\d+\.\d+\.\d+)[;+_]"}


def versions(root):
    found = {name: re.findall(pattern, (root / name).read_text(), re.MULTILINE) for name, pattern in PLACES.items()}
    assert all(found.values()), found
    return found


def version(root, *arguments, code=0):
    done = subprocess.run([root / "deploy/version", *arguments], capture_output=True, text=True, timeout=60)
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout.strip() or done.stderr.strip()


@pytest.fixture
def copy(tmp_path):
    for name in {*PLACES, "deploy/version", "deploy/CHANGELOG.md"}:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    return tmp_path


def test_all_say_the_version_of_cmake():
    said = {one for found in versions(ROOT).values() for one in found}
    assert said == {version(ROOT)}


def test_one_command_changes_the_version_wherever_it_stands(copy):
    before = version(copy)
    changes = (copy / "deploy/CHANGELOG.md").read_text()
    version(copy, "98.7.6")
    assert {one for found in versions(copy).values() for one in found} == {"98.7.6"} == {version(copy)}
    assert [name for name in PLACES if before in (copy / name).read_text()] == []
    now = (copy / "deploy/CHANGELOG.md").read_text()
    assert not faults(now, "98.7.6") and re.sub(r"\n\n## \[98\.7\.6\] - .*", "", now) == changes
    assert "not later than" in version(copy, before, code=1)
    assert version(copy, "98.7", code=2) == version(copy, "v98.7.7", code=2) == version(copy, "--help")


# ---- the changelog ------------------------------------------------------------------------------------------------------

def faults(text, current):
    """What in the text is not of the form, and whether `current` has a section."""
    found, seen, parts = [], [], []
    for line in re.findall(r"^#{2,3} .*$", text, re.MULTILINE):
        release = re.fullmatch(r"## \[(\d+)\.(\d+)\.(\d+)\] - \d{4}-\d\d-\d\d", line)
        if line.startswith("### "):
            name = line.removeprefix("### ")
            if name not in NAMES or name in parts or (name == "Breaking" and parts):
                found.append(f"{line}: one of {', '.join(NAMES)}, each once, Breaking first")
            parts.append(name)
            continue
        parts = []
        if not seen and line == "## [Unreleased]":
            seen.append((float("inf"),))
        elif not seen or not release:
            found.append(f"{line}: ## [Unreleased], then ## [X.Y.Z] - YYYY-MM-DD")
        else:
            seen.append(tuple(int(one) for one in release.groups()))
    if seen != sorted(set(seen), reverse=True):
        found.append("versions: newest first, each once")
    if not any(one == tuple(int(part) for part in current.split(".")) for one in seen):
        found.append(f"the version {current} has no section")
    return found


def test_the_changelog_is_a_keep_a_changelog_and_has_the_version():
    assert faults((ROOT / "deploy/CHANGELOG.md").read_text(), version(ROOT)) == []


GOOD = "# C\n\n## [Unreleased]\n\n## [1.10.0] - 2026-11-28\n\n### Breaking\n\n### Added\n\n## [1.9.0] - 2026-11-01\n"


@pytest.mark.parametrize("broken, says", [
    (GOOD.replace("## [Unreleased]\n\n", ""), "## [Unreleased], then"),
    (GOOD.replace(" - 2026-11-28", ""), "YYYY-MM-DD"),
    (GOOD.replace("1.9.0", "1.11.0"), "newest first"),
    (GOOD.replace("1.10.0", "1.10.1"), "1.10.0 has no section"),
    (GOOD.replace("### Added", "### Tools"), "one of Breaking, Added"),
    (GOOD.replace("### Breaking", "### Fixed").replace("### Added", "### Breaking"), "Breaking first"),
    (GOOD.replace("### Added", "### Added\n\n### Added"), "each once"),
])
def test_what_has_another_form_is_a_fault(broken, says):
    assert faults(GOOD, "1.10.0") == []
    assert says in "\n".join(faults(broken, "1.10.0"))


# ---- workflows ----------------------------------------------------------------------------------------------------------

def workflow_faults(text):
    """Actions of others that are not pinned by commit with the version beside it; no permissions of the whole."""
    found = [line.strip() for line in text.splitlines() if re.search(r"\buses:", line) and not
             re.fullmatch(r"\s*(- )?uses: ([\w.-]+(/[\w.-]+)+@[0-9a-f]{40} # v\d+\.\d+\.\d+|\./[\w./-]+)", line)]
    return found if re.search(r"^permissions:", text, re.MULTILINE) else [*found, "no permissions: at the top"]


def test_workflows_pin_each_action_by_commit_and_say_their_permissions():
    workflows = sorted((ROOT / ".github/workflows").glob("*.yml"))
    assert {one.name for one in workflows} >= {"ci.yml", "release.yml"}
    for one in workflows:
        assert workflow_faults(one.read_text()) == [], one.name


PINNED = "permissions: {}\njobs:\n  one:\n    steps:\n      - uses: actions/checkout@" + "1af3b93b" * 5 + " # v6.0.0\n"


@pytest.mark.parametrize("broken", [PINNED.replace("permissions: {}\n", ""), PINNED.replace("1af3b93b" * 5, "v6"),
                                    PINNED.replace(" # v6.0.0", ""), PINNED.replace("1af3b93b" * 5, "1af3b93b")])
def test_a_workflow_that_does_not_is_a_fault(broken):
    assert not workflow_faults(PINNED) and workflow_faults(broken)
