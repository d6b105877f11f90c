"""A cluster of one node: etcd, Kubernetes' own programs, containerd, a bridge for the pods. Runs as root in namespaces of
its own (`cluster` makes them), with folders of its own over what these programs keep under fixed paths."""
import json
import os
import pathlib
import secrets
import subprocess

import image

from lib.processes import Process, wait_for

# 198.18.0.0/15 is routed by nobody (RFC 2544), and here it does not leave the network namespace.
GATEWAY, PODS, SERVICES = "198.18.1.1", "198.18.1.0/24", "198.18.2.0/24"
BRIDGE, NAME = "crcr0", "node"
CONTROLLERS = ("cpu", "cpuacct", "cpuset", "memory", "devices", "freezer", "blkio", "pids", "systemd")
OVERLAID = ("/run", "/var/lib/kubelet", "/var/lib/cni", "/var/log")

CONTAINERD = """\
version = 2
root = "{work}/containerd"
state = "/run/containerd"
disabled_plugins = ["io.containerd.snapshotter.v1.btrfs", "io.containerd.snapshotter.v1.zfs"]
[grpc]
  address = "/run/containerd/containerd.sock"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "docker.io/library/pause:1"
  disable_apparmor = true
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/usr/lib/cni"
    conf_dir = "{work}/cni"
"""
KUBELET = """\
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
containerRuntimeEndpoint: unix:///run/containerd/containerd.sock
cgroupDriver: cgroupfs
cgroupRoot: /{cgroup}
authentication: {{ anonymous: {{ enabled: true }}, webhook: {{ enabled: false }} }}
authorization: {{ mode: AlwaysAllow }}
evictionHard: {{ memory.available: 100Mi, nodefs.available: "1%", imagefs.available: "1%" }}
imageGCHighThresholdPercent: 100
localStorageCapacityIsolation: false
failSwapOn: false
readOnlyPort: 0
healthzPort: 0
resolvConf: {work}/resolv.conf
"""
KUBECONFIG = """\
apiVersion: v1
kind: Config
clusters: [{{ name: k, cluster: {{ server: "https://{gateway}:6443", insecure-skip-tls-verify: true }} }}]
users: [{{ name: k, user: {{ token: {token} }} }}]
contexts: [{{ name: k, context: {{ cluster: k, user: k }} }}]
current-context: k
"""


def run(*argv, **options):
    done = subprocess.run([str(part) for part in argv], capture_output=True, text=True, timeout=options.pop("timeout", 120),
                          **options)
    assert done.returncode == 0, f"{' '.join(map(str, argv))}: {done.stdout}{done.stderr}"
    return done.stdout


class Node:
    def __init__(self, work, kube, cgroup):
        self.work, self.kube, self.cgroup = pathlib.Path(work), pathlib.Path(kube), cgroup
        self.config = self.work / "kubeconfig"
        self.parts = {}

    def start_api(self):
        """etcd and the API server; nothing acts on what it gets."""
        self._network()
        self._folders()
        self._files()
        self._part("etcd", "etcd", "--data-dir", "/run/etcd", "--listen-client-urls", "http://127.0.0.1:2379",
                   "--advertise-client-urls", "http://127.0.0.1:2379", "--listen-peer-urls", "http://127.0.0.1:2380")
        self._part("apiserver", self.kube / "kube-apiserver", "--etcd-servers=http://127.0.0.1:2379",
                   f"--service-cluster-ip-range={SERVICES}", f"--advertise-address={GATEWAY}",
                   "--kubelet-preferred-address-types=InternalIP",
                   f"--cert-dir={self.work}/apiserver", f"--token-auth-file={self.work}/tokens.csv",
                   "--authorization-mode=RBAC", "--service-account-issuer=https://kubernetes.default.svc",
                   f"--service-account-key-file={self.work}/sa.key", f"--service-account-signing-key-file={self.work}/sa.key")
        wait_for("the API server", lambda: "ok" in self.kubectl("get", "--raw", "/readyz", check=False), 300, 1)
        return self

    def start(self):
        self._part("containerd", "containerd", "--config", self.work / "containerd.toml")
        self._part("controller-manager", self.kube / "kube-controller-manager", f"--kubeconfig={self.config}",
                   f"--service-account-private-key-file={self.work}/sa.key", "--leader-elect=false",
                   "--node-monitor-grace-period=180s")
        self._part("scheduler", self.kube / "kube-scheduler", f"--kubeconfig={self.config}", "--leader-elect=false")
        self._import(image.pause(self.work, "docker.io/library/pause:1"))
        self._part("kubelet", self.kube / "kubelet", f"--kubeconfig={self.config}", f"--config={self.work}/kubelet.yaml",
                   f"--root-dir={self.work}/kubelet", f"--hostname-override={NAME}", f"--node-ip={GATEWAY}")
        self._part("proxy", self.kube / "kube-proxy", f"--kubeconfig={self.config}", f"--hostname-override={NAME}",
                   "--proxy-mode=iptables", f"--cluster-cidr={PODS}", "--conntrack-max-per-core=0",
                   "--conntrack-tcp-timeout-established=0s", "--conntrack-tcp-timeout-close-wait=0s")
        wait_for("the node to be ready", self.ready, 300, 1)
        return self

    def ready(self):
        for part in self.parts.values():
            assert part.running(), f"{part.name} ended:\n{part.tail(15)}"
        return "True" in self.kubectl("get", "node", NAME, "-o", "jsonpath={.status.conditions[?(@.type=='Ready')].status}",
                                      check=False)

    def _part(self, name, *argv):
        self.parts[name] = Process(name, argv, self.work, {"PATH": os.environ["PATH"]})

    def _network(self):
        run("ip", "link", "set", "lo", "up")
        run("ip", "link", "add", BRIDGE, "type", "bridge")
        run("ip", "address", "add", f"{GATEWAY}/24", "dev", BRIDGE)
        run("ip", "link", "set", BRIDGE, "up")
        run("ip", "route", "add", "default", "dev", BRIDGE)  # services have addresses that only iptables knows

    def _folders(self):
        run("mount", "--make-rshared", "/")
        for folder in OVERLAID:
            os.makedirs(folder, exist_ok=True)
            run("mount", "-t", "tmpfs", "tmpfs", folder)
        for controller in CONTROLLERS:
            folder = pathlib.Path("/sys/fs/cgroup", controller, self.cgroup)
            if folder.parent.is_dir():
                folder.mkdir(exist_ok=True)

    def _files(self):
        token = secrets.token_hex(16)
        cni = {"cniVersion": "0.4.0", "name": "pods", "plugins": [
            {"type": "bridge", "bridge": BRIDGE, "isGateway": True, "hairpinMode": True,
             "ipam": {"type": "host-local", "dataDir": "/run/cni", "ranges": [[{"subnet": PODS}]],
                      "routes": [{"dst": "0.0.0.0/0"}]}}]}
        (self.work / "cni").mkdir()
        (self.work / "cni/10-pods.conflist").write_text(json.dumps(cni))
        (self.work / "containerd.toml").write_text(CONTAINERD.format(work=self.work))
        (self.work / "kubelet.yaml").write_text(KUBELET.format(work=self.work, cgroup=self.cgroup))
        (self.work / "resolv.conf").write_text("")
        (self.work / "tokens.csv").write_text(f"{token},admin,1,system:masters\n")
        self.config.write_text(KUBECONFIG.format(gateway=GATEWAY, token=token))
        run("openssl", "genrsa", "-out", self.work / "sa.key", "2048")

    # ---- what it is asked ---------------------------------------------------------------------------------------
    def kubectl(self, *arguments, check=True, timeout=600, **options):
        done = subprocess.run(["kubectl", "--kubeconfig", str(self.config), *map(str, arguments)], capture_output=True,
                              text=True, timeout=timeout, **options)
        assert not check or done.returncode == 0, f"kubectl {' '.join(map(str, arguments))}: {done.stdout}{done.stderr}"
        return done.stdout + (done.stderr if not check else "")

    def get(self, *arguments):
        return json.loads(self.kubectl("-n", "crcr", "get", *arguments, "-o", "json"))

    def ctr(self, *arguments):
        return run("ctr", "--address", "/run/containerd/containerd.sock", "-n", "k8s.io", *arguments)

    def _import(self, path):
        wait_for("containerd to take an image", lambda: self._imports(path), 60, 0.5)

    def _imports(self, path):
        try:
            return self.ctr("images", "import", path)
        except AssertionError:
            if not self.parts["containerd"].running():
                raise
            return None

    def bring(self, tags):
        """The relay's image, under these tags."""
        self._import(image.relay(self.work, tags))
