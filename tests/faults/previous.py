"""The daemons of the release before this one, built once from git's history into build/previous."""
import os
import pathlib
import shutil
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
COMMIT = "75355b1feb9455997319a83fe81a72e2339a4ba0"  # to be moved on with each release
DAEMONS = ("crcr-ingest", "crcr-dispatcher", "crcr-reporter")


def run(log, *argv):
    with open(log, "ab") as to:
        done = subprocess.run([str(part) for part in argv], stdout=to, stderr=subprocess.STDOUT, check=False)
    assert done.returncode == 0, f"{' '.join(map(str, argv))} ended with {done.returncode}: see {log}"


def unpack(tree):
    archive = subprocess.run(["git", "-C", str(ROOT), "archive", COMMIT], capture_output=True, check=False)
    assert archive.returncode == 0, (f"the previous release {COMMIT[:8]} is not in the history of {ROOT}: "
                                     f"{archive.stderr.decode().strip()}; a shallow clone gets it with: git fetch --unshallow")
    shutil.rmtree(tree, ignore_errors=True)
    tree.mkdir(parents=True)
    subprocess.run(["tar", "-x", "-C", str(tree)], input=archive.stdout, check=True)


def previous_bin(say):
    """The folder with the three programs. Minutes when they are not there yet."""
    folder = ROOT / "build" / "previous"
    tree, log = folder / COMMIT[:8], folder / f"{COMMIT[:8]}.log"
    found = tree / "build" / "bin"
    if all((found / name).exists() for name in DAEMONS):
        return found
    say(f"building the previous release, {COMMIT[:8]}; its output is in {log}")
    unpack(tree)
    run(log, tree / "deploy" / "local" / "packages", "build")
    run(log, "cmake", "-S", tree, "-B", tree / "build", "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release", f"-DCRCR_VERSION={COMMIT[:8]}")
    run(log, "cmake", "--build", tree / "build", "-j", os.cpu_count() or 1, "--target", *DAEMONS)
    return found
