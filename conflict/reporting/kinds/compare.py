"""
What a report says of a comparison of functions and formats.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

from conflict.reporting.answers.function import best_functions, compare_columns, compare_findings, compare_headline
from conflict.reporting.parts import Bytes, Measured, Part, RowCounts
from conflict.reporting.wording.bytes_by_type import bytes_chart, format_name
from conflict.reporting.wording.logs import log_of
from conflict.reporting.wording.usable_types import usable_types_table
from conflict.rules.functions import FUNCTIONS
from conflict.shown_text import listed
from conflict.telling.value import Chart, Form, Table, Telling, shown

__all__ = ["compare_part"]

Pair = Mapping[str, Any]
_BYTES = ("least_bytes", "most_bytes")
_SHOWN_ELSEWHERE = ("pairs", "notes", "doubts", "checks")
_DRAWN = ("lost_updates", "lost_rejected", "differing_rows", "refreshes", "reflected")  # in bars
_PREFERENCES = {
    "lost-updates": "fewest lost updates",
    "divergence": "fewest rows that end different",
    "traffic": "fewest rows refreshed or reflected",
}


def compare_part(document: Mapping[str, Any], source: str) -> Part:
    """Return the part of a report on a document of `compare`, read from `source`."""
    pairs: Sequence[Pair] = document["pairs"]
    tried = [pair for pair in pairs if pair["lost_updates"] is not None]
    whole = [pair for pair in tried if not pair["stops"]]
    changes, without = document["changes"], document.get("tables_without_function", ())
    return Part(
        Telling(
            "Conflict functions compared",
            sentences=tuple(compare_findings(tried, changes, without)),
            tables=(_matrix(pairs), *_tables(pairs, tried, document)),
            charts=tuple(_charts(tried, whole, without)),
            warnings=tuple(str(each) for each in document.get("doubts") or ()),
        ),
        source,
        _asked(document, pairs),
        {name: each for name, each in document.items() if name not in _SHOWN_ELSEWHERE},
        best_functions(tried),
        _bytes(whole, changes),
        (compare_headline(changes, tried, without),),
        tuple(compare_columns(changes, tried, without)),
        lost_share=next((_lost_share(pair, changes) for pair in whole if pair.get("used") and changes), None),
        log=log_of(document.get("files", ())),
    )


def _lost_share(pair: Pair, changes: int) -> tuple[str, float]:
    return pair["function"].partition("(")[0], pair["lost_updates"] / changes


def _asked(document: Mapping[str, Any], pairs: Sequence[Pair]) -> dict[str, str]:
    prefer = ", then ".join(_PREFERENCES.get(each, each) for each in document["prefer"])
    clusters = dict.fromkeys(name for pair in pairs for name in pair.get("lost_by_cluster", ()))
    found = {
        "question": "Which conflict function and which binlog type lose least, on these changes of users?",
        "clusters": ", ".join(clusters),
        "functions": ", ".join(dict.fromkeys(pair["function"] for pair in pairs)),
        "binlog types": ", ".join(_types(pairs)),
        "best is": prefer,
        "assumed": " ".join(document.get("notes", ())),
    }
    return {name: text for name, text in found.items() if text}


def _bytes(whole: Sequence[Pair], changes: int) -> Bytes | None:
    """Return what the binlog types take that were tried, related to the configured one."""
    bounds = {pair["binlog_type"]: (pair["least_bytes"], pair["most_bytes"]) for pair in whole if pair["least_bytes"]}
    bounds = {name: each for name, each in bounds.items() if name.isdigit()}
    if not bounds:
        return None
    used = next((pair for pair in whole if pair.get("used") and pair["binlog_type"] in bounds), None)
    base, base_bytes = (format_name(used["binlog_type"]), used["least_bytes"]) if used else ("", 0)
    return Bytes(Measured.COMPARED, bounds, base, base_bytes, "the recorded log", logged=_logged(whole, used, changes))


def _logged(whole: Sequence[Pair], used: Pair | None, changes: int) -> RowCounts | None:
    """Return how many rows the log has under each function; None without the configured one."""
    rows = {pair["function"]: pair.get("rows_by_appliers") for pair in reversed(whole)}
    known = {name: each for name, each in rows.items() if each is not None}
    return None if used is None else RowCounts(changes, used["function"], known)


def _types(pairs: Sequence[Pair]) -> list[str]:
    """Return the binlog types of some pairs, in order."""
    return sorted({pair["binlog_type"] for pair in pairs}, key=lambda name: (len(name), name))


def _matrix(pairs: Sequence[Pair]) -> Table:
    """Return lost updates and rows that differ by function and binlog type; types in one if they do not matter."""
    functions, types = list(dict.fromkeys(pair["function"] for pair in pairs)), _types(pairs)
    cells = {(pair["function"], pair["binlog_type"]): _cell(pair) for pair in pairs}
    rows = [[function, *(cells.get((function, each)) for each in types)] for function in functions]
    used = next(((pair["function"], pair["binlog_type"]) for pair in pairs if pair.get("used")), None)
    note = "Lost updates / rows that differ."
    headings = ["function", *map(format_name, types)]
    column = 0 if used is None else 1 + types.index(used[1])
    if all(len(set(row[1:])) == 1 for row in rows):
        rows, headings, column = [row[:2] for row in rows], ["function", f"{listed(headings[1:])}"], 1
    marked = None
    if used is not None:
        marked = (functions.index(used[0]), column)
        note += f" As configured: {used[0]}, {format_name(used[1])}."
    return Table("Functions and binlog types", headings, rows, marked, note)


def _cell(pair: Pair) -> str:
    if pair["lost_updates"] is None:
        return "not tried"
    return "stops" if pair["stops"] else f"{pair['lost_updates']:,} / {pair['differing_rows']:,}"


def _charts(tried: Sequence[Pair], whole: Sequence[Pair], without_function: Sequence[str]) -> Iterator[Chart]:
    if whole:
        bars = _bars(whole)
        names, shown_pairs = list(bars), list(bars.values())
        note = " ".join(_bar_notes(whole, bars, stops=any(pair["stops"] for pair in tried)))
        rejected = [pair["lost_rejected"] for pair in shown_pairs]
        rest = [pair["lost_updates"] - pair["lost_rejected"] for pair in shown_pairs]
        data = pa.table({"pair": names, "rejected": rejected, "overwritten and not rejected": rest})
        yield Chart("lost-updates", "Lost updates, in changes of users", Form.STACKED, data, "changes", note=note)
        unjudged = [
            sum(pair.get("differing_by_table", {}).get(table, 0) for table in without_function) for pair in shown_pairs
        ]
        judged = [pair["differing_rows"] - own for pair, own in zip(shown_pairs, unjudged, strict=True)]
        columns = {"in tables with a function": judged, "in tables without one": unjudged}
        data = pa.table({"pair": names, **{words: each for words, each in columns.items() if any(each)}})
        if data.num_columns > 1:
            title = "Rows that differ where the binlogs end"
            yield Chart("differing-rows", title, Form.STACKED, data, "rows", note=note)
    sizes = {pair["binlog_type"]: pair for pair in tried if pair["least_bytes"]}
    least, most = ({each: sizes[each][name] for each in _types(tried) if each in sizes} for name in _BYTES)
    yield from bytes_chart(least, "the recorded log", most)


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


def _bar_notes(whole: Sequence[Pair], bars: Mapping[str, Pair], *, stops: bool) -> Iterator[str]:
    if len(bars) < len(whole):
        yield f"Where no type is named, {listed(list(map(format_name, _types(whole))))} give the same."
    if stops:
        yield "Pairs under which an applier stops are left out."


def _tables(pairs: Sequence[Pair], tried: Sequence[Pair], document: Mapping[str, Any]) -> Iterator[Table]:
    columns = {
        "conflicts": "conflicts",
        "transactions with a rejected row": "rejected_transactions",
        "of these, applied in part": "partly_rejected_transactions",
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
    used = next((pair for pair in tried if pair.get("used")), None)
    configured = f" As configured: {used['function']}, {format_name(used['binlog_type'])}." if used else ""
    note = f"Of {shown(document['changes'])} changes, best first.{configured}{_conflicts_note(tried)}"
    yield Table("All figures", ("function", "type", *columns), _merged(rows), note=note)
    yield from usable_types_table(dict.fromkeys(pair["function"] for pair in pairs))
    whole = [pair for pair in tried if not pair["stops"]]
    yield from _lost_by_table(whole)
    yield from _by_table(whole, document.get("tables_without_function", ()))
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


def _merged(rows: Sequence[Sequence[object]]) -> list[list[object]]:
    """Return rows by function and type, with those in one that differ in their type alone."""
    types: dict[tuple[object, ...], list[str]] = {}
    for function, binlog_type, *figures in rows:
        types.setdefault((function, *figures), []).append(str(binlog_type))
    return [[row[0], ", ".join(sorted(each)), *row[1:]] for row, each in types.items()]


def _lost_by_table(tried: Sequence[Pair]) -> Iterator[Table]:
    """Yield the lost updates of each pair by table, where there are several."""
    tables = list(dict.fromkeys(name for pair in tried for name in pair.get("lost_by_table", {})))
    if len(tables) > 1:
        rows = [
            [pair["function"], pair["binlog_type"], *(pair.get("lost_by_table", {}).get(name) for name in tables)]
            for pair in tried
        ]
        yield Table("Lost updates by table", ("function", "type", *tables), _merged(rows))


def _by_table(tried: Sequence[Pair], without_function: Sequence[str]) -> Iterator[Table]:
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
        unjudged = any(table in without_function for table, _ in places)
        note = "A table without a function has conflicts where a rejected transaction changed it too." * unjudged
        yield Table("Conflicts by table", headings, _merged(rows), note=note)
