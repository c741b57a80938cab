"""
Why a binlog may show other effects than were derived. Computes docs/result.md, "Contradictions".

A contradiction says that something about the run is not as it was when the binlogs were written. What is missing from a
binlog, and which effects contradict each other, tells what that may be. Where it fits several causes, all are named.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from conflict.config.database_names import Rename
from conflict.history.epochs import BinlogEpoch
from conflict.history.roles import ShownChange
from conflict.history.shown_effects import columns_of_text
from conflict.results.cause_kinds import CauseKind, LikelyCause, LogFacts
from conflict.results.table_causes import causes_of_tables
from conflict.rules.replication_table import Role
from conflict.rules.table_setup import TableSetup
from conflict.telling.shown_text import listed
from ndb_formats.events.rows_event import ConflictFlag
from ndb_formats.rules.row_image_rules import EventColumns
from ndb_formats.rules.update_format import fitting_types, may_log
from ndb_formats.schema.tables import Table


def facts_of_epochs(epochs: list[BinlogEpoch], *, replicates: bool = True, role: Role | None = None) -> LogFacts:
    """Return what a binlog holds, of its epochs; `replicates`: its cluster does so from another one, in that role."""
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
        any(ConflictFlag.REFRESH & change.flags for epoch in epochs for _, change in epoch.consequences),
        any(ConflictFlag.REFLECTED & change.flags for epoch in epochs for _, change in epoch.consequences),
        role,
        frozenset(change.table for change in own),
        frozenset(change.table for epoch in epochs for _, change in epoch.consequences),
    )


def likely_causes(
    contradictions: Mapping[str, Mapping[str, Mapping[str, int]]],
    facts: Mapping[str, LogFacts],
    setups: Mapping[str, Mapping[str, TableSetup]],
    stopped: Collection[str] = (),
    *,
    lossy: bool = False,
) -> tuple[LikelyCause, ...]:
    """
    Return likely causes of contradictions, and appliers that left no trace, the most telling first.

    Args:
        contradictions: Per applying cluster and table, how many of each kind (see `engine.ledger.contradictions`).
        facts: Per cluster, what its binlog holds.
        setups: Per cluster, its setup of each table.
        stopped: The clusters whose appliers stopped.
        lossy: Whether a log may lack changes, as an incident in it says.
    """
    # A binlog that shows nothing of an applier is as it should be where the applier stopped before it changed anything.
    explained = {name for name in stopped if not contradictions.get(name)}
    options = [
        cause
        for name, own in facts.items()
        for cause in (*_options(name, own, facts), *_slices(name, setups))
        if cause.kind is not CauseKind.REPLICA_UPDATES or name not in explained
    ]
    if not contradictions:
        return tuple(options)
    of_tables = causes_of_tables(contradictions, facts, setups, lossy=lossy)
    if any(cause.kind is not CauseKind.ROW_SLICE for cause in options):  # but for a filter, they explain the rest
        return (*options, *(cause for cause in of_tables if cause.kind is CauseKind.FILTER))
    return (*options, *of_tables)


def with_renames(causes: Sequence[LikelyCause], renames: Sequence[Rename]) -> tuple[LikelyCause, ...]:
    """Return causes with databases that appliers seem to rename, which explain all that differs on their clusters."""
    if not causes:
        return ()
    found = []
    for each in renames:
        before, after = ([f"{database}.{table}" for table in each.tables] for database in (each.before, each.after))
        sentence = (
            f"Changes of {listed(before)} on {each.source} arrive nowhere, and {each.applier} has {listed(after)} in "
            f'their place: is the database renamed there (replicate_rewrite_db = ["{each.before}->{each.after}"] for '
            f"[clusters.{each.applier}] of the run file)?"
        )
        found.append(LikelyCause(each.applier, CauseKind.RENAME, tuple(before), sentence))
    renaming = {each.applier for each in renames}
    return (*found, *(each for each in causes if each.cluster not in renaming))


def changed_roles(shown: Mapping[str, Sequence[ShownChange]], facts: Mapping[str, LogFacts]) -> Iterator[LikelyCause]:
    """Yield the roles that changed while the binlogs were written, of each cluster; `facts`: what its binlog holds."""
    # Refreshes alone may be those of a function without roles, unless the clusters changed places.
    swapped = len({each.new for changes in shown.values() for each in changes[-1:]}) > 1
    marked = swapped or any(own.reflected for own in facts.values())
    for name, changes in shown.items():
        for each in changes:
            if not marked:
                shown_so = (
                    f"{name} refreshed rows after conflicts at some times, and no binlog marks a row as reflected."
                )
                options = (
                    "another conflict function was in force, which works without roles (NDB$EPOCH, NDB$EPOCH_TRANS); "
                    f"the role of {name} changed after epoch {each.before} of the other cluster"
                )
                kinds = CauseKind.FUNCTION, CauseKind.ROLE_CHANGE
                yield LikelyCause(name, CauseKind.FUNCTION, (), shown_so, kinds, options)
                continue
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
        images: Per cluster and table, which columns images carry (see `conflict.history.shown_effects`).
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
                what = (
                    f"they are those of binlog type {fitting} (binlog_type of its row of mysql.ndb_replication)."
                    if fitting
                    else "no binlog type logs all of them."
                )
                key = ", ".join(setup.table.primary_key) or "none"
                options = f"its PRIMARY KEY has more columns than the definition says ({key}); its binlog type changed"
                sentence = (
                    f"The images of {table} in the binlog of {name} are not those of its declared binlog type, for "
                    f"example {_described(misfit, setup.table)}; {what}"
                )
                kinds = () if fitting else (CauseKind.DEFINITION, CauseKind.BINLOG_TYPE)
                yield LikelyCause(name, CauseKind.BINLOG_TYPE, (table,), sentence, kinds, "" if fitting else options)


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
            f"The binlog of {name} shows no change of its applier.",
            (CauseKind.REPLICA_UPDATES, CauseKind.FUNCTION, CauseKind.ROLE, CauseKind.FILES),
            "log_replica_updates was OFF there; the applier did not run, or skipped all that would show; it came to "
            "nothing with all that it received, by its conflict function and role; its last file is missing",
        )


def _slices(name: str, setups: Mapping[str, Mapping[str, TableSetup]]) -> Iterator[LikelyCause]:
    """Yield the tables whose rows a cluster logs in part."""
    for table, setup in setups[name].items():
        if setup.slices > 1:
            sentence = (
                f"{name} logs one of {setup.slices} slices of {table}; what happened to its other rows is not known."
            )
            yield LikelyCause(name, CauseKind.ROW_SLICE, (table,), sentence)
