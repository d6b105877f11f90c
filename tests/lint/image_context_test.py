"""What deploy/Dockerfile builds is not this tree but what .dockerignore leaves of it: that has to be enough."""
import pathlib
import re
import shutil
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]


def left_out():
    """Files and folders of .dockerignore; the patterns in it are of what git does not have."""
    lines = (ROOT / ".dockerignore").read_text().split()
    return [pathlib.PurePath(line) for line in lines if "*" not in line]


def copy_context(target):
    files = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    for name in map(pathlib.PurePath, filter(None, files.split("\0"))):
        if not any(name.is_relative_to(one) for one in left_out()) and (ROOT / name).is_file():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, target / name)


def configured(folder):
    """What the programs and the package would be called: (version, package's version)."""
    done = subprocess.run(["cmake", "-S", ".", "-B", "build", "-G", "Ninja"], cwd=folder, check=False,
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return (re.search(r'CRCR_VERSION=\\"([^"\\]+)', (folder / "build/build.ninja").read_text())[1],
            re.search(r'CPACK_PACKAGE_VERSION "([^"]+)"', (folder / "build/CPackConfig.cmake").read_text())[1])


def git(folder, *arguments):
    name = ["-c", "user.name=x", "-c", "user.email=x@example.org"]
    return subprocess.run(["git", "-C", folder, *name, *arguments], check=True, capture_output=True, text=True).stdout.strip()


def test_the_image_s_part_of_the_tree_can_be_configured_and_has_the_tree_s_version(tmp_path):
    copy_context(tmp_path)
    assert not (tmp_path / "tests" / "unit").exists()
    version = subprocess.run([ROOT / "deploy/version"], check=True, capture_output=True, text=True).stdout.strip()
    assert configured(tmp_path) == (version, version)
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", "-A")
    git(tmp_path, "commit", "-qm", "A commit without a tag")
    commit = git(tmp_path, "describe", "--always")
    said, package = configured(tmp_path)
    assert said == f"{version}+{commit}"
    assert re.fullmatch(rf"{re.escape(version)}\+git\d{{14}}\.{commit}", package)
    git(tmp_path, "tag", f"v{version}")
    assert configured(tmp_path) == (f"{version}+{commit}", version)
