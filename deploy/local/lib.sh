# Shared by the scripts of deploy/local. Source it; it changes nothing but defines functions.
# shellcheck shell=bash

KAFKA_VERSION=${KAFKA_VERSION:-3.9.1}

note() { printf '%s: %s\n' "$(basename "$0")" "$*" >&2; }
die() { # exit-code text…
    local code=$1
    shift
    note "$*"
    exit "$code"
}

# Where what was fetched from the network is kept between runs.
cache_dir() { printf '%s\n' "${CRCR_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/crcr}"; }
kafka_dir() { printf '%s/kafka-%s\n' "$(cache_dir)" "$KAFKA_VERSION"; }
# The jars are all there only once fetch-kafka has written this file.
kafka_complete() { [ -s "$(kafka_dir)/complete" ]; }

# Installs the packages that are not installed yet; asks no network when all are there.
apt_need() { # package…
    local missing=() package as_root=()
    for package in "$@"; do
        [ "$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null)" = installed ] ||
            missing+=("$package")
    done
    [ ${#missing[@]} -gt 0 ] || return 0
    if [ "$(id -u)" -ne 0 ]; then
        command -v sudo >/dev/null || {
            note "missing: ${missing[*]}; not root and no sudo: run apt-get install ${missing[*]} as root"
            return 1
        }
        as_root=(sudo)
    fi
    note "apt-get install ${missing[*]}"
    export DEBIAN_FRONTEND=noninteractive
    apt_install "${missing[@]}" && return 0
    note "trying again with fresh package lists"
    "${as_root[@]}" apt-get update -q >&2 && apt_install "${missing[@]}" && return 0
    note "apt-get could not install ${missing[*]}; the reason is above"
    return 1
}
apt_install() { "${as_root[@]}" apt-get install -q -y --no-install-recommends "$@" >&2; }

is_port() { [[ $1 =~ ^[0-9]{1,5}$ ]] && [ "$1" -ge 1 ] && [ "$1" -le 65535 ]; }
port_open() { (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; }

# Waits until a condition holds, as long as the process lives.
wait_ready() { # seconds pid command…
    local end=$((SECONDS + $1)) pid=$2
    shift 2
    until "$@" >/dev/null 2>&1; do
        kill -0 "$pid" 2>/dev/null || return 1
        [ "$SECONDS" -lt "$end" ] || return 1
        sleep 0.1
    done
}
