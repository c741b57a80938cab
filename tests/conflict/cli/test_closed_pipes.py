"""Every command ends with 3, and says nothing else, when nobody reads what it prints."""

import os
import subprocess
import sys

import pytest

from conflict.cli.app import COMMANDS
from conflict.cli.exit_codes import ExitCode
from tests.corpora import DEMO

RUN, BINLOG = DEMO / "run.toml", next(DEMO.glob("**/*.00000*"))
PRINTING = {
    "help": ["--help"],
    **{f"help of {name}": [name, "--help"] for name in COMMANDS},
    "check": ["check", str(RUN)],
    "requirements": ["requirements"],
    "decode": ["decode", str(BINLOG), "-vv"],
    "decode as JSON": ["decode", str(BINLOG), "--format", "json"],
    "sizes": ["sizes", str(BINLOG), "--schema", str(DEMO / "schema.sql")],
}


@pytest.mark.parametrize("arguments", PRINTING.values(), ids=PRINTING)
def test_a_pipe_that_nobody_reads(arguments: list[str]):
    """As behind `| head -1`; there is no traceback, and no word of Python about its streams."""
    reading, writing = os.pipe()
    os.close(reading)
    code = "import sys; from conflict.cli.app import main; sys.exit(main())"
    try:
        done = subprocess.run(
            [sys.executable, "-c", code, *arguments],
            stdout=writing,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
            env={**os.environ, "COLUMNS": "80"},
        )
    finally:
        os.close(writing)
    assert done.returncode == ExitCode.CUT_SHORT, done.stderr
    assert "Traceback" not in done.stderr
    assert "Exception ignored" not in done.stderr
