"""
What an epoch that left no trace would have done at each place of the other cluster's timeline.

An operation is judged on its row alone, and a row stays the same between two of its changes. So one row that shows by
itself leaves out most places; at those that are left, the applier goes over the whole epoch.
"""

from __future__ import annotations

import bisect
from collections.abc import Collection, Mapping, Sequence
from itertools import pairwise

import attrs

from conflict.engine.inference.background import Background
from conflict.engine.inference.hypotheses import possible, scratch
from conflict.engine.inference.not_known import settle
from conflict.engine.inference.observed import ObservedPass
from conflict.engine.inference.rows import is_dated, is_partial
from conflict.engine.ledger.open_places import Alternative, PlaceDecision
from conflict.engine.ledger.resolution import Stop
from conflict.engine.reference.applier import check_commit, effects_of
from conflict.engine.reference.cluster import ExceptionRow, LoggedChange
from conflict.engine.reference.epoch_pass import ApplierStopped, EpochPass
from conflict.engine.reference.row_store import RowKey, touched_keys
from conflict.history.scheduling.placing import Choice
from conflict.history.timeline import END, EpochApply, Position, Window
from conflict.rules.foreign_keys import linked_tables
from conflict.rules.table_setup import TableSetup


@attrs.define
class PlaceTrials:
    """
    Tries the untraced epochs of one cluster at places of the other one's timeline.

    Attributes:
        here: The applying cluster.
        source: The other cluster.
        skip_missing: Skip operations that lack a value to compare, instead of stopping the applier.
    """

    here: Background
    source: Background
    skip_missing: bool = False

    def places(self, apply: EpochApply, known: int, *, whole: bool = True) -> list[tuple[Choice, Alternative]]:
        """
        Return the places that an epoch can have had, in order, each with what it did there.

        Args:
            apply: The epoch apply; without a window, it is an error.
            known: Max replicated epoch before it.
            whole: Whether all of its rows are there; if not, those that changed meanwhile are.
        """
        window = apply.window
        assert window is not None
        entries = self.here.cluster.arriving(self.source.cluster, apply.foreign_epoch)
        if any(isinstance(entry, ExceptionRow) for entry in self.source.cluster.log.get(apply.foreign_epoch, ())):
            return []
        rows = self.here.changes_between(self._watched(entries, window), apply.arrived, window.before)
        changed = sorted({*rows, *self.here.defined_between(apply.arrived, window.before)})
        ends = zip([apply.arrived, *changed], [*changed, window.before], strict=True)
        stretches = [Choice(start, stop) for start, stop in ends if start < stop]
        if window.certain:  # rows that did not change meanwhile do not show where it was
            moved = [entry for entry in entries if self._changed(entry, apply.arrived, window.before)]
            found = self._possible(apply, moved, known, stretches)
            alike = len({effect.signature for _, effect in found}) < 2
            complete = not whole or len(moved) == len(entries)
            if alike and (complete or not self._shows(apply, entries, known, found)):
                return found
        return self._possible(apply, entries, known, stretches)

    def _shows(
        self, apply: EpochApply, entries: list[LoggedChange], known: int, found: Sequence[tuple[Choice, Alternative]]
    ) -> bool:
        """Whether an epoch shows where those of its rows do not that changed: its other rows show everywhere then."""
        return bool(found) and self._try(apply, entries, known, found[0][0].start) is None

    def _possible(
        self, apply: EpochApply, entries: list[LoggedChange], known: int, stretches: Sequence[Choice]
    ) -> list[tuple[Choice, Alternative]]:
        """Return the stretches where operations of an epoch do not show, each with what they did there."""
        if entries and stretches and self._rows_tell(apply, entries, known, stretches[0].start):
            stretches = self._without_rows_that_show(apply, entries, known, stretches)

        def trial(choice: Choice) -> tuple[Choice, Alternative] | None:
            effect = self._try(apply, entries, known, choice.start)
            return None if effect is None else (choice, effect)

        return possible(stretches, trial)

    def _rows_tell(self, apply: EpochApply, entries: list[LoggedChange], known: int, position: Position) -> bool:
        """Whether an epoch shows where one of its rows shows by itself: nothing makes it stop its applier instead."""
        setups, tables = self.here.cluster.setups, {entry.change.table for entry in entries}
        if len(self.here.setups) > 1 or any(
            name not in setups or not setups[name].table.primary_key for name in tables
        ):
            return False
        assert apply.window is not None
        if apply.window.before != END:
            return True
        rows = {entry.row: self.here.row_at(entry.row, position) for entry in entries}
        made = scratch(self.here.cluster, apply, setups, rows, known, skip_missing=self.skip_missing)
        try:
            for rejected in (frozenset[int](), frozenset(entry.group for entry in entries)):
                ObservedPass(made, self.source.cluster.cluster, apply, rejected).run(entries)
                made.store.roll_back()
        except ApplierStopped:
            return False
        return not _checked_tables(tables, setups)

    def _without_rows_that_show(
        self, apply: EpochApply, entries: list[LoggedChange], known: int, stretches: Sequence[Choice]
    ) -> list[Choice]:
        """
        Return the stretches without those where one row shows by itself.

        An operation is judged on its row alone, and a row stays the same between two changes. So a row is tried once
        for each of its states, and those that changed least come first: often one of them shows everywhere.
        """
        unclear, by_row = (
            self.source.cluster.unclear.get(apply.foreign_epoch, set()),
            dict[RowKey, list[LoggedChange]](),
        )
        for entry in entries:
            by_row.setdefault(entry.row, []).append(entry)
        starts = [choice.start for choice in stretches]
        after_last = starts[-1][0], starts[-1][1] + 1
        changes = {key: self.here.changes(key, starts[0], after_last) for key in by_row.keys() - unclear}
        left = bytearray([True]) * len(stretches)
        for key, changed in sorted(changes.items(), key=lambda each: len(each[1])):
            places = [0, *(bisect.bisect_left(starts, place) for place in changed), len(starts)]
            for first, stop in pairwise(places):
                if left.find(True, first, stop) >= 0 and self._shows_alone(apply, by_row[key], known, starts[first]):
                    left[first:stop] = bytes(stop - first)
            if not any(left):
                break
        return [choice for choice, kept in zip(stretches, left, strict=True) if kept]

    def _shows_alone(self, apply: EpochApply, entries: list[LoggedChange], known: int, position: Position) -> bool:
        """Whether the operations on one row show at a position; False if it is not known what the row was."""
        key = entries[0].row
        row = self.here.row_at(key, position)
        if row is not None and (not is_dated(row) or is_partial(row)):
            return False
        setups = self.here.cluster.setups
        made = scratch(self.here.cluster, apply, setups, {key: row}, known, skip_missing=self.skip_missing)
        current = ObservedPass(made, self.source.cluster.cluster, apply)
        current.handle_all(entries)
        return bool(current.tracker.conflicting or effects_of(current))

    def _changed(self, entry: LoggedChange, after: Position, before: Position) -> bool:
        return any(self.here.changes(key, after, before) for key in touched_keys(entry.change))

    def _watched(self, entries: list[LoggedChange], window: Window) -> set[RowKey]:
        """Return the rows that decide on an epoch: its own; those of checked tables if it may stop the applier."""
        rows = {key for entry in entries for key in touched_keys(entry.change)}
        if window.before == END:
            checked = _checked_tables({table for table, _ in rows}, self.here.cluster.setups)
            rows |= {row for row in self.here.moments if row[0] in checked}
        return rows

    def _try(
        self, apply: EpochApply, entries: list[LoggedChange], known: int, position: Position
    ) -> Alternative | None:
        """Return what an epoch does at a position; None if it would show there."""
        setups = self.here.setups_at(position)
        touched = {key for entry in entries for key in touched_keys(entry.change)}
        rows = {key: self.here.row_at(key, position) for key in touched}
        made = scratch(self.here.cluster, apply, setups, rows, known, skip_missing=self.skip_missing)
        made.unique_keys.update([key for key in touched if key[0] in setups], made.store)
        made.foreign_keys.update(touched, made.store)
        settle(made, self.source.cluster, apply)
        current = ObservedPass(made, self.source.cluster.cluster, apply)
        last = apply.window is not None and apply.window.before == END
        try:
            current.run(entries)
            if current.tracker.conflicting:
                made.store.roll_back()
                ObservedPass(made, current.source, apply, current.tracker.in_conflict()).run(entries)
                return None  # the rows of rejected transactions are refreshed
        except ApplierStopped as stopped:
            return Alternative(stop=stopped.stop) if last else None
        if effects_of(current):
            stop = self._refusal(current, touched, position) if last else None
            return Alternative(stop=stop) if stop is not None else None
        if any(exceptions.replicated for exceptions, _ in current.exceptions):
            return None
        return Alternative(
            counters=tuple(sorted((name, count) for name, count in current.counters.items() if count)),
            exceptions=tuple((exceptions.table.full_name, row) for exceptions, row in current.exceptions),
            decided=tuple(
                PlaceDecision(
                    each.entry.change.table, each.entry.change.key, each.entry.change.operation, each.decision
                )
                for each in current.decided
            ),
        )

    def _refusal(self, current: EpochPass, touched: Collection[RowKey], position: Position) -> Stop | None:
        """Return why a pass could not be committed: a unique value that another row has, or a foreign key."""
        cluster, store = current.cluster, current.cluster.store
        checked = _checked_tables({table for table, _ in touched}, cluster.setups)
        others = [key for key in self.here.moments if key[0] in checked and key not in touched]
        for key in others:
            store.put(key, self.here.row_at(key, position))
        cluster.unique_keys.update(others, store)
        cluster.foreign_keys.update(others, store)
        try:
            check_commit(current)
        except ApplierStopped as stopped:
            return stopped.stop
        return None


def _checked_tables(touched: Collection[str], setups: Mapping[str, TableSetup]) -> set[str]:
    """Return the tables whose rows all count when changes of some tables are to be committed."""
    unique = {table for table in touched if table in setups and setups[table].table.unique_keys}
    linked = linked_tables(setups)
    return unique if linked.isdisjoint(touched) else unique | linked
