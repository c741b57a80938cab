"""
What a report says of a comparison of functions and formats.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

from conflict.reporting.bytes_by_type import bytes_chart
from conflict.reporting.parts import Chart, Form, Part, Table, shown

__all__ = ["compare_part"]

Pair = Mapping[str, Any]
_OURS = "NDB$"  # begins the names of conflict functions; policies of other products have others
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
        tuple(_answer(document, whole, tried)),
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


def _answer(document: Mapping[str, Any], whole: Sequence[Pair], tried: Sequence[Pair]) -> Iterator[str]:
    changes = document["changes"]
    if not whole:
        yield "No pair of a function and a binlog type can be used: each stops an applier or could not be tried."
        return
    ours = [pair for pair in whole if pair["function"].startswith(_OURS) or pair.get("used")] or list(whole)
    best = min(ours, key=lambda pair: (pair["lost_updates"], pair["differing_rows"]))
    equal = dict.fromkeys(pair["function"] for pair in ours if pair["lost_updates"] == best["lost_updates"])
    yield (
        f"{_listed(list(equal))} loses least: {_of(best['lost_updates'], changes)} "
        f"({best['lost_rejected']:,} rejected, {best['lost_overwritten']:,} overwritten), "
        f"and {_rows(best['differing_rows'])} different on the two clusters."
    )
    other = min(whole, key=lambda pair: pair["lost_updates"])
    if other["lost_updates"] < best["lost_updates"]:
        yield (
            f"{other['function']}, which is no conflict function of NDB, would lose "
            f"{_of(other['lost_updates'], changes)}, and {_rows(other['differing_rows'])} different."
        )
    equal_ends = min(ours, key=lambda pair: (pair["differing_rows"], pair["lost_updates"]))
    if equal_ends["differing_rows"] < best["differing_rows"]:
        yield (
            f"Fewest rows end different with {equal_ends['function']}: {equal_ends['differing_rows']:,}, "
            f"at {_of(equal_ends['lost_updates'], changes)} lost."
        )
    used = next((pair for pair in tried if pair.get("used")), None)
    if used is not None and used["function"] not in equal:
        yield (
            f"The configured {used['function']} loses {_of(used['lost_updates'], changes)}, "
            f"and {_rows(used['differing_rows'])} different."
        )
    sizes = {pair["binlog_type"]: pair for pair in whole if pair["least_bytes"]}
    if sizes:
        least = min(sizes.values(), key=lambda pair: pair["most_bytes"])
        others = [f"type {name} {_bytes(pair)}" for name, pair in sizes.items() if pair is not least]
        compared = f"; {', '.join(others)}" if others else ""
        yield f"Rows events in the binlogs take {_bytes(least)} with binlog type {least['binlog_type']}{compared}."


def _of(count: int, changes: int) -> str:
    share = f" ({100 * count / changes:.1f} %)" if changes else ""
    return f"{count:,} of {changes:,} changes{share}"


def _rows(count: int) -> str:
    return {0: "no row ends", 1: "1 row ends"}.get(count, f"{count:,} rows end")


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} or {names[-1]}"


def _bytes(pair: Pair) -> str:
    least, most = pair["least_bytes"], pair["most_bytes"]
    return f"{least:,} bytes" if least == most else f"{least:,} to {most:,} bytes"


def _matrix(pairs: Sequence[Pair]) -> Table:
    """Return lost updates and rows that differ by function and binlog type."""
    functions, types = (list(dict.fromkeys(pair[name] for pair in pairs)) for name in ("function", "binlog_type"))
    cells = {(pair["function"], pair["binlog_type"]): _cell(pair) for pair in pairs}
    used = next((pair["function"] for pair in pairs if pair.get("used")), None)
    rows = [[function, *(cells.get((function, each)) for each in types)] for function in functions]
    note = "Lost updates / rows that end different." + (" Marked: what the run has." if used in functions else "")
    headings = ("function", *(f"type {each}" if each.isdigit() else each for each in types))
    return Table(
        "Functions and binlog types", headings, rows, functions.index(used) if used in functions else None, note
    )


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
    marked = next((number for number, pair in enumerate(tried) if pair.get("used")), None)
    note = f"Of {shown(changes)} changes, best first. Users' updates and deletes that found no row weaken the figures."
    yield Table("All figures", ("function", "type", *columns), rows, marked, note)
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
