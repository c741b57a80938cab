"""
The figures of a pair over a whole History, and the pairs side by side.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Self

import attrs
import pyarrow as pa

from conflict.engine.ledger.resolution import Stop
from conflict.errors import ConfigurationError
from conflict.rules.counters import add_counters
from conflict.rules.decision import Cause
from conflict.whatif.comparing.bucket_figures import BucketFigures

_CAUSES = tuple(cause for cause in Cause if cause)
# One row per pair, best first. Where `error` is not NULL the pair was not tried, and the figures are NULL.
NOT_OFFERED = "no NDB server has it as a conflict function"
COMPARISON = pa.schema(
    [
        pa.field("rank", pa.int32()),
        pa.field("function", pa.string(), nullable=False),
        pa.field("binlog_type", pa.string(), nullable=False),
        pa.field("conflicts", pa.int64()),
        *(pa.field(cause.name.lower(), pa.int64()) for cause in _CAUSES),
        pa.field("rejected_transactions", pa.int64()),
        pa.field("partly_rejected_transactions", pa.int64()),
        pa.field("compared_changes", pa.int64()),
        pa.field("lost_updates", pa.int64()),
        pa.field("lost_rejected", pa.int64()),
        pa.field("lost_overwritten", pa.int64()),
        pa.field("differing_rows", pa.int64()),
        pa.field("refreshes", pa.int64()),
        pa.field("reflected", pa.int64()),
        pa.field("rows_by_appliers", pa.int64()),
        pa.field("changes_without_row", pa.int64()),
        pa.field("least_bytes", pa.int64()),
        pa.field("most_bytes", pa.int64()),
        pa.field("caveat", pa.string()),
        pa.field("stops", pa.string()),
        pa.field("error", pa.string()),
    ]
)


@attrs.frozen
class Figures:
    """
    The figures of a pair.

    Attributes:
        counters: Per cluster, its status counters.
        tables: Per applying cluster and table, operations by verdict and cause, and refreshed rows.
        rejected_transactions: Users' transactions with a rejected change; None if the log does not say which
            changes are of one transaction.
        partly_rejected_transactions: Of these, those with another change that was not rejected; None if not known.
        lost: Per cluster, its users' changes that were rejected, those that were overwritten, those of either kind.
        lost_by_table: Per table, users' changes that were lost.
        made: Per cluster, the changes of its users.
        compared: Per cluster, those of them that could be compared under every pair; the figures are of these.
        differing: Per table, rows that end different.
        rows: Per table, the rows that some change of the binlogs names.
        known_rows: Per table, those of them that are known at the end under every pair.
        reflected: Per cluster, rows that its applier reflected.
        logged: Per cluster, rows that its applier logged: applied, refreshed and reflected ones.
        rowless: Per cluster, users' updates and deletes that found no row: under other functions it was not there.
        stops: Per cluster, why its applier stopped.
        alone: How many changes could be compared under this pair; None if all could.
    """

    counters: Mapping[str, Mapping[str, int]]
    tables: Mapping[str, Mapping[str, Mapping[str, int]]]
    rejected_transactions: int | None
    partly_rejected_transactions: int | None
    lost: Mapping[str, tuple[int, int, int]]
    lost_by_table: Mapping[str, int]
    made: Mapping[str, int]
    compared: Mapping[str, int]
    differing: Mapping[str, int]
    rows: Mapping[str, int]
    known_rows: Mapping[str, int]
    reflected: Mapping[str, int]
    logged: Mapping[str, int]
    rowless: Mapping[str, int]
    stops: Mapping[str, Stop]
    alone: int | None = None

    def without_transactions(self) -> Self:
        """Return the figures of a log that does not say which changes are of one transaction."""
        return attrs.evolve(self, rejected_transactions=None, partly_rejected_transactions=None)

    @property
    def causes(self) -> dict[str, int]:
        """Conflicts by cause, over both appliers and all tables."""
        return {cause.name.lower(): self._total(cause.name) for cause in _CAUSES}

    @property
    def conflicts(self) -> int:
        """Operations that appliers rejected."""
        return self._total("rejected")

    @property
    def lost_updates(self) -> int:
        """Users' changes that were rejected or overwritten."""
        return sum(each[2] for each in self.lost.values())

    @property
    def differing_rows(self) -> int:
        """Rows that end different."""
        return sum(self.differing.values())

    @property
    def refreshes(self) -> int:
        """Rows that appliers refreshed."""
        return self._total("refreshes")

    @property
    def traffic(self) -> int:
        """Rows that appliers logged for the other cluster."""
        return self.refreshes + sum(self.reflected.values())

    def _total(self, name: str) -> int:
        return sum(table[name] for tables in self.tables.values() for table in tables.values())


@attrs.frozen
class ComparedPair:
    """
    A pair in a comparison.

    Attributes:
        function: The policy, as users write it.
        binlog_type: The binlog type, ``as logged``, or both.
        figures: Its figures; None if it was not tried.
        error: Why it was not tried.
        bytes: Least and most bytes of rows events in both clusters' binlogs; None if they are not known.
        used: Whether these are the functions and the formats of the run.
        caveat: Why no NDB server can be set so, or what the manual says against it; None if nothing is.
    """

    function: str
    binlog_type: str
    figures: Figures | None = None
    error: str | None = None
    bytes: tuple[int, int] | None = None
    used: bool = False
    caveat: str | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the row as a document; the figures of its columns in `COMPARISON`, and the rest."""
        document = {**self.cells(), "used": self.used}
        if self.figures is not None:
            figures = self.figures
            document |= {"counters": figures.counters, "tables": figures.tables, "lost_by_cluster": figures.lost}
            document |= {"changes_by_cluster": figures.made, "lost_by_table": figures.lost_by_table}
            document |= {"differing_by_table": figures.differing, "rows_by_table": figures.rows}
            document |= {"compared_by_cluster": figures.compared, "known_rows_by_table": figures.known_rows}
            document["compared_under_this_pair"] = (
                sum(figures.made.values()) if figures.alone is None else figures.alone
            )
        return document

    def cells(self) -> dict[str, Any]:
        """Return the row of `COMPARISON`, without its rank."""
        cells: dict[str, Any] = {name: None for name in COMPARISON.names if name != "rank"}
        cells |= {"function": self.function, "binlog_type": self.binlog_type, "error": self.error}
        cells["caveat"] = self.caveat
        if self.bytes is not None:
            cells["least_bytes"], cells["most_bytes"] = self.bytes
        figures = self.figures
        if figures is None:
            return cells
        rejected, overwritten = (sum(each[place] for each in figures.lost.values()) for place in (0, 1))
        stopping: dict[str, list[str]] = {}
        for name, stop in figures.stops.items():
            stopping.setdefault(f"error {stop.error}, {stop.message}", []).append(name)
        stops = [f"{' and '.join(names)}: {message}" for message, names in stopping.items()]
        return {
            **cells,
            **figures.causes,
            "conflicts": figures.conflicts,
            "rejected_transactions": figures.rejected_transactions,
            "partly_rejected_transactions": figures.partly_rejected_transactions,
            "compared_changes": sum(figures.compared.values()),
            "lost_updates": figures.lost_updates,
            "lost_rejected": rejected,
            "lost_overwritten": overwritten,
            "differing_rows": figures.differing_rows,
            "refreshes": figures.refreshes,
            "reflected": sum(figures.reflected.values()),
            "rows_by_appliers": sum(figures.logged.values()),
            "changes_without_row": sum(figures.rowless.values()),
            "stops": "; ".join(stops) or None,
        }


CRITERIA: dict[str, Callable[[Figures], int]] = {
    "lost-updates": lambda figures: figures.lost_updates,
    "divergence": lambda figures: figures.differing_rows,
    "traffic": lambda figures: figures.traffic,
}


def parse_criteria(text: str) -> tuple[str, ...]:
    """
    Return the criteria that a text lists, the first one first.

    Raises:
        ConfigurationError: One of them is not known.
    """
    found = tuple(dict.fromkeys(each.strip() for each in text.split(",") if each.strip()))
    unknown = [each for each in found if each not in CRITERIA]
    if unknown or not found:
        message = f"--prefer {text}: give some of {', '.join(CRITERIA)}, the most important first"
        raise ConfigurationError(message)
    return found


def ranked(rows: Sequence[ComparedPair], criteria: Sequence[str]) -> list[ComparedPair]:
    """
    Return rows best first; those that something speaks against come after them, then those that stop an applier.

    Those that were not tried come last.
    """

    def key(row: ComparedPair) -> tuple[int, ...]:
        if row.figures is None:
            return (3,)
        least = 0 if row.bytes is None else row.bytes[0]
        return (
            2 if row.figures.stops else int(row.caveat is not None),
            *(CRITERIA[name](row.figures) for name in criteria),
            least,
        )

    return sorted(rows, key=key)


def add_figures(
    parts: Sequence[BucketFigures],
    transactions: Mapping[str, Mapping[str, int]],
    rejected: tuple[int, int],
    stops: Mapping[str, Stop],
) -> Figures:
    """
    Add up the figures of all buckets.

    Args:
        parts: The buckets.
        transactions: Per cluster, the counters of transactions in conflict.
        rejected: How many transactions had a change rejected, and how many of these only a part.
        stops: Per cluster, why its applier stopped.
    """
    names = list(parts[0].counters)
    every = [*(part.counters for part in parts), transactions]
    tables = {
        name: {table: dict(_sum([part.tables[name][table] for part in parts])) for table in parts[0].tables[name]}
        for name in names
    }
    rejected_transactions, partly = rejected
    added = (
        *("lost_by_table", "made", "compared", "differing", "rows", "known_rows"),
        *("reflected", "logged", "rowless"),
    )
    alone = [each.alone for each in parts if each.alone is not None]
    return Figures(
        counters={name: add_counters(counters.get(name, {}) for counters in every) for name in names},
        tables=tables,
        rejected_transactions=rejected_transactions,
        partly_rejected_transactions=partly,
        lost={name: _lost([part.lost[name] for part in parts]) for name in names},
        stops=dict(stops),
        alone=sum(alone) if alone else None,
        **{field: dict(_sum([getattr(part, field) for part in parts])) for field in added},
    )


def _sum(parts: Sequence[Mapping[str, int]]) -> Counter[str]:
    total: Counter[str] = Counter()
    for part in parts:
        total.update(part)
    return total


def _lost(parts: Sequence[tuple[int, int, int]]) -> tuple[int, int, int]:
    rejected, overwritten, either = (sum(each) for each in zip(*parts, strict=True))
    return rejected, overwritten, either
