"""
What a report says of the sizes of a log in every format.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from conflict.reporting.bytes_by_type import bytes_chart
from conflict.reporting.parts import Part, Table

__all__ = ["sizes_part"]

_KINDS = ("insert", "update", "delete")
_ROW_IMAGES = "binlog_row_image="


def sizes_part(document: Mapping[str, Any], source: str) -> Part:
    """Return the part of a report on a document of `sizes`, read from `source`."""
    formats, totals = document["formats"], document["totals"]
    least, most = ({name: totals["formats"][name][bound]["bytes"] for name in formats} for bound in ("least", "most"))
    rows = [[_named(name, text), least[name], most[name]] for name, text in formats.items()]
    return Part(
        "What each format costs",
        source,
        {"question": "How many bytes would the row events of this log take in every format?"},
        tuple(_answer(document, least, most)),
        (),
        Table("Bytes of row events", ("format", "at least", "at most"), rows),
        tuple(bytes_chart(least, most)),
        tuple(_tables(document)),
        {name: document[name] for name in ("file_bytes", "total", "frame", "compression") if name in document},
    )


def _named(name: str, text: str) -> str:
    return text if text.startswith(_ROW_IMAGES) else f"{name} {text}"


def _answer(document: Mapping[str, Any], least: Mapping[str, int], most: Mapping[str, int]) -> Iterator[str]:
    logged, rows = document["totals"]["logged"]["bytes"], document["totals"]["rows"]
    yield (
        f"The log has {document['file_bytes']:,} bytes, {logged:,} of them in the row events of {rows:,} row changes; "
        "the rest frames transactions and does not depend on the format."
    )
    types = [name for name in most if name.isdigit()]
    if types:
        small, large = (choose(types, key=lambda name: most[name]) for choose in (min, max))
        yield (
            f"Of the NDB binlog types, {small} takes least: {_bounds(least[small], most[small])}; "
            f"{large} takes most: {_bounds(least[large], most[large])}."
        )
    if any(least[name] < most[name] for name in most):
        yield "Where two figures stand, the log does not tell which columns statements set."


def _bounds(least: int, most: int) -> str:
    return f"{least:,} bytes" if least == most else f"{least:,} to {most:,} bytes"


def _tables(document: Mapping[str, Any]) -> Iterator[Table]:
    names = list(document["formats"])
    rows = []
    for table in document["tables"]:
        changes = [table["changes"][kind] for kind in _KINDS if kind in table.get("changes", {})]
        if changes:
            sums = [sum(each["formats"][name]["most"]["bytes"] for each in changes) for name in names]
            rows.append([table["table"], sum(each["rows"] for each in changes), *sums])
    if rows:
        yield Table("Bytes at most, by table", ("table", "rows", *names), rows)
    columns = [[each["table"], each["column"], each["bytes"]] for each in document.get("columns", ())]
    if columns:
        yield Table("The columns that cost most", ("table", "column", "bytes"), columns)
