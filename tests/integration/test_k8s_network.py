"""deploy/k8s: where the daemons may go, and how much one address may ask."""
import ipaddress

import pytest

from lib.manifests import of_kind
from test_k8s_manifests import objects, rendered  # noqa: F401 (fixtures)


@pytest.mark.parametrize("private", ["10.0.0.1", "100.64.0.1", "169.254.169.254", "172.16.0.1", "192.168.0.1"])
def test_no_way_to_the_internet_leads_to_a_private_address(objects, private):  # noqa: F811
    """Neither as IPv4 nor as IPv6 that some gateway makes IPv4 of: mapped, NAT64, 6to4, Teredo."""
    [external] = [p for p in of_kind(objects, "NetworkPolicy") if p["metadata"]["name"] == "crcr-to-the-internet"]
    blocks = [(ipaddress.ip_network(to["ipBlock"]["cidr"]), [ipaddress.ip_network(one) for one in to["ipBlock"]["except"]])
              for rule in external["spec"]["egress"] for to in rule["to"]]

    def let_through(address):
        address = ipaddress.ip_address(address)
        return any(address in block and not any(address in one for one in but) for block, but in blocks)
    four = int(ipaddress.IPv4Address(private))
    hidden = [ipaddress.IPv6Address(start | four << shift) for start, shift in
              ((0xffff << 32, 0), (0x64ff9b << 96, 0), (0, 0), (0x2002 << 112, 80), (0x20010000 << 96, 64), (0x20010000 << 96, 0))]
    for address in (private, *hidden, "fc00::1", "fd12::1", "fe80::1", "::1"):
        assert not let_through(address), address
    for address in ("140.82.112.3", "2606:50c0:8000::153", "2a04:4e42::133", "2001:4860:4860::8888"):
        assert let_through(address), address
    for block, but in blocks:  # as Kubernetes demands; an IPv4-mapped one is inside no IPv6 block for it
        for one in but:
            assert one.subnet_of(block) and one != block and not (one.version == 6 and one.network_address.ipv4_mapped), one


def test_one_address_has_its_limits_at_the_ingress(rendered):  # noqa: F811
    [ingress] = of_kind(rendered["full"], "Ingress")
    of_nginx = {name.split("/")[1]: value for name, value in ingress["metadata"]["annotations"].items()}
    assert 20 <= int(of_nginx["limit-connections"]) <= 1000 and 20 <= int(of_nginx["limit-rps"]) <= 1000
