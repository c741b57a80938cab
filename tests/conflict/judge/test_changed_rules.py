"""Recordings notice each change of a rule: none of the cells of a function could be another one."""

import pytest

from conflict import Resolver, conformance
from conflict.rules.functions import FUNCTIONS, Argument, FunctionSpec
from tests.corpora import RECORDINGS

COLUMN_FUNCTIONS = [spec for spec in FUNCTIONS if spec.argument is Argument.COLUMN]
# What a cell can be; see docs/functions.md, "The table".
CELLS = {
    "write": ("apply", "reject if present", "greater", "at least"),
    "update": ("apply", "reject if missing", "equal", "greater", "at least", "less"),
    "delete": ("apply", "reject if missing", "equal", "greater", "at least", "less"),
}
# No recording has a delete whose value is greater than the stored one, where updates set greater values alone.
UNNOTICED = {("NDB$MAX_INS", "delete", "at least")}


def noticed(spec: FunctionSpec, operation: str, cell: str) -> int:
    """Return how many recordings of a function decide otherwise than it does with another cell."""
    cells = {each: getattr(spec, each).words for each in CELLS} | {operation: cell}
    folder = RECORDINGS / "conflict" / spec.name.removeprefix("NDB$").lower()
    judged = conformance(folder, resolver=Resolver.row("CHANGED", **cells)).to_pandas()
    return int((judged.differing > 0).sum())


@pytest.mark.slow
@pytest.mark.parametrize("spec", COLUMN_FUNCTIONS, ids=lambda spec: spec.name)
def test_recordings_notice_every_changed_cell(spec: FunctionSpec) -> None:
    """The cells as they are agree with all; with another one in some place, a recording disagrees, but for one."""
    same = {operation: getattr(spec, operation).words for operation in CELLS}
    assert noticed(spec, "write", same["write"]) == 0
    changes = [(operation, cell) for operation, cells in CELLS.items() for cell in cells if cell != same[operation]]
    unnoticed = {(spec.name, *change) for change in changes if not noticed(spec, *change)}
    assert unnoticed == {each for each in UNNOTICED if each[0] == spec.name}
