"""The columnar engine resolves parts of recordings as the reference engine does."""

from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

import attrs
import pyarrow.dataset as pads
import pytest

from conflict.config.configuration import Span
from conflict.history.grid.folder import Folder
from conflict.history.preparing.definitions_over_time import make_run
from conflict.history.reading.readings import read_cluster
from conflict.history.run import Run
from conflict.history.scheduling.hints import hints_of_steps
from conflict.judge.case import ConflictCase
from conflict.results.run_document import RunDocument
from conflict.runs.pipeline import ResolveOptions, run_by
from tests.corpora import RECORDINGS

FUNCTIONS = ["epoch", "epoch2", "epoch2_trans", "epoch_trans", "max", "max_del_win_ins", "old"]
PARTS = ["outcomes", "undecided", "contradictions", "rows", "exceptions", "applied_epochs"]


def contents(out: Path, run: RunDocument) -> dict[str, Any]:
    """Return what a result holds, in an order that does not depend on buckets."""
    found: dict[str, Any] = {"summary": run.summary.to_json(), "counters": run.summary.counters, "starts": run.starts}
    for part in PARTS:
        for path in sorted((out / part).rglob("*.parquet")):
            name = str((path if part == "exceptions" else path.parent).relative_to(out))
            rows = pads.dataset(path).to_table().to_pylist()
            found[name] = found.get(name, Counter()) + Counter(str(sorted(row.items())) for row in rows)
    return {name: each for name, each in found.items() if each}


def cut_run(path: Path, part: int, whole: int) -> Run:
    """Return the run of a recording from some part of a cluster's epochs on."""
    case = ConflictCase.load(path)
    run = make_run(case.configuration(), partial(hints_of_steps, case.steps))
    name = run.clusters[part % 2].name
    epochs = read_cluster(run.clusters[part % 2], run).epochs
    first = {name: epochs[max(1, len(epochs) * part // whole)].number}
    return attrs.evolve(run, span=Span(first=first))


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("binlog_type", [7, 8])
def test_a_part_is_resolved_as_by_the_reference_engine(function: str, binlog_type: int, tmp_path: Path) -> None:
    """Outcomes, open decisions, exceptions rows, rows, counters and figures are equal."""
    recordings = sorted((RECORDINGS / "conflict" / function).glob(f"*_type{binlog_type}"))
    for number, path in enumerate(recordings[:2]):
        run = cut_run(path, number + 1, 3)
        results = []
        for engine in ("reference", "local"):
            out = tmp_path / f"{engine}-{number}"
            done = run_by(engine, run, Folder(str(out)), options=ResolveOptions(all_outcomes=True))
            results.append(contents(out, done))
        assert results[0] == results[1]
