"""
Tables that are of another engine for a time: ``ALTER TABLE ... ENGINE`` takes their rows there, and back again.

The binlog of the server that runs it does not hold the rows that it copies. They come back as they were if nothing
changed them in between, which the binlog shows; what other engines log is no part of a run.
"""

from __future__ import annotations

import attrs

from ndb_formats.schema.statements import TableStep
from ndb_formats.schema.tables import Table

Name = tuple[str, str]  # database and table


@attrs.frozen
class _Stay:
    """
    A table that NDB had before.

    Attributes:
        table: As it was in NDB.
        sources: Per column of the table as it is now, the ordinal of the column of `table` that it was.
        step: Number of the statement that took it away.
    """

    table: Table
    sources: tuple[int | None, ...]
    step: int

    def after(self, step: TableStep) -> tuple[int | None, ...]:
        """Return the sources of the table after a step."""
        return tuple(None if source is None else self.sources[source] for source in step.sources)


@attrs.define
class OtherEngines:
    """The tables of a log that are of another engine, while it is followed."""

    _stays: dict[Name, _Stay] = attrs.field(factory=dict)
    _changed: set[Name] = attrs.field(factory=set)

    def change(self, table: Table) -> None:
        """Note that rows of a table are changed."""
        self._changed.add(_name(table))

    def leave(self, step: TableStep, number: int) -> None:
        """Note that a step takes a table to another engine; `number`: that of its statement."""
        if step.before is not None and step.after is not None and not step.emptied:
            self._stays[_name(step.after)] = _Stay(step.before, step.sources, number)

    def move(self, step: TableStep) -> None:
        """Note what a step does to a table that stays in another engine, or is new there."""
        stay = None if step.before is None else self._stays.pop(_name(step.before), None)
        changed = step.before is not None and self.is_changed(step.before)
        if step.before is not None:
            self._changed.discard(_name(step.before))
        if step.after is None or step.emptied:
            return
        if stay is not None:
            self._stays[_name(step.after)] = attrs.evolve(stay, sources=stay.after(step))
        if changed:
            self.change(step.after)

    def is_changed(self, table: Table) -> bool:
        """Whether rows of a table were changed in another engine."""
        return _name(table) in self._changed

    def come_back(self, step: TableStep) -> tuple[int, TableStep] | None:
        """
        Take a step that brings a table to NDB.

        Returns:
            The number of the statement that took it away, and the step as one of the table that was there before; None
            if NDB did not have its rows.
        """
        stay = None if step.before is None else self._stays.pop(_name(step.before), None)
        if stay is None or step.emptied:
            return None
        return stay.step, TableStep(stay.table, step.after, stay.after(step), copied=True)


def _name(table: Table) -> Name:
    return table.database, table.name
