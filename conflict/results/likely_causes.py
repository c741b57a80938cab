"""
Why a binlog may show other effects than were derived. Computes docs/result.md, "Contradictions".

A contradiction says that something about the run is not as it was when the binlogs were written. What is missing from a
binlog, and which effects contradict each other, tells what that may be.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from enum import StrEnum

import attrs

from conflict.history.effects import Effect
from conflict.history.epochs import BinlogEpoch
from conflict.history.logged_images import columns_of_text
from conflict.history.marks import Mark
from conflict.history.role_changes import ShownChange
from conflict.results.contradictions import OTHER_VALUES, kind_text, marked_text
from conflict.rules.table_setup import TableSetup
from ndb_formats.rules.event_columns import EventColumns
from ndb_formats.rules.logged_images import fitting_types, may_log
from ndb_formats.schema.tables import Table

__all__ = [
    "CauseKind",
    "LikelyCause",
    "LogFacts",
    "changed_roles",
    "declared_types",
    "facts_of_epochs",
    "likely_causes",
    "of_mark",
]

_REFRESHES = (Effect.REFRESHED.name, Effect.REFRESHED_ABSENT.name)
_CHANGES = (Effect.CHANGED.name, Effect.DELETED.name)


class CauseKind(StrEnum):
    """What may not be as it was when the binlogs were written."""

    TRANSACTION_IDS = "ndb_log_transaction_id"
    APPLY_STATUS = "ndb_log_apply_status"
    REPLICA_UPDATES = "log_replica_updates"
    BINLOG_TYPE = "binlog_type"
    FUNCTION = "conflict function"
    ROLE = "role"
    ROLE_CHANGE = "role change"
    VALUES = "values"
    ROW_SLICE = "row slice"
    FILES = "files"


@attrs.frozen
class LogFacts:
    """
    What the binlog of one cluster holds.

    Attributes:
        changes: Row changes of its own.
        without_id: How many of these have no transaction id.
        applied: Epochs of other clusters that it shows.
        effects: Row changes of its applier.
        effects_apart: How many of these belong to no epoch of another cluster.
        replicates: Whether the cluster replicates from another one.
    """

    changes: int = 0
    without_id: int = 0
    applied: int = 0
    effects: int = 0
    effects_apart: int = 0
    replicates: bool = True

    @property
    def hides_epochs(self) -> bool:
        """Whether it shows changes of the other cluster, and nowhere the epochs that they came with."""
        return bool(self.effects) and not self.applied


@attrs.frozen
class LikelyCause:
    """
    One likely cause of contradictions.

    Attributes:
        cluster: The cluster whose binlog contradicts what was derived.
        kind: What may not be as it was.
        tables: The tables concerned; empty if all may be.
        sentence: What the binlog shows, and what follows.
    """

    cluster: str
    kind: CauseKind
    tables: tuple[str, ...]
    sentence: str


def facts_of_epochs(epochs: list[BinlogEpoch], *, replicates: bool = True) -> LogFacts:
    """Return what a binlog holds, of its epochs; `replicates`: its cluster does so from another one."""
    own = [change for epoch in epochs for transaction in epoch.transactions for change in transaction.changes]
    applying = {(epoch.number, applied.group) for epoch in epochs for applied in epoch.applied}
    effects = [(epoch.number, group) for epoch in epochs for group, _ in epoch.consequences]
    return LogFacts(
        len(own),
        sum(change.transaction_id is None for change in own),
        sum(len(epoch.applied) for epoch in epochs),
        len(effects),
        sum(place not in applying for place in effects),
        replicates,
    )


def likely_causes(
    contradictions: Mapping[str, Mapping[str, Mapping[str, int]]],
    facts: Mapping[str, LogFacts],
    setups: Mapping[str, Mapping[str, TableSetup]],
    stopped: Collection[str] = (),
) -> tuple[LikelyCause, ...]:
    """
    Return likely causes of contradictions, and appliers that left no trace, the most telling first.

    Args:
        contradictions: Per applying cluster and table, how many of each kind (see `conflict.results.contradictions`).
        facts: Per cluster, what its binlog holds.
        setups: Per cluster, its setup of each table.
        stopped: The clusters whose appliers stopped.
    """
    # A binlog that shows nothing of an applier is as it should be where the applier stopped before it changed anything.
    explained = {name for name in stopped if not contradictions.get(name)}
    options = [
        cause
        for name, own in facts.items()
        for cause in (*_options(name, own, facts), *_slices(name, setups))
        if cause.kind is not CauseKind.REPLICA_UPDATES or name not in explained
    ]
    if not contradictions or any(cause.kind is not CauseKind.ROW_SLICE for cause in options):
        return tuple(options)
    causes = [
        cause
        for name, tables in contradictions.items()
        for table, kinds in tables.items()
        for cause in _of_table(name, setups[name][table], kinds)
    ]
    merged: dict[tuple[str, CauseKind, str], list[str]] = {}
    for cause in causes:
        merged.setdefault((cause.cluster, cause.kind, cause.sentence), []).extend(cause.tables)
    found = [LikelyCause(name, kind, tuple(sorted(tables)), text) for (name, kind, text), tables in merged.items()]
    return (*options, *found) or tuple(_files(name) for name in contradictions)


def changed_roles(shown: Mapping[str, Sequence[ShownChange]]) -> Iterator[LikelyCause]:
    """Yield the roles that changed while the binlogs were written, of each cluster."""
    for name, changes in shown.items():
        for each in changes:
            sentence = (
                f"The role of {name} changed: it applied epoch {each.before} of the other cluster as {each.old}, and "
                f"epoch {each.first} as {each.new}. [[schedule.role]] of the run file can say after which epoch."
            )
            yield LikelyCause(name, CauseKind.ROLE_CHANGE, (), sentence)


def declared_types(
    images: Mapping[str, Mapping[str, Collection[str]]], setups: Mapping[str, Mapping[str, Sequence[TableSetup]]]
) -> Iterator[LikelyCause]:
    """
    Yield the tables whose images are not those of the binlog type, or the server options, that were declared.

    Args:
        images: Per cluster and table, which columns images carry (see `conflict.history.logged_images`).
        setups: Per cluster, its setups of each table, one after the other.
    """
    for name, tables in images.items():
        for table, texts in tables.items():
            events, known = [columns_of_text(text) for text in sorted(texts)], setups[name][table]
            setup = known[-1]
            logged = [each for each in events if any(may_log(one.format, one.table, each) for one in known)]
            misfit = next((each for each in events if each not in logged), None)
            if misfit is not None:
                fitting = ", ".join(map(str, fitting_types([one.table for one in known], events)))
                what = f"they are those of binlog type {fitting}" if fitting else "no binlog type logs all of them"
                sentence = (
                    f"The images of {table} in the binlog of {name} are not those of its declared binlog type, for "
                    f"example {_described(misfit, setup.table)}; {what}."
                )
                yield LikelyCause(name, CauseKind.BINLOG_TYPE, (table,), sentence)


def _described(event: EventColumns, table: Table) -> str:
    """Return an event in words."""
    images = [
        f"{len(columns)} of {len(table.columns)} columns {which}"
        for which, columns in (("before", event.before), ("after", event.after))
        if columns is not None
    ]
    return f"{event.operation.name} with {' and '.join(images)}"


def _options(name: str, own: LogFacts, facts: Mapping[str, LogFacts]) -> Iterator[LikelyCause]:
    """Yield the server options that must have been off, because of what a binlog lacks."""
    if own.without_id:
        yield LikelyCause(
            name,
            CauseKind.TRANSACTION_IDS,
            (),
            f"ndb_log_transaction_id was OFF on {name}: {own.without_id:,} of its {own.changes:,} row changes have no "
            "transaction id, so that changes cannot be divided into transactions, nor into those of its own and those "
            "of its applier.",
        )
    elif own.effects_apart:
        since = "" if own.applied else " all the time"
        yield LikelyCause(
            name,
            CauseKind.APPLY_STATUS,
            (),
            f"ndb_log_apply_status was OFF on {name}{since}: {own.effects_apart:,} row changes of its applier belong "
            "to no epoch of the other cluster; which epochs it applied when is taken from their contents.",
        )
    elif not own.effects and own.replicates and any(facts[other].changes for other in facts if other != name):
        yield LikelyCause(
            name,
            CauseKind.REPLICA_UPDATES,
            (),
            f"The binlog of {name} shows no change of its applier: log_replica_updates was OFF there, or the applier "
            "did not run, or came to nothing with all that it received.",
        )


def _slices(name: str, setups: Mapping[str, Mapping[str, TableSetup]]) -> Iterator[LikelyCause]:
    """Yield the tables of which a cluster logs a part of the rows."""
    for table, setup in setups[name].items():
        if setup.slices > 1:
            sentence = (
                f"{name} logs one of {setup.slices} slices of {table}; what happened to its other rows is not known."
            )
            yield LikelyCause(name, CauseKind.ROW_SLICE, (table,), sentence)


def _of_table(name: str, setup: TableSetup, kinds: Mapping[str, int]) -> Iterator[LikelyCause]:
    """Yield what the contradictions of one table point to."""
    tables = (setup.table.full_name,)

    def count(derived: tuple[str | None, ...], shown: tuple[str | None, ...]) -> int:
        return sum(kinds.get(kind_text(first, second), 0) for first in derived for second in shown if first != second)

    refreshed, not_refreshed = count((None, *_CHANGES), _REFRESHES), count(_REFRESHES, (None, *_CHANGES))
    more, less = count((None,), _CHANGES), count(_CHANGES, (None,))
    if setup.function is None:
        sentence = (
            f"{name} refreshed rows after conflicts: a function by epoch was in force, and none is declared. Declare "
            "it with --conflict-fn, --ndb-replication or conflict_fn in the run file."
        )
        if refreshed:
            yield LikelyCause(name, CauseKind.FUNCTION, tables, sentence)
    else:
        spec, declared = setup.function.spec, str(setup.function)
        kind = CauseKind.ROLE if spec.uses_role else CauseKind.FUNCTION
        other = "another role" if spec.uses_role else "another function"
        if refreshed and not spec.refreshes:
            sentence = f"{name} refreshed rows after conflicts, which {declared} does not do: {other} was in force."
            yield LikelyCause(name, kind, tables, sentence)
        elif refreshed or less:
            yield LikelyCause(name, kind, tables, f"{name} rejected what {declared} applies: {other} was in force.")
        if more or not_refreshed:
            sentence = f"{name} applied what {declared} rejects: {other}, or none, was in force."
            yield LikelyCause(name, kind, tables, sentence)
    shown = [each for each in Mark if any(count((effect,), (marked_text(effect, each),)) for effect in _CHANGES)]
    for mark in shown:
        yield of_mark(name, setup, mark)
    # Fewer follow from a function that is not the one that was in force: rows differ, and then values.
    if 2 * sum(number for each, number in kinds.items() if OTHER_VALUES in each) >= sum(kinds.values()) > 0:
        yield LikelyCause(
            name,
            CauseKind.VALUES,
            tables,
            f"{name} wrote other values than the other cluster's binlog holds: the binlogs are not of the same time, "
            "or one of them was altered.",
        )


def of_mark(name: str, setup: TableSetup, mark: Mark) -> LikelyCause:
    """Return what it points to that a cluster marks rows otherwise than its role and function do."""
    tables = (setup.table.full_name,)
    if setup.function is None or not setup.function.spec.reflects:
        sentence = (
            f"{name} marked rows as reflected, which only a primary of NDB$EPOCH2 or NDB$EPOCH2_TRANS does: another "
            "function was in force."
        )
        return LikelyCause(name, CauseKind.FUNCTION, tables, sentence)
    if mark is Mark.REFLECTED:
        sentence = f"{name} marked rows as reflected, which only a primary does: another role was in force."
    else:
        sentence = f"{name} did not mark rows as reflected, which a primary does: another role was in force."
    return LikelyCause(name, CauseKind.ROLE, tables, sentence)


def _files(name: str) -> LikelyCause:
    sentence = f"{name} did what the binlogs do not explain: a file, or some events, may be missing."
    return LikelyCause(name, CauseKind.FILES, (), sentence)
