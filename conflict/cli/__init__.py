"""
The command line, one module per command.

A new command is a module with one typer function, named in `conflict.cli.app.COMMANDS`. The function imports the code
that it calls when it runs, so that `--help` is fast.
"""
