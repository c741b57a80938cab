"""
What a report says of a comparison of functions and formats.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

from conflict.reporting.bytes_by_type import bytes_chart, format_name, listed
from conflict.reporting.compare_answer import best_functions, compare_answer
from conflict.reporting.parts import Bytes, Chart, Form, Measured, Part, Table, shown
from conflict.reporting.usable_types import usable_types_table
from conflict.rules.functions import FUNCTIONS

__all__ = ["compare_part"]

Pair = Mapping[str, Any]
_BYTES = ("least_bytes", "most_bytes")
_SHOWN_ELSEWHERE = ("pairs", "notes", "doubts", "checks")
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
        tuple(compare_answer(document["changes"], tried, document.get("tables_without_function", ()))),
        tuple(str(each) for each in document.get("doubts") or ()),
        _matrix(pairs),
        tuple(_charts(tried, whole)),
        tuple(_tables(pairs, tried, document)),
        {name: each for name, each in document.items() if name not in _SHOWN_ELSEWHERE},
        best_functions(tried),
        _bytes(whole),
        _basis(document.get("tables_without_function", ())),
    )


def _asked(document: Mapping[str, Any], pairs: Sequence[Pair]) -> dict[str, str]:
    prefer = ", then ".join(_PREFERENCES.get(each, each) for each in document["prefer"])
    return {
        "question": "Which conflict function and which binlog type lose least, on these changes of users?",
        "functions": ", ".join(dict.fromkeys(pair["function"] for pair in pairs)),
        "binlog types": ", ".join(_types(pairs)),
        "best is": prefer,
        "assumed": document.get("taken_as_recorded") or " ".join(document.get("notes", ())),
    }


def _basis(without_function: Sequence[str]) -> str:
    """Return what the losses of a comparison rest on."""
    tables = f", with no function on {listed(without_function)}" if without_function else ""
    return f"are of recorded changes, at the travel times and up to the end of the binlogs{tables}"


def _bytes(whole: Sequence[Pair]) -> Bytes | None:
    """Return what the binlog types take that were tried, related to the configured one."""
    bounds = {pair["binlog_type"]: (pair["least_bytes"], pair["most_bytes"]) for pair in whole if pair["least_bytes"]}
    bounds = {name: each for name, each in bounds.items() if name.isdigit()}
    if not bounds:
        return None
    base = next((pair["binlog_type"] for pair in whole if pair.get("used") and pair["binlog_type"] in bounds), "")
    base_bytes = bounds[base][0] if base else 0
    of = "the binlogs that were compared, of both clusters"
    return Bytes(Measured.COMPARED, bounds, base, base_bytes, f"with {format_name(base)}, as configured", of)


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
    note = "Lost updates / rows that end different." + (" Marked: as configured." if marked else "")
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
        yield Chart("lost-updates", "Lost updates, in changes of users", Form.STACKED, data, "changes", note=note)
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


def _tables(pairs: Sequence[Pair], tried: Sequence[Pair], document: Mapping[str, Any]) -> Iterator[Table]:
    columns = {
        "conflicts": "conflicts",
        "transactions rejected": "rejected_transactions",
        "lost updates": "lost_updates",
        "rows that differ": "differing_rows",
        "refreshed": "refreshes",
        "reflected": "reflected",
        "without a row": "changes_without_row",
    }
    rows = [
        [f"{pair['function']}{' (stops)' if pair['stops'] else ''}", pair["binlog_type"]]
        + [None if pair["stops"] else pair[name] for name in columns.values()]
        for pair in tried
    ]
    marked = next((_name_of(pair) for pair in tried if pair.get("used")), None)
    note = (
        f"Of {shown(document['changes'])} changes, best first.{f' Configured: {marked}.' if marked else ''} "
        f"Updates and deletes of users without a row to change weaken the figures.{_conflicts_note(tried)}"
    )
    yield Table("All figures", ("function", "type", *columns), _merged(rows), note=note)
    yield from usable_types_table(dict.fromkeys(pair["function"] for pair in pairs))
    yield from _by_table([pair for pair in tried if not pair["stops"]])
    reasons = [
        [pair["function"], pair["binlog_type"], pair["error"] or pair["stops"]]
        for pair in pairs
        if pair["error"] or pair["stops"]
    ]
    if reasons:
        yield Table("Why pairs were not tried, or stop", ("function", "type", "reason"), reasons)


def _conflicts_note(tried: Sequence[Pair]) -> str:
    """Return how conflicts differ from a counter, where a function judges transactions (docs/functions.md)."""
    judging = {each.name: each.counter for each in FUNCTIONS if each.transactional}
    names = dict.fromkeys(pair["function"].partition("(")[0] for pair in tried)
    counters = [judging[name] for name in names if name in judging]
    if not counters:
        return ""
    return (
        f" Conflicts are all operations that were rejected; {listed(counters)} count{'s' * (len(counters) == 1)} only "
        "those that were in conflict themselves, not with their transaction."
    )


def _name_of(pair: Pair) -> str:
    return f"{pair['function']}, {format_name(pair['binlog_type'])}"


def _merged(rows: Sequence[Sequence[object]]) -> list[list[object]]:
    """Return rows by function and type, with those in one that differ in their type alone."""
    types: dict[tuple[object, ...], list[str]] = {}
    for function, binlog_type, *figures in rows:
        types.setdefault((function, *figures), []).append(str(binlog_type))
    return [[row[0], ", ".join(sorted(each)), *row[1:]] for row, each in types.items()]


def _by_table(tried: Sequence[Pair]) -> Iterator[Table]:
    """Yield the conflicts of each pair by table and applier, where there are any."""
    found = [
        {
            (table, applier): each.get("rejected")
            for applier, tables in pair.get("tables", {}).items()
            for table, each in tables.items()
        }
        for pair in tried
    ]
    places = [
        place for place in dict.fromkeys(each for own in found for each in own) if any(own.get(place) for own in found)
    ]
    if places:
        rows = [
            [pair["function"], pair["binlog_type"], *(own.get(place) for place in places)]
            for pair, own in zip(tried, found, strict=True)
        ]
        headings = ("function", "type", *(f"{table} on {applier}" for table, applier in places))
        yield Table("Conflicts by table", headings, _merged(rows))
