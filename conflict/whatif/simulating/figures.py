"""
What a simulation says of its run: decisions, counters, rows, and the figures of its report.

A simulation as a History, which both engines resolve.
"""

from __future__ import annotations

from collections.abc import Iterator

import attrs
import numpy as np

from conflict.engine.columnar.folded_bucket import status_counters
from conflict.engine.kernels.arrays import Decisions, Int64, OperationKind, UInt64
from conflict.engine.kernels.column_scans import CountedDecisions, count_outcomes
from conflict.engine.kernels.lost_changes import WORD, own_causes, written_parts
from conflict.engine.kernels.records import DecisionBuffers
from conflict.history.model import Cluster, History
from conflict.history.timeline import EpochApply, Timeline, Transaction
from conflict.rules.counters import add_counters, transaction_counters
from conflict.rules.decision import Cause, Verdict
from conflict.whatif.simulating.configuration import DATABASE, source_of
from conflict.whatif.simulating.kernels.losses import ChangedParts, Happened, Lost, trace_losses
from conflict.whatif.simulating.kernels.world import RESOLVE_BIT, Stamp
from conflict.whatif.simulating.row_changes import SimulatedChanges, row_of
from conflict.whatif.simulating.run import Simulated
from conflict.whatif.simulating.spreading import spread_of
from ndb_formats.columnar.kernel import each_read_only
from ndb_formats.events.rows_event import Operation


def history_of(run: Simulated) -> History:
    """Return what happened, without its consequences."""
    changes = SimulatedChanges.of(run.model, run.world, run.key_offsets)
    clusters = tuple(
        Cluster(site.name, site.server_id, _timeline(run, side, changes), site.role)
        for side, site in enumerate(run.model.sites)
    )
    return History(clusters, changes.layouts)


def _timeline(run: Simulated, side: int, changes: SimulatedChanges) -> Timeline:
    items: list[tuple[tuple[int, int, int], Transaction | EpochApply]] = [
        ((each.epoch, each.group, 0), each) for each in changes.transactions(side, int(run.world.changes.begin[side]))
    ]
    there = source_of(run.model, side)
    source = "" if there is None else run.model.sites[there].name
    applies = run.world.schedule.applies[: run.world.run[0]["applies"]]
    for number in np.flatnonzero(applies["applier"] == side):
        epoch, foreign = int(applies["epoch"][number]), int(applies["foreign_epoch"][number])
        group, traced = int(applies["group"][number]), bool(applies["traced"][number])
        items.append(((epoch, group, int(number)), EpochApply(epoch, group, source, foreign, traced)))
    site = run.world.site[side]
    if site["stopped"]:
        epoch, group = int(site["stop_epoch"]), int(site["stop_group"]) - 1
        foreign = int(run.world.epochs[there, site["next_foreign"]]["number"])
        items.append(((epoch, group, len(applies)), EpochApply(epoch, group, source, foreign, traced=False)))
    return tuple(item for _, item in sorted(items, key=lambda each: each[0]))


@attrs.frozen
class _Decided:
    """
    One decision of an applier; see `conflict.engine.ledger.resolution.Outcome`.

    Attributes:
        applier: The applier's cluster.
        epoch: Epoch of the other cluster.
        group: Group of that epoch.
        table: Number of the table.
        key: Number of the row in it.
        operation: Write, update or delete.
        refresh: Whether it is a refresh.
        verdict: The verdict.
        cause: Why it was rejected.
        incoming: What was compared, if anything.
        stored: What it was compared with.
    """

    applier: str
    epoch: int
    group: int
    table: int
    key: int
    operation: Operation
    refresh: bool
    verdict: Verdict
    cause: Cause
    incoming: int | None
    stored: int | None


def final_decisions(run: Simulated) -> Decisions:
    """Return all decisions in order."""
    return run.world.decisions.first(int(run.world.run[0]["made"]))


def decisions_by_own_cause(run: Simulated) -> Decisions:
    """Return all decisions in order, with the causes by which changes are lost; see `own_causes`."""
    made, world = final_decisions(run), run.world
    applier, table = world.schedule.applies["applier"][made.apply], world.key_table[made.key]
    conflicts = world.tables["delete_delete"][applier, table]
    return attrs.evolve(made, cause=own_causes(made, _tracked(run), conflicts))


def _tracked(run: Simulated) -> Decisions:
    """Return all decisions of pass TRACK in order."""
    return run.world.tracked.first(int(run.world.run[0]["seen"]))


def decisions_in_order(run: Simulated) -> Iterator[_Decided]:
    """Yield all decisions in order, one by one."""
    decisions, applies = final_decisions(run), run.world.schedule.applies
    for place in range(len(decisions)):
        apply = applies[decisions.apply[place]]
        table, key = row_of(run.key_offsets, int(decisions.key[place]))
        cause = Cause(int(decisions.cause[place]))
        incoming, stored = decisions.compared[place].item() if cause is Cause.ROW_IN_CONFLICT else (None, None)
        yield _Decided(
            run.model.sites[apply["applier"]].name,
            int(apply["foreign_epoch"]),
            int(decisions.group[place]),
            table,
            key,
            Operation(int(decisions.operation[place])),
            bool(decisions.kind[place] == OperationKind.REFRESH),
            Verdict(int(decisions.verdict[place])),
            cause,
            incoming,
            stored,
        )


def lost_in(run: Simulated) -> list[Lost]:
    """Return, per cluster, which changes of its users were lost. Shape (changes of its users,)."""
    world, applies, spread = run.world, int(run.world.run[0]["applies"]), spread_of(run.world)
    sides, rows = range(len(run.model.sites)), world.changes.rows
    made, epoch = np.zeros(len(rows), np.int8), np.zeros(len(rows), np.int32)
    for side in sides:
        mine = slice(int(world.changes.begin[side]), int(world.site[side]["stop"]))
        epoch[mine], made[mine] = spread.epochs_of(side, np.arange(mine.start, mine.stop)), side
    happened = Happened(
        DecisionBuffers(*each_read_only(*attrs.astuple(decisions_by_own_cause(run), recurse=False))),
        *each_read_only(world.schedule.applies[:applies], world.own_end[:applies]),
        *each_read_only(rows, world.changes.begin, made, world.made.at, epoch, spread.came),
    )
    parts, room, whole = _parts(run), len(rows) if world.settings["relays"].any() else 0, False
    while not whole:
        lost = Lost(*(np.zeros(len(rows), np.bool_) for _ in Lost._fields))
        whole = trace_losses(happened, parts, len(world.key_table), lost, room)
        room *= 2
    return [Lost._make(each[run.own_changes(side)] for each in lost) for side in sides]


def _parts(run: Simulated) -> ChangedParts:
    """Return which parts of its row each change concerns."""
    world, tables = run.world, run.model.tables
    stored = np.array([(1 << each.columns) - 1 | _resolve_bit(each.stamp) for each in tables], np.uint64)
    operation, columns = world.changes.rows["operation"], stored[world.key_table[world.changes.rows["key"]]]
    written, carried, every = map(_two_words, (world.made.written, world.made.carried, columns))
    own, foreign = (written_parts(operation, (updated, carried), every, WORD) for updated in (written, carried))
    bits = np.array([*range(max(each.columns for each in tables)), WORD - 1, WORD, WORD + 1])
    return ChangedParts(*each_read_only(bits, own.wanted, own.hidden, foreign.wanted, foreign.overwrites))


def _resolve_bit(stamp: Stamp) -> int:
    return 0 if stamp is Stamp.NONE else int(RESOLVE_BIT)


def _two_words(columns: UInt64) -> UInt64:
    """Return sets of columns with room for the bits of the row. Shape (changes, 2)."""
    return np.stack([columns, np.zeros_like(columns)], axis=1)


def outcome_counts(run: Simulated, decisions: Decisions) -> Int64:
    """Count decisions; int64, shape (appliers, tables, operations, kinds, verdicts, causes)."""
    shape = (
        len(run.model.sites),
        len(run.model.tables),
        len(Operation) + 1,
        len(OperationKind),
        len(Verdict),
        len(Cause),
    )
    counts = np.zeros(shape, np.int64)
    columns = (getattr(decisions, name) for name in CountedDecisions._fields[2:])
    applier = run.world.schedule.applies["applier"]
    count_outcomes(CountedDecisions(*each_read_only(applier, run.world.key_table, *columns)), counts)
    return counts


def counters_of(run: Simulated) -> dict[str, dict[str, int]]:
    """Return the status counters of each cluster."""
    # Both passes over an epoch count, TRACK and APPLY.
    passes = [outcome_counts(run, each) for each in (final_decisions(run), _tracked(run))]
    applies = int(run.world.run[0]["applies"])
    rejects = np.diff(run.world.conflicts[0][: applies + 1])
    applier = run.world.schedule.applies["applier"][:applies]
    found = {}
    for side, cluster in enumerate(run.model.clusters()):
        mine = rejects[applier == side]
        in_conflict = transaction_counters(int(np.count_nonzero(mine)), int(mine.sum()))
        found[cluster.name] = add_counters([*(status_counters(cluster, each[side]) for each in passes), in_conflict])
    return found


def final_rows(run: Simulated, cluster: str, table: str) -> Iterator[tuple[int | None, ...]]:
    """Yield the rows of a table, with its full name, on a cluster."""
    side = [site.name for site in run.model.sites].index(cluster)
    number = [f"{DATABASE}.{each.name}" for each in run.model.tables].index(table)
    first, stop = run.key_offsets[number], run.key_offsets[number + 1]
    definition, state = run.model.tables[number], run.world.work.state.rows
    for key in range(first, stop):
        if not state[key, side]["exists"]:
            continue
        columns = [int(value) or None for value in run.world.rows.columns[key, side, : definition.columns]]
        resolve = [] if definition.stamp is Stamp.NONE else [int(state[key, side]["value"])]
        yield (key - int(first), *columns, *resolve)
