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
# Java's archive of the classes that a node loads: only the Java that made it takes it, and says nothing when it does not.
kafka_archive() { printf '%s/classes-%s.jsa\n' "$(kafka_dir)" "$(java --version | awk 'NR == 1 {print $2}')"; }

# Installs the packages that are not installed yet; asks no network when all are there.
apt_need() { # package…
    local missing=() package log code=0 as_root=(env DEBIAN_FRONTEND=noninteractive)
    for package in "$@"; do
        [ "$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null)" = installed ] ||
            missing+=("$package")
    done
    [ ${#missing[@]} -gt 0 ] || return 0
    if [ "$(id -u)" -ne 0 ]; then
        command -v sudo >/dev/null || {
            note "packages are missing, and you are neither root nor is there sudo. As root:"
            printf '\n  apt-get install %s\n\n' "${missing[*]}" >&2
            return 1
        }
        as_root=(sudo "${as_root[@]}") # env behind sudo: sudo passes no environment on
    fi
    note "apt-get install ${missing[*]}"
    log=$(mktemp)
    apt_install "${missing[@]}" >"$log" 2>&1 || {
        note "apt-get update, and once more"
        "${as_root[@]}" apt-get update -q >"$log" 2>&1 && apt_install "${missing[@]}" >"$log" 2>&1 || code=1
    }
    [ "$code" = 0 ] || {
        grep -E '^(E|W|Err|dpkg)[: ]' "$log" >&2 || tail -n 15 "$log" >&2
        note "apt-get could not install ${missing[*]}; the reason is above"
    }
    rm -f "$log"
    return "$code"
}
apt_install() {
    "${as_root[@]}" apt-get install -q -y --no-install-recommends -o DPkg::Lock::Timeout=300 "$@"
}

# Makes a minimal Debian in a folder, once; its packages are asked for over http, and their signatures checked.
debian_root() { # suite folder
    local log
    [ ! -e "$2/etc/debian_version" ] || return 0
    apt_need debootstrap || return 1
    log=$(mktemp)
    note "debootstrap $1 $2"
    rm -rf --one-file-system "$2.part"
    if ! debootstrap --variant=minbase "$1" "$2.part" http://deb.debian.org/debian >"$log" 2>&1; then
        tail -n 5 "$log" >&2
        note "debootstrap $1 failed; the end of its log is above"
        rm -rf --one-file-system "$2.part" "$log"
        return 1
    fi
    rm -f "$log"
    mv "$2.part" "$2"
}

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
