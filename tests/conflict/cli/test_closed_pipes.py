"""Every command ends as other programs do, and says nothing of it, when nobody reads what it prints."""

import json
import os
import subprocess
import sys
from typing import Any

import pytest

from conflict.cli.app import COMMANDS
from conflict.cli.refusals import ExitCode
from tests.conflict.cli.cheap_calls import BINLOG, PRINTING, make_files
from tests.layers import ROOT

SAYING = {  # where errors go to the same pipe
    "no command": [],
    "a wrong option": ["decode", "--wrong"],
    "a missing file": ["decode", "missing"],
    "an address": ["decode", "s3://bucket/file"],
}
LONG = ["decode", *[BINLOG] * 6, "-vv"]  # more than a pipe holds
CASES = [*PRINTING, *SAYING, "a long log, of which something is read"]

pytestmark = pytest.mark.xdist_group("closed pipes")


@pytest.fixture(scope="module")
def ends(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Return how each command ended, and what it said."""
    folder = tmp_path_factory.mktemp("pipes")
    make_files(folder)
    cases = {name: {"arguments": each, "bytes": 0, "errors": False} for name, each in PRINTING.items()}
    cases |= {name: {"arguments": each, "bytes": 0, "errors": True} for name, each in SAYING.items()}
    cases["a long log, of which something is read"] = {"arguments": LONG, "bytes": 100, "errors": False}
    subprocess.run(
        [sys.executable, "-m", "tests.conflict.cli.closing_pipes", "ends.json"],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        input=json.dumps(cases),
        text=True,
        check=True,
    )
    return json.loads((folder / "ends.json").read_text())


def test_every_command_is_here():
    """With what it prints, and not only its help."""
    assert COMMANDS.keys() <= {name.split()[0] for name in PRINTING}


@pytest.mark.parametrize("name", CASES)
def test_a_pipe_that_nobody_reads(name: str, ends: dict[str, Any]):
    """As behind `| head -1`; there is no traceback, and no word of Python about its streams."""
    code, said = ends[name]
    assert code == ExitCode.PIPE_CLOSED, said
    assert "Traceback" not in said
    assert "Exception ignored" not in said
