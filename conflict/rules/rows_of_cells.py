"""
Conflict functions of one's own as rows of cells, on every engine like those of `conflict.rules.functions.FUNCTIONS`.

    [[conflict_function]]
    name = "AT_LEAST"               # in conflict_fn: AT_LEAST(version)
    write = "reject if present"
    update = "at least"
    delete = "equal"
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import attrs

from conflict.documents import Must, one_of, read
from conflict.errors import ConfigurationError
from conflict.rules.checked_rule import NAME, NAME_WORDS
from conflict.rules.functions import OF_POLICIES, Cell, FunctionSpec, is_comparing

_CELLS = {cell.words: cell for cell in Cell if cell not in OF_POLICIES}
_NOT_FOR = {
    "write": {Cell.EQUAL, Cell.REJECT_IF_MISSING},
    "update": {Cell.REJECT_IF_PRESENT},
    "delete": {Cell.REJECT_IF_PRESENT},
}


def _cell(operation: str) -> Must:
    """Return what the cell of an operation must be."""
    return one_of([words for words, cell in _CELLS.items() if cell not in _NOT_FOR[operation]], _CELLS.__getitem__)


@attrs.frozen
class _Row:
    """A table ``[[conflict_function]]``."""

    name: Annotated[str, Must(f"a name for conflict_fn: {NAME_WORDS}", NAME.fullmatch)]
    write: Annotated[Cell, _cell("write")]
    update: Annotated[Cell, _cell("update")]
    delete: Annotated[Cell, _cell("delete")]

    def __attrs_post_init__(self) -> None:
        cells = {self.write, self.update, self.delete}
        if Cell.BY_EPOCH in cells and any(map(is_comparing, cells)):
            message = (
                f"{self.name} compares a column for one operation and epochs for another; use one or the other for all "
                "three"
            )
            raise ConfigurationError(message)

    @property
    def spec(self) -> FunctionSpec:
        """The function."""
        return FunctionSpec(self.name, f"Ndb_conflict_fn_{self.name.lower()}", self.write, self.update, self.delete)


def row_of_cells(entries: Mapping[str, Any], place: str = "conflict_function") -> FunctionSpec:
    """
    Return the function that some entries define: name, write, update and delete.

    Raises:
        ConfigurationError: One is missing or wrong; the message names it, its place and its values.
    """
    row: _Row = read(_Row, dict(entries), place)
    return row.spec
