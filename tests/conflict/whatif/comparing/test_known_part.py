"""From the middle of any History, what is said to be known under other functions is what the whole History gives."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import attrs
import numpy as np
from hypothesis import assume, example, given
from hypothesis import strategies as st

from conflict.engine.columnar.folded_bucket import FoldedBucket
from conflict.engine.columnar.order import ApplierEpochs
from conflict.engine.columnar.setups import rules_of
from conflict.engine.kernels.fold import fold
from conflict.engine.kernels.lost_changes import TimedDecisions, Written, lost_changes
from conflict.engine.kernels.records import packed_changes
from conflict.engine.ledger.layout import ResultOptions
from conflict.history.grid.epoch_files import read_schedule
from conflict.history.grid.folder import Folder
from conflict.history.model import History
from conflict.history.run import Run
from conflict.history.tasks import in_process
from conflict.history.timeline import EpochApply
from conflict.rules.replication_table import Role
from conflict.runs.resolving.resolve_job import run_of_part
from conflict.runs.resolving.resolve_stages import ResolveJob
from conflict.runs.rows.task_inputs import LogPart, TaskInputs
from conflict.whatif.comparing.bucket_figures import written_in
from conflict.whatif.comparing.known_part import (
    DecidedBucket,
    KnownPart,
    find_known_part,
    find_unsure,
)
from conflict.whatif.comparing.unsure_transactions import SettledRows, Unsure, UnsureFindings
from tests.conflict.cut_histories import from_middle
from tests.conflict.random_histories import BINLOG_TYPES, ROLES, SETTINGS, USUAL_ROLES, configuration, make_history
from tests.conflict.written_histories import write_history
from tests.examples import examples

OPTIONS = ResultOptions(final_rows=False, all_outcomes=False)


@attrs.frozen(eq=False)
class Decided:
    """A History that was decided, in one bucket, with rows that did not exist before it."""

    run: TaskInputs
    made: DecidedBucket
    written: tuple[Written, Written]
    names: list[tuple[str, bytes]]  # table and key of each row

    @property
    def applies(self) -> list[tuple[int, int, int, int]]:
        """What names each epoch apply: applier, own epoch and group, foreign epoch."""
        applies = self.made.applies
        columns = (applies.applier, applies.epoch, applies.group, applies.foreign_epoch)
        return list(zip(*(each.tolist() for each in columns), strict=True))

    def changes(self, side: int) -> list[tuple[int, int]]:
        """Return what names each change of a cluster: its epoch and its number in it."""
        rows = self.made.bucket.rows[side]
        return list(zip(rows.epoch.tolist(), rows.ordinal.tolist(), strict=True))

    def decisions(self) -> list[tuple[tuple[Any, ...], tuple[int, int]]]:
        """Return what names each decision on a change, and its verdict and cause; an operation of an applier has ()."""
        applies, folded, changes = self.applies, self.made.folded.decisions, [self.changes(0), self.changes(1)]
        found = []
        for place in range(len(folded)):
            apply, source = applies[folded.apply[place]], int(folded.source[place])
            name = (*apply, *changes[1 - apply[0]][source]) if source >= 0 else ()
            found.append((name, (int(folded.verdict[place]), int(folded.cause[place]))))
        return found

    def logged(self, chosen: Any) -> list[tuple[Any, ...]]:
        """Return rows that appliers logged: epoch apply, row, and the operation; a refresh can also find no row."""
        applies, logged = self.applies, chosen.logged
        columns = (logged.apply, logged.key, logged.operation, logged.refresh)
        rows = zip(*(each.tolist() for each in columns), strict=True)
        return [(*applies[apply], self.names[key], None if refresh else op) for apply, key, op, refresh in rows]

    def ends(self) -> dict[tuple[str, bytes], list[Any]]:
        """Return, per row, the change that each of its columns comes from on each cluster; None where it is absent."""
        made, changes = self.made, [*self.changes(0), *self.changes(1)]
        folded = made.folded.applied_alone()
        final = FoldedBucket(made.bucket, made.clusters, made.applies, made.conflicts, folded).final
        slots, first = made.bucket.slots.tolist(), len(made.bucket.rows[0])
        found: dict[tuple[str, bytes], list[Any]] = {}
        for key, name in enumerate(self.names):
            for side in (0, 1):
                images = final.images[side, slots[key] : slots[key + 1]].tolist()
                end = [(each >> 1 >= first, changes[each >> 1], each & 1) if each >= 0 else each for each in images]
                found.setdefault(name, []).append(end if final.exists[side, key] else None)
        return found


@contextmanager
def decided(history: History, run: Run) -> Iterator[Decided]:
    """Decide a History; one in which an applier stops is no example."""
    with tempfile.TemporaryDirectory() as path:
        grid, out = Folder(f"{path}/history"), Folder(f"{path}/out")
        manifest = write_history(history, run.numbers, grid)
        starts = {cluster.name: cluster.start for cluster in history.clusters if cluster.start is not None}
        part = LogPart(None, starts), read_schedule(grid, list(manifest.clusters)), manifest
        common = run_of_part(run, grid, out, part, OPTIONS)
        bucket = common.load_bucket(0)
        bucket.kept = bucket.rows
        tables = [run.numbers.tables[table].full_name for table in bucket.key_table.tolist()]
        keys = [identity[2:] for identity in bucket.keys.column("identity").to_pylist()]
        names = list(zip(tables, keys, strict=True))
        located = {row: (0, number) for number, row in enumerate(names)}
        applied = [ApplierEpochs.of_cluster(cluster, located) for cluster in history.clusters]
        job = ResolveJob(in_process, attrs.evolve(common, part=LogPart()), lambda *_: None)
        point = job.find_conflicts(applied)
        assume(not point.stopping)
        changes = packed_changes(bucket.rows)
        moments, rules = point.applies.moments.of_bucket(0), rules_of(common.clusters)
        folded = fold(
            point.applies, changes, rules, point.conflicts, bucket.key_table, candidates=False, moments=moments
        )
        bucket.column_sets  # noqa: B018  # read before the folder goes
        made = DecidedBucket(bucket, common.clusters, point.applies, point.conflicts, changes, folded, configured=False)
        yield Decided(common, made, written_in(bucket), names)


def known_of(cut: Decided) -> KnownPart:
    """Return what is known; of rows that were judged early, the moments are those of the whole History."""
    keys, applies = len(cut.names), len(cut.made.applies)
    every = np.arange(applies * max(keys, 1), dtype=np.int64)
    unsure = Unsure.none(applies, SettledRows({0: every}, np.zeros(applies, np.bool_)))
    while True:
        found = find_unsure(cut.run, cut.made, unsure)
        before, unsure = unsure, unsure.joined(UnsureFindings.transactions([found]))
        if len(before.pairs) == len(unsure.pairs):
            return find_known_part(cut.run, cut.made, cut.written, unsure)


def cut_at(history: History, whole: Decided, cuts: tuple[int, int]) -> History:
    """Return the rest of a History; of a log that starts later, it is known what had come back by then."""
    clusters = []
    for side, (cluster, cut) in enumerate(zip(history.clusters, cuts, strict=True)):
        epochs = sorted({item.epoch for item in cluster.timeline} | {1})
        rest = from_middle(cluster, epochs[cut % len(epochs)])
        first = next((each for each in rest.timeline if isinstance(each, EpochApply)), None)
        returned = 0
        if first is not None:
            place = (side, first.epoch, first.group, first.foreign_epoch)
            returned = int(whole.made.applies.max_replicated_epoch[whole.applies.index(place)])
        assert rest.start is not None
        clusters.append(attrs.evolve(rest, start=attrs.evolve(rest.start, returned=returned)))
    return attrs.evolve(history, clusters=tuple(clusters))


@given(
    seed=st.integers(0, 2**32 - 1),
    steps=st.integers(0, 160),
    setting=st.integers(0, len(SETTINGS) - 1),
    roles=st.sampled_from([*[USUAL_ROLES] * 4, *ROLES]),
    binlog_type=st.sampled_from(BINLOG_TYPES),
    complete=st.booleans(),
    cuts=st.tuples(st.integers(0, 2**16), st.integers(0, 2**16)),
)
@examples(15, long=1200)
@example(seed=20, steps=80, setting=20, roles=USUAL_ROLES, binlog_type=7, complete=True, cuts=(8, 0))
@example(seed=38, steps=145, setting=0, roles=USUAL_ROLES, binlog_type=7, complete=True, cuts=(0, 3))
def test_what_is_known_is_what_the_whole_gives(
    seed: int,
    steps: int,
    setting: int,
    roles: tuple[Role, Role],
    binlog_type: int,
    complete: bool,
    cuts: tuple[int, int],
) -> None:
    """Decisions, changes that were lost, rows that were logged, transactions in conflict, and rows at the end."""
    run = configuration(setting, roles, binlog_type, skip_missing=True)
    history = make_history(seed, steps, complete=complete, roles=roles)
    with decided(history, run) as whole, decided(cut_at(history, whole, cuts), run) as cut:
        known = known_of(cut)
        given, kept = dict(whole.decisions()), known.decisions.tolist()
        decisions = [each for each, counts in zip(cut.decisions(), kept, strict=True) if counts and each[0]]
        assert decisions == [(name, given[name]) for name, _ in decisions]

        made = whole.made
        timed = TimedDecisions(made.applies.applier, made.folded.own_end, made.folded.decisions)
        every = lost_changes(timed, [rows.key for rows in made.bucket.rows], whole.written, len(whole.names))
        for side in (0, 1):
            places = {name: number for number, name in enumerate(whole.changes(side))}
            mine = [places[name] for name in cut.changes(side)]
            own = known.own[side]
            for name in ("rejected", "overwritten"):
                assert (getattr(known.lost[side], name)[own] == getattr(every[side], name)[mine][own]).all()
            found = known.rowless[side].sum()
            assert found <= made.folded.unexplained[side].sum()

        part, of_rows = known.part_of(FoldedBucket(*_parts(cut)))
        assert set(cut.logged(part.folded)) <= set(whole.logged(made.folded))
        assert set(cut.logged(of_rows)) <= set(whole.logged(made.folded))
        assert _in_conflict(cut, part.conflicts) <= _in_conflict(whole, made.conflicts)

        ends, others = cut.ends(), whole.ends()
        rows = [name for name, counts in zip(cut.names, known.rows.tolist(), strict=True) if counts]
        assert {name: ends[name] for name in rows} == {name: others[name] for name in rows}


def _parts(cut: Decided) -> tuple[Any, ...]:
    made = cut.made
    return (
        made.bucket,
        made.clusters,
        made.applies,
        made.conflicts,
        made.folded.tracking_conflicts_alone(made.conflicts),
    )


def _in_conflict(found: Decided, conflicts: Any) -> set[tuple[Any, ...]]:
    counts = np.diff(conflicts.offsets)
    applies = [each for each, count in zip(found.applies, counts.tolist(), strict=True) for _ in range(count)]
    return {(*apply, group) for apply, group in zip(applies, conflicts.groups.tolist(), strict=True)}
