"""What deploy/Dockerfile builds is not this tree but what .dockerignore leaves of it: that has to be enough."""
import pathlib
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


def test_the_image_s_part_of_the_tree_can_be_configured(tmp_path):
    copy_context(tmp_path)
    assert not (tmp_path / "tests" / "unit").exists()
    done = subprocess.run(["cmake", "-S", ".", "-B", "build", "-G", "Ninja"], cwd=tmp_path, check=False,
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
