"""Every command ends as other programs do, and says nothing of it, when nobody reads what it prints."""

import json
import os
import shutil
import subprocess
import sys
from typing import Any

import pytest

from conflict.cli.app import COMMANDS
from conflict.cli.refusals import ExitCode
from tests.conflict.cli.commands import invoke
from tests.corpora import DEMO, RECORDINGS
from tests.layers import ROOT

RUN, BINLOG, SCHEMA = (str(DEMO / name) for name in ("run.toml", "A.binlog.000001", "schema.sql"))
MODEL = (
    'seconds = 1\nfunction = "NDB$EPOCH()"\nrecordcount = 50\n'
    "[workload]\ntransactions_per_second = 50\n[clusters.A]\n[clusters.B]\n"
)
# In a folder that holds a result and the files below; what they write, and all else they say, is tested elsewhere.
PRINTING = {
    "resolve": ["resolve", RUN, "--out", "out"],
    "conflicts": ["conflicts", "result"],
    "compare": ["compare", RUN, "--functions", "NDB$EPOCH()"],
    "explain": ["explain", "result", "--differences"],
    "lost": ["lost", "result"],
    "repair": ["repair", "result", "--rule", "*=newest"],
    "window": ["window", RUN],
    "audit": ["audit", RUN],
    "channel": ["channel", BINLOG, "--to", "1", "--after-epoch", "5317169512466"],
    "init": ["init", str(DEMO), "--schema", SCHEMA, "--out", "run.toml"],
    "ingest": ["ingest", RUN, "--out", "history"],
    "check": ["check", RUN],
    "demo": ["demo", "shown"],
    "requirements": ["requirements"],
    "check-replica": ["check-replica", SCHEMA, SCHEMA],
    "logging": ["logging", "INSERT INTO t VALUES (UUID())"],
    "sizes": ["sizes", BINLOG, "--schema", SCHEMA],
    "rewrite": ["rewrite", BINLOG, "--binlog-type", "7", "--out", "rewritten"],
    "decode": ["decode", BINLOG, "-vv"],
    "decode as JSON": ["decode", BINLOG, "--format", "json"],
    "decode as CSV": ["decode", BINLOG, "--format", "csv", "--wide"],
    "decode as Parquet": ["decode", BINLOG, "--format", "parquet", "--wide", "--result-file", "/dev/stdout"],
    "simulate": ["simulate", "model.toml"],
    "workload": ["workload", RUN, "--out", "learnt.toml"],
    "sweep": ["sweep", "sweep.toml", "--out", "swept", "--engine", "local", "--workers", "1"],
    "report": ["report", "diverged.json"],
    "diverge": ["diverge", "--transactions", "2"],
    "zoo": ["zoo", "--function", "NDB$EPOCH()", "--formats", "7", "--transactions", "1", "--columns", "1"],
    "conformance": ["conformance", "recordings", "--engine", "reference"],
    "warm-up": ["warm-up"],
    "version": ["--version"],
    "help": ["--help"],
    **{f"help of {name}": [name, "--help"] for name in COMMANDS},
}
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
    assert invoke("resolve", RUN, "--out", folder / "result")[0] < ExitCode.REFUSED
    assert invoke("diverge", "--transactions", "1", "--json", folder / "diverged.json")[0] < ExitCode.REFUSED
    (folder / "model.toml").write_text(MODEL)
    (folder / "sweep.toml").write_text('model = "model.toml"\n[grid]\nlatency_ms = [1]\n')
    shutil.copytree(RECORDINGS / "conflict" / "max" / "probe_type9", folder / "recordings" / "case")
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
