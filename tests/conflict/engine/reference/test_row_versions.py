"""Epoch and author of every row, against what the data nodes of the recorded clusters hold."""

from collections import Counter
from pathlib import Path

import pytest

from conflict.history.reading.readings import history_of, read_cluster, usable_epochs
from conflict.history.run import Run
from conflict.history.scheduling.hints import hints_of_steps
from conflict.history.shown_effects import recorded_effects
from conflict.judge.case import ConflictCase
from conflict.rules.decision import stored_precision
from conflict.rules.functions import DEFAULT_GCI_BITS
from conflict.runs.reference_run import place_in_memory, resolve_settled
from tests.corpora import SHARED

RECORDINGS = Path(__file__).parents[3] / "recordings" / "conflict"
CASES = sorted(path.parent for path in RECORDINGS.glob("epoch*/*/scenario.json"))


def check(folder: Path) -> int:
    """Compare one case; returns how many rows there are."""
    case = ConflictCase.load(folder)
    run = Run(case.configuration())
    readings = {each.name: read_cluster(each, run) for each in run.clusters}
    summaries = usable_epochs(run, readings)
    history = history_of(run, readings, hints_of_steps(case.steps, summaries))
    recorded = {name: recorded_effects(readings[name].epochs[: len(own)]) for name, own in summaries.items()}
    setups = run.setups.at_end
    placed = place_in_memory(history, setups, recorded)
    _, resolution, _ = resolve_settled(placed.history(history), setups, recorded)
    rows = 0
    for side, expected in case.expected.items():
        for table, shown in expected.get("row_epoch_author", {}).items():
            name = f"{case.scenario['database']}.{table}"
            # A table made without a function has no author, and its epochs no extra bits.
            if any(row["author"] == "NULL" for row in shown):
                continue
            function = setups[side][name].function
            bits = function.gci_bits if function is not None else DEFAULT_GCI_BITS
            found = Counter(
                (stored_precision(epoch, bits), "0" if local else "1")
                for (of, _), (epoch, local) in resolution.clusters[side].versions.items()
                if of == name
            )
            assert found == Counter((row["epoch"], row["author"]) for row in shown), (folder.name, side, table)
            rows += len(shown)
    return rows


@pytest.mark.parametrize("folder", CASES, ids=lambda folder: f"{folder.parent.name}/{folder.name}")
def test_epoch_and_author_are_those_of_the_data_nodes(folder: Path) -> None:
    """What decides the next conflict on a row is right, also where no conflict shows it."""
    check(folder)


def test_some_rows_are_compared() -> None:
    """The bundled cases hold some."""
    assert sum(map(check, CASES)) > 300


@pytest.mark.slow
@pytest.mark.corpus("conformance/conflict")
def test_of_the_whole_corpus() -> None:
    """Every case with epochs."""
    paths = (SHARED / "conformance" / "conflict").glob("epoch*/*/scenario.json")
    assert sum(check(path.parent) for path in paths) > 300
