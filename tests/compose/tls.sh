# The example of deploy/compose/tls in real containers, and what is said when a password or an authority is wrong.
# Sourced by tests/compose/run.
# shellcheck shell=bash
# shellcheck disable=SC2154 # lib.sh and run set the others' variables

tls_demo_arrives() {
    local delivery
    delivery=$(docker logs "$(all_containers webhook)" | grep -oE '[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}' | head -n 1)
    [ -n "$delivery" ] && arrives "$delivery" "$(jq -r .pull_request.head.sha deploy/compose/pull_request.json)"
}
tls_is_spoken() { # what Kafka and Redis present to the host and to each other is signed by the example's authority
    openssl s_client -connect "$kafka" -CAfile "$work/secrets/tls/ca.pem" -verify_return_error </dev/null \
        >"$work/said" 2>&1 && says "Verify return code: 0 (ok)" "CN = kafka" || return 1
    compose exec -T redis redis-cli --tls --cacert /run/secrets/tls_ca ping >"$work/said" 2>&1 && says PONG
}
readme_kcat_lists() { # the command of deploy/compose/tls/README.md as it stands there, with our folder and port
    local line
    line=$(sed -n '/^    kcat/,/ -L$/p' deploy/compose/tls/README.md | sed "s|…/secrets|$work/secrets|g; s|127.0.0.1:9094|$kafka|")
    bash -c "$line" >"$work/said" 2>&1 && says 'topic "crcr.events"'
}
tools_show_rights() {
    compose run --rm --no-deps -T rights kafka-acls.sh --list </dev/null >"$work/said" 2>&1 && says "User:crcr-topics" ALTER_CONFIGS
}
plain_is_refused() {
    if timeout 60 "${compose[@]}" run --rm -T -e CRCR_KAFKA_SECURITY_PROTOCOL=PLAINTEXT crcrctl lag </dev/null \
        >"$work/said" 2>&1; then
        echo "Kafka answers without TLS"
        return 1
    fi
    ! compose exec -T redis redis-cli ping 2>&1 | grep -q PONG
}
bad_files() { # a password, a login and an authority that are not the stack's
    mkdir -p "$work/bad"
    echo wrong >"$work/bad/password"
    echo crcr:wrong >"$work/bad/login"
    deploy/compose/tls/make-certs --dir "$work/bad/tls" >/dev/null
    cp "$work/bad/tls/ca.pem" "$work/bad/ca.pem"
    chmod 755 "$work" "$work/bad"
    chmod 444 "$work"/bad/{password,login,ca.pem}
}
asks_with() { # NAME=value, then what must be said: crcrctl ends with 3
    local setting=$1 code=0
    shift
    timeout 120 "${compose[@]}" run --rm -T -v "$work/bad:/bad:ro" -e "$setting" crcrctl topics check </dev/null \
        >"$work/said" 2>&1 || code=$?
    [ "$code" = 3 ] || { echo "exit code $code, not 3"; cat "$work/said"; return 1; }
    says "$@"
}
starts_with() { # service NAME=value, then what its log must say
    local service=$1 setting=$2 name=$project-wrong code=0
    shift 2
    compose run -d --no-deps --name "$name" -v "$work/bad:/bad:ro" -e "$setting" "$service" >/dev/null 2>&1
    wait_for 60 logs_say "$name" "$@" || { says "$@"; code=1; }
    docker rm -f "$name" >/dev/null 2>&1
    return "$code"
}
logs_say() { # container text…
    local container=$1
    shift
    docker logs "$container" >"$work/said" 2>&1 && says "$@" >/dev/null
}

tls() {
    deploy/compose/tls/make-certs --dir "$work/secrets/tls" >/dev/null || { fault "certificates"; return; }
    bad_files
    ours
    check "TLS: a clean start, all healthy" comes_up || return
    check "TLS: Kafka and Redis present certificates of the example's authority" tls_is_spoken
    check "TLS: the README's kcat line lists the topics" readme_kcat_lists
    check "TLS: the runbook's way to Kafka's own tools shows the rights" tools_show_rights
    check "TLS: neither Kafka nor Redis answers in the clear" plain_is_refused
    check "TLS: a webhook becomes dispatches, HUD rows and check runs" tls_demo_arrives
    check "TLS: a copy of the allowlist is kept" allowlist_is_kept
    check "TLS: an empty Kafka with that copy, as the runbook says" begins_empty rights
    check "TLS: a wrong Kafka password is named, with the setting" asks_with \
        CRCR_KAFKA_SASL_PASSWORD_FILE=/bad/password "cannot reach Kafka" "uthentication" CRCR_KAFKA_SASL_PASSWORD
    check "TLS: a wrong authority of Kafka is named, with the setting" asks_with \
        CRCR_KAFKA_SSL_CA_LOCATION=/bad/ca.pem "cannot reach Kafka" "certificate" CRCR_KAFKA_SSL_CA_LOCATION
    check "TLS: a daemon's log names a wrong Kafka password" starts_with dispatcher \
        CRCR_KAFKA_SASL_PASSWORD_FILE=/bad/password topics_awaited CRCR_KAFKA_SASL_PASSWORD
    check "TLS: a daemon's log names a wrong Redis password" starts_with reporter \
        REDIS_LOGIN_FILE=/bad/login "redis refused the login" WRONGPASS
    check "TLS: a daemon's log names a wrong authority of Redis" starts_with reporter \
        CRCR_REDIS_CA_FILE=/bad/ca.pem "redis TLS" "certificate verify failed"
    check "TLS: an authority that is no file is refused at once" refuses_at_once
}
refuses_at_once() {
    local code=0
    compose run --rm -T --no-deps -e CRCR_REDIS_CA_FILE=/nowhere ingest </dev/null >"$work/said" 2>&1 || code=$?
    [ "$code" = 2 ] || { echo "exit code $code, not 2"; cat "$work/said"; return 1; }
    says CRCR_REDIS_CA_FILE /nowhere "the path of a readable file"
}
