#!/usr/bin/env bash
# bash completion of crcrctl: its table of verbs says what may stand where.
_crcrctl() {
    mapfile -t COMPREPLY < <("${COMP_WORDS[0]}" __complete "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
}
complete -o default -F _crcrctl crcrctl
