# Completion of `i` in fish. Once: i completion fish > ~/.config/fish/completions/i.fish

function __i_completion
    env _I_COMPLETE=fish COMP_WORDS=(commandline -cp | string join ' ') COMP_CWORD=(commandline -ct) i 2>/dev/null
end

complete --command i --no-files --arguments '(__i_completion)'
