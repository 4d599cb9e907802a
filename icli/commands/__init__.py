"""The commands of `i`, one a file, and the table of them."""

COMMANDS = {
    "explain": (
        "ilang.icli.commands.explain",
        "Show what a program computes, or what an error code means",
    ),
    "run": ("ilang.icli.commands.run", "Run a program on arrays and print the results"),
    "build": (
        "ilang.icli.commands.build",
        "Write a C or CUDA project for the definitions of a file",
    ),
    "train": ("ilang.icli.commands.train", "Train a model on data"),
    "check": (
        "ilang.icli.commands.check",
        "Find mistakes, and print the inputs and outputs of each definition",
    ),
    "test": (
        "ilang.icli.commands.test",
        "Run the examples in the comments of files",
    ),
    "grad": ("ilang.icli.commands.grad", "Print the gradient of a program, as a program"),
    "graph": (
        "ilang.icli.commands.graph",
        "Show the data flow of a program, as text or as a picture",
    ),
    "diff": ("ilang.icli.commands.diff", "Compare two programs, or one under two schedules"),
    "tune": ("ilang.icli.commands.tune", "Time schedules, and print the fastest one"),
    "learn": ("ilang.icli.commands.learn", "Learn the language in short lessons"),
    "repl": ("ilang.icli.commands.repl", "Run programs line by line"),
    "fmt": ("ilang.icli.commands.fmt", "Format a file"),
    "lsp": ("ilang.icli.commands.lsp", "Answer an editor as its language server"),
    "doctor": (
        "ilang.icli.commands.doctor",
        "Look at what programs need: compilers, OpenMP, the cache, a GPU",
    ),
    "completion": (
        "ilang.icli.commands.completion",
        "Print the completion script of bash, zsh or fish",
    ),
}
"""Every command: the module that runs it, and what ``i --help`` says of it."""
