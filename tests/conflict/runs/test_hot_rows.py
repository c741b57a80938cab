"""A row that changes in every epoch: what the last epochs depend on is its last changes, however many there were."""

from __future__ import annotations

from pathlib import Path

import pytest

from conflict.config.run_file import load_run_file
from conflict.history.grid.folder import Folder
from conflict.history.preparing.definitions_over_time import make_run
from conflict.runs.pipeline import run_by
from conflict.runs.resolving import settling
from conflict.runs.rows.touched_rows import TouchedRows
from tests.conflict.runs.resolving.test_moments import figures
from tests.conflict.world_binlogs import write_world
from tests.conflict.worlds import Step, World, world

COMPARING = ["NDB$MAX(x)", "NDB$OLD(x)", "NDB$MAX_DEL_WIN_INS(x)"]


def epochs(count: int) -> list[Step]:
    """Return epochs in which A changes row 1 twice and B row 2 once; each applies those of the other."""
    found: list[Step] = []
    for _ in range(count):
        found += [("commit", 0, [(1, False, 2, "t")]), ("commit", 0, [(1, False, 1, "t")]), ("close", 0, [])]
        found += [("apply", 1, []), ("commit", 1, [(2, False, 1, "t")]), ("close", 1, []), ("apply", 0, [])]
    # Both change a row, and neither applies that any more: these epochs have no trace.
    return [*found, ("commit", 0, [(1, False, 1, "t")]), ("close", 0, []), ("commit", 1, [(1, False, 5, "t")])]


def hot_world(function: str, count: int) -> World:
    """Return clusters with a hot row each."""
    made = world(function, shows_applied=True)
    made.rising = True
    made.run(epochs(count))
    for cluster in (0, 1):
        made.close(cluster)
    return made


@pytest.mark.parametrize("function", COMPARING)
def test_few_changes_are_read(function: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As many for 60 epochs as for 20, and the result is that of the reference engine, which reads all."""
    read = list[int]()
    to_history = settling.touched_history

    def counted(parts: list[TouchedRows], *rest: object) -> object:
        read.append(sum(len(changes) for part in parts for changes in part.changes.values()))
        return to_history(parts, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(settling, "touched_history", counted)
    most = []
    for count in (20, 60):
        folder = tmp_path / str(count)
        folder.mkdir()
        run = load_run_file(write_world(hot_world(function, count), function, folder)).configuration
        read.clear()
        found = run_by("local", make_run(run), Folder(str(folder / "local")))
        assert figures(found) == figures(run_by("reference", make_run(run), Folder(str(folder / "reference"))))
        most.append(max(read))
    assert 0 < most[1] <= most[0] < 20
