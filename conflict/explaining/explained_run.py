"""
What stories are told from: a result, the run that it was made of, and what makes both doubtful.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property

import attrs

from conflict.engine.ledger.table_keys import TableKey, has_moments
from conflict.explaining.asked import table_named
from conflict.explaining.drafts import StoryFacts
from conflict.explaining.outcomes import (
    Applied,
    OpenDecision,
    RecordedOutcome,
    applied_again,
    applied_epochs,
    open_decisions,
)
from conflict.explaining.row_changes import RowLog, WantedRow
from conflict.history.run import Run
from conflict.results.doubts import Doubt, doubts_from_the_middle, stopped_words
from conflict.results.result import Result
from conflict.rules.exceptions_table import ExceptionsTable, cause_name
from conflict.telling.shown_text import listed, short_names
from ndb_formats.columnar.stretches import table_layouts
from ndb_formats.events.row_image import RowLayout
from ndb_formats.schema.tables import Table


@attrs.define(slots=False)
class ExplainedRun:
    """
    A result and its run.

    Attributes:
        result: The result.
        run: The run that it was made of.
    """

    result: Result
    run: Run
    _keys: dict[str, TableKey] = attrs.field(factory=dict, init=False, repr=False)

    @cached_property
    def tables(self) -> dict[str, Table]:
        """The tables by name."""
        return {table.full_name: table for table in self.run.data_schema.tables}

    def table_named(self, name: str) -> Table:
        """Return a table by the name that any cluster uses; see `conflict.explaining.asked.table_named`."""
        return table_named(self.tables, self.run.databases.run_name(name))

    @cached_property
    def applied(self) -> dict[str, list[Applied]]:
        """Per applier, the epochs that it applied."""
        return applied_epochs(self.result)

    @cached_property
    def doubts(self) -> tuple[Doubt, ...]:
        """What makes the result doubtful, and with it all stories; and what these lack."""
        missing = self.missing
        if not missing:
            return doubts_from_the_middle(self.result.run)
        ends = " and ".join(f"epoch {each.last_epoch} of {name}" for name, each in self.run.kept_alone.items())
        text = (
            f"{missing}. Of what was before, stories have what the result says: statements, and operations that were "
            "not simply applied. What a row was is not known until the binlogs show it; what an applier took later of "
            "epochs from before is told as its own binlog shows it."
        )
        return (*doubts_from_the_middle(self.result.run), Doubt(f"The binlogs start after {ends}", text))

    @cached_property
    def missing(self) -> str:
        """Which binlogs there are no more; empty if all are there."""
        files = [self.file_names[file] for each in self.run.kept_alone.values() for file in each.files]
        if not files:
            return ""
        one = len(files) == 1
        return (
            f"{listed(files)} {'is' if one else 'are'} not given, and the History alone has {'it' if one else 'them'}"
        )

    @cached_property
    def starts(self) -> dict[str, int]:
        """The first own epoch that is read of each cluster whose log or whose binlogs start in the middle."""
        starts: dict[str, int] = self.result.run["starts_in_the_middle"]
        alone = {name: each.last_epoch + 1 for name, each in self.run.kept_alone.items()}
        return {name: max(starts.get(name, 0), alone.get(name, 0)) for name in {**starts, **alone}}

    @cached_property
    def key_columns(self) -> dict[str, Sequence[str]]:
        """By table, the columns of its primary key."""
        return {name: table.primary_key for name, table in self.tables.items()}

    @cached_property
    def file_names(self) -> dict[str, str]:
        """The binlogs of all clusters by path: what tells each from the others."""
        alone = (file for each in self.run.kept_alone.values() for file in each.files)
        return short_names([*map(str, self.run.configuration.files), *alone])

    def key_of(self, table: str) -> TableKey:
        """Return the primary key of a table, as its rows are logged; moments may have an older form."""
        if table not in self._keys:
            definition, layouts = self.tables[table], list[RowLayout]()
            if has_moments(definition) and not self.run.definitions:  # else they are converted as they are read
                cluster = self.run.clusters[0]
                name, own = self.run.databases.own_name(cluster.name, table), self.run.schema_at_start(cluster)
                layouts = table_layouts([str(piece.file) for piece in self.run.log_of(cluster)], name, own)
            self._keys[table] = TableKey.of(definition, layouts[0] if layouts else None)
        return self._keys[table]

    def exceptions_table(self, cluster: str, table: str) -> ExceptionsTable | None:
        """Return the exceptions table of a table on a cluster when its binlogs start; None if there is none."""
        setup = self.run.setups.at_start.get(cluster, {}).get(table)
        return None if setup is None else setup.exceptions

    def facts(self, logs: Mapping[str, RowLog], outcomes: Iterable[RecordedOutcome]) -> StoryFacts:
        """Return what is known of the operations of a story, from what the binlogs hold of it and its outcomes."""
        kept = {
            name: attrs.evolve(log, changes=[each for each in log.changes if each.epoch >= self.starts.get(name, 0)])
            for name, log in logs.items()
        }
        sources = {name: tuple(each.name for each in self.run.links.sources(name)) for name in logs}
        skipped = (
            (each["applier"], each["source"], each["source_epoch"]) for each in self.result.run["skipped_epochs"]
        )
        return StoryFacts(
            kept,
            self.applied,
            tuple(outcomes),
            self.run.links.server_ids,
            sources,
            filtered={each.name: self.run.filtered(each) for each in self.run.clusters},
            skipped=frozenset(skipped),
            again=applied_again(self.result),
            tables=self.tables,
            starts=self.starts,
        )

    def notes(self, logs: Mapping[str, RowLog], outcomes: Iterable[RecordedOutcome]) -> tuple[str, ...]:
        """Return what else is to be said of a story: where binlogs end early, and appliers stopped."""
        document = self.result.run
        notes = [
            f"The binlogs of {name} end early: {log.error}."
            for name, log in logs.items()
            if log.error and name not in document["binlog_errors"]  # else it is a doubt
        ]
        notes += [f"{stopped_words(document, name)}: {stop['message']}" for name, stop in document["stops"].items()]
        if any(each["verdict"] == "CANNOT_TELL" for each in outcomes):
            notes.append("What the row was before the log starts is not known, and a decision depends on it.")
        return tuple(notes)

    def open_decisions(self, rows: Iterable[WantedRow]) -> dict[OpenDecision, tuple[str, ...]]:
        """Return what else could have been decided on some rows, by the names of the exceptions table."""
        return open_decisions(self.result, rows, lambda *place: cause_name(self.exceptions_table(*place[:2]), place[2]))
