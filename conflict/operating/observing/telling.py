"""
What real servers show of conflicts beside a result: what is told of it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from conflict.operating.observing.counters import CounterPair
from conflict.operating.observing.differences import Compared
from conflict.operating.observing.exceptions_rows import RowDifference
from conflict.results.doubts import Doubt, alarms_of, warnings_of
from conflict.telling.shown_text import counted, one_line
from conflict.telling.value import Entry, Listing, Table, Telling, Tone, Toned


def tell_observed(found: Compared, top: int, doubts: Sequence[Doubt] = ()) -> Telling:
    """
    Return what servers show beside a result.

    Args:
        found: Both.
        top: Rows that differ, at most.
        doubts: What makes the result doubtful.
    """
    differing = sum(each.differs for each in found.counters) + len(found.differences)
    compared = f"{counted(len(found.counters), 'counter')} and {counted(sum(n for n, _ in found.rows.values()), 'row')}"
    headline = f"The servers show what the result derived: {compared} of exceptions tables."
    if differing:
        rest = f"{found.unexplained:,} of them without an explanation" if found.unexplained else "all explained"
        headline = f"{counted(differing, 'difference')} among {compared} of exceptions tables of the servers, {rest}."
    shown = [each for each in found.differences if not each.renumbered]
    left = len(shown) - top
    more = [Entry("", f"and {counted(left, 'more row')}; --json has all, --top shows more")] if left > 0 else []
    rows = Listing("Rows that differ", [*map(_row, shown[:top]), *more, *_renumbered(found)])
    return Telling(
        "What servers show",
        headline,
        found.notes,
        [*_counters(found), *_tables(found)],
        alarms=alarms_of(doubts),
        warnings=warnings_of(doubts),
        listings=[rows] if found.differences else [],
    )


def _counters(found: Compared) -> Iterator[Table]:
    """Yield the counters that are not 0 on both sides."""
    shown = [each for each in found.counters if each.observed or each.derived]
    if shown:
        rows = [
            (_node(each), each.counter, each.observed, _toned(each.derived, each), each.why or "") for each in shown
        ]
        explained = any(each.why for each in shown)
        headings = ("cluster", "counter", "server", "derived", *(["why"] if explained else []))
        note = "Other counters that the servers show are 0 on both sides." if len(shown) < len(found.counters) else ""
        yield Table("Counters", headings, [row[: len(headings)] for row in rows], note=note, texts=2)


def _node(pair: CounterPair) -> str:
    return pair.cluster if pair.server is None else f"{pair.cluster}, server {pair.server}"


def _toned(value: int, pair: CounterPair) -> object:
    if not pair.differs:
        return value
    return Toned(value, Tone.DOUBTFUL if pair.why else Tone.BAD)


def _tables(found: Compared) -> Iterator[Table]:
    if found.rows:
        rows = [
            (
                cluster,
                table,
                *numbers,
                sum((each.cluster, each.table) == (cluster, table) for each in found.differences),
            )
            for (cluster, table), numbers in found.rows.items()
        ]
        headings = ("cluster", "exceptions table", "server", "derived", "differ")
        yield Table("Rows of exceptions tables", headings, rows, texts=2)


def _renumbered(found: Compared) -> Iterator[Entry]:
    """Yield how many rows differ in their numbers alone, by table and by what explains it."""
    groups = Counter((each.cluster, each.table, each.why) for each in found.differences if each.renumbered)
    for (cluster, table, why), rows in groups.items():
        head = f"{table}: {counted(rows, 'row')} with another number alone, its fourth column"
        yield Entry(cluster, head, _because(why), Tone.DOUBTFUL if why else Tone.BAD)


def _because(why: str) -> list[str]:
    return [f"Why: {why}."] if why else []


def _row(found: RowDifference) -> Entry:
    lines = [f"server: {_values(found.observed)}", f"derived: {_values(found.derived)}"]
    head = f"{found.table} ({found.key})"
    return Entry(
        found.cluster,
        one_line(head),
        [*map(one_line, lines), *_because(found.why)],
        Tone.DOUBTFUL if found.why else Tone.BAD,
    )


def _values(row: Mapping[str, str | None] | None) -> str:
    if row is None:
        return "no such row"
    return ", ".join(f"{name} = {'NULL' if value is None else value}" for name, value in row.items())
