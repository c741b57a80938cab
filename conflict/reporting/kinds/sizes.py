"""
What a report says of the sizes of a log in every format.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from conflict.reporting.parts import Bytes, Measured, Part
from conflict.reporting.wording.bytes_by_type import LACKING, bytes_chart, change_of_bytes, format_name
from conflict.reporting.wording.logs import log_of
from conflict.reporting.wording.usable_types import usable_with
from conflict.shown_text import counted, listed
from conflict.telling.value import Table, Telling

__all__ = ["sizes_part"]

_KINDS = ("insert", "update", "delete")
_ROW_IMAGES = "binlog_row_image="
_EPOCHS = "mysql.ndb_apply_status"
_CONFIGURATION = ("file_bytes", "total", "frame", "compression", "files")


def sizes_part(document: Mapping[str, Any], source: str) -> Part:
    """Return the part of a report on a document of `sizes`, read from `source`."""
    formats, totals = _formats(document), document["totals"]
    least, most = ({name: totals["formats"][name][bound]["bytes"] for name in formats} for bound in ("least", "most"))
    logged = totals["logged"]["bytes"]
    lower = _lacking(totals, formats)
    rows = [
        [
            _named(name, text),
            f"≥{least[name]:,}" if name in lower else least[name],
            None if name in lower else most[name],
            None if name in lower else _change(least[name], most[name], logged),
            _usable(name),
        ]
        for name, text in formats.items()
    ]
    return Part(
        Telling(
            "What each format costs",
            tables=(
                Table(
                    "Bytes of row events",
                    ("format", "at least", "at most", "against the log", "usable with"),
                    rows,
                    note=f"{_note(document)}{f' {LACKING}' * bool(lower)}",
                ),
                *_tables(document),
            ),
            charts=tuple(bytes_chart(least, "the measured log", most, lower)),
        ),
        source,
        {"question": f"How many bytes would the row events of {_of(document)} take in every format?"},
        {name: document[name] for name in _CONFIGURATION if name in document},
        bytes=_bytes(document, least, most, lower),
        log=log_of(document.get("files", ())),
    )


def _lacking(changes: Mapping[str, Any], formats: Iterable[str]) -> frozenset[str]:
    """
    Return the formats that log values which the log lacks.

    One that takes as many bytes as the log is its own: what it lacks, servers do not log in it either.
    """
    logged, found = changes["logged"]["bytes"], changes["formats"]
    own = {name for name in formats if found[name]["least"]["bytes"] == found[name]["most"]["bytes"] == logged}
    return frozenset(name for name in formats if found[name].get("rows_lacking_values") and name not in own)


def _formats(document: Mapping[str, Any]) -> dict[str, str]:
    """Return the formats to show: NDB logs its tables in its own, whatever binlog_row_image is."""
    every: Mapping[str, str] = document["formats"]
    return {name: text for name, text in every.items() if name.isdigit() or not _has_epochs(document)}


def _has_epochs(document: Mapping[str, Any]) -> bool:
    return _EPOCHS in document.get("other_events", {})  # only NDB logs these rows, in every transaction


def _named(name: str, text: str) -> str:
    return text if text.startswith(_ROW_IMAGES) else f"{name} {text}"


def _change(least: int, most: int, logged: int) -> str | None:
    return change_of_bytes((least, most), (logged, logged)) if logged else None


def _usable(name: str) -> str:
    return usable_with(int(name)) if name.isdigit() else "tables of other engines than NDB"


def _bytes(
    document: Mapping[str, Any], least: Mapping[str, int], most: Mapping[str, int], lower: frozenset[str]
) -> Bytes | None:
    """Return what the binlog types take; None if the log has no row event."""
    totals = document["totals"]
    logged = totals["logged"]["bytes"]
    bounds = {name: (least[name], most[name]) for name in most if name.isdigit()}
    if not logged or not bounds:
        return None
    same = [name for name, each in bounds.items() if each == (logged, logged) and name not in lower]
    base = format_name(same[0]) if len(same) == 1 else "the log"
    return Bytes(
        Measured.MEASURED,
        bounds,
        base,
        logged,
        _of(document),
        totals["rows"],
        also=(*_by_server(document), *_compressed(document)),
        other_bytes=document.get("frame", 0),
        seconds=_seconds(document),
        servers=_servers(document),
        compressed=_whole_compressed(document),
        lower=lower & bounds.keys(),
    )


def _whole_compressed(document: Mapping[str, Any]) -> int:
    """Return what the log would take with its transactions compressed; 0 if that was not measured."""
    found = document.get("compression")
    if not found or not found["plain"]:
        return 0
    return int(document["total"] - found["plain"] + found["compressed"])


def _servers(document: Mapping[str, Any]) -> dict[int, dict[str, int]]:
    """Return, by server, what its files take in each binlog type, all events included."""
    found: dict[int, dict[str, int]] = {}
    for each in document.get("files", ()):
        if each["server_id"] is not None and "formats" in each:
            sizes = found.setdefault(each["server_id"], {})
            for name, bounds in each["formats"].items():
                sizes[name] = sizes.get(name, 0) + each["frame"] + bounds["most"]
    return found


def _seconds(document: Mapping[str, Any]) -> int:
    """Return how long it is from the first row change to the last one, in whole seconds; 0 if that is not known."""
    files = [each for each in document.get("files", ()) if each["first_change"]]
    first, last = ([datetime.fromisoformat(each[name]) for each in files] for name in ("first_change", "last_change"))
    return int((max(last) - min(first)).total_seconds()) if files else 0


def _by_server(document: Mapping[str, Any]) -> Iterator[str]:
    """Yield how many bytes of files each server has written, if there are several."""
    sizes: dict[int, int] = {}
    for each in document.get("files", ()):
        if each["server_id"] is not None:
            sizes[each["server_id"]] = sizes.get(each["server_id"], 0) + each["bytes"]
    if len(sizes) > 1:
        parts = [f"{size:,} bytes for server {server}" for server, size in sorted(sizes.items())]
        yield f"The files as they were logged have {listed(parts)}."


def _of(document: Mapping[str, Any]) -> str:
    """Return whose log was measured, if the document says it: one cluster's, or that of several."""
    files = document.get("files")
    if not files:
        return "the measured log"
    servers = sorted({each["server_id"] for each in files if each["server_id"] is not None})
    whose = f"server{'s' if len(servers) > 1 else ''} {listed(list(map(str, servers)))}" if servers else "no server"
    return f"the log of {whose}{' alone' if len(servers) == 1 else ''}"


def _note(document: Mapping[str, Any]) -> str:
    """Return what the columns are, and what bytes there are besides the row events."""
    columns = (
        "Against the log: against its row events. Usable with: the functions that can judge every change logged so, "
        "and that the manual allows."
    )
    frame = document.get("frame")
    if not frame:
        return columns
    files = document["file_bytes"]
    compressed = f" The files are compressed, and have {files:,} bytes." if files < document.get("total", 0) else ""
    return (
        f"{columns} In every format the log has {frame:,} bytes more, for transactions, table maps and epochs."
        f"{compressed}"
    )


def _compressed(document: Mapping[str, Any]) -> Iterator[str]:
    """Yield what compression would leave, if it was measured, and the variable that sets it."""
    found = document.get("compression")
    if found and found["plain"]:
        epochs = _has_epochs(document)
        what = counted(found["transactions"], "epoch transaction" if epochs else "transaction")
        variable = "ndb_log_transaction_compression" if epochs else "binlog_transaction_compression"
        size, share = found["compressed"], 100 * found["compressed"] / found["plain"]
        yield f"With `{variable}`, {what} of {found['plain']:,} bytes would take {size:,} ({share:.1f} %), as logged."


def _most(changes: Sequence[Mapping[str, Any]], name: str) -> object:
    """Return the bytes that changes take at most in a format; if that is not known, what they take at least."""
    if any(name in _lacking(each, [name]) for each in changes):
        return f"≥{sum(each['formats'][name]['least']['bytes'] for each in changes):,}"
    return sum(each["formats"][name]["most"]["bytes"] for each in changes)


def _tables(document: Mapping[str, Any]) -> Iterator[Table]:
    names = list(_formats(document))
    rows = []
    for table in document["tables"]:
        changes = [table["changes"][kind] for kind in _KINDS if kind in table.get("changes", {})]
        if changes:
            sums = [_most(changes, name) for name in names]
            rows.append([table["table"], sum(each["rows"] for each in changes), *sums])
    if rows:
        yield Table("Bytes at most, by table", ("table", "rows", *map(format_name, names)), rows)
    columns = [[each["table"], each["column"], each["bytes"]] for each in document.get("columns", ())]
    if columns:
        yield Table("The columns that cost most, as logged", ("table", "column", "bytes"), columns)
