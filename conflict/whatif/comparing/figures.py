"""
The figures of a pair over a whole History, and the pairs side by side.

What a comparison takes for granted, and which of its figures that can change.

What speaks against deploying a pair: no NDB server has its policy, or the manual advises against it in its format.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Self

import attrs
import pyarrow as pa

from conflict.checking.deployment import Deployment, TableLogging
from conflict.checking.findings import Code
from conflict.checking.reasons import reasons_of
from conflict.config.arguments import DeploymentPolicy
from conflict.engine.ledger.resolution import Stop
from conflict.errors import ConfigurationError
from conflict.results.run_document import RunDocument
from conflict.rules.counters import COUNTED_AGAIN, DELETE_DELETE, TRANSACTION_ROW_CONFLICTS, add_counters
from conflict.rules.decision import Cause
from conflict.rules.functions import FUNCTIONS
from conflict.rules.table_setup import TableSetup
from conflict.telling.shown_text import counted
from conflict.whatif.comparing.bucket_figures import BucketFigures
from conflict.whatif.comparing.pairs import Pair, function_on
from ndb_formats.rules.update_format import BINLOG_TYPES, effective_format


def caveat_of(pair: Pair, by_cluster: Mapping[str, Mapping[str, TableSetup]]) -> str | None:
    """Return what speaks against a pair; None if nothing does."""
    policy = pair.policy
    specs = policy.specs
    if not policy.configured and (not specs or not specs <= set(FUNCTIONS)):
        return NOT_OFFERED
    return next(_advice(pair, by_cluster), None)


def _advice(pair: Pair, by_cluster: Mapping[str, Mapping[str, TableSetup]]) -> Iterator[str]:
    """Yield what the manual says against a function on a table in the format in which the table is logged."""
    for cluster, setups in by_cluster.items():
        for name, setup in setups.items():
            setup = _tried(pair, cluster, name, setup)  # noqa: PLW2901  # as it is under the pair
            number = next((row.number for row in reversed(BINLOG_TYPES) if row.format == setup.format), None)
            if setup.function is None or number is None:
                continue
            deployment = Deployment(setup.function, setup.table, TableLogging(number))
            for reason in reasons_of(deployment, DeploymentPolicy.MANUAL):
                if reason.kind is Code.POLICY:
                    yield f"advised against: {reason.sentence.removesuffix('.')}"


def _tried(pair: Pair, cluster: str, table: str, setup: TableSetup) -> TableSetup:
    """Return a table with the function and the format of a pair, if it has a function."""
    wanted = setup.format if pair.binlog_type is None else effective_format(pair.binlog_type)
    function = setup.function if pair.policy.configured else function_on(cluster, pair.policy, table)
    return attrs.evolve(setup, function=function, format=wanted)


Ranges = Mapping[str, tuple[int, int]]
# Counters that do not say how many operations are rejected: functions that judge transactions also reject operations
# that were in no conflict themselves, and count those elsewhere (docs/functions.md, "Counters").
_NO_REJECTIONS = {
    *(spec.counter for spec in FUNCTIONS if spec.transactional),
    *(TRANSACTION_ROW_CONFLICTS, DELETE_DELETE, *COUNTED_AGAIN),
}


def assumptions(resolved: RunDocument) -> Iterator[str]:
    """Yield what was assumed of the run as it is configured: places of epochs, and decisions that are open."""
    for name, epochs in resolved.assumed.items():
        if epochs:
            yield (
                f"{counted(epochs, 'epoch')} left no trace in the binlog of {name}; the first possible place is taken, "
                "which can count under functions that apply their changes."
            )
    summary = resolved.summary
    for name, decisions in summary.undecided.items():
        if decisions and resolved.starts:
            yield (
                f"The binlogs leave open how {name} judged {counted(decisions, 'operation')}, those on rows from "
                "before the logs among them; where it is open when a row was judged, it was at the commit."
            )
        elif decisions:
            ranges = {} if summary.contradicted else summary.counter_ranges.get(name, {})
            found = open_figures(summary.counters.get(name, {}), ranges)
            yield f"The binlogs leave open how {name} judged {counted(decisions, 'operation')}{found}."


def open_figures(counters: Mapping[str, int], ranges: Ranges) -> str:
    """
    Return which figures of the configured functions depend on open decisions, after “judged 41 operations”.

    Args:
        counters: The counters of an applier as they were counted.
        ranges: Least and greatest value of each counter that depends on open decisions.
    """
    if not ranges:
        return "; its figures under the configured functions are those of one of the possible answers"
    texts = [f"{name} ({least:,} to {most:,})" for name, (least, most) in ranges.items()]
    if ranges.keys() <= _NO_REJECTIONS:
        these = "this counter" if len(texts) == 1 else "these counters"
        return (
            f". Conflicts, lost updates and rows are the same either way; {these} of the configured functions can "
            f"differ: {', '.join(texts)}"
        )
    rejecting = {name: each for name, each in ranges.items() if name not in _NO_REJECTIONS}
    fewer = sum(counters.get(name, 0) - least for name, (least, _) in rejecting.items())
    more = sum(most - counters.get(name, 0) for name, (_, most) in rejecting.items())
    change = " or ".join([*([f"{fewer:,} fewer"] if fewer else []), *([f"{more:,} more"] if more else [])])
    return (
        f": under the configured functions conflicts, and lost updates with them, can be up to {change}; "
        f"counters: {', '.join(texts)}"
    )


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
