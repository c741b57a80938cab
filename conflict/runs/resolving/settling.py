"""
What the resolve job settles in memory, on the rows that matter: places of untraced epochs, and moments of judging.

`Examined` says which epoch applies are looked at for moments, and which of their rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from functools import partial
from itertools import product

import attrs
import numpy as np

from conflict.config.arguments import StageProgress
from conflict.engine.columnar.applier_stops import can_stop_by_rows
from conflict.engine.columnar.contested import ContestedRows
from conflict.engine.columnar.order import Located
from conflict.engine.inference.background import Recorded, backgrounds_at_start
from conflict.engine.inference.moments import Moments, find_moments
from conflict.engine.inference.placement import LinkFacts, Placed, can_be_skips, place_untraced
from conflict.engine.inference.row_states import StatesOfRows
from conflict.engine.kernels.arrays import Int64
from conflict.engine.reference.row_store import RowKey
from conflict.history.grid.epoch_files import read_epoch_ends, read_epoch_sizes
from conflict.history.grid.manifest import Manifest
from conflict.history.model import History, Link
from conflict.history.run import Run, TableNumbers
from conflict.history.scheduling.start import Bounds
from conflict.history.tasks import Runner, Shared
from conflict.history.timeline import DefinitionChange, EpochApply, Position, Transaction, timeline_of
from conflict.runs.resolving.deciding_applies import DecidingApplies, Schedule, deciding_numbers
from conflict.runs.resolving.resolve_stages import WrittenBuckets
from conflict.runs.rows.keyless_rows import read_keyless
from conflict.runs.rows.row_spans import WantedRows
from conflict.runs.rows.states_over_time import read_states, states_decide
from conflict.runs.rows.task_inputs import TaskInputs
from conflict.runs.rows.touched_rows import NOWHERE, TouchedRows, TouchedTask, read_touched, touched_history
from ndb_formats.events.row_image import RowLayout

# So many rows that may be open are looked at, and so many row changes of epochs that are looked at with all their rows:
# each is tried by the reference engine.
MAX_OPEN_ROWS, MAX_OPEN_CHANGES = 300_000, 30_000


@attrs.define
class Examined:
    """
    What is looked at.

    Attributes:
        run: The run.
        rows: By applier and own position of the epoch apply, the rows; None for all rows of the epoch.
        left: Per applier, the own positions of epoch applies that were too many.
    """

    run: TaskInputs
    rows: dict[str, dict[Position, ContestedRows | None]]
    left: dict[str, set[Position]] = attrs.field(factory=dict)

    @classmethod
    def nothing(cls, run: TaskInputs) -> Examined:
        """Return that nothing is looked at."""
        return cls(run, {name: {} for name in run.manifest.clusters})

    def __len__(self) -> int:
        return sum(map(len, self.rows.values()))

    @property
    def count_left(self) -> int:
        """How many epoch applies were too many, and are not looked at for other reasons."""
        return sum(len(places - self.rows[name].keys()) for name, places in self.left.items())

    def add_open(self, resolved: WrittenBuckets) -> bool:
        """
        Add the rows of a result that may be open, the first ones up to a limit; return whether any is new.

        Where transactions are judged and the binlogs contradict the result, they may have been judged otherwise. Then
        all rows of an epoch are looked at, as where they are asked for.
        """
        contradicted = any(summary.contradicted for summary in resolved.summaries)
        if self.run.options.whole_open_epochs or (self.run.needs_rounds and contradicted):
            return self.add_whole(resolved, np.unique(resolved.contested.apply))
        rows = resolved.contested
        applies, starts = np.unique(rows.apply, return_index=True)
        ends = np.append(starts, len(rows))[1:]
        kept = int(np.searchsorted(ends, MAX_OPEN_ROWS, "right"))
        self._leave(resolved, applies[kept:])
        chosen = rows.chosen(slice(0, int(ends[kept - 1]) if kept else 0))
        added = [
            self._add(name, place, some)
            for name, own in resolved.rows_at(chosen).items()
            for place, some in own.items()
        ]
        return any(added)

    def add_whole(self, resolved: WrittenBuckets, applies: Int64) -> bool:
        """Add epoch applies, by number, with all rows, the first ones up to a limit; return whether any is new."""
        found, manifest = resolved.found.applies, self.run.manifest
        sizes = [read_epoch_sizes(self.run.history, name, manifest.batches) for name in manifest.clusters]
        first, second = (own.of(found.foreign_epoch[applies]) for own in sizes)
        read = np.cumsum(np.where(found.applier[applies] == 1, first, second))
        kept = int(np.searchsorted(read, MAX_OPEN_CHANGES, "right"))
        self._leave(resolved, applies[kept:])
        added = [
            self._add(name, place, None) for name, own in resolved.positions(applies[:kept]).items() for place in own
        ]
        return any(added)

    def _leave(self, resolved: WrittenBuckets, applies: Int64) -> None:
        for name, places in resolved.positions(applies).items():
            self.left.setdefault(name, set()).update(places)

    def _add(self, name: str, place: Position, rows: ContestedRows | None) -> bool:
        known = self.rows[name]
        if place not in known or (rows is None and known[place] is not None):
            known[place] = rows
            return True
        before = known[place]
        if before is None or rows is None:
            return False
        joined = ContestedRows.joined([before, rows])
        _, first = np.unique(np.stack([joined.bucket, joined.key]), axis=1, return_index=True)
        known[place] = joined.chosen(np.sort(first))
        return len(first) > len(before)


# Per applier, what it applied.
Wanted = Shared[Mapping[str, WantedRows]]
# By applier and own position of an epoch apply, some of its rows; None for all.
OpenRows = Mapping[str, Mapping[Position, ContestedRows | None]]


@attrs.frozen
class Settling:
    """
    Reads the rows of some epochs from a History on disk, and settles on them what the binlogs leave open.

    Attributes:
        runner: Runs the tasks.
        common: What all tasks have in common.
        run: The run.
        progress: Called with the name of the stage, tasks done, and their number.
        changes: Per cluster, the changes of definitions.
    """

    runner: Runner
    common: TaskInputs
    run: Run
    progress: StageProgress
    changes: Mapping[str, Sequence[DefinitionChange]] = attrs.field(factory=dict)

    def place_untraced(self, schedule: Schedule, whole: AbstractSet[tuple[str, int]] = frozenset()) -> Placed:
        """
        Place the epochs that left no trace, from the rows that they touch.

        Args:
            schedule: Per cluster, the epoch applies of its applier.
            whole: Applier and number of the epochs that are looked at with all of their rows. Of others, rows that did
                not change meanwhile do not count: they tell only that an epoch was applied nowhere.
        """
        wanted = self._wanted(schedule, whole)
        placed = self._placed(schedule, wanted, whole)
        # All rows of an epoch are needed to say what it does where its place is open, and what it would have changed.
        slots = placed.schedule.slots
        still_open = whole | {
            (place.applier, place.foreign_epoch)
            for place in placed.schedule.places
            if slots[place.applier, place.source][place.slot].certain
        }
        still_open |= {(each.applier, each.foreign_epoch) for each in placed.schedule.skipped}
        few = {name: set(own.epochs[own.few].tolist()) for name, own in wanted.load().items()}
        still_open |= {
            (name, slot.foreign_epoch)
            for (name, _), own in slots.items()
            for slot in own
            if slot.choices and slot.foreign_epoch in few[name]
        }
        return placed if still_open <= whole else self._placed(schedule, self._wanted(schedule, still_open), still_open)

    def place_contradicted(
        self, schedule: Schedule, placed: Placed, differing: Mapping[str, AbstractSet[Position]]
    ) -> Placed:
        """
        Place the epochs again, with all rows of those that left no trace and for which the binlogs show other effects.

        So epochs are found that were never applied.

        Args:
            schedule: As for `place_untraced`.
            placed: What that returned.
            differing: Per cluster, the own positions of epoch applies for which its binlog shows other effects.
        """
        shown = {
            name: {
                each.foreign_epoch for each in own if not each.traced and (each.epoch, each.group) in differing[name]
            }
            for name, own in placed.applies.items()
        }
        whole = frozenset(
            (name, epoch)
            for name, epochs in shown.items()
            if can_be_skips(len(epochs), len(schedule[name]))
            for epoch in epochs
        )
        return self.place_untraced(schedule, whole) if whole else placed

    def _wanted(self, schedule: Schedule, whole: AbstractSet[tuple[str, int]]) -> Wanted:
        """Return which rows decide on the places; `whole`: applier and number of epochs with all of their rows."""
        # Where an operation can stop its applier because of what rows are, each row of an epoch counts.
        each_counts = can_stop_by_rows(self.common.clusters) or self.common.manifest.has_rows_without_key
        few_tell = not each_counts and not any(self.changes.values())
        return self._shared(
            {
                name: WantedRows.of_schedule(
                    own, own.windowed, whole={epoch for by, epoch in whole if by == name}, few_tell=few_tell
                )
                for name, own in schedule.items()
            }
        )

    def _shared(self, wanted: Mapping[str, WantedRows]) -> Wanted:
        """Return what tasks want as they share it: it has columns of all epoch applies."""
        return Shared.large(self.common.shared, wanted, self.runner)

    def _placed(self, schedule: Schedule, wanted: Wanted, whole: AbstractSet[tuple[str, int]]) -> Placed:
        """Place the epochs; `whole`: applier and number of those whose rows are all read."""
        parts = self._read("placing epochs", wanted, placing=True)
        history, recorded, facts = self._history(
            parts, schedule, {name: own.windowed for name, own in schedule.items()}
        )
        setups, skip_missing = self.run.setups.at_start, self.run.configuration.skip_missing
        start = None
        if self.common.window is not None:
            start = backgrounds_at_start(history, setups, recorded)
            for (name, each), part in product(start.items(), parts):
                each.cluster.store.rows.update(part.standing[name])
                each.at_start.rows.update(part.standing[name])
        return place_untraced(
            history, setups, recorded, skip_missing=skip_missing, whole=whole, facts=facts, start=start
        )

    def find_moments(self, schedule: Schedule, examined: OpenRows) -> tuple[Moments, Located]:
        """
        Find when the rows of some epochs were judged.

        Args:
            schedule: Per cluster, the epoch applies of its applier, at their places.
            examined: By applier and own position of those to look at, the rows of it; None for all.

        Returns:
            The moments, and where their rows are.
        """
        numbers = {name: own.traced_at(examined[name]) for name, own in schedule.items()}
        wanted = self._shared(
            {
                name: WantedRows.of_schedule(
                    own, numbers[name], _by_foreign_epoch(own.applies(numbers[name]), examined[name])
                )
                for name, own in schedule.items()
            }
        )
        parts, states = self._read_open(wanted)
        history, recorded, facts = self._history(parts, schedule, numbers)
        located = {row: place for part in parts for row, place in part.located.items()}
        names = {place: row for row, place in located.items()}
        rows = {
            name: {place: None if each is None else _named(each, names) for place, each in own.items()}
            for name, own in examined.items()
        }
        found = find_moments(
            history,
            self.run.setups.at_start,
            recorded,
            skip_missing=self.run.configuration.skip_missing,
            wanted=rows,
            states=states,
            known={link: each.known for link, each in facts.items()},
            progress=partial(self.progress, "finding moments"),
        )
        return found, located

    @property
    def states_decide(self) -> bool:
        """Whether rows are known by where they were changed, and by whom."""
        return not any(self.changes.values()) and states_decide(self.common)

    @property
    def _bounds(self) -> list[Bounds]:
        """Per cluster, the own epochs that are read."""
        bounds, manifest = self.common.part.bounds, self.common.manifest
        return [
            Bounds(last=manifest.last_epochs[name]) if bounds is None else bounds[name] for name in manifest.segments
        ]

    def _read_open(self, wanted: Wanted) -> tuple[list[TouchedRows], StatesOfRows | None]:
        """Return the rows that some epochs touch, and their states if these need no replay."""
        stage, names = "reading open rows", self.common.manifest.segments
        if self.states_decide:
            tasks = self._tasks(wanted)
            parts = self.runner(read_states, tasks, partial(self.progress, stage))
            # A log that shows nothing of its applier's work does not tell what that did to rows.
            if all(any(name in part.touched.showing for part in parts) for name in names):
                states = {
                    name: {row: own for part in parts for row, own in part.states[name].items()} for name in names
                }
                return [part.touched for part in parts], states
        return self._read(stage, wanted), None

    def _read(self, stage: str, wanted: Wanted, *, placing: bool = False) -> list[TouchedRows]:
        """Return the rows that some epochs touch, with all that their states depend on."""
        parts = self.runner(read_touched, self._tasks(wanted, placing=placing), partial(self.progress, stage))
        if placing and self.common.manifest.has_rows_without_key:
            parts.append(read_keyless(self.common))
        return parts

    def _tasks(self, wanted: Wanted, *, placing: bool = False) -> list[TouchedTask]:
        """Return a task for each bucket."""
        first = TouchedTask(self.common, 0, wanted, placing)
        return [attrs.evolve(first, bucket=bucket) for bucket in range(self.common.manifest.buckets)]

    def _history(
        self, parts: Sequence[TouchedRows], schedule: Schedule, looked_at: Mapping[str, Int64]
    ) -> tuple[History, Recorded, Mapping[Link, LinkFacts]]:
        """
        Return a History of rows that were read and of the epoch applies that decide on them, and what binlogs show.

        Args:
            parts: The rows.
            schedule: Per cluster, the epoch applies of its applier.
            looked_at: Per cluster, the numbers of those that are looked at.
        """
        common, manifest, recorded = self.common, self.common.manifest, {}
        transactions: dict[str, list[Transaction]] = {}
        for name in manifest.segments:
            transactions[name], recorded[name] = touched_history(parts, name, common)
            if any(name in each.showing for each in parts):
                recorded[name].setdefault(NOWHERE, {})  # its binlog shows something, if not of these rows
        if self._binlogs_tell and all(recorded.values()):
            numbers = deciding_numbers(schedule, looked_at, transactions, recorded)
        else:
            numbers = {name: np.arange(len(own)) for name, own in schedule.items()}
        starts = {name: common.start_of(name) for name in manifest.segments}
        returned = {name: start.returned for name, start in starts.items() if start is not None}
        deciding = DecidingApplies.of(schedule, numbers, returned)
        clusters = tuple(
            common.cluster_with(
                each, timeline_of(transactions[each.name], deciding.applies[each.name], self.changes.get(each.name, ()))
            )
            for each in common.clusters
        )
        ends = {
            name: read_epoch_ends(common.history, name, manifest.batches, read)
            for name, read in zip(manifest.segments, self._bounds, strict=True)
        }
        layouts = layouts_of(manifest, common.numbers)
        history = History(clusters, layouts, {}, deciding.applies, ends, databases=common.databases)
        return history, recorded, deciding.facts

    @property
    def _binlogs_tell(self) -> bool:
        """Whether binlogs that show anything show all that appliers can have sent on of rows that are read."""
        common = self.common
        more = common.part.starts_in_the_middle or common.unlogged or common.manifest.has_rows_without_key
        return not (more or common.linked.tables.any() or any(self.changes.values()))


def _by_foreign_epoch(
    applies: Sequence[EpochApply], rows: Mapping[Position, ContestedRows | None]
) -> dict[int, ContestedRows]:
    """Return the rows that are looked at by foreign epoch, without epochs whose rows are all looked at."""
    found: dict[int, list[ContestedRows | None]] = {}
    for apply in applies:
        found.setdefault(apply.foreign_epoch, []).append(rows[apply.epoch, apply.group])
    some = {epoch: [each for each in parts if each is not None] for epoch, parts in found.items()}
    return {
        epoch: ContestedRows.joined(some[epoch]) for epoch, parts in found.items() if len(some[epoch]) == len(parts)
    }


def _named(rows: ContestedRows, names: Mapping[tuple[int, int], RowKey]) -> frozenset[RowKey]:
    """Return table and key of rows, given by bucket and number in it."""
    return frozenset(names[place] for place in zip(rows.bucket.tolist(), rows.key.tolist(), strict=True))


def layouts_of(manifest: Manifest, numbers: TableNumbers) -> dict[str, RowLayout]:
    """Return how the rows of each table of a History are read."""
    return {layout.table: layout for layout in manifest.layouts(numbers) if layout is not None}
