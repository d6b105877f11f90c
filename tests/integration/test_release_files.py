"""deploy/release without a container engine: a stand-in for Docker hands over what the container would have built. The image,
SBOM, checksums, and what is left where it fails. tests/release does it in real containers."""
import gzip
import hashlib
import io
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import tarfile

import pytest

from lib.processes import ROOT, wait_for

RELEASE = ROOT / "deploy/release"
STATUS = """Package: {name}
Status: install ok installed
Architecture: amd64
Maintainer: Debian Somebody <somebody@lists.debian.org>
Source: {name}-source
Version: {version}
Description: it
 Version: 9 of its description
"""
DOCKER = """#!/bin/bash
echo "$*" >>"$ASKED"
case "$1" in
info) [ -z "${DEAD:-}" ] || { echo "Cannot connect to the Docker daemon" >&2; exit 1; } ;;
build) [ -z "${HANGS:-}" ] || { touch "$HANGS"; exec sleep 60; }
    [ -z "${FAILS:-}" ] || exit 7 ;;
create) echo 0123 ;;
cp) cp -r "$BUILT" "$3" ;;
esac
"""


def tar_of(files):
    whole = io.BytesIO()
    with tarfile.open(fileobj=whole, mode="w") as tar:
        for name, text in files.items():
            entry = tarfile.TarInfo(f"./{name}")
            entry.size = len(text)
            tar.addfile(entry, io.BytesIO(text.encode()))
    return whole.getvalue()


class Bench:
    def __init__(self, folder):
        self.folder, self.out, self.asked = folder, folder / "out", folder / "asked"
        self.tree = folder / "tree"
        subprocess.run(["git", "init", "-q", self.tree], check=True)
        (self.tree / "deploy").mkdir()
        for name in ("deploy/release", "deploy/CHANGELOG.md", "deploy/Dockerfile", "CMakeLists.txt"):
            shutil.copy(ROOT / name, self.tree / name)
        self.git("add", "-A")
        self.git("commit", "-q", "-m", "What is released")
        self.commit = self.git("rev-parse", "HEAD")
        built = folder / "built"
        built.mkdir()
        self.layer = tar_of({"etc/os-release": 'ID=debian\nVERSION_ID="13"\n', "usr/bin/crcr-ingest": "it", **{
            f"var/lib/dpkg/status.d/{name}": STATUS.format(name=name, version=version)
            for name, version in (("libcurl4t64", "8.14.1-2+deb13u2"), ("libc6", "1:2.41~rc1"), ("ca-certificates", "20250419"))}})
        (built / "layer.tar").write_bytes(self.layer)
        (built / "architecture").write_text("arm64\n")
        (built / "control").write_text("Package: crcr\nDepends: ca-certificates, libc6 (>= 2.38), libcurl4t64 (>= 7)\n")
        (built / "crcr_1_arm64.deb").write_text("the package")
        (folder / "bin").mkdir()
        (folder / "bin/docker").write_text(DOCKER)
        (folder / "bin/docker").chmod(0o755)
        self.environment = {**os.environ, "PATH": f"{folder / 'bin'}:{os.environ['PATH']}", "ASKED": str(self.asked),
                            "BUILT": str(built)}

    def git(self, *arguments):
        name = ["-c", "user.name=x", "-c", "user.email=x@example.org"]
        return subprocess.run(["git", "-C", self.tree, *name, *arguments], check=True, capture_output=True, text=True).stdout.strip()

    def start(self, *options, **environment):
        return subprocess.Popen([self.tree / "deploy/release", "--out", self.out, *options], env={**self.environment, **environment},
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True)

    def release(self, *options, code=0, **environment):
        process = self.start(*options, **environment)
        said = process.communicate(timeout=120)[0]
        assert process.returncode == code, said
        return said

    def files(self):
        return {one.name: one.read_bytes() for one in self.out.iterdir()} if self.out.exists() else {}


@pytest.fixture
def bench(tmp_path):
    return Bench(tmp_path)


def version():
    return subprocess.run([ROOT / "deploy/version"], capture_output=True, text=True, check=True).stdout.strip()


def test_two_runs_make_the_same_files_and_the_sums_are_theirs(bench):
    said = bench.release("--base", "debian@sha256:12")
    first = bench.files()
    image, bill = f"crcr-{version()}-arm64.oci.tar", f"crcr-{version()}-arm64.spdx.json"
    assert first.keys() == {image, bill, "crcr_1_arm64.deb", "SHA256SUMS"}
    assert [line.split("/")[-1] for line in said.split()] == ["crcr-" + name for name in (
        f"{version()}-arm64.oci.tar", f"{version()}-arm64.spdx.json")] + ["crcr_1_arm64.deb", "SHA256SUMS"]
    assert first["SHA256SUMS"].decode() == "".join(
        f"{hashlib.sha256(first[name]).hexdigest()}  {name}\n" for name in (image, bill, "crcr_1_arm64.deb"))
    bench.release("--base", "debian@sha256:12")
    assert bench.files() == first
    built = [line for line in bench.asked.read_text().splitlines() if line.startswith("build ")]
    assert all(f"COMMIT={bench.commit[:8]}" in line and "BASE=debian@sha256:12" in line for line in built)
    fresh = [re.search(r"FRESH=(\S+)", line)[1] for line in built]
    assert len(set(fresh)) == 2, "each compiles anew"


def test_the_archive_is_an_oci_layout_and_what_docker_loads(bench):
    bench.release()
    with tarfile.open(bench.out / f"crcr-{version()}-arm64.oci.tar") as tar:
        files = {one.name: tar.extractfile(one).read() for one in tar}
        assert all((one.uid, one.gid, one.mtime) == (0, 0, int(bench.git("show", "-s", "--format=%ct"))) for one in tar)

    def blob(described):
        content = files["blobs/sha256/" + described["digest"].removeprefix("sha256:")]
        assert described["digest"] == f"sha256:{hashlib.sha256(content).hexdigest()}" and described["size"] == len(content)
        return content
    assert json.loads(files["oci-layout"]) == {"imageLayoutVersion": "1.0.0"}
    [manifest] = json.loads(files["index.json"])["manifests"]
    assert manifest["platform"] == {"architecture": "arm64", "os": "linux"}
    assert manifest["annotations"] == {"org.opencontainers.image.ref.name": version()}
    manifest = json.loads(blob(manifest))
    config = json.loads(blob(manifest["config"]))
    [layer] = manifest["layers"]
    assert gzip.decompress(blob(layer)) == bench.layer
    assert config["rootfs"]["diff_ids"] == [f"sha256:{hashlib.sha256(bench.layer).hexdigest()}"]
    assert config["config"]["User"] == "65532:65532" and config["config"]["Cmd"] == ["crcrctl", "--help"]
    labels = config["config"]["Labels"]
    assert labels["org.opencontainers.image.version"] == version() and labels["org.opencontainers.image.revision"] == bench.commit
    [loaded] = json.loads(files["manifest.json"])
    assert loaded["RepoTags"] == [f"crcr:{version()}"] and json.loads(files[loaded["Config"]]) == config
    assert [files[one] for one in loaded["Layers"]] == [blob(layer)]


def test_the_sbom_has_each_debian_package_of_the_image_and_what_the_programs_are_linked_to(bench):
    bench.release()
    bill = json.loads((bench.out / f"crcr-{version()}-arm64.spdx.json").read_text())
    assert (bill["spdxVersion"], bill["dataLicense"], bill["SPDXID"]) == ("SPDX-2.3", "CC0-1.0", "SPDXRef-DOCUMENT")
    packages = {one["SPDXID"]: one for one in bill["packages"]}
    assert packages.keys() == {"SPDXRef-image", "SPDXRef-deb", "SPDXRef-libcurl4t64", "SPDXRef-libc6", "SPDXRef-ca-certificates"}
    curl = packages["SPDXRef-libcurl4t64"]
    assert curl["versionInfo"] == "8.14.1-2+deb13u2" and curl["supplier"] == "Organization: Debian Somebody"
    assert curl["externalRefs"][0]["referenceLocator"] == "pkg:deb/debian/libcurl4t64@8.14.1-2%2Bdeb13u2?arch=amd64&distro=debian-13"
    image = bench.files()[packages["SPDXRef-image"]["packageFileName"]]
    assert packages["SPDXRef-image"]["checksums"] == [{"algorithm": "SHA256", "checksumValue": hashlib.sha256(image).hexdigest()}]
    related = {(one["spdxElementId"], one["relationshipType"], one["relatedSpdxElement"]) for one in bill["relationships"]}
    for name in ("libcurl4t64", "libc6", "ca-certificates"):
        assert {("SPDXRef-image", "CONTAINS", f"SPDXRef-{name}"), ("SPDXRef-deb", "DEPENDS_ON", f"SPDXRef-{name}")} <= related
    assert re.fullmatch(r"https://spdx\.org/spdxdocs/crcr-[\w.-]+", bill["documentNamespace"])


def test_an_image_without_what_the_programs_need_is_no_release(bench):
    (bench.folder / "built/control").write_text("Depends: libc6, libjansson4 (>= 2.14)\n")
    assert "does not hold what the programs need: libjansson4" in bench.release(code=1)
    assert not bench.files()


def test_without_an_engine_it_says_what_to_install(bench):
    assert "no engine answers (Cannot connect to the Docker daemon)" in bench.release("--engine", "docker", code=1, DEAD="1")
    (bench.folder / "bin/docker").unlink()
    for folder in os.environ["PATH"].split(":"):  # all commands but the two
        for one in pathlib.Path(folder).glob("*"):
            if one.name not in ("docker", "buildah") and not (bench.folder / "bin" / one.name).exists():
                (bench.folder / "bin" / one.name).unlink(missing_ok=True)
                (bench.folder / "bin" / one.name).symlink_to(one)
    said = bench.release(code=1, PATH=str(bench.folder / "bin"))
    assert "docker is not here; buildah is not here. Debian: apt-get install" in said
    assert not bench.files()


@pytest.mark.parametrize("ends", [signal.SIGINT, signal.SIGTERM])
def test_one_that_is_ended_leaves_nothing_and_what_was_there_stays(bench, ends):
    bench.release()
    before, hangs = bench.files(), bench.folder / "hangs"
    process = bench.start(HANGS=str(hangs))
    wait_for("the build", hangs.exists, 60)
    os.killpg(process.pid, ends)
    process.communicate(timeout=60)
    assert process.returncode == (130 if ends == signal.SIGINT else 143)
    assert bench.files() == before
    assert [line.split(" crcr-release-")[0] for line in bench.asked.read_text().splitlines()][-2] == "image rm"
    assert re.search(r"\nimage prune --force --filter label=crcr.release=crcr-release-\w+\n$", bench.asked.read_text())
    assert "ended with 7" in bench.release(code=1, FAILS="1") and bench.files() == before


def test_notes_are_the_versions_section_and_without_one_there_is_no_release(bench):
    notes = bench.release("--notes")
    assert "### Breaking" in notes and "## [" not in notes
    changes = bench.tree / "deploy/CHANGELOG.md"
    changes.write_text(changes.read_text().replace(f"## [{version()}] - ", "## [9.9.9] - "))
    bench.git("commit", "-qam", "No section")
    assert f"no section of {version()}" in bench.release(code=1)
