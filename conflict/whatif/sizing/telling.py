"""
The sizes of a log in every format: what is told of them, and their part of a report.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pyarrow as pa

from conflict.decoding.staging import staged_file
from conflict.telling.bytes_by_type import BYTES_CHART, format_name
from conflict.telling.drawing import draw
from conflict.telling.part import Bytes, Measured, Part, log_of
from conflict.telling.shown_text import counted, listed, percent
from conflict.telling.value import Chart, Form, Table, Telling
from conflict.whatif.sizing.document import KINDS

Document = Mapping[str, Any]
Sizes = tuple[int, int, bool]  # least and most bytes; whether they take more, by what the log lacks
_EPOCHS = "mysql.ndb_apply_status"  # only NDB logs these rows, in every transaction
_CONFIGURATION = ("file_bytes", "total", "frame", "compression", "files")
_LOGGED = "as logged"
_UNITS = ((1_000_000_000, "G"), (1_000_000, "M"), (1_000, "k"))
_LACKING = "≥: the log lacks values that this format logs; it takes more."
_RANGE = (
    "A range: the log does not tell all columns that {hidden:,} of {rows:,} changes set; it goes from those that "
    "changed value to all."
)


def sizes_part(document: Document, source: str) -> Part:
    """Return the part of a report on a document of `sizes`, read from `source`."""
    return Part(
        tell_sizes(document),
        source,
        {"question": f"How many bytes would {_of(document)} take in every format?"},
        {name: document[name] for name in _CONFIGURATION if name in document},
        bytes=_bytes(document),
        log=log_of(document.get("files", ())),
    )


def tell_sizes(document: Document) -> Telling:
    """Return what is told of a document of `sizes`."""
    unknown = [table["table"] for table in document["tables"] if not table["definition"]]
    warning = f"No definition of {', '.join(unknown)}: their rows count in every format as they are; give --schema."
    return Telling(
        "What each format costs",
        sentences=tuple(_compression(document)),
        tables=tuple(_tables(document)),
        charts=(_chart(document),),
        warnings=(warning,) if unknown else (),
    )


def draw_sizes(document: Document, path: Path) -> None:
    """Draw the chart of a document of `sizes` into a file; it appears whole."""
    with staged_file(path) as out:
        out.write(draw(_chart(document), path.suffix[1:].lower()))


# -----------------------------------------------------------------------------------------------------------
# Cells
# -----------------------------------------------------------------------------------------------------------


def _lower(document: Document) -> frozenset[str]:
    """
    Return the formats that log values which the log lacks.

    One that takes as many bytes as the log is its own: what it lacks, servers do not log in it either. Of several such
    formats, those are not the log's own that lack more than another.
    """
    logged, found = document["totals"]["logged"]["bytes"], document["totals"]["formats"]
    lacking = {name: each["rows_lacking_values"] for name, each in found.items()}
    alike = {name for name, each in found.items() if {each[bound]["bytes"] for bound in ("least", "most")} == {logged}}
    own = {name for name in alike if lacking[name] == min(lacking[each] for each in alike)}
    return frozenset(name for name, rows in lacking.items() if rows and name not in own)


def _sizes(changes: Document, name: str, lower: frozenset[str]) -> Sizes:
    """
    Return the least and the most bytes that changes take in a format, or as they are logged, and whether they are more.

    Rows of inserts and updates can share events, whose heads count for the first: less can be set and take more.
    """
    if name == _LOGGED:
        return changes["logged"]["bytes"], changes["logged"]["bytes"], False
    found = changes["formats"][name]
    least, most = sorted(found[bound]["bytes"] for bound in ("least", "most"))
    return least, most, bool(found["rows_lacking_values"]) and name in lower


def _sum(found: Iterable[Sizes]) -> Sizes:
    ends = list(found)
    return sum(least for least, _, _ in ends), sum(most for _, most, _ in ends), any(lower for _, _, lower in ends)


def _by_kind(document: Document, name: str, types: Mapping[str, str] = MappingProxyType({})) -> dict[str, Sizes]:
    """Return the sizes of all changes by kind: of tables that have a type in that one, of all others in one format."""
    lower, tables = _lower(document), document["tables"]
    return {
        kind: _sum(
            _sizes(table["changes"][kind], types.get(table["table"], name), lower)
            for table in tables
            if kind in table["changes"]
        )
        for kind in KINDS
    }


def _span(sizes: Sizes, form: str = "") -> str:
    """Return a number of bytes, or its range: short, or in a format of Python."""
    texts = dict.fromkeys(f"{each:{form}}" if form else _short(each) for each in sizes[:2])
    return f"{'≥' * sizes[2]}{'-'.join(texts)}"


def _short(size: float) -> str:
    """Return bytes with three or more digits, and a unit if they are many."""
    return next((f"{size / unit:,.0f}{name}" for unit, name in _UNITS if size >= 10 * unit), f"{size:,}")


# -----------------------------------------------------------------------------------------------------------
# Tables and the chart
# -----------------------------------------------------------------------------------------------------------


def _tables(document: Document) -> Iterator[Table]:
    yield _totals(document)
    names = [name for name in document["formats"] if not name.isdigit()]
    yield _by_table(document, "binlog_row_image", names, with_log=True)
    yield _by_table(document, "NDB binlog types", [name for name in document["formats"] if name.isdigit()])
    total = document["total"]
    columns = [
        [
            f"{each['table']}.{each['column']}",
            each["before"],
            each["after"],
            each["bytes"],
            percent(each["bytes"] / total),
        ]
        for each in document["columns"]
    ]
    headings = ("column", "before images", "after images", "both", "of the log")
    yield Table("The columns that cost most, bytes as logged", headings, columns)
    least = {name: each["least"]["bytes"] + document["frame"] for name, each in document["totals"]["formats"].items()}
    costs = document["every_column_set"]
    rows = [[format_name(name), cost, f"+{percent(cost / least[name])}"] for name, cost in costs.items() if cost]
    if rows:
        title = "What updates cost more if each sets all columns, as many ORMs do: bytes"
        yield Table(title, ("format", "bytes more", "of the log"), rows)


def _totals(document: Document) -> Table:
    frame, changes, lower = document["frame"], document["totals"], _lower(document)
    types = (document.get("configured") or {}).get("types", {})
    rows = [
        _row(document, name if name == _LOGGED else format_name(name), _by_kind(document, name))
        for name in (_LOGGED, *document["formats"])
    ]
    note = (
        f"The whole log has {frame:,} bytes besides the rows events of tables: frames of transactions, epochs and "
        "table maps, the same in every format."
    )
    if types:
        rows.append(_row(document, "configured", _by_kind(document, _LOGGED, types)))
        note += f" Configured: {', '.join(f'{name} type {number}' for name, number in types.items())}."
    if changes["hidden"]:
        note += f" {_RANGE.format(**changes)}"
    if lower:
        note += f" {_LACKING}"
    headings = ("format", "inserts", "updates", "deletes", "whole log", "of the log")
    return Table("Bytes by format", headings, rows, note=note)


def _row(document: Document, name: str, kinds: Mapping[str, Sizes]) -> list[str]:
    """Return the cells of a format: bytes by kind of change, and of the whole log."""
    frame, total, (least, most, lower) = document["frame"], document["total"], _sum(kinds.values())
    whole = least + frame, most + frame, lower
    share = "-".join(dict.fromkeys(percent(each / total, 0) for each in whole[:2])).replace(" %-", "-")
    return [name, *map(_span, kinds.values()), _span(whole, ","), f"{'≥' * lower}{share}"]


def _by_table(document: Document, what: str, names: Iterable[str], *, with_log: bool = False) -> Table:
    names, lower = list(names), _lower(document)
    rows = [
        [
            table["table"],
            kind,
            *((f"{changes['rows']:,}", _short(changes["logged"]["bytes"])) if with_log else ()),
            *(_span(_sizes(changes, name, lower)) for name in names),
        ]
        for table in document["tables"]
        for kind, changes in table["changes"].items()
    ]
    headings = ("table", "change", *(("rows", "logged") if with_log else ()), *names)
    return Table(f"Rows events by table in bytes, {what}", headings, rows, texts=2)


def _chart(document: Document) -> Chart:
    """Return a bar for the log and for each format."""
    lower, names = _lower(document), [_LOGGED, *document["formats"]]
    kinds = [_by_kind(document, name) for name in names]
    data = {
        "format": [f"{format_name(name)}{' ≥' * (name in lower)}" for name in names],
        "transactions, table maps": [document["frame"]] * len(names),
        **{f"{kind}s": [each[kind][0] for each in kinds] for kind in KINDS},
    }
    more = [sum(most - least for least, most, _ in each.values()) for each in kinds]
    if any(more):
        data["more, if all columns were set"] = more
    title = f"Bytes of {_of(document)} in every format"
    return Chart(BYTES_CHART, title, Form.STACKED, pa.table(data), "bytes", note=_LACKING * bool(lower))


def _compression(document: Document) -> Iterator[str]:
    """Yield what compression saves, or would."""
    files, total, found = document["file_bytes"], document["total"], document["compression"]
    if files < total:
        yield (
            f"Transactions are compressed: the files have {files:,} bytes, {percent(files / total)} of what their "
            "events take."
        )
    if found and found["plain"]:
        variable = f"{'ndb_log' if _EPOCHS in document['other_events'] else 'binlog'}_transaction_compression"
        compressed, plain = found["compressed"], found["plain"]
        yield (
            f"`{variable}` would leave {compressed:,} of {plain:,} bytes ({percent(compressed / plain)}), measured on "
            f"{counted(found['transactions'], 'transaction')} of this log."
        )


# -----------------------------------------------------------------------------------------------------------
# What a report works out from it
# -----------------------------------------------------------------------------------------------------------


def _bytes(document: Document) -> Bytes | None:
    """Return what the binlog types take; None if the log has no row event."""
    totals, lower = document["totals"], _lower(document)
    logged = totals["logged"]["bytes"]
    bounds = {
        name: (each["least"]["bytes"], each["most"]["bytes"])
        for name, each in totals["formats"].items()
        if name.isdigit()
    }
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
        other_bytes=document["frame"],
        seconds=_seconds(document),
        servers=_servers(document),
        compressed=_whole_compressed(document),
        lower=lower & bounds.keys(),
    )


def _whole_compressed(document: Document) -> int:
    """Return what the log would take with its transactions compressed; 0 if that was not measured."""
    found = document["compression"]
    if not found or not found["plain"]:
        return 0
    return int(document["total"] - found["plain"] + found["compressed"])


def _servers(document: Document) -> dict[int, dict[str, int]]:
    """Return, by server, what its files take in each binlog type, all events included."""
    found: dict[int, dict[str, int]] = {}
    for each in document.get("files", ()):
        if each["server_id"] is not None and "formats" in each:
            sizes = found.setdefault(each["server_id"], {})
            for name, bounds in each["formats"].items():
                sizes[name] = sizes.get(name, 0) + each["frame"] + bounds["most"]
    return found


def _seconds(document: Document) -> int:
    """Return how long it is from the first row change to the last one, in whole seconds; 0 if that is not known."""
    files = [each for each in document.get("files", ()) if each["first_change"]]
    first, last = ([datetime.fromisoformat(each[name]) for each in files] for name in ("first_change", "last_change"))
    return int((max(last) - min(first)).total_seconds()) if files else 0


def _of(document: Document) -> str:
    """Return whose log was measured, if the document says it: one cluster's, or that of several."""
    files = document.get("files")
    if not files:
        return "the measured log"
    servers = sorted({each["server_id"] for each in files if each["server_id"] is not None})
    whose = f"server{'s' if len(servers) > 1 else ''} {listed(list(map(str, servers)))}" if servers else "no server"
    return f"the log of {whose}{' alone' if len(servers) == 1 else ''}"
