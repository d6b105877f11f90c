"""Network links that can be cut: a network namespace for some programs, with one pair of interfaces to the outside for each
link. Traffic goes only among the addresses made here (198.18.0.0/15, which nobody routes: RFC 2544)."""
import json
import os
import shutil
import subprocess

NOBODY = "02:00:00:00:00:99"  # a frame to this address is dropped by whoever gets it
NETWORK = "198.18"


class NoNamespaces(AssertionError):
    """This machine lets us make none."""


def ip(*arguments, check=True):
    done = subprocess.run(["ip", *map(str, arguments)], capture_output=True, text=True, timeout=20)
    if check and done.returncode:
        raise NoNamespaces(f"ip {' '.join(map(str, arguments))}: {done.stderr.strip()} (network namespaces "
                           "need root, or CAP_NET_ADMIN and CAP_SYS_ADMIN)")
    return done.stdout


def free_network():
    """The third number of a /24 of which this machine has no address."""
    known = {address["local"] for link in json.loads(ip("-json", "address"))
             for address in link["addr_info"]}
    for number in range(1, 255):
        if not any(address.startswith(f"{NETWORK}.{number}.") for address in known):
            return number
    raise NoNamespaces(f"no free network in {NETWORK}.0.0/16")


def answers(address, wrap=()):
    """Whether a packet gets there within a second, and its answer back. wrap: in front of the program that asks."""
    probe = ("import socket, sys\n"
             "s = socket.socket(socket.AF_INET, socket.SOCK_STREAM)\n"
             "s.settimeout(1)\n"
             "try: s.connect((sys.argv[1], 1))\n"
             "except ConnectionRefusedError: sys.exit(0)\n"  # who refuses is there
             "except OSError: sys.exit(1)\n")
    return subprocess.run([*wrap, "/usr/bin/python3", "-c", probe, address], timeout=30).returncode == 0


class Links:
    """names: of the links. inside(name) and outside(name) are the addresses of the two ends; what runs with
    wrap() in front of it is inside."""

    def __init__(self, names):
        if shutil.which("ip") is None:
            raise NoNamespaces("there is no ip (Debian: iproute2)")
        self.names = list(names)
        self.namespace = f"crcr-{os.getpid()}"
        self.number = free_network()
        self._cut = set()
        ip("netns", "add", self.namespace)
        try:
            self.within("link", "set", "lo", "up")
            for name in self.names:
                self._make(name)
        except BaseException:
            self.close()
            raise

    def _make(self, name):
        out, own = self._devices(name)
        ip("link", "add", out, "type", "veth", "peer", "name", own, "netns", self.namespace)
        ip("address", "add", f"{self.outside(name)}/30", "dev", out)
        self.within("address", "add", f"{self.inside(name)}/30", "dev", own)
        ip("link", "set", out, "up")
        self.within("link", "set", own, "up")

    def _devices(self, name):
        at = self.names.index(name)
        return f"cr{self.number}o{at}", f"cr{self.number}i{at}"

    def outside(self, name):
        return f"{NETWORK}.{self.number}.{4 * self.names.index(name) + 1}"

    def inside(self, name):
        return f"{NETWORK}.{self.number}.{4 * self.names.index(name) + 2}"

    def within(self, *arguments):
        return ip("-netns", self.namespace, *arguments)

    def wrap(self):
        return ["ip", "netns", "exec", self.namespace]

    # ---- cutting --------------------------------------------------------------------------------------
    def cut(self, name, how):
        """how: both (the cable is out), there (what goes out of the namespace is lost), back (what comes in)."""
        out, own = self._devices(name)
        self._cut.add((name, how))
        if how == "both":
            self.within("link", "set", own, "down")
        elif how == "there":
            self.within("neigh", "replace", self.outside(name), "lladdr", NOBODY, "dev", own, "nud", "permanent")
        else:
            ip("neigh", "replace", self.inside(name), "lladdr", NOBODY, "dev", out, "nud", "permanent")

    def heal(self, name, how):
        out, own = self._devices(name)
        self._cut.discard((name, how))
        if how == "both":
            self.within("link", "set", own, "up")
        elif how == "there":
            self.within("neigh", "del", self.outside(name), "dev", own)
        else:
            ip("neigh", "del", self.inside(name), "dev", out)

    def passes(self, name):
        """Whether a packet gets there and its answer back."""
        return answers(self.outside(name), self.wrap())

    def close(self):
        """Takes everything down; also half made."""
        for name, how in list(self._cut):
            self._cut.discard((name, how))
        for name in self.names:
            ip("link", "del", self._devices(name)[0], check=False)
        ip("netns", "del", self.namespace, check=False)
