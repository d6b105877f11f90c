#compdef crcrctl
_crcrctl() {
    local -a found=(${(f)"$($words[1] __complete "${(@)words[2,CURRENT]}" 2>/dev/null)"})
    if (( $#found )); then compadd -a found; else _files; fi
}
if [[ $funcstack[1] == _crcrctl ]]; then _crcrctl; else compdef _crcrctl crcrctl; fi
