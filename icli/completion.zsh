#compdef i
# Completion of `i` in zsh. In ~/.zshrc, after compinit: source <(i completion zsh)

_i() {
    local -a plain described paths
    local kind value meaning
    while IFS=$'\t' read -r kind value meaning; do
        if [[ $kind != plain ]]; then
            paths+=("$value")
        elif [[ -n $meaning ]]; then
            described+=("${value//:/\\:}:$meaning")
        else
            plain+=("$value")
        fi
    done < <(env _I_COMPLETE=zsh COMP_WORDS="${words[*]}" COMP_CWORD="$((CURRENT - 1))" "${words[1]}" 2>/dev/null)

    # After --option= only the value is completed.
    if [[ $PREFIX == -*=* ]]; then
        compset -P '*='
    fi
    (( $#described )) && _describe -V 'i' described
    (( $#plain )) && compadd -V words -a plain
    (( $#paths )) && compadd -f -V paths -a paths
}

if [[ $zsh_eval_context[-1] == loadautofunc ]]; then
    _i "$@"
else
    compdef _i i
fi
