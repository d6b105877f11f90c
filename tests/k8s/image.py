"""Container images without a container engine: an archive of one layer, as `ctr images import` takes it."""
import hashlib
import io
import json
import pathlib
import subprocess
import tarfile

from lib.processes import BIN, ROOT

PROGRAMS = ("crcr-ingest", "crcr-dispatcher", "crcr-reporter", "crcrctl")
PAUSE = "#include <unistd.h>\nint main(void) { for (;;) pause(); }\n"


def _by_root(entry):
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = ""
    return entry


def _add(archive, name, content):
    entry = tarfile.TarInfo(name)
    entry.size = len(content)
    archive.addfile(entry, io.BytesIO(content))


def archive(folder, path, tags, config):
    """The folder as an image; `tags` get a configuration each that differs, so that they are images of their own."""
    layer = path.with_suffix(".layer")
    with tarfile.open(layer, "w") as tar:
        tar.add(folder, ".", filter=_by_root)
    digest = hashlib.sha256(layer.read_bytes()).hexdigest()
    manifest = []
    with tarfile.open(path, "w") as tar:
        tar.add(layer, "layer.tar")
        for number, tag in enumerate(tags):
            image = {"architecture": "amd64", "os": "linux", "config": {**config, "Labels": {"tag": tag}},
                     "rootfs": {"type": "layers", "diff_ids": [f"sha256:{digest}"]}}
            _add(tar, f"config{number}.json", json.dumps(image).encode())
            manifest.append({"Config": f"config{number}.json", "RepoTags": [tag], "Layers": ["layer.tar"]})
        _add(tar, "manifest.json", json.dumps(manifest).encode())
    return path


def relay(work, tags):
    """As deploy/Dockerfile makes it, from the programs of this build."""
    root = pathlib.Path(work) / "image"
    subprocess.run([ROOT / "deploy/image-root", root, *(BIN / name for name in PROGRAMS), "/usr/bin/curl"],
                   check=True, capture_output=True, timeout=300)
    return archive(root, pathlib.Path(work) / "relay.tar", tags,
                   {"User": "65532:65532", "WorkingDir": "/", "Cmd": ["crcrctl", "--help"]})


def pause(work, tag):
    """What holds a pod's namespaces."""
    root = pathlib.Path(work) / "pause"
    root.mkdir()
    subprocess.run(["cc", "-static", "-Os", "-s", "-x", "c", "-", "-o", root / "pause"], input=PAUSE, text=True,
                   check=True, timeout=120)
    return archive(root, pathlib.Path(work) / "pause.tar", [tag], {"Entrypoint": ["/pause"], "User": "65535:65535"})
