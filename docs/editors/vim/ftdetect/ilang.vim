autocmd BufRead,BufNewFile *.i set filetype=ilang
