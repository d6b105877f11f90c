# fish completion of crcrctl
function __crcrctl
    set -l words (commandline -opc)
    set -l now (commandline -ct)
    set -l found ($words[1] __complete $words[2..-1] "$now" 2>/dev/null)
    if count $found >/dev/null; printf '%s\n' $found; else; __fish_complete_path "$now"; end
end
complete -c crcrctl -f -a '(__crcrctl)'
