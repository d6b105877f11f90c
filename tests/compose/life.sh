# The life of a stack without TLS: clean start, work, scaling, upgrade, stop, down and up. Sourced by tests/compose/run.
# shellcheck shell=bash
# shellcheck disable=SC2154 # lib.sh and run set the others' variables

starts_in_order() { # stores before topics, topics before daemons
    local -A at=()
    local service
    for service in kafka redis topics ingest dispatcher reporter; do
        at[$service]=$(docker inspect -f '{{.State.StartedAt}}' "$(all_containers "$service" | head -n 1)")
    done
    at[made]=$(docker inspect -f '{{.State.FinishedAt}}' "$(all_containers topics)")
    declare -p at
    [[ ${at[kafka]} < ${at[topics]} && ${at[redis]} < ${at[ingest]} ]] || return 1
    for service in ingest dispatcher reporter; do
        [[ ${at[made]} < ${at[$service]} ]] || return 1
    done
}
is_contained() { # non-root, read-only root, no capability, none to be gained
    local all="true [ALL] [no-new-privileges:true]" id ids
    mapfile -t ids < <(containers)
    [ ${#ids[@]} -ge 6 ] || return 1
    for id in "${ids[@]}"; do
        [ "$(docker inspect -f '{{.HostConfig.ReadonlyRootfs}} {{.HostConfig.CapDrop}} {{.HostConfig.SecurityOpt}}' \
            "$id")" = "$all" ] || { docker inspect -f '{{.Name}} {{.HostConfig}}' "$id"; return 1; }
        # -eo pid,uid: docker top needs the pid to pick the container's own processes.
        if docker top "$id" -eo pid,uid | awk 'NR > 1 && $2 == 0 { found = 1 } END { exit !found }'; then
            docker inspect -f '{{.Name}} runs as root' "$id"
            return 1
        fi
    done
}
keeps_secrets() { # no secret stands where `docker inspect` or the logs show it
    local file ids
    mapfile -t ids < <(docker ps -aq --filter "label=com.docker.compose.project=$project")
    docker inspect "${ids[@]}" >"$work/inspected"
    compose logs --no-color >>"$work/inspected" 2>&1
    for file in webhook_secret callback_token_key redis_login_{ingest,dispatcher,reporter,crcrctl} hud_bot_key; do
        if grep -qF -- "$(sed 's/^[^:]*://' "$work/secrets/$file")" "$work/inspected"; then
            echo "$file is in the clear"
            return 1
        fi
    done
}
demo_arrives() {
    first=$(docker logs "$(all_containers webhook)" | grep -oE '[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}' | head -n 1)
    [ -n "$first" ] && arrives "$first" "$(jq -r .pull_request.head.sha deploy/compose/pull_request.json)"
}
lost_comes_back() { # a webhook that GitHub could not hand over: the redeliver loop fetches it, and it goes all the way
    local delivery number sha
    read -r delivery number sha < <(deploy/compose/lose-webhook "$github")
    echo "lost: $delivery, pull request $number"
    arrives "$delivery" "$sha" || { compose logs --no-color --tail 15 redeliver; return 1; }
    tails "$delivery" events >"$work/said" && says '"detail":"redelivered"'
}
tails() { # delivery topic…
    local delivery=$1
    shift
    compose run --rm -T crcrctl tail --json --delivery "$delivery" "$@" </dev/null
}
is_seen_inside() { # the eye that needs no page and no port: crcrctl in the network
    compose run --rm -T crcrctl tail --delivery "$first" events dispatches </dev/null >"$work/said" &&
        says "events " "dispatched" && [ "$(wc -l <"$work/said")" -ge 5 ] &&
        compose run --rm -T crcrctl trace "$first" </dev/null >"$work/said" && says "org-four/backend-four"
}
answers_the_runbook() { # its table "where": admin ports, a file that no container has, the webhook secret
    local service
    for service in ingest:9101 dispatcher:9102 reporter:9103; do
        compose exec -T "${service%:*}" curl -sS "127.0.0.1:${service#*:}/readyz" </dev/null >"$work/said" &&
            says '"ok":true' || return 1
    done
    compose exec -T dispatcher crcr-dispatcher --check-config </dev/null >"$work/said" && says GITHUB_APP_ID || return 1
    compose run --rm -T crcrctl allowlist check - <deploy/local/allowlist.yml >"$work/said" && says "-: valid:" || return 1
    compose run --rm -T crcrctl send-webhook - --event ping --url http://ingest:8080/github/webhook <<<'{}' >"$work/said" &&
        says "200 in"
}
is_seen_outside() { # kcat on the host
    kcat -b "$kafka" -C -e -q -t crcr.events -f '%k %h\n' >"$work/said" && says "delivery=$first"
}
scales() {
    compose up -d --no-recreate --scale dispatcher=3 dispatcher && wait_for 120 healthy dispatcher 3 && return
    compose ps
    return 1
}
shares_work() { # 12 pull requests: none twice, none missing, and no replica idle
    local i delivery sha sent=() id ids n
    for ((i = 0; i < 12; i++)); do
        delivery=$(new_id) sha=$(new_sha)
        send "$delivery" $((171300 + i)) "$sha" || return 1
        sent+=("$delivery $sha")
    done
    for i in "${sent[@]}"; do
        # shellcheck disable=SC2086 # two words
        arrives $i || return 1
    done
    mapfile -t ids < <(containers dispatcher)
    for id in "${ids[@]}"; do
        n=$(docker logs "$id" 2>&1 | grep -c '"event":"dispatch_sent"')
        echo "$id sent $n"
        [ "$n" -gt 0 ] || return 1
    done
}
targets_up() { # how many
    [ "$(curl -sf --max-time 5 "http://$prometheus/api/v1/targets?state=active" |
        jq '[.data.activeTargets[] | select(.health == "up")] | length')" = "$1" ]
}
finds_replicas() { # the profile monitoring, without Grafana: a target each for ingest, reporter and three dispatchers
    local code=0
    compose --profile monitoring up -d --no-deps prometheus && wait_for 60 healthy prometheus 1 && wait_for 60 targets_up 5 || code=1
    [ "$code" = 0 ] || compose --profile monitoring logs --no-color --tail 15 prometheus
    compose --profile monitoring rm -sf prometheus && return "$code"
}
# A webhook every 3 s, until asked to end; what is not answered with 202 is sent again, as GitHub's redelivery does.
load() {
    local i delivery sha status again
    for ((i = 0; i < 40; i++)); do
        [ ! -e "$work/load.end" ] || return 0
        delivery=$(new_id) sha=$(new_sha)
        for ((again = 0; again < 240; again++)); do
            status=$(post "$delivery" $((172000 + i)) "$sha")
            [ "$status" != 202 ] || break
            echo "$delivery $status" >>"$work/load.again"
            sleep 0.5
        done
        echo "$delivery $sha" >>"$work/load.sent"
        sleep 3
    done
}
upgrades() { # one service after the other becomes the next image
    local service id loader n line upgraded=0
    : >"$work/load.sent"
    docker build -q -t "$CRCR_IMAGE-next" - <<<"FROM $CRCR_IMAGE"$'\n'"LABEL crcr.upgrade=1" || return 1
    load &
    loader=$!
    sed -i "s/^CRCR_IMAGE=.*/CRCR_IMAGE=$CRCR_IMAGE-next/" "$work/env"
    compose run --rm --no-deps -T topics </dev/null || { touch "$work/load.end"; return 1; } # a version may want more of them
    for service in reporter dispatcher ingest redeliver; do
        n=1
        [ "$service" != dispatcher ] || n=3
        compose up -d --no-deps --scale "$service=$n" "$service" || { echo "$service does not come up"; break; }
        [ "$service" = redeliver ] || wait_for 120 healthy "$service" "$n" || { echo "$service is not healthy"; break; }
        for id in $(containers "$service"); do
            [ "$(docker inspect -f '{{index .Config.Labels "crcr.upgrade"}}' "$id")" = 1 ] ||
                { echo "$service is still the old one"; break 2; }
        done
        upgraded=$((upgraded + 1))
        echo "$service upgraded after $(wc -l <"$work/load.sent") webhooks"
    done
    touch "$work/load.end"
    wait "$loader"
    [ "$upgraded" = 4 ] && [ "$(wc -l <"$work/load.sent")" -ge 4 ] || return 1
    while read -r line; do
        # shellcheck disable=SC2086 # two words
        arrives $line || return 1
    done <"$work/load.sent"
}
upgrade_is_reported() { # what the upgrade did to the load, beside the count
    local again=0
    [ ! -e "$work/load.again" ] || again=$(wc -l <"$work/load.again")
    echo "        $(wc -l <"$work/load.sent") webhooks meanwhile; $again attempts without 202, all sent again"
}
ends_in_order() { # SIGTERM: each daemon and Kafka end by themselves, in time
    local service id codes=''
    compose stop || return 1
    for service in ingest dispatcher reporter redeliver redis kafka; do
        for id in $(all_containers "$service"); do
            codes+=" $service=$(docker inspect -f '{{.State.ExitCode}}' "$id")"
        done
    done
    echo "exit codes:$codes"
    # 143: Java's way to say that it ended, in order, on SIGTERM.
    ! tr ' ' '\n' <<<"$codes" | grep -vqE '^$|=0$|^kafka=143$'
}
holds() { # delivery: its event is still in the topics, its rows in the view
    tails "$1" events dispatches >"$work/tail" || return 1
    cat "$work/tail"
    [ "$(grep -c . "$work/tail")" -ge 5 ] && in_view "$1" # one event, four outcomes
}
not_again() { # delivery: GitHub, started anew, saw no dispatch of it
    state | jq -e --arg d "$1" '[.dispatches[] | select(.client_payload.delivery_id == $d)] == []'
}

allowlist_is_kept() { # profile backup
    compose run --rm --no-deps -T keep-allowlist crcrctl allowlist save /copies </dev/null >"$work/said" &&
        says "records saved in /copies/allowlist-" && kept=$(sed -n 's/.* saved in //p' "$work/said")
}
begins_empty() { # [rights]: the runbook's commands for an empty Kafka, then what it does next
    compose stop ingest dispatcher reporter kafka &&
        compose run --rm --no-deps -T --entrypoint=bash kafka -c 'rm -rf /var/lib/kafka/data/topics' </dev/null &&
        compose up -d kafka && wait_for 120 healthy kafka 1 && { [ $# = 0 ] || compose run --rm --no-deps -T rights </dev/null; } &&
        compose run --rm --no-deps -T topics </dev/null >"$work/said" && says "created  crcr.events" "created  crcr.audit" &&
        compose run --rm --no-deps -T keep-allowlist crcrctl allowlist restore "$kept" </dev/null >"$work/said" && says "records restored to" &&
        comes_up
}

life() {
    first=''
    ours
    check "a clean start: all healthy" comes_up || return
    check "the start is ordered: stores, topics, daemons" starts_in_order
    check "non-root, read-only root, no capabilities" is_contained
    check "the demo's webhook: four dispatches, HUD rows, check runs" demo_arrives || return
    check "secrets are files: none in an environment, a command line or a log" keeps_secrets
    check "a webhook that GitHub lost comes back through redeliver" lost_comes_back
    check "crcrctl in the network: tail and trace" is_seen_inside
    check "kcat on the host reads a topic" is_seen_outside
    check "the runbook's commands: admin ports, a file, a signed ping" answers_the_runbook
    check "dispatcher scales to 3" scales
    check "12 pull requests over 3 dispatchers: each once, no replica idle" shares_work
    check "Prometheus of the profile monitoring finds each of them" finds_replicas
    check "upgrade in place under load: every webhook arrives whole, once" upgrades && upgrade_is_reported
    check "stop: all end in order" ends_in_order
    check "start: all healthy again" comes_up 3
    check "after the restart a webhook goes through" goes_through 171400
    check "down keeps the volumes" compose down --remove-orphans
    check "up: all healthy" comes_up
    check "topics and view still hold the first delivery" holds "$first"
    check "after down and up a webhook goes through" goes_through 171500
    check "the first delivery is not dispatched again" not_again "$first"
    check "a copy of the allowlist is kept" allowlist_is_kept
    check "an empty Kafka with that copy, as the runbook says" begins_empty
    check "then a webhook goes through" goes_through 171600
}
