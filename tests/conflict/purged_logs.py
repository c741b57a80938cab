"""Recorded logs whose first epochs are missing, each log's in a share of its own, as after a purge."""

from __future__ import annotations

import shutil
from pathlib import Path

import attrs

from conflict.history.ingestion.logged_epochs import scan_epochs
from conflict.judge.case import ConflictCase
from tests.conflict.spliced_logs import part_of
from tests.corpora import DEMO


def purged_log(log: Path, server_id: int, share: float, file: Path) -> Path:
    """Write a log without the first epochs, but for the last one, to a file."""
    epochs = len(scan_epochs(server_id, [log]))
    return part_of(log, range(min(int(share * epochs), epochs - 1), epochs), server_id, file)


def purged(case: ConflictCase, folder: Path, shares: tuple[float, float]) -> ConflictCase:
    """Return a recording without the first epochs of both logs."""
    folder.mkdir(parents=True)
    files: dict[str, list[str]] = {}
    for share, (name, (file,)) in zip(shares, sorted(case.scenario["binlog_files"].items()), strict=True):
        server = int(case.scenario["globals"][name]["server_id"])
        files[name] = [purged_log(case.path / file, server, share, folder / f"{name}.binlog.000002").name]
    return attrs.evolve(case, path=folder, scenario={**case.scenario, "binlog_files": files})


def purged_demo(folder: Path, share: float) -> Path:
    """Return a run file of the demo whose logs lack their first epochs."""
    shutil.copytree(DEMO, folder)
    for server, name in enumerate("AB", start=1):
        file = f"{name}.binlog.000001"
        purged_log(DEMO / file, server, share, folder / file)
    return folder / "run.toml"
