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
_BYTES = ("least_bytes", "most_bytes")
_DRAWN = ("lost_updates", "lost_rejected", "differing_rows", "refreshes", "reflected")  # in bars
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
        "binlog types": ", ".join(_types(pairs)),
        "best is": prefer,
        "taken as recorded": document.get("taken_as_recorded") or " ".join(document.get("notes", ())),
    }


def _types(pairs: Sequence[Pair]) -> list[str]:
    """Return the binlog types of some pairs, in order."""
    return sorted({pair["binlog_type"] for pair in pairs}, key=lambda name: (len(name), name))


def _matrix(pairs: Sequence[Pair]) -> Table:
    """Return lost updates and rows that differ by function and binlog type."""
    functions, types = list(dict.fromkeys(pair["function"] for pair in pairs)), _types(pairs)
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
        bars = _bars(whole)
        names = list(bars)
        several = len(bars) < len(whole)
        whole = list(bars.values())
        rejected = [pair["lost_rejected"] for pair in whole]
        rest = [pair["lost_updates"] - pair["lost_rejected"] for pair in whole]
        data = pa.table({"pair": names, "rejected": rejected, "overwritten and not rejected": rest})
        note = " ".join(_bar_notes(stops=any(pair["stops"] for pair in tried), several=several))
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
            title = "Rows that end different, and rows sent back"
            yield Chart("differing-rows", title, Form.GROUPED, data, "rows")
    sizes = {pair["binlog_type"]: pair for pair in tried if pair["least_bytes"]}
    least, most = ({each: sizes[each][name] for each in _types(tried) if each in sizes} for name in _BYTES)
    yield from bytes_chart(least, most)


def _bars(pairs: Sequence[Pair]) -> dict[str, Pair]:
    """Return a pair for each bar by its label; types that make no difference to a function share one."""
    found: dict[str, Pair] = {}
    for function in dict.fromkeys(pair["function"] for pair in pairs):
        own = [pair for pair in pairs if pair["function"] == function]
        alike = {tuple(pair[name] for name in _DRAWN) for pair in own}
        if len(alike) == 1:
            found[function] = own[0]
        else:
            found |= {f"{function}, {format_name(pair['binlog_type'])}": pair for pair in own}
    return found


def _bar_notes(*, stops: bool, several: bool) -> Iterator[str]:
    if several:
        yield "A function without a type: all types that were tried give the same."
    if stops:
        yield "Pairs under which an applier stops are left out."


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
        + [None if pair["stops"] else pair[name] for name in columns.values()]
        for pair in tried
    ]
    marked = next(((number, None) for number, pair in enumerate(tried) if pair.get("used")), None)
    note = (
        f"Of {shown(changes)} changes, best first.{' Marked: what the run has.' if marked else ''} "
        "Users' updates and deletes that found no row weaken the figures."
    )
    yield Table("All figures", ("function", "type", *columns), rows, marked, note)
    yield from usable_types_table(dict.fromkeys(pair["function"] for pair in pairs))
    yield from _by_table([pair for pair in tried if not pair["stops"]])
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
