"""Commands that ask the SQL nodes of running clusters."""

import shutil
from collections.abc import Iterator
from pathlib import Path

from conflict.judge.case import ConflictCase
from tests.conflict.cli.commands import invoke
from tests.recorder.clusters import READER, Clusters

__all__ = ["addresses", "run", "run_file"]


def addresses(clusters: Clusters) -> Iterator[str]:
    """Yield the options that name the SQL nodes; the password is READER, too."""
    for node in clusters.nodes:
        yield from ("--server", f"{node.cluster}=mysql://{READER}@127.0.0.1:{node.port}/")


def run(*arguments: object, code: int = 0) -> str:
    """Run a command, and return its output."""
    exit_code, output = invoke(*arguments)
    assert exit_code == code, output
    return output


def run_file(clusters: Clusters, recording: Path, folder: Path) -> Path:
    """Return a run file as `init --server` writes it, with the binlogs of a recording."""
    file = folder / "run.toml"
    run("init", *addresses(clusters), "--out", file)
    for name, files in ConflictCase.load(recording).scenario["binlog_files"].items():
        for log in files:
            shutil.copy(recording / log, folder / name / log.partition(".")[2])
    return file
