"""
What can be wrong with the values of a column that a conflict function compares, and where it is.

NDB$MAX and its relatives apply a change whose value is greater than that of the row. So a value must rise with every
change of a row, must never be set twice by different clusters, and must not come from a clock that is ahead.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Any

import attrs
import numpy as np
import pyarrow as pa

from conflict.operating.audit.changes import Bool, ColumnChanges, Int64

_UNITS = {"seconds": 1, "milliseconds": 1_000, "microseconds": 1_000_000, "nanoseconds": 1_000_000_000}  # in a second
_MICROSECONDS = 1_000_000
_NEAR = 30 * 86_400  # seconds: most values are so close to their commits, if they are moments


class Kind(StrEnum):
    """What is wrong."""

    FALLS = "falls"
    UNCHANGED = "unchanged"
    TIE = "tie"
    NULL = "null"
    AHEAD = "ahead"


@attrs.frozen
class Example:
    """
    A change.

    Attributes:
        cluster: The cluster whose user made it.
        key: Its row, as text.
        value: The value that it sets; None for NULL, or if it leaves the column.
        before: The value before it; None if that is not known.
        file: The binlog.
        position: The position of its event.
        row: Its number in the event.
        epoch: Its epoch.
    """

    cluster: str
    key: str
    value: int | None
    before: int | None
    file: str
    position: int
    row: int
    epoch: int | None


@attrs.frozen
class AuditFinding:
    """
    What is wrong with some values of a column.

    Attributes:
        table: ``database.table``.
        column: The column.
        cluster: The cluster whose users made the changes; of a tie, the first one.
        kind: What is wrong.
        count: How many changes; of ties, how many values of rows.
        first: The first of them; of ties, the change on each cluster.
        longest_ms: By how much the worst one is ahead; None of other kinds.
        unit: The unit of the moments that are ahead; None of other kinds.
    """

    table: str
    column: str
    cluster: str
    kind: Kind
    count: int
    first: tuple[Example, ...]
    longest_ms: float | None = None
    unit: str | None = None

    def document(self) -> dict[str, Any]:
        """Return the same as a document."""
        return {**attrs.asdict(self), "kind": self.kind.value}


@attrs.frozen
class ClockOf:
    """
    The clock of a cluster.

    Attributes:
        ahead: By how many microseconds it is taken to be ahead of that of the first cluster.
        within: By how many this can be wrong; None if that is not known.
    """

    ahead: int = 0
    within: int | None = 0


def findings_of(
    table: str, column: str, changes: Sequence[ColumnChanges], clocks: Mapping[str, ClockOf], *, rises: bool = True
) -> Iterator[AuditFinding]:
    """
    Yield what is wrong with the values of a table's column.

    Args:
        table: ``database.table``.
        column: The column.
        changes: The changes of the table in the log of each cluster.
        clocks: The clocks of the clusters by which commits have their times.
        rises: Whether the function applies greater values, so that values must rise; NDB$OLD asks for equal ones.
    """
    for here in changes:
        made = here.own & here.writes
        again = made & here.updates & here.before_known
        for kind, chosen in (
            (Kind.FALLS, rises & again & here.known & ~here.null & (here.value < here.before)),
            (Kind.UNCHANGED, made & here.updates & ((again & (here.value == here.before)) | ~here.given)),
            (Kind.NULL, made & here.null),
        ):
            if chosen.any():
                yield AuditFinding(table, column, here.cluster, kind, int(chosen.sum()), (_first(here, chosen),))
        if rises:
            yield from _ahead(table, column, here, clocks.get(here.cluster, ClockOf()))
    for number, here in enumerate(changes):
        for there in changes[number + 1 :]:
            yield from _ties(table, column, here, there)


def _ahead(table: str, column: str, here: ColumnChanges, clock: ClockOf) -> Iterator[AuditFinding]:
    """Yield what is ahead of its commit, if the values are moments and the difference of clocks is known."""
    committed = here.places["committed"].cast(pa.int64()).fill_null(0).to_numpy()
    set_here = here.own & here.given & ~here.null & (committed > 0)
    if not set_here.any() or clock.within is None:
        return
    for unit, in_second in _UNITS.items():
        seconds = here.value / in_second
        if np.median(np.abs(seconds[set_here] - committed[set_here] / _MICROSECONDS)) > _NEAR:
            continue
        by_first = committed - clock.ahead
        # In whole numbers, because a float has too few digits for a moment; what is far off must not overflow.
        step = max(_MICROSECONDS // in_second, 1)
        whole = np.minimum(here.value, np.uint64((1 << 62) // step)).astype(np.int64)
        moment = whole * step // max(in_second // _MICROSECONDS, 1)
        ahead: Int64 = moment - by_first
        chosen = set_here & (ahead > clock.within)
        if chosen.any():
            longest = int(ahead[chosen].max()) / 1000
            yield AuditFinding(
                table, column, here.cluster, Kind.AHEAD, int(chosen.sum()), (_first(here, chosen),), longest, unit
            )
        return


def _ties(table: str, column: str, here: ColumnChanges, there: ColumnChanges) -> Iterator[AuditFinding]:
    """Yield the values that changes of the same row set on both clusters."""
    sides = [_set_values(each) for each in (here, there)]
    both = sides[0].join(sides[1], ["key", "value"], join_type="inner", right_suffix="_there")
    if len(both):
        first = both.sort_by("place").slice(0, 1).to_pylist()[0]
        examples = (_example(here, first["number"]), _example(there, first["number_there"]))
        yield AuditFinding(table, column, here.cluster, Kind.TIE, len(both), examples)


def _set_values(changes: ColumnChanges) -> pa.Table:
    """Return the values that users of a cluster set, each once per row, with the first change that set it."""
    kept = changes.updates & changes.before_known & (changes.value == changes.before)
    chosen = np.flatnonzero(changes.own & changes.given & ~changes.null & ~kept)
    table = pa.table(
        {
            "key": changes.places["key"].take(pa.array(chosen)),
            "value": changes.value[chosen],
            "place": _log_order(changes)[chosen],
            "number": chosen,
        }
    ).sort_by("place")
    found = table.group_by(["key", "value"], use_threads=False).aggregate([("place", "first"), ("number", "first")])
    return found.rename_columns({"place_first": "place", "number_first": "number"})


def _log_order(changes: ColumnChanges) -> Int64:
    """Return the place of each change among all in the order of the log."""
    places = changes.places
    epoch = places["epoch"].fill_null(0).to_numpy()
    order = np.lexsort((places["row"].to_numpy(), places["position"].to_numpy(), epoch))
    found = np.empty(len(order), np.int64)
    found[order] = np.arange(len(order))
    return found


def _first(changes: ColumnChanges, chosen: Bool) -> Example:
    """Return the first of some changes in the order of the log."""
    numbers = np.flatnonzero(chosen)
    return _example(changes, int(numbers[np.argmin(_log_order(changes)[numbers])]))


def _example(changes: ColumnChanges, number: int) -> Example:
    place = changes.places.slice(number, 1).to_pylist()[0]
    given = bool(changes.given[number]) and not changes.null[number]
    return Example(
        changes.cluster,
        place["key"].decode(errors="replace"),
        int(changes.value[number]) if given else None,
        int(changes.before[number]) if changes.before_known[number] else None,
        place["file"],
        place["position"],
        place["row"],
        place["epoch"],
    )
