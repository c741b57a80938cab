"""One cheap call of every command on the demo's recording, and the files that they read."""

import re
import shutil
from pathlib import Path

from conflict.cli.app import COMMANDS
from conflict.cli.refusals import ExitCode
from tests.conflict.cli.commands import invoke
from tests.corpora import DEMO, RECORDINGS

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
    "watch": ["watch", "watched.toml", "--until-idle"],
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
    "workers": ["workers", RUN],
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


def make_files(folder: Path) -> None:
    """Write what the calls read, besides the demo's recording, into a folder; the calls run in it."""
    assert invoke("resolve", RUN, "--out", folder / "result")[0] < ExitCode.REFUSED
    assert invoke("diverge", "--transactions", "1", "--json", folder / "diverged.json")[0] < ExitCode.REFUSED
    (folder / "model.toml").write_text(MODEL)
    run = re.sub(r"\[schedule\]\n.*\n", "", Path(RUN).read_text("utf-8"))
    (folder / "watched.toml").write_text(re.sub(r'"(schema.sql|[AB]\.binlog\.\*)"', rf'"{DEMO}/\1"', run))
    (folder / "sweep.toml").write_text('model = "model.toml"\n[grid]\nlatency_ms = [1]\n')
    shutil.copytree(RECORDINGS / "conflict" / "max" / "probe_type9", folder / "recordings" / "case")
