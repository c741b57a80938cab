"""
What a report says of a comparison of functions and formats.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

from conflict.reporting.bytes_by_type import bytes_chart, format_name
from conflict.reporting.compare_answer import compare_answer
from conflict.reporting.parts import Chart, Form, Part, Table, shown
from conflict.reporting.usable_types import usable_types_table

__all__ = ["compare_part"]

Pair = Mapping[str, Any]
_PREFERENCES = {
    "lost-updates": "fewest lost updates",
    "divergence": "fewest rows that end different",
    "traffic": "fewest rows sent back",
}


def compare_part(document: Mapping[str, Any], source: str) -> Part:
    """Return the part of a report on a document of `compare`, read from `source`."""
    pairs: Sequence[Pair] = document["pairs"]
    tried = [pair for pair in pairs if pair["lost_updates"] is not None]
    whole = [pair for pair in tried if not pair["stops"]]
    return Part(
        "Conflict functions compared",
        source,
        _asked(document, pairs),
        tuple(compare_answer(document["changes"], tried)),
        tuple(str(each) for each in document.get("doubts") or ()),
        _matrix(pairs),
        tuple(_charts(tried, whole)),
        tuple(_tables(pairs, tried, document["changes"])),
        {name: each for name, each in document.items() if name != "pairs"},
    )


def _asked(document: Mapping[str, Any], pairs: Sequence[Pair]) -> dict[str, str]:
    prefer = ", then ".join(_PREFERENCES.get(each, each) for each in document["prefer"])
    return {
        "question": "Which conflict function and which binlog type lose least, on these changes of users?",
        "functions": ", ".join(dict.fromkeys(pair["function"] for pair in pairs)),
        "binlog types": ", ".join(dict.fromkeys(pair["binlog_type"] for pair in pairs)),
        "best is": prefer,
        "taken as recorded": document.get("taken_as_recorded") or " ".join(document.get("notes", ())),
    }


def _matrix(pairs: Sequence[Pair]) -> Table:
    """Return lost updates and rows that differ by function and binlog type."""
    functions, types = (list(dict.fromkeys(pair[name] for pair in pairs)) for name in ("function", "binlog_type"))
    cells = {(pair["function"], pair["binlog_type"]): _cell(pair) for pair in pairs}
    rows = [[function, *(cells.get((function, each)) for each in types)] for function in functions]
    used = next(((pair["function"], pair["binlog_type"]) for pair in pairs if pair.get("used")), None)
    marked = None if used is None else (functions.index(used[0]), 1 + types.index(used[1]))
    note = "Lost updates / rows that end different." + (" Marked: what the run has." if marked else "")
    headings = ("function", *map(format_name, types))
    return Table("Functions and binlog types", headings, rows, marked, note)


def _cell(pair: Pair) -> str:
    if pair["lost_updates"] is None:
        return "not tried"
    return "stops" if pair["stops"] else f"{pair['lost_updates']:,} / {pair['differing_rows']:,}"


def _charts(tried: Sequence[Pair], whole: Sequence[Pair]) -> Iterator[Chart]:
    if whole:
        names = [_name(pair, whole) for pair in whole]
        rejected = [pair["lost_rejected"] for pair in whole]
        rest = [pair["lost_updates"] - pair["lost_rejected"] for pair in whole]
        data = pa.table({"pair": names, "rejected": rejected, "overwritten and not rejected": rest})
        note = "Pairs under which an applier stops are left out." if len(whole) < len(tried) else ""
        yield Chart("lost-updates", "Lost updates", Form.STACKED, data, "changes of users", note=note)
        columns = {
            words: [pair[name] for pair in whole]
            for words, name in (
                ("rows that differ", "differing_rows"),
                ("refreshed", "refreshes"),
                ("reflected", "reflected"),
            )
        }
        shown_columns = {words: each for words, each in columns.items() if any(each)}
        if shown_columns:
            data = pa.table({"pair": names, **shown_columns})
            yield Chart("differing-rows", "Rows that end different, and rows sent back", Form.GROUPED, data, "rows")
    least, most = (
        {pair["binlog_type"]: pair[name] for pair in tried if pair["least_bytes"]}
        for name in ("least_bytes", "most_bytes")
    )
    yield from bytes_chart(least, most)


def _name(pair: Pair, pairs: Sequence[Pair]) -> str:
    several = len({each["binlog_type"] for each in pairs}) > 1
    return f"{pair['function']}, {pair['binlog_type']}" if several else pair["function"]


def _tables(pairs: Sequence[Pair], tried: Sequence[Pair], changes: int) -> Iterator[Table]:
    columns = {
        "conflicts": "conflicts",
        "transactions rejected": "rejected_transactions",
        "lost updates": "lost_updates",
        "rows that differ": "differing_rows",
        "refreshed": "refreshes",
        "reflected": "reflected",
        "found no row": "changes_without_row",
    }
    rows = [
        [f"{pair['function']}{' (stops)' if pair['stops'] else ''}", pair["binlog_type"]]
        + [pair[name] for name in columns.values()]
        for pair in tried
    ]
    marked = next(((number, None) for number, pair in enumerate(tried) if pair.get("used")), None)
    note = (
        f"Of {shown(changes)} changes, best first.{' Marked: what the run has.' if marked else ''} "
        "Users' updates and deletes that found no row weaken the figures."
    )
    yield Table("All figures", ("function", "type", *columns), rows, marked, note)
    yield from usable_types_table(dict.fromkeys(pair["function"] for pair in pairs))
    yield from _by_table(tried)
    reasons = [
        [pair["function"], pair["binlog_type"], pair["error"] or pair["stops"]]
        for pair in pairs
        if pair["error"] or pair["stops"]
    ]
    if reasons:
        yield Table("Why pairs were not tried, or stop", ("function", "type", "reason"), reasons)


def _by_table(tried: Sequence[Pair]) -> Iterator[Table]:
    """Yield the conflicts of each pair by table and applier, where the document has them."""
    places = list(
        dict.fromkeys(
            (table, applier) for pair in tried for applier, tables in pair.get("tables", {}).items() for table in tables
        )
    )
    if places:
        rows = [
            [pair["function"], pair["binlog_type"]]
            + [pair.get("tables", {}).get(applier, {}).get(table, {}).get("rejected") for table, applier in places]
            for pair in tried
        ]
        yield Table("Conflicts by table", ("function", "type", *(f"{table} on {each}" for table, each in places)), rows)
