"""Runs commands in this process."""

from typer.testing import CliRunner

from conflict.cli.app import app


def invoke(*arguments: object) -> tuple[int, str]:
    """Run a command; return its exit code and output, without the line ends that depend on the terminal's width."""
    done = CliRunner().invoke(app, [str(argument) for argument in arguments])
    return done.exit_code, " ".join(done.output.split())
