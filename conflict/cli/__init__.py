"""
The command line, one module per command.

A new command is a module with one function, named in `conflict.cli.app.COMMANDS`; `conflict.cli.from_functions` makes
it of a function of `conflict`. It imports the code that it calls when it runs, so that `--help` is fast.
"""
