"""
The command line, one module per command.

A new command is a module with one typer function, named in `conflict.cli.app.COMMANDS`. What it needs besides its
options it imports when it runs, so that its help is there at once.
"""
