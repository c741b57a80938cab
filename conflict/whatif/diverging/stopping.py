"""
Whether an applier can stop at all: what a format logs decides that, and no search is needed.

In the tables of a scope, one thing stops an applier: an operation that lacks what the function compares
(`conflict.rules.stops`). Functions that compare nothing never stop one. Those that compare columns neither refresh
nor reflect rows, so that appliers get changes of users alone; and where no update is logged as a write, only whole
rows are inserted, so that images carry every column that the format gives them.
"""

from __future__ import annotations

from collections.abc import Iterator

from conflict.rules.own_rule import Image
from conflict.whatif.diverging.scope import Scope, Values
from conflict.whatif.diverging.state import NAME
from ndb_formats.events.rows_event import Operation
from ndb_formats.rules.update_format import ndb_columns


def can_stop(scope: Scope) -> bool:
    """Whether an applier can stop in a scope; also if that is not known without a search."""
    if scope.parsed is None:
        return False
    spec = scope.parsed.spec
    if not spec.needs and not spec.needs_changed:
        return False
    setups = [each[NAME] for each in scope.setups]
    if spec.own is not None or spec.refreshes or spec.uses_role or any(each.format.as_write for each in setups):
        return True
    return any(
        1 not in (before if spec.needs.get(operation) is Image.BEFORE else after)
        for operation, before, after in _images(scope)
        if operation in spec.needs
    )


def _images(scope: Scope) -> Iterator[tuple[Operation, tuple[int, ...], tuple[int, ...]]]:
    """Yield the columns of both images of every change that users can make."""
    data = range(scope.first_data_column, scope.first_data_column + scope.columns)
    sets = frozenset() if scope.values is Values.UNSET else frozenset({1})
    for setup in (each[NAME] for each in scope.setups):
        for operation in Operation:
            wholes = [frozenset({1, *data})]
            for written in wholes if operation is Operation.WRITE_ROW else [sets | {column} for column in data]:
                found = ndb_columns(setup.format, setup.table, operation, written)
                assert found is not None  # formats that log nothing are refused
                yield operation, found.before or (), found.after or ()
