"""
What a report says of the sizes of a log in every format.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from conflict.reporting.bytes_by_type import bytes_between, bytes_chart, change_of_bytes, format_name
from conflict.reporting.parts import Part, Table
from conflict.reporting.usable_types import usable_with

__all__ = ["sizes_part"]

_KINDS = ("insert", "update", "delete")
_ROW_IMAGES = "binlog_row_image="


def sizes_part(document: Mapping[str, Any], source: str) -> Part:
    """Return the part of a report on a document of `sizes`, read from `source`."""
    formats, totals = document["formats"], document["totals"]
    least, most = ({name: totals["formats"][name][bound]["bytes"] for name in formats} for bound in ("least", "most"))
    logged = totals["logged"]["bytes"]
    rows = [
        [_named(name, text), least[name], most[name], _change(least[name], most[name], logged), _usable(name)]
        for name, text in formats.items()
    ]
    note = "Usable with: the conflict functions that can judge every change logged so, and that the manual allows."
    return Part(
        "What each format costs",
        source,
        {"question": "How many bytes would the row events of this log take in every format?"},
        tuple(_answer(document, least, most)),
        (),
        Table(
            "Bytes of row events",
            ("format", "at least", "at most", "against the log", "usable with"),
            rows,
            note=note,
        ),
        tuple(bytes_chart(least, most)),
        tuple(_tables(document)),
        {name: document[name] for name in ("file_bytes", "total", "frame", "compression") if name in document},
    )


def _named(name: str, text: str) -> str:
    return text if text.startswith(_ROW_IMAGES) else f"{name} {text}"


def _change(least: int, most: int, logged: int) -> str | None:
    return change_of_bytes((least, most), (logged, logged)) if logged else None


def _usable(name: str) -> str | None:
    return usable_with(int(name)) if name.isdigit() else None


def _answer(document: Mapping[str, Any], least: Mapping[str, int], most: Mapping[str, int]) -> Iterator[str]:
    logged, rows = document["totals"]["logged"]["bytes"], document["totals"]["rows"]
    types = [name for name in most if name.isdigit()]
    same = [name for name in types if least[name] == most[name] == logged]
    as_type = f", as many as binlog type {same[0]} takes" if len(same) == 1 else ""
    yield (
        f"The log has {document['file_bytes']:,} bytes, {logged:,} of them in the row events of {rows:,} row "
        f"changes{as_type}; the rest frames transactions and does not depend on the format."
    )
    if types:
        yield _smallest(types, least, most, logged)
    if any(least[name] < most[name] for name in most):
        yield "A range means: the log does not show which columns statements set."


def _smallest(types: Sequence[str], least: Mapping[str, int], most: Mapping[str, int], logged: int) -> str:
    """Return which type takes least; all that may, where only bounds are known."""

    def words(name: str) -> str:
        change = _change(least[name], most[name], logged)
        return f"{bytes_between(least[name], most[name])} bytes" + (f" ({change})" if change else "")

    small = min(types, key=lambda name: most[name])
    rivals = [name for name in types if name != small and least[name] < most[small]]
    if not rivals:
        return f"Of the NDB binlog types, {small} takes least: {words(small)}."
    known = "; ".join(f"type {name} {words(name)}" for name in (small, *rivals))
    return f"Which NDB binlog type takes least is not certain: {known}."


def _tables(document: Mapping[str, Any]) -> Iterator[Table]:
    names = list(document["formats"])
    rows = []
    for table in document["tables"]:
        changes = [table["changes"][kind] for kind in _KINDS if kind in table.get("changes", {})]
        if changes:
            sums = [sum(each["formats"][name]["most"]["bytes"] for each in changes) for name in names]
            rows.append([table["table"], sum(each["rows"] for each in changes), *sums])
    if rows:
        yield Table("Bytes at most, by table", ("table", "rows", *map(format_name, names)), rows)
    columns = [[each["table"], each["column"], each["bytes"]] for each in document.get("columns", ())]
    if columns:
        yield Table("The columns that cost most", ("table", "column", "bytes"), columns)
