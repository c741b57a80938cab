"""Runs commands in this process."""

import re

from typer.testing import CliRunner

from conflict.cli.app import app


def invoke(*arguments: object) -> tuple[int, str]:
    """
    Run a command; return its exit code and output.

    Without line ends, which depend on the terminal, the sentence about kernels, which depends on what ran before, and
    lines about progress, which depend on the time.
    """
    done = CliRunner().invoke(app, [str(argument) for argument in arguments])
    shown = " ".join(re.sub(r"^At work for \d+ s.*\n", "", done.output, flags=re.MULTILINE).split())
    return done.exit_code, shown.removeprefix("Compiling the kernels, which takes a minute or two and happens once. ")
