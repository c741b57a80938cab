"""Several processes that write to one place at once: one right result, and a refusal."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.faults.commands import left_in
from tests.faults.forked import Forks
from tests.faults.test_kills import COMMANDS

REFUSED = 2


@pytest.mark.slow
@pytest.mark.parametrize("name", COMMANDS)
def test_two_into_one_place(name: str, forked: Forks, times: int, tmp_path: Path) -> None:
    """One writes; the other one is refused and says why. A second ingest may come later and find nothing new."""
    words, whole = COMMANDS[name]
    expected, refused = None, 0
    for number in range(times):
        folder = tmp_path / f"{number}"
        folder.mkdir()
        out = folder / "out"
        ended = sorted(forked.run([*words, out], [*words, out]), key=lambda each: each.code)
        assert ended[0].code == 0, ended[0].said
        if ended[1].code != 0 or name != "ingest":
            assert ended[1].code == REFUSED, ended[1].said
            assert "is being written by process" in ended[1].said or "exists already" in ended[1].said
            refused += 1
        found = whole(out)
        expected = expected or found
        assert found == expected
        assert left_in(folder) == {"out"}
        shutil.rmtree(folder)
    assert refused
    print(f"{name}: {refused} of {times} refused")  # noqa: T201  # shown with -s
