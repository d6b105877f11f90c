"""Some programs, each in a network namespace of its own, on one Ethernet; any of them can be cut off from all others."""
import os

from lib.links import NETWORK, answers, free_network, ip


class Switch:
    """of: how many. address(n) is where number n is reached, from 0; what runs with wrap(n) in front of it is there. The outside
    is on it, too. Its bridge has a namespace of its own, for iptables' rules, such as Docker's, are for bridges, too."""

    def __init__(self, of):
        self.hub, self.spaces = f"crcr-{os.getpid()}-hub", [f"crcr-{os.getpid()}-{n}" for n in range(of)]
        self.number = free_network()
        self.out = f"cr{self.number}s"
        try:
            ip("netns", "add", self.hub)
            self._hub("link", "add", "hub", "type", "bridge")
            self._hub("link", "set", "hub", "up")
            ip("link", "add", self.out, "type", "veth", "peer", "name", "outside", "netns", self.hub)
            ip("address", "add", f"{NETWORK}.{self.number}.1/24", "dev", self.out)
            ip("link", "set", self.out, "up")
            self._hub("link", "set", "outside", "master", "hub", "up")
            for n, space in enumerate(self.spaces):
                ip("netns", "add", space)
                self._hub("link", "add", f"port{n}", "type", "veth", "peer", "name", "own", "netns", space)
                ip("-netns", space, "address", "add", f"{self.address(n)}/24", "dev", "own")
                for device in ("lo", "own"):
                    ip("-netns", space, "link", "set", device, "up")
                self._hub("link", "set", f"port{n}", "master", "hub", "up")
        except BaseException:
            self.close()
            raise

    def _hub(self, *arguments):
        return ip("-netns", self.hub, *arguments)

    def address(self, n):
        return f"{NETWORK}.{self.number}.{n + 2}"

    def wrap(self, n):
        return ["ip", "netns", "exec", self.spaces[n]]

    # ---- cutting --------------------------------------------------------------------------------------
    def cut(self, n):
        """What it sends and what is sent to it is lost; nobody notices: the carrier stays."""
        self._hub("link", "set", f"port{n}", "nomaster")

    def heal(self, n):
        self._hub("link", "set", f"port{n}", "master", "hub")

    def passes(self, n, whence=None):
        """Whether a packet gets to n and its answer back; from the outside, or from another."""
        return answers(self.address(n), () if whence is None else self.wrap(whence))

    def close(self):
        """Takes everything down; also half made."""
        ip("link", "del", self.out, check=False)
        for space in (*self.spaces, self.hub):
            ip("netns", "del", space, check=False)
