"""Runs commands in this process."""

import re

from typer.testing import CliRunner

from conflict.cli.app import app

ABOUT_KERNELS = "Compiling the kernels, which takes a minute or two and happens once."


def invoke(*arguments: object) -> tuple[int, str]:
    """
    Run a command; return its exit code and output.

    Without line ends, which depend on the terminal, the sentence about kernels, which depends on what ran before, and
    lines about progress, which depend on the time.
    """
    done = CliRunner().invoke(app, [str(argument) for argument in arguments])
    said = re.sub(r"^At work for \d+ s.*\n", "", done.output, flags=re.MULTILINE)
    return done.exit_code, " ".join(" ".join(said.split()).replace(ABOUT_KERNELS, "").split())
