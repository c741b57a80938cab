"""
The command line, one module per command.

A new command is a module with one typer function, named in `conflict.cli.app.COMMANDS`.
"""
