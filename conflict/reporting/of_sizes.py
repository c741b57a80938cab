"""
What a report says of the sizes of a log in every format.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from conflict.reporting.bytes_by_type import bytes_chart, change_of_bytes, format_name, listed
from conflict.reporting.parts import Bytes, Measured, Part, Table
from conflict.reporting.usable_types import usable_with
from conflict.shown_text import counted

__all__ = ["sizes_part"]

_KINDS = ("insert", "update", "delete")
_ROW_IMAGES = "binlog_row_image="
_CONFIGURATION = ("file_bytes", "total", "frame", "compression", "server_ids")


def sizes_part(document: Mapping[str, Any], source: str) -> Part:
    """Return the part of a report on a document of `sizes`, read from `source`."""
    formats, totals = document["formats"], document["totals"]
    least, most = ({name: totals["formats"][name][bound]["bytes"] for name in formats} for bound in ("least", "most"))
    logged = totals["logged"]["bytes"]
    rows = [
        [_named(name, text), least[name], most[name], _change(least[name], most[name], logged), _usable(name)]
        for name, text in formats.items()
    ]
    return Part(
        "What each format costs",
        source,
        {"question": "How many bytes would the row events of this log take in every format?"},
        (),
        (),
        Table(
            "Bytes of row events",
            ("format", "at least", "at most", "against the log", "usable with"),
            rows,
            note=_note(document),
        ),
        tuple(bytes_chart(least, most)),
        tuple(_tables(document)),
        {name: document[name] for name in _CONFIGURATION if name in document},
        bytes=_bytes(document, least, most),
    )


def _named(name: str, text: str) -> str:
    return text if text.startswith(_ROW_IMAGES) else f"{name} {text}"


def _change(least: int, most: int, logged: int) -> str | None:
    return change_of_bytes((least, most), (logged, logged)) if logged else None


def _usable(name: str) -> str | None:
    return usable_with(int(name)) if name.isdigit() else None


def _bytes(document: Mapping[str, Any], least: Mapping[str, int], most: Mapping[str, int]) -> Bytes | None:
    """Return what the binlog types take; None if the log has no row event."""
    totals = document["totals"]
    logged = totals["logged"]["bytes"]
    bounds = {name: (least[name], most[name]) for name in most if name.isdigit()}
    if not logged or not bounds:
        return None
    same = [name for name, each in bounds.items() if each == (logged, logged)]
    as_type = f", the same as with type {listed(same, 'or')}" if same else ""
    return Bytes(
        Measured.MEASURED,
        bounds,
        same[0] if len(same) == 1 else "",
        logged,
        f"as logged{as_type}",
        f"{totals['rows']:,} row changes in {_whose(document)}",
        totals["rows"],
        tuple(_compressed(document)),
    )


def _whose(document: Mapping[str, Any]) -> str:
    """Return whose binlogs were measured, if the document says it: one cluster's, or those of several."""
    files = document.get("server_ids")
    if not files:
        return "the binlog files that were given"
    servers = sorted({each for each in files if each is not None})
    whose = f"server{'s' if len(servers) > 1 else ''} {listed(list(map(str, servers)))}" if servers else "no server"
    alone = ", so of one cluster alone" if len(servers) == 1 else ""
    return f"{counted(len(files), 'binlog file')} of {whose}{alone}"


def _note(document: Mapping[str, Any]) -> str:
    """Return what the functions are, and what bytes there are besides the row events."""
    usable = (
        "Usable with: the conflict functions that can judge every change logged so, and that the manual allows. "
        "Against the log: against its row events."
    )
    frame = document.get("frame")
    if not frame:
        return usable
    files = document["file_bytes"]
    compressed = f" The files are compressed, and have {files:,} bytes." if files < document.get("total", 0) else ""
    return (
        f"{usable} Besides row events the log has {frame:,} bytes, which begin and end transactions, describe tables "
        f"and mark epochs; they are the same in every format.{compressed}"
    )


def _compressed(document: Mapping[str, Any]) -> Iterator[str]:
    """Yield what compression would leave, if it was measured."""
    found = document.get("compression")
    if found and found["plain"]:
        share = 100 * found["compressed"] / found["plain"]
        yield (
            f"Compressed with binlog_transaction_compression, {counted(found['transactions'], 'transaction')} of "
            f"{found['plain']:,} bytes would take {found['compressed']:,} ({share:.1f} %), with the type that they "
            "have; other types were not compressed."
        )


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
