"""
What several results say of the same functions, side by side: the table at the top of a page.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from conflict.telling.part import Part
from conflict.telling.value import Table


def overview(parts: Sequence[Part]) -> Table | None:
    """Return a row for each function; None if only one result has functions: it has tables of its own."""
    told = [part for part in parts if part.by_function]
    if len(told) < 2:
        return None
    columns = sorted((column for part in told for column in part.by_function), key=lambda column: column.topic)
    names = list(dict.fromkeys(name for column in columns for name in column.cells))
    # Simulations name a function without its primary, comparisons with it.
    full = {_bare(name): name for name in names if _bare(name) != name and _is_alone(name, names)}
    rows: dict[str, list[object]] = {full.get(name, name): [] for name in names}
    for column in columns:
        cells = {full.get(name, name): cell for name, cell in column.cells.items()}
        for name, row in rows.items():
            row.append(cells.get(name))
    configured = next((part.bytes.logged.configured for part in told if part.bytes and part.bytes.logged), None)
    marked = (list(rows).index(configured), None) if configured in rows else None
    note = (
        f"As configured: {configured}. A dash: not simulated. Type: the one that takes least for certain."
        if marked
        else ""
    )
    headings = ("function", *(column.heading for column in columns))
    return Table("The functions side by side", headings, [[name, *row] for name, row in rows.items()], marked, note)


def _bare(name: str) -> str:
    """Return a function without its primary."""
    return name.partition(" @")[0]


def _is_alone(name: str, names: Iterable[str]) -> bool:
    """Whether no other cluster is the primary of the same function."""
    return sum(_bare(each) == _bare(name) and each != _bare(name) for each in names) == 1
