# Shared by tests/compose/run and its cases. Source it from the top of the tree.
# shellcheck shell=bash
# shellcheck disable=SC2154 # run sets keep and the addresses

passed=0 failed=0 skipped=0
work=$(mktemp -d "${TMPDIR:-/tmp}/crcr-compose.XXXXXX")
engine=''   # pid of our own dockerd
project=''  # of the stack that the functions below look at
compose=()  # the command for it
up=()       # the commands of the stacks that may be up, to be ended

exec {results}>&1 # also for what is printed from inside a check
pass() { passed=$((passed + 1)); echo "ok      $*" >&"$results"; }
skip() { skipped=$((skipped + 1)); echo "skipped $*" >&"$results"; }
fault() { failed=$((failed + 1)); echo "FAILED  $*" >&"$results"; }
check() { # name command…: what the command says is shown when it fails
    local name=$1 began=$SECONDS
    shift
    if "$@" >"$work/check.log" 2>&1; then
        pass "$name ($((SECONDS - began)) s)"
    else
        fault "$name"
        tail -n 60 "$work/check.log" | sed 's/^/        /'
        return 1
    fi
}
finish() {
    local stack
    trap - EXIT
    trap '' INT TERM
    for stack in "${up[@]}"; do
        [ "$keep $stack" != "1 ${compose[*]}" ] || continue
        # shellcheck disable=SC2086 # words
        $stack down -v --remove-orphans >/dev/null 2>&1
    done
    if [ "$keep" = 1 ] && [ ${#up[@]} -gt 0 ]; then
        echo "still up: ${compose[*]} ps      end it: ${compose[*]} down -v"
        [ -z "$engine" ] || echo "the engine: DOCKER_HOST=$DOCKER_HOST, pid $engine"
    else
        docker image rm "$CRCR_IMAGE" "$CRCR_IMAGE-next" >/dev/null 2>&1
        end_engine
        rm -rf "$work"
    fi
    echo "$passed passed, $failed failed, $skipped skipped" >&"$results"
    # With a number: a bare exit in a trap gives the status from before the trap.
    exit $((failed > 0 || passed == 0))
}
wait_for() { # seconds command…
    local end=$((SECONDS + $1))
    shift
    until "$@"; do
        [ "$SECONDS" -lt "$end" ] || return 1
        sleep 0.5
    done
}
says() { # text…: each stands in what the command before printed (in $work/said)
    local text
    for text in "$@"; do
        grep -qF -- "$text" "$work/said" || { echo "not said: $text"; cat "$work/said"; return 1; }
    done
}

# ---- the engine ---------------------------------------------------------------------------------------------------
engine_answers() { docker info >/dev/null 2>&1; }
engine_start() {
    local socket=$work/docker.sock
    if engine_answers; then
        echo "Docker $(docker info -f '{{.ServerVersion}}'), which was there"
        return 0
    fi
    apt_need docker.io || return 1
    mkdir -p "$(cache_dir)"
    exec {engine_lock}>"$(cache_dir)/docker.lock"
    flock -w 900 "$engine_lock" || { echo "another run has had $(cache_dir)/docker for 15 minutes"; return 1; }
    export DOCKER_HOST=unix://$socket
    setsid dockerd --host "$DOCKER_HOST" --data-root "$(cache_dir)/docker" --exec-root "$work/exec" \
        --pidfile "$work/dockerd.pid" >"$work/dockerd.log" 2>&1 </dev/null {engine_lock}>&- &
    engine=$!
    if ! wait_ready 60 "$engine" engine_answers; then
        echo "dockerd cannot be started here (it needs root, iptables and overlayfs); the end of its log:"
        tail -n 5 "$work/dockerd.log"
        return 1
    fi
    echo "Docker $(docker info -f '{{.ServerVersion}}'), started by this test"
}
end_engine() {
    local i
    [ -n "$engine" ] || return 0
    kill -TERM "$engine" 2>/dev/null
    for ((i = 0; i < 300; i++)); do
        kill -0 "$engine" 2>/dev/null || break
        sleep 0.1
    done
}

# ---- compose, the plugin (v2) and the older program (1.29) ----------------------------------------------------------
v1=() v2=()
find_tools() {
    local plugin
    v2=(docker compose)
    if ! "${v2[@]}" version >/dev/null 2>&1; then
        plugin=$(cache_dir)/docker-config/cli-plugins/docker-compose
        [ -x "$plugin" ] || fetch_plugin "$plugin" || v2=()
        [ ${#v2[@]} = 0 ] || v2=(env "DOCKER_CONFIG=$(cache_dir)/docker-config" docker compose)
    fi
    if apt_need docker-compose && [[ $(docker-compose version --short) == 1.* ]]; then v1=(docker-compose); fi
    [ ${#v1[@]} -gt 0 ] || [ ${#v2[@]} -gt 0 ]
}
fetch_plugin() { # path: from Debian 13, whose package holds the plugin
    mkdir -p "${1%/*}"
    # shellcheck disable=SC2016 # for the shell inside
    docker run --rm debian:trixie-slim bash -c 'cd /tmp && { apt-get update -q && apt-get download -q docker-compose; } >&2 &&
        dpkg --fsys-tarfile docker-compose_*.deb | tar -xO ./usr/libexec/docker/cli-plugins/docker-compose' \
        >"$1.part" 2>"$work/plugin.log"
    [ -s "$1.part" ] || { tail -n 5 "$work/plugin.log"; return 1; }
    chmod 755 "$1.part"
    mv "$1.part" "$1"
}
use_stack() { # project, then the tool's words: what the functions below look at from now on
    project=$1
    shift
    compose=("$@" --project-name "$project" --env-file "$work/env")
}
compose() { "${compose[@]}" "$@"; }
ours() { up+=("${compose[*]}"); } # it may be up from now on
free_port() {
    local port
    while port=$((20000 + RANDOM % 12000)); do
        if ! port_open "$port"; then
            printf '%s\n' "$port"
            return
        fi
    done
}

# ---- what is looked at --------------------------------------------------------------------------------------------
repos=(org-one/backend-one org-two/backend-two org-three/backend-three org-four/backend-four)
containers() { compose ps -q "$@"; } # service…
all_containers() { # service: those that ended, too
    docker ps -aq --filter "label=com.docker.compose.project=$project" \
        --filter "label=com.docker.compose.service=$1" --filter "label=com.docker.compose.oneoff=False"
}
state() { curl -sf --max-time 5 "http://$github/_sim/state"; }
healthy() { # service how-many
    local ids
    mapfile -t ids < <(containers "$1")
    [ ${#ids[@]} -eq "$2" ] || return 1
    [ "$(docker inspect -f '{{.State.Health.Status}}' "${ids[@]}" | grep -cx healthy)" -eq "$2" ]
}
comes_up() { # how many dispatchers
    compose up -d --scale "dispatcher=${1:-1}" && wait_for 180 healthy dispatcher "${1:-1}" &&
        wait_for 60 healthy ingest 1 && wait_for 60 healthy reporter 1 && healthy kafka 1 && healthy redis 1 && return
    compose ps
    compose logs --no-color --tail 15
    return 1
}
new_id() { cat /proc/sys/kernel/random/uuid; }
new_sha() { openssl rand -hex 20; }
post() { # delivery pr sha: as GitHub would, through the port of the host; prints the answer's status
    local body=$work/body.$1 signature
    jq --argjson n "$2" --arg sha "$3" --arg now "$(date -u +%FT%TZ)" \
        '.number = $n | .pull_request |= (.number = $n | .head.sha = $sha | .updated_at = $now)' \
        deploy/compose/pull_request.json >"$body"
    signature=$(openssl dgst -sha256 -hmac "$(cat "$work/secrets/webhook_secret")" -r "$body")
    curl -s -o /dev/null -w '%{http_code}\n' --max-time 10 -H 'Content-Type: application/json' \
        -H 'X-GitHub-Event: pull_request' -H "X-GitHub-Delivery: $1" \
        -H "X-Hub-Signature-256: sha256=${signature%% *}" --data-binary "@$body" "http://$ingest/github/webhook"
    rm -f "$body"
}
send() { [ "$(post "$@")" = 202 ]; } # delivery pr sha
# One dispatch a downstream; rows of L2 to L4 in the HUD API and in our pages; check runs of L3 and L4, of the job and at L4 the aggregate.
arrived() { # delivery sha
    state | jq -e --arg d "$1" --arg sha "$2" --args '
        ([.dispatches[] | select(.client_payload.delivery_id == $d) | .repo] | sort) == ($ARGS.positional | sort)
        and ([.hud[] | select(.untrusted.callback_payload.delivery_id == $d
                and .untrusted.callback_payload.workflow.status == "completed")
              | .trusted.verified_repo] | sort) == ($ARGS.positional[1:] | sort)
        and ([.check_runs[] | select(.head_sha == $sha) | "\(.name) \(.status) \(.conclusion)"] | sort)
            == (($ARGS.positional[2:] | map("crcr/\(.)/CI/test completed success"))
                + ["crcr/\($ARGS.positional[3]) completed success"] | sort)' \
        "${repos[@]}" >/dev/null && in_view "$1"
}
in_view() { # delivery: the pages have it whole
    curl -sf --max-time 5 "http://$hud/api/crcr/deliveries/$1" | jq -e --args \
        '([.jobs[] | select(.status == "completed") | .downstream_repo] | sort) == ($ARGS.positional[1:] | sort)' \
        "${repos[@]}" >/dev/null
}
arrives() { # delivery sha: shows what is there when it does not
    wait_for 180 arrived "$1" "$2" && return
    echo "not whole: delivery $1, commit $2"
    state | jq -c --arg d "$1" --arg sha "$2" '{
        dispatches: [.dispatches[] | select(.client_payload.delivery_id == $d) | .repo],
        hud: [.hud[] | select(.untrusted.callback_payload.delivery_id == $d) | .trusted.verified_repo],
        check_runs: [.check_runs[] | select(.head_sha == $sha) | [.name, .status, .conclusion]]}'
    compose logs --no-color --tail 15 ingest dispatcher reporter
    return 1
}
goes_through() { # pr: a webhook of its own, all the way
    local delivery sha
    delivery=$(new_id) sha=$(new_sha)
    send "$delivery" "$1" "$sha" && arrives "$delivery" "$sha"
}
leaves_nothing() {
    compose --profile demo --profile backup down -v --remove-orphans || return 1 # in place of COMPOSE_PROFILES
    [ -z "$(docker ps -aq --filter "label=com.docker.compose.project=$project")" ] &&
        [ -z "$(docker volume ls -q --filter "label=com.docker.compose.project=$project")" ] &&
        [ -z "$(docker network ls -q --filter "label=com.docker.compose.project=$project")" ]
}
