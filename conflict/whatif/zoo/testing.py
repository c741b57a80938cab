"""
A cell as a test of a user's own: a file for pytest that builds the schedule and asserts what the cell claims.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

from conflict.engine.ledger.resolution import ClusterResult
from conflict.engine.reference.replay import resolve
from conflict.whatif.diverging.retelling import history_of
from conflict.whatif.diverging.scope import NAMES, Goal
from conflict.whatif.diverging.state import NAME
from conflict.whatif.zoo.cell import Cell
from conflict.whatif.zoo.pairs import ANOMALIES
from conflict.whatif.zoo.typed_steps import typed_steps

_ARRIVED = "assert not any(verdicts.unsettled.values())  # everything has been applied"


def test_of(cell: Cell) -> str:
    """Return the test of a cell that was found."""
    return "".join(f"{line}\n" for line in _lines(cell))


def _lines(cell: Cell) -> Iterator[str]:
    _, what = ANOMALIES[cell.anomaly]
    scope, steps = cell.scope, typed_steps(cell.scope, cell.walk)
    about = f"{cell.row}, binlog type {cell.binlog_type}, {cell.length} steps; from ndb-conflict zoo, {cell.mark}."
    yield from ('"""', what, "", about, '"""', "", "import conflict", "", "", f"def test_{cell.name}() -> None:")
    yield f'    """{what}"""'
    yield "    history = conflict.History("
    yield f"        tables={_quoted(f'{scope.definition};')},"
    yield from _listed("start", steps.start)
    for name, lane in steps.lanes.items():
        yield from _listed(name, lane)
    yield "    )"
    yield f"    verdicts = history.resolve({_quoted(scope.function)}, {cell.binlog_type})"
    for line in _claims(cell):
        yield f"    {line}"


def _claims(cell: Cell) -> Iterator[str]:
    """Yield what the cell claims, and the rows with which the schedule ends."""
    results = resolve(history_of(cell.scope, cell.walk), dict(zip(NAMES, cell.scope.setups, strict=True))).clusters
    if cell.anomaly not in (Goal.LOST, Goal.STOP):
        yield _ARRIVED
    if cell.anomaly is Goal.DIFFERENCE:
        yield "assert verdicts.differing"
    elif cell.anomaly is Goal.LOST:
        yield "assert verdicts.lost"
    elif cell.anomaly is Goal.STOP:
        stopped = [name for name in NAMES if results[name].stop is not None]
        yield f"assert list(verdicts.stops) == {json.dumps(stopped)}"
    elif cell.anomaly is Goal.RETURNS:
        yield "# the row that a user deleted is there, and nobody inserted it again"
    else:
        is_lost = cell.walk[-1].state.lost
        yield f"assert {'' if is_lost else 'not '}verdicts.lost"
        counters = {name: {key: value for key, value in results[name].counters.items() if value} for name in NAMES}
        yield f"assert verdicts.counters == {json.dumps(counters)}"
    for name in NAMES:
        yield f'assert verdicts.rows("{name}") == {_rows(cell, results[name])}'


def _rows(cell: Cell, result: ClusterResult) -> str:
    names = [column.name for column in cell.scope.table.columns]
    rows = [dict(zip(names, row, strict=True)) for row in sorted(result.rows[NAME], key=str)]
    return repr(rows).replace("'", '"')


def _listed(name: str, texts: tuple[str, ...]) -> Iterator[str]:
    if texts or name in NAMES:
        yield f"        {name}=[{', '.join(map(_quoted, texts))}],"


def _quoted(text: str | None) -> str:
    return "None" if text is None else json.dumps(text, ensure_ascii=False)
