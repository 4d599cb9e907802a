# Completion of `i` in bash 4.4 or newer. In ~/.bashrc: eval "$(i completion bash)"

_i_completion() {
    local IFS=$'\n' kind value
    COMPREPLY=()
    while IFS=$'\t' read -r kind value _; do
        COMPREPLY+=("$value")
        if [[ $kind != plain ]]; then
            compopt -o filenames 2>/dev/null
        fi
    done < <(env _I_COMPLETE=bash COMP_WORDS="${COMP_WORDS[*]}" COMP_CWORD="$COMP_CWORD" "$1" 2>/dev/null)
}

complete -o nosort -F _i_completion i
