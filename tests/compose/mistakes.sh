# What the files say before anything runs, and what is said to somebody who forgot something. Sourced by tests/compose/run.
# shellcheck shell=bash
# shellcheck disable=SC2154 # lib.sh and run set the others' variables

# shellcheck disable=SC2034 # named below
configs=(-f docker-compose.yml)
# shellcheck disable=SC2034
configs_tls=(-f docker-compose.yml -f deploy/compose/tls/compose.yml)
is_understood() { # tool…: all profiles, with the demo's settings and with those for the real GitHub, also with TLS
    local settings files
    sed 's/^GITHUB_APP_ID=.*/GITHUB_APP_ID=1/' deploy/compose/example.env >"$work/example"
    for settings in "$work/env" "$work/example"; do
        for files in configs configs_tls; do
            local -n list=$files
            COMPOSE_PROFILES=backup,demo,debug,monitoring,tools,redeliver "$@" --env-file "$settings" "${list[@]}" config \
                >"$work/config.$files" 2>"$work/said" || { cat "$work/said"; return 1; }
            ! grep -iE 'warn|not set|obsolete' "$work/said" || return 1
        done
    done
}
page_is_safe() { # the Kafka UI: pinned, on this machine alone, read-only, behind a login, no password in the clear
    /usr/bin/python3 - "$work" <<'EOF'
import sys, yaml
work = sys.argv[1]
for config, settings in (("configs", "kafka_ui.yml"), ("configs_tls", "tls/kafka_ui.yml")):
    with open(f"{work}/config.{config}") as file:
        stack = yaml.safe_load(file)
    page = stack["services"]["kafka-ui"]
    tag = page["image"].rsplit(":", 1)[1]
    assert tag != "latest" and tag[:2] == "v1", page["image"]
    assert page["read_only"] and page["cap_drop"] == ["ALL"], page
    for port in page["ports"]:
        assert port["host_ip"] == "127.0.0.1" if isinstance(port, dict) else port.startswith("127.0.0.1:"), port
    assert not any("PASS" in name or "JAAS" in name for name in page["environment"]), page["environment"]
    names = {s["source"] if isinstance(s, dict) else s: s for s in page["secrets"]}
    assert page["environment"]["JAVA_OPTS"].endswith("location=file:/run/secrets/" + names["kafka_ui"]["target"])
    assert stack["secrets"]["kafka_ui"]["file"].endswith(settings), stack["secrets"]["kafka_ui"]
    with open(f"{work}/secrets/{settings}") as file:
        loaded = yaml.safe_load(file)
    assert loaded["auth"]["type"] == "LOGIN_FORM" and len(loaded["spring"]["security"]["user"]["password"]) >= 32
    (cluster,) = loaded["kafka"]["clusters"]
    # The fields that the UI knows of a cluster (ClustersProperties.Cluster, v1).
    assert set(cluster) <= {"name", "bootstrapServers", "readOnly", "properties"}, cluster
    assert cluster["readOnly"] is True and cluster["bootstrapServers"] == "kafka:9092"
    assert ("properties" in cluster) == (config == "configs_tls") == ("tls_ca" in names)
    if config == "configs_tls":
        assert cluster["properties"]["ssl.truststore.location"] == "/run/secrets/tls_ca"
EOF
}
fails_with() { # what must be said, then -- and compose's arguments
    local texts=()
    while [ "$1" != -- ]; do
        texts+=("$1")
        shift
    done
    shift
    if timeout 120 "${compose[@]}" "$@" >"$work/said" 2>&1; then
        echo "it went well"
        return 1
    fi
    says "${texts[@]}"
}
without_settings() { # as typed in a fresh clone
    (
        cp docker-compose.yml "$work/fresh/" && cd "$work/fresh" || exit 1
        compose=("$@")
        # Which of the two it names first is chance.
        fails_with deploy/compose/example.env demo.env -- config && grep -qE 'GITHUB_APP_ID|ALLOWLIST_URL' "$work/said"
    )
}
without_a_secret() {
    sed "s|^SECRETS_DIR=.*|SECRETS_DIR=$work/nothing|" "$work/env" >"$work/env.nothing"
    mkdir -p "$work/nothing"
    (
        compose=("$@" --project-name "$project" --env-file "$work/env.nothing")
        fails_with "$work/nothing/app_private_key" -- up -d github
    )
}
with_a_port_taken() {
    local taker port=${github##*:} code=0
    /usr/bin/python3 -c '
import signal, socket, sys
with socket.create_server(("127.0.0.1", int(sys.argv[1]))):
    print("taken", flush=True)
    signal.pause()' "$port" >"$work/taken" &
    taker=$!
    wait_for 20 grep -q taken "$work/taken"
    fails_with "$port" "in use" -- up -d github || code=1
    kill "$taker"
    wait "$taker" 2>/dev/null
    return "$code"
}
app_key_is_asked_for() { # make-secrets without --demo names what people must bring, and where to
    local code=0
    deploy/compose/make-secrets --dir "$work/real" >"$work/said" 2>&1 || code=$?
    [ "$code" = 1 ] && says "$work/real/app_private_key" "install -m 444"
}

understood() {
    deploy/compose/tls/make-certs --dir "$work/secrets/tls" >/dev/null || { fault "certificates"; return; }
    [ ${#v2[@]} = 0 ] || check "understood by docker compose $("${v2[@]}" version --short)" is_understood "${v2[@]}"
    [ ${#v1[@]} = 0 ] || check "understood by docker-compose $("${v1[@]}" version --short)" is_understood "${v1[@]}"
    check "the Kafka UI is pinned, local, read-only and behind a login" page_is_safe
    check "make-secrets asks for the App's key" app_key_is_asked_for
    mkdir -p "$work/fresh"
    check "without .env: the name and the file to start from" without_settings "$@"
}
mistakes() { # tool…
    ours
    check "a secret that is missing is named by its file" without_a_secret "$@"
    check "a port that is taken is named" with_a_port_taken
    compose down -v --remove-orphans >/dev/null 2>&1
}
