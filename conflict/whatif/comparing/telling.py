"""
What is told of a comparison, from its document: the pairs best first, by cause and by table, and which one is best.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

from conflict.results.doubts import doubts_of, is_contradicted, start_words
from conflict.rules.decision import Cause
from conflict.telling.bytes_by_type import bytes_chart, format_name
from conflict.telling.shown_text import counted, listed, percent
from conflict.telling.value import Chart, Form, Table, Telling
from conflict.whatif.comparing.figures import NOT_OFFERED
from conflict.whatif.comparing.pairs import MEANINGS, OVERWRITE

Document = Mapping[str, Any]
Pair = Mapping[str, Any]
_LOST = (
    "Lost updates are users' changes that were rejected, plus others that a change overwrote which had not seen them. "
    "A rejected delete of a row that was gone already is a conflict, and loses nothing."
)
_ENOUGH = 50  # one in so many changes has to be compared for an answer
_RANKED = ("lost_updates", "differing_rows")
_DRAWN = (*_RANKED, "lost_rejected", "refreshes", "reflected")  # in bars
_BYTES = ("least_bytes", "most_bytes")
_MEGABYTE = 1_000_000
_CAUSES = {
    Cause.ROW_DOES_NOT_EXIST: "no row",
    Cause.ROW_ALREADY_EXISTS: "row exists",
    Cause.ROW_IN_CONFLICT: "row in conflict",
    Cause.TRANS_IN_CONFLICT: "trans in conflict",
}
_BESIDE = {"refreshes": "rows refreshed", "reflected": "rows reflected", "changes_without_row": "changes without a row"}


def tell_comparison(document: Document) -> Telling:
    """Return what is told of a document of `compare`."""
    checks, pairs = document.get("checks"), document["pairs"]
    light = [] if checks is None else [str(each) for each in doubts_of(checks) if not each.serious]
    doubts = [str(each) for each in document.get("doubts") or ()]
    tried = [pair for pair in pairs if pair["lost_updates"] is not None]
    return Telling(
        "Conflict functions compared",
        _best(document, tried),
        tuple(_sentences(document)),
        tuple(_tables(document, tried)),
        tuple(_charts(tried, document.get("tables_without_function", ()))),
        tuple(each for each in doubts if each not in light),
        tuple(each for each in doubts if each in light),
    )


def best_pairs(tried: Sequence[Pair]) -> list[Pair]:
    """
    Return the pairs that lose least and stop no applier, of those that leave fewest rows different.

    Pairs that no server can be set to, or that the manual advises against, count only if there are no others.
    """
    whole = [pair for pair in tried if not pair["stops"]]
    offered = [pair for pair in whole if not pair.get("caveat")] or whole
    least = min(([pair[name] for name in _RANKED] for pair in offered), default=None)
    return [pair for pair in offered if [pair[name] for name in _RANKED] == least]


def _best(document: Document, tried: Sequence[Pair]) -> str:
    """Return which functions lose least; nothing where there is no choice, or the binlogs contradict the run."""
    checks, best = document.get("checks"), best_pairs(tried)
    offered = [pair for pair in tried if not pair["stops"] and not pair.get("caveat")]
    if len(offered) < 2 or (checks is not None and (is_contradicted(checks) or checks["unrelated_binlogs"])):
        return ""
    names = list(dict.fromkeys(pair["function"] for pair in best))
    lost, changes, every = best[0]["lost_updates"], _compared(document), document["changes"]
    if every and not changes:
        return ""
    if is_too_little(changes, every):
        return f"Which function loses least is not known: {changes:,} of {every:,} changes could be compared."
    share = f" ({percent(lost / changes)})" if changes else ""
    rest = f"; the other {every - changes:,} could not be compared" if changes < every else ""
    least = f"{lost:,} of {changes:,}{share}{rest}"
    return f"Of what NDB offers, {listed(names)} lose{'s' * (len(names) == 1)} least: {least}."


def is_too_little(compared: int, changes: int) -> bool:
    """Whether so few of the changes could be compared that the others can turn every answer round."""
    return compared * _ENOUGH < changes


def _compared(document: Document) -> int:
    """Return how many changes the figures are of."""
    return int(document.get("compared_changes", document["changes"]))


def _from_the_middle(document: Document) -> Iterator[str]:
    """Yield how many changes could not be compared, where the logs start in the middle."""
    starts = document.get("starts_in_the_middle")
    if starts:
        changes, compared = document["changes"], _compared(document)
        rest = f"The figures are of the other {compared:,}" if compared else "There is none left to compare"
        yield (
            f"{start_words(starts)}: of {counted(changes, 'change')} {changes - compared:,} could not be compared, "
            "because what becomes of them under one of the pairs can hang on rows from before the logs. "
            f"{rest}; rows differ only where both are known at the end."
        )


def _left_out(document: Document) -> Iterator[str]:
    """Yield how many changes are not compared because their rows are left out."""
    left_out = document.get("left_out")
    if left_out:
        changes, compared = document["changes"], _compared(document)
        yield (
            f"Of {counted(changes, 'change')} {changes - compared:,} are not compared, because what would have become "
            f"of their rows is not known: {'; '.join(left_out)}."
        )


def _sentences(document: Document) -> Iterator[str]:
    """Yield what the policies do that are no conflict functions, and what was taken for granted."""
    yield from _from_the_middle(document)
    yield from _left_out(document)
    others = [
        pair["function"]
        for pair in document["pairs"]
        if pair.get("caveat") == NOT_OFFERED or pair["function"] == OVERWRITE
    ]
    yield from (f"{name}: {text}." for name, text in MEANINGS.items() if any(name in each for each in others))
    yield from document.get("notes", ())


# -----------------------------------------------------------------------------------------------------------
# Tables
# -----------------------------------------------------------------------------------------------------------


def _tables(document: Document, tried: Sequence[Pair]) -> Iterator[Table]:
    yield _losses(document, tried)
    whole = [pair for pair in tried if not pair["stops"]]
    causes = (*_CAUSES.values(), "trans. rejected (in part)")
    yield _by_pair("Conflicts by cause", causes, tried, _causes)
    if any(pair[name] for pair in whole for name in _BESIDE):
        title = "Rows that appliers sent back, and changes of users that found no row"
        yield _by_pair(title, tuple(_BESIDE.values()), whole, lambda pair: [pair[name] for name in _BESIDE])
    without = document.get("tables_without_function", ())
    for name, title in {"lost_by_table": "Lost updates", "differing_by_table": "Rows that differ"}.items():
        yield from _by_place(f"{title} by table", whole, {id(pair): pair.get(name, {}) for pair in whole}, without)
    yield from _by_place("Conflicts by table", whole, {id(pair): _rejected(pair) for pair in whole}, without)
    reasons: dict[tuple[str, str], list[str]] = {}
    for pair in document["pairs"]:
        why = pair["error"] or pair["stops"]
        if why:
            reasons.setdefault((pair["binlog_type"], why), []).append(pair["function"])
    rows = [[", ".join(names), number, why] for (number, why), names in reasons.items()]
    if rows:
        yield Table("Why pairs were not tried, or stop", ("function", "type", "reason"), rows, texts=3)


def _losses(document: Document, tried: Sequence[Pair]) -> Table:
    """Return the pairs, best first; the bytes of the log where types differ."""
    types = _types(tried)
    headings = ["function", "lost updates", "= rejected", "+ others", "rows differ", "rows sent"]
    rows = []
    for pair in tried:
        lost, rejected = pair["lost_updates"], pair["lost_rejected"]
        sent = pair["refreshes"] + pair["reflected"]
        rows.append([_named(pair), lost, rejected, lost - rejected, pair["differing_rows"], sent])
    of_type = f" of binlog type {types[0]}" if len(types) == 1 else ""
    if not of_type:
        headings = [headings[0], "type", *headings[1:], "log, MB"]
        rows = [
            [row[0], pair["binlog_type"], *row[1:], _megabytes(pair)] for row, pair in zip(rows, tried, strict=True)
        ]
    used = next((number for number, pair in enumerate(tried) if pair.get("used")), None)
    changes, compared = document["changes"], _compared(document)
    part = f"{compared:,} of " * (compared < changes)
    shown = f"{part}{counted(changes, 'change')}{of_type} under {counted(len(tried), 'pair')}"
    title = f"{shown}, best first by {', '.join(document['prefer'])}"
    note = "\n".join(_legend(document, tried, marked=used is not None))
    return Table(title, headings, rows, None if used is None else (used, None), note, texts=1 if of_type else 2)


def _legend(document: Document, tried: Sequence[Pair], *, marked: bool) -> Iterator[str]:
    yield _LOST
    if marked:
        checks = document.get("checks")
        contradicted = ", which the binlogs contradict" * (checks is not None and is_contradicted(checks))
        yield f"* the functions and the format of the run{contradicted}."
    for mark, caveat in sorted(dict.fromkeys((_mark(pair), pair["caveat"]) for pair in tried if pair.get("caveat"))):
        yield f"{mark} {caveat}."
    if any(pair["stops"] for pair in tried):
        yield "(stops): an applier stops; the figures are those up to there."


def _mark(pair: Pair) -> str:
    caveat = pair.get("caveat")
    return "" if not caveat else "†" if caveat == NOT_OFFERED else "‡"


def _named(pair: Pair) -> str:
    return " ".join(filter(None, [pair["function"], _mark(pair), "(stops)" if pair["stops"] else ""]))


def _megabytes(pair: Pair) -> str:
    if pair["least_bytes"] is None:
        return "-"
    ends = dict.fromkeys(f"{pair[name] / _MEGABYTE:,.1f}" for name in ("least_bytes", "most_bytes"))
    return " to ".join(ends)


def _causes(pair: Pair) -> list[object]:
    rejected, partly = pair["rejected_transactions"], pair["partly_rejected_transactions"]
    transactions = "?" if rejected is None else f"{rejected:,} ({partly:,})"
    return [*(pair[cause.name.lower()] for cause in _CAUSES), transactions]


def _by_pair(
    title: str,
    headings: Sequence[str],
    pairs: Sequence[Pair],
    cells: Callable[[Pair], Sequence[object]],
) -> Table:
    """Return a table with a row per pair; types that make no difference share one."""
    types: dict[tuple[object, ...], list[str]] = {}
    for pair in pairs:
        name = f"{pair['function']}{' (stops)' * bool(pair['stops'])}"
        types.setdefault((name, *cells(pair)), []).append(pair["binlog_type"])
    rows = [[row[0], ", ".join(sorted(own)), *row[1:]] for row, own in types.items()]
    if len({row[1] for row in rows}) == 1:  # the first table has the types
        return Table(title, ("function", *headings), [[row[0], *row[2:]] for row in rows])
    return Table(title, ("function", "type", *headings), rows, texts=2)


def _by_place(
    title: str, pairs: Sequence[Pair], counts: Mapping[int, Mapping[str, int]], without: Sequence[str]
) -> Iterator[Table]:
    """Yield a table with a column per table of the schema, if several have something."""
    places = list(dict.fromkeys(place for own in counts.values() for place, count in own.items() if count))
    if len(places) > 1 or any(place in without for place in places):
        names = [f"{place}{' (no function)' * (place.partition(' on ')[0] in without)}" for place in places]
        yield _by_pair(title, names, pairs, lambda pair: [counts[id(pair)].get(place) for place in places])


def _rejected(pair: Pair) -> dict[str, int]:
    """Return the conflicts of a pair by table and applier."""
    return {
        f"{table} on {applier}": each["rejected"]
        for applier, tables in pair.get("tables", {}).items()
        for table, each in tables.items()
    }


# -----------------------------------------------------------------------------------------------------------
# Charts
# -----------------------------------------------------------------------------------------------------------


def _charts(tried: Sequence[Pair], without_function: Sequence[str]) -> Iterator[Chart]:
    whole = [pair for pair in tried if not pair["stops"]]
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


def _types(pairs: Sequence[Pair]) -> list[str]:
    """Return the binlog types of some pairs, in order."""
    return sorted({pair["binlog_type"] for pair in pairs}, key=lambda name: (len(name), name))
