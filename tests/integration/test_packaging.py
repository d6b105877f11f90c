"""What `cmake --install` and cpack make: the programs start, the units name what is there. What needs systemd-analyze or
dpkg-shlibdeps is skipped where they are missing, but not in tests/run --all, which installs them."""
import ipaddress
import os
import re
import subprocess

import pytest
import yaml

from lib.manifests import K8S, of_kind, pod_template, render
from lib.processes import BIN, ROOT

PREFIX = "/opt/crcr"
BUILD = BIN.parent
DAEMONS = ("crcr-ingest", "crcr-dispatcher", "crcr-reporter")


def run(*argv, code=0, **options):
    done = subprocess.run([str(part) for part in argv], capture_output=True, text=True, timeout=300, **options)
    assert done.returncode == code, f"{argv}: {done.returncode}\n{done.stdout}{done.stderr}"
    return done.stdout + done.stderr


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """The folder that stands for / ."""
    root = tmp_path_factory.mktemp("installed")
    run("cmake", "--install", BUILD, "--prefix", PREFIX, env={**os.environ, "DESTDIR": str(root)})
    return root


def units(root, prefix=PREFIX):
    """unit's name → its [Service] lines as (key, value)."""
    folder = root / prefix.lstrip("/") / "lib/systemd/system"
    return {path.name: re.findall(r"^(\w+)=(.*)$", path.read_text(), re.MULTILINE)
            for path in sorted(folder.glob("*.service"))}


def environment_of(lines, credentials):
    """What systemd would hand to the unit: crcr.env and Environment=, with %d the credentials' folder."""
    text = (ROOT / "deploy/systemd/crcr.env").read_text().replace("GITHUB_APP_ID=\n", "GITHUB_APP_ID=1\n")
    values = dict(line.split("=", 1) for line in text.splitlines() if line and not line.startswith("#"))
    for key, value in lines:
        if key == "LoadCredential":
            (credentials / value.split(":")[0]).write_text(f"k1:{'s' * 32}\n")
        if key == "Environment":
            name, what = value.split("=", 1)
            values[name] = what.replace("%d", str(credentials))
    return values


def tree_version():
    return re.search(r"^project\(crcr VERSION (\d+\.\d+\.\d+) ", (ROOT / "CMakeLists.txt").read_text(), re.MULTILINE)[1]


@pytest.mark.parametrize("program", [*DAEMONS, "crcrctl"])
def test_an_installed_program_tells_its_version_and_its_help(installed, program):
    binary = installed / PREFIX.lstrip("/") / "bin" / program
    assert re.fullmatch(rf"{program} {tree_version()}\+[0-9a-f]{{7,40}}(-dirty)?\n", run(binary, "--version", cwd="/"))
    assert f"usage: {program}" in run(binary, "--help", cwd="/")


def test_the_simulator_tells_its_version_too():
    assert run(BIN / "crcr-sim", "--version").startswith(f"crcr-sim {tree_version()}+")


def test_the_simulator_is_not_installed(installed):
    assert {path.name for path in (installed / PREFIX.lstrip("/") / "bin").iterdir()} == {*DAEMONS, "crcrctl"}


def test_crcrctl_has_its_manual_page_and_its_completion(installed):
    share = installed / PREFIX.lstrip("/") / "share"
    assert ".SS crcrctl dlq replay " in (share / "man/man1/crcrctl.1").read_text()

    bash = (share / "bash-completion/completions/crcrctl").read_text()
    assert bash == run(BIN / "crcrctl", "completion")
    assert (share / "zsh/vendor-completions/_crcrctl").read_text().startswith("#compdef crcrctl\n")
    assert "complete -c crcrctl " in (share / "fish/vendor_completions.d/crcrctl.fish").read_text()

    def completed(*words):
        line = " ".join(f"'{word}'" for word in words)
        return run("bash", "-c", f"source {share}/bash-completion/completions/crcrctl; COMP_WORDS=({line}); "
                   f"COMP_CWORD={len(words) - 1}; _crcrctl; echo \"${{COMPREPLY[@]}}\"", cwd="/",
                   env={**os.environ, "PATH": f"{share.parent}/bin:{os.environ['PATH']}"}).split()
    assert completed("crcrctl", "re") == ["replay", "rebuild-hud", "redeliver"]
    assert completed("crcrctl", "dlq", "") == ["list", "show", "replay", "drop"]
    assert completed("crcrctl", "dlq", "replay", "--d") == ["--dry-run", "--delivery"]
    assert completed("crcrctl", "tail", "-f", "dispatch") == [*(f"dispatch.l{tier}" for tier in (1, 2, 3, 4)), "dispatches"]
    assert completed("crcrctl", "lag", "--json", "crcr-fo") == ["crcr-fold", "crcr-forward"]
    assert completed("crcrctl", "dlq", "list", "--class", "p") == ["poison"]
    assert completed("crcrctl", "allowlist", "check", "") == [], "files, which bash knows"


def test_units_start_installed_programs_and_name_installed_files(installed):
    found = units(installed)
    assert found.keys() == {f"{name}.service" for name in (*DAEMONS, "crcr-redeliver@", "crcr-keep-allowlist")}
    for name, lines in found.items():
        for key, value in lines:
            assert not re.search(r"@\w+@", value), f"{name}: {key}={value} was not filled in"
            if key in ("ExecStart", "Documentation"):
                path = value.removeprefix("file:").split()[0]
                assert path.startswith(PREFIX) and (installed / path.lstrip("/")).is_file(), f"{name}: {path}"


def commands_of_cron_jobs():
    return {one["metadata"]["name"]: pod_template(one)["spec"]["containers"][0]["command"]
            for one in of_kind(render(K8S / "base"), "CronJob")}


def test_redeliver_looks_back_for_hours_often_and_once_a_day_as_far_as_github_keeps(installed):
    folder = installed / PREFIX.lstrip("/") / "lib/systemd/system"
    assert dict(units(installed)["crcr-redeliver@.service"])["ExecStart"] == f"{PREFIX}/bin/crcrctl redeliver --since %i"
    often, daily = ((folder / f"{name}.timer").read_text() for name in ("crcr-redeliver", "crcr-redeliver-daily"))
    assert "Unit=crcr-redeliver@6h.service" in often and "OnUnitInactiveSec=5min" in often
    assert "Unit=crcr-redeliver@3d.service" in daily and "OnCalendar=" in daily and "Persistent=yes" in daily
    assert [commands_of_cron_jobs()[name][-1] for name in ("crcr-redeliver", "crcr-redeliver-daily")] == ["6h", "3d"]


def test_a_copy_of_the_allowlist_is_saved_once_a_day_as_elsewhere(installed):
    folder = installed / PREFIX.lstrip("/") / "lib/systemd/system"
    *command, where = dict(units(installed)["crcr-keep-allowlist.service"])["ExecStart"].split()
    assert command == [f"{PREFIX}/bin/crcrctl", "allowlist", "save"] and where == "%S/crcr-keep-allowlist"
    assert "OnCalendar=*-*-* 02:17" in (folder / "crcr-keep-allowlist.timer").read_text()
    assert commands_of_cron_jobs()["crcr-keep-allowlist"] == ["crcrctl", "allowlist", "save", "/copies"]
    compose = yaml.safe_load((ROOT / "docker-compose.yml").read_text())["services"]["keep-allowlist"]
    assert compose["command"] == ["crcrctl", "allowlist", "save", "/copies", "--every", "1d"]
    assert compose["volumes"] == ["allowlist-copies:/copies"]


def test_redeliver_takes_what_ingest_is_configured_to_take(installed):
    """UPSTREAM_REPO and CRCR_PUSH_REFS may stand in ingest's own file."""
    def files(name):
        return [value for key, value in units(installed)[name] if key == "EnvironmentFile"]
    *of_ingest, own = files("crcr-redeliver@.service")
    assert of_ingest == files("crcr-ingest.service") != [] and own == "-/etc/crcr/crcr-redeliver.env"


@pytest.mark.parametrize("program", DAEMONS)
def test_a_daemon_takes_the_environment_of_its_unit(installed, tmp_path, program):
    lines = units(installed)[f"{program}.service"]
    assert ("RestartPreventExitStatus", "2") in lines
    environment = environment_of(lines, tmp_path)
    key = tmp_path / "app_private_key"
    if key.exists():
        run("openssl", "genrsa", "-out", key, "2048")
    binary = installed / dict(lines)["ExecStart"].lstrip("/")
    assert "GITHUB_APP_ID" in run(binary, "--check-config", env=environment)
    environment["CRCR_NO_SUCH_NAME"] = "1"
    assert "CRCR_NO_SUCH_NAME" in run(binary, "--check-config", env=environment, code=2)


OWN = {"crcr-ingest": {"webhook_secret", "callback_token_key", "redis_login_ingest", "kafka_password_ingest"},
       "crcr-dispatcher": {"app_private_key", "callback_token_key", "redis_login_dispatcher", "kafka_password_dispatcher"},
       "crcr-reporter": {"app_private_key", "hud_bot_key", "redis_login_reporter", "kafka_password_reporter"},
       "crcr-redeliver@": {"app_private_key", "kafka_password_redeliver"},
       "crcr-keep-allowlist": {"kafka_password_crcrctl"}}


@pytest.mark.parametrize("unit", OWN)
def test_a_unit_gets_its_own_secrets_alone(installed, unit):
    lines = units(installed)[f"{unit}.service"]
    loaded = dict(value.split(":/etc/crcr/secrets/") for key, value in lines if key == "LoadCredential")
    assert set(loaded.values()) == OWN[unit]
    assert {value.split("%d/")[1] for key, value in lines if key == "Environment" and "%d" in value} == set(loaded)
    defaults = {value.split(":")[0] for key, value in lines if key == "SetCredential"}
    assert set(loaded) - defaults <= {"webhook_secret", "app_private_key"}, "a unit starts without what is optional"


@pytest.mark.parametrize("program", DAEMONS)
def test_an_optional_secret_that_is_not_there_is_not_set(installed, tmp_path, program):
    lines = units(installed)[f"{program}.service"]
    environment = environment_of(lines, tmp_path)
    for key, value in lines:
        if key == "SetCredential":
            assert value.endswith(r":\n")  # systemd takes no empty one
            (tmp_path / value.split(":")[0]).write_text("\n")
    if (tmp_path / "app_private_key").exists():
        run("openssl", "genrsa", "-out", tmp_path / "app_private_key", "2048")
    binary = installed / dict(lines)["ExecStart"].lstrip("/")
    assert "REDIS_LOGIN=\n" in run(binary, "--check-config", env=environment)
    environment["REDIS_LOGIN"] = "user:password"
    assert "REDIS_LOGIN=\n" not in run(binary, "--check-config", env=environment)


def test_the_environment_file_names_only_settings_also_where_they_are_commented_out():
    table = (ROOT / "deploy" / "CONFIGURATION.md").read_text()
    known = set(re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE))
    named = set(re.findall(r"^#?([A-Z_]+)=", (ROOT / "deploy/systemd/crcr.env").read_text(), re.MULTILINE))
    assert len(named) >= 8 and named <= known, named - known


def test_topics_of_the_installed_tree_are_those_of_the_repository(installed):
    share = installed / PREFIX.lstrip("/") / "share/crcr"
    for name, source in (("topics.conf", "deploy/topics"), ("crcr.env", "deploy/systemd"),
                         ("monitoring/alerts.yml", "deploy"), ("redis/users", "deploy"), ("redis/make-users", "deploy"),
                         ("topics/users.conf", "deploy"), ("topics/acls", "deploy")):
        assert (share / name).read_bytes() == (ROOT / source / name).read_bytes()


def test_links_of_installed_documents_lead_to_installed_files(installed):
    doc = installed / PREFIX.lstrip("/") / "share/doc/crcr"
    pages, links = sorted(doc.rglob("*.md")), 0
    assert doc / "deploy/README.md" in pages
    for page in pages:
        for link in re.findall(r'\]\(([^)#\s]+)|(?:src|srcset|href)="([^"#\s]+)', page.read_text()):
            path = "".join(link)
            if ":" not in path:
                links += 1
                assert (page.parent / path).is_file(), f"{page.relative_to(doc)}: {path}"
    assert links > 50


def addresses_of(lines, key):
    return [ipaddress.ip_network(one) for name, value in lines if name == key for one in value.split()]


def test_a_unit_reaches_no_private_address_but_this_machine(installed):
    """What deploy/k8s shuts, too; ports are not in systemd's hands. The README's drop-in opens the relay's own."""
    [policy] = [p for p in of_kind(render(K8S / "overlays/full"), "NetworkPolicy") if p["metadata"]["name"] == "crcr-to-the-internet"]
    shut = {ipaddress.ip_network(one) for rule in policy["spec"]["egress"] for to in rule["to"] for one in to["ipBlock"]["except"]}
    shut |= {ipaddress.ip_network(one) for one in ("fc00::/7", "fe80::/10", "::ffff:0:0/96", "64:ff9b::/96")}
    for unit, lines in units(installed).items():
        denied = addresses_of(lines, "IPAddressDeny")
        assert set(denied) == shut and not addresses_of(lines, "IPAddressAllow"), unit
        for address in ("127.0.0.1", "::1", "140.82.112.3", "2606:50c0:8000::153"):
            assert not any(ipaddress.ip_address(address) in one for one in denied), f"{unit}: {address}"
        assert ("RestrictAddressFamilies", "AF_INET AF_INET6 AF_UNIX") in lines, unit


def test_the_readmes_drop_in_opens_addresses_for_all_units(installed, tmp_path):
    path, text = re.search(r"^    # /etc/systemd/system/(\S+)\n((?:    .+\n)+)", (ROOT / "deploy/systemd/README.md").read_text(),
                           re.MULTILINE).groups()
    assert re.fullmatch(r"    \[Service\]\n    IPAddressAllow=[0-9./ ]+\n", text)
    folder = installed / PREFIX.lstrip("/") / "lib/systemd/system"
    drop_in = tmp_path / path
    drop_in.parent.mkdir()
    drop_in.write_text(text.replace("    ", "") + "NoSuchKey=1\n")  # to be seen that it is read
    for unit in folder.glob("*.service"):
        (tmp_path / unit.name).write_text(unit.read_text().replace(PREFIX, f"{installed}{PREFIX}"))
    for unit in ("crcr-ingest", "crcr-dispatcher", "crcr-reporter", "crcr-redeliver@6h", "crcr-keep-allowlist"):
        said = run("systemd-analyze", "verify", "--man=no", tmp_path / f"{unit}.service",
                   env={**os.environ, "SYSTEMD_UNIT_PATH": f"{tmp_path}:"})
        assert [line for line in said.splitlines() if "crcr-" in line and "NoSuchKey" not in line] == [], said
        assert f"{drop_in}:3: Unknown key 'NoSuchKey'" in said, said


def test_systemd_finds_no_fault_in_the_units_and_little_exposure(installed, tmp_path):
    folder = installed / PREFIX.lstrip("/") / "lib/systemd/system"
    for path in sorted(folder.glob("crcr-*")): # as they are, but for where the programs stand just now
        unit = tmp_path / path.name
        unit.write_text(path.read_text().replace(PREFIX, f"{installed}{PREFIX}"))
    for unit in sorted(tmp_path.glob("crcr-*")):
        said = run("systemd-analyze", "verify", "--man=no", unit) # 0 also where a line is ignored
        assert unit.stem not in said, said
        if unit.suffix == ".service": # exit code 1 when the exposure is above 2.0 of 10
            run("systemd-analyze", "security", "--offline=true", "--threshold=20", unit)


@pytest.mark.long
def test_the_debian_package_has_a_version_of_git_its_libraries_and_units_of_usr(tmp_path):
    run("cpack", "--config", BUILD / "CPackConfig.cmake", "-B", tmp_path, cwd=BUILD)
    package, = tmp_path.glob("crcr_*.deb")
    version = run("dpkg-deb", "-f", package, "Version").strip()
    assert run("dpkg", "--validate-version", version) == ""
    printed = run(BIN / "crcr-ingest", "--version").split()[1].split("+")[1]  # "abc" or "abc-dirty"
    if version != tree_version():  # of a commit with its tag; of others the time sorts, the hash does not
        assert re.fullmatch(rf"{re.escape(tree_version())}\+git20\d{{12}}\.{printed.replace('-', '.')}", version), version
        run("dpkg", "--compare-versions", version, "gt", tree_version())
        run("dpkg", "--compare-versions", version, "lt", tree_version() + ".1")
    run("dpkg", "--compare-versions", version, "gt", "0+git20261126164158.75355b1")  # before there were versions
    assert {"librdkafka1", "libcurl4", "libmicrohttpd12"} <= set(
        name.removesuffix("t64") for name in re.findall(r"[\w.-]+", run("dpkg-deb", "-f", package, "Depends")))
    run("dpkg-deb", "-x", package, tmp_path / "root")
    for name in ("README.md", "deploy/README.md", "deploy/CONFIGURATION.md", "deploy/systemd/README.md"):
        assert (tmp_path / "root/usr/share/doc/crcr" / name).read_bytes() == (ROOT / name).read_bytes()
    for name, lines in units(tmp_path / "root", "/usr").items():
        assert dict(lines)["ExecStart"].startswith(("/usr/bin/crcr", "/usr/share/crcr/")), name
        assert (tmp_path / "root" / dict(lines)["ExecStart"].split()[0].lstrip("/")).is_file()
