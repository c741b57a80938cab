"""
Tells the stories of rows and transactions from a result and the binlogs that it was made of.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any

import attrs
import pyarrow as pa
import pyarrow.dataset as pads

from conflict.config.arguments import StageProgress, no_progress
from conflict.engine.ledger.layout import OUTCOME_PLACE
from conflict.engine.ledger.table_keys import TableKey, has_moments
from conflict.errors import HistoryError
from conflict.explaining.asked import (
    EXCEPTIONS_KEY,
    exceptions_row,
    source_of,
    table_named,
    transaction_asked,
)
from conflict.explaining.drafts import EventDraft, StoryFacts, drafts_of
from conflict.explaining.keys_asked import GivenKey, identity_asked, key_as_given
from conflict.explaining.outcomes import (
    Applied,
    DecidedOperation,
    OpenDecision,
    applied_again,
    applied_epochs,
    decided,
    of_rows,
    open_decisions,
    unlogged_changes,
)
from conflict.explaining.replaying import ReplayedStory
from conflict.explaining.row_changes import RowLog, WantedChanges, WantedRow, read_logs
from conflict.explaining.row_ends import differing_rows, end_of
from conflict.explaining.short_story import answer_of, parting_of
from conflict.explaining.statements import FunctionsOverTime
from conflict.explaining.story import Story
from conflict.explaining.telling import StorySoFar, tell
from conflict.explaining.transactions_in_conflict import ConflictReasons
from conflict.history.run import Run
from conflict.results.conflicts import read_outcomes
from conflict.results.doubts import Doubt, doubts_from_the_middle, stopped_words
from conflict.results.result import Result
from conflict.rules.deployed import Deployed
from conflict.rules.exceptions_table import ExceptionsTable, cause_name
from conflict.runs.run_inputs import run_of_result
from conflict.telling.shown_text import listed, short_names
from ndb_formats.columnar.stretches import table_layouts
from ndb_formats.events.row_image import RowLayout
from ndb_formats.events.rows_event import Operation
from ndb_formats.schema.tables import Table


@attrs.define(slots=False)
class Explainer:
    """
    Tells stories from a result and its binlogs, which are read once for each that is asked for.

    Attributes:
        result: The result.
        run: The run that it was made of.
        progress: As for `conflict.resolve`.
    """

    result: Result
    run: Run
    progress: StageProgress = no_progress
    _reasons: ConflictReasons = attrs.field(init=False, repr=False)
    _keys: dict[str, TableKey] = attrs.field(factory=dict, init=False, repr=False)

    @_reasons.default
    def _reasons_before_reading(self) -> ConflictReasons:
        return ConflictReasons(self.result, FunctionsOverTime.of(self.run), self.file_names)

    @classmethod
    def of_result(cls, result: Result, progress: StageProgress = no_progress) -> Explainer:
        """
        Return the explainer of a result.

        Raises:
            HistoryError: A binlog has changed since, or what statements did in files that are not given is not known.
        """
        return cls(result, run_of_result(result.run, result.folder.uri), progress)

    @cached_property
    def tables(self) -> dict[str, Table]:
        """The tables by name."""
        return {table.full_name: table for table in self.run.data_schema.tables}

    def table_named(self, name: str) -> Table:
        """Return a table by the name that any cluster uses; see `conflict.explaining.asked.table_named`."""
        return table_named(self.tables, self.run.databases.run_name(name))

    @property
    def _functions(self) -> FunctionsOverTime:
        return self._reasons.functions

    @cached_property
    def applied(self) -> dict[str, list[Applied]]:
        """Per applier, the epochs that it applied."""
        return applied_epochs(self.result)

    @cached_property
    def doubts(self) -> tuple[Doubt, ...]:
        """What makes the result doubtful, and with it all stories; and what these lack."""
        missing = self._missing
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
    def _missing(self) -> str:
        """Which binlogs there are no more; empty if all are there."""
        files = [self.file_names[file] for each in self.run.kept_alone.values() for file in each.files]
        if not files:
            return ""
        one = len(files) == 1
        return (
            f"{listed(files)} {'is' if one else 'are'} not given, and the History alone has {'it' if one else 'them'}"
        )

    @cached_property
    def _starts(self) -> dict[str, int]:
        """The first own epoch that is read of each cluster whose log or whose binlogs start in the middle."""
        starts: dict[str, int] = self.result.run["starts_in_the_middle"]
        alone = {name: each.last_epoch + 1 for name, each in self.run.kept_alone.items()}
        return {name: max(starts.get(name, 0), alone.get(name, 0)) for name in {**starts, **alone}}

    @cached_property
    def _key_columns(self) -> dict[str, Sequence[str]]:
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

    def row(self, table: str, key: GivenKey) -> Story:
        """
        Return the story of a row.

        Args:
            table: ``database.table``, or the table alone where one database has it.
            key: Its key; see `conflict.explaining.keys_asked.identity_asked`.

        Raises:
            HistoryError: There is no such table, or nothing ever happened to the row.
            ConfigurationError: The key is not understood.
        """
        named = self.table_named(table)
        (story,) = self.rows([(named.full_name, identity_asked(named.full_name, self.key_of(named.full_name), key))])
        if not story.events:
            missing = self._missing and f"; {self._missing}"
            message = f"nothing happened to the row {story.key} of {named.full_name} in these binlogs{missing}"
            raise HistoryError(message)
        return story

    def differences(self, table: str | None = None) -> list[Story]:
        """Return the stories of the rows that end different; see `explain_differences`."""
        if table is not None:
            table = self.table_named(table).full_name
        keyed = (each.full_name for each in self.tables.values() if each.primary_key)
        names = [each for each in keyed if table in (None, each) and self.result.run["differing_rows"].get(each)]
        rows = [row for each in names for row in differing_rows(self.result, each, self.key_of(each))]
        return self.rows(rows) if rows else []

    def exception(self, asked: int | str, table: str | None = None) -> Story:
        """
        Return the story of the row that an exceptions row stands for.

        Args:
            asked: Number of the exceptions row, from 1: cluster by cluster, table by table. Or the four values of its
                primary key: ``server_id,source_server_id,source_epoch,count``.
            table: The table whose exceptions table is meant; None for all of them.

        Raises:
            ConfigurationError: This is neither, or several exceptions tables have a row with that key.
            HistoryError: There is no such exceptions row, or no such table.
        """
        names = list(self.tables) if table is None else [self.table_named(table).full_name]
        return self._of_exceptions_row(*exceptions_row(self.result, names, asked))

    def _of_exceptions_row(self, cluster: str, table: str, row: Mapping[str, Any]) -> Story:
        place = row[OUTCOME_PLACE.name]
        asked = place["table"], place["identity"]
        names = ("source_epoch", "epoch", "group", "ordinal")
        chosen = of_rows([asked])
        here = [
            each
            for each in decided(read_outcomes(self.result.folder, [str(place["applier"])], chosen))
            if all(each[name] == place[name] for name in names)
        ]
        # An update that spells its key anew has two outcomes: of a delete and of a write.
        told = row.get("NDB$OP_TYPE")
        found = min(here, key=lambda each: told not in (each["operation"], Operation[each["operation"]]), default=None)
        (story,) = self.rows([asked], found)
        exceptions = self._exceptions_table(cluster, table)
        fixed = list(row)[:EXCEPTIONS_KEY]
        shown = [
            f"{name}={value}"
            for name, value in row.items()
            if name in fixed or (name.startswith("NDB$") and name != OUTCOME_PLACE.name)
        ]
        if exceptions is None:
            return attrs.evolve(story, exceptions_row=", ".join(shown))
        name = self.run.databases.own_name(cluster, exceptions.table.full_name)
        return attrs.evolve(story, exceptions_row=f"{name} on {cluster}: {', '.join(shown)}")

    def _exceptions_table(self, cluster: str, table: str) -> ExceptionsTable | None:
        setup = self._functions.start.get(cluster, {}).get(table)
        return None if setup is None else setup.exceptions

    def transaction(self, asked: int | str) -> Story:
        """
        Return what became of a transaction.

        Args:
            asked: Its id, as a number or text, or ``cluster:id``: each cluster numbers its own transactions.

        Raises:
            ConfigurationError: This is no id, or transactions of several clusters have it.
            HistoryError: No binlog has a transaction with that id, or it committed before the result begins.
        """
        cluster, number = transaction_asked(asked, self.result.clusters)
        wanted = WantedChanges(transactions=frozenset({number}))
        logs = read_logs(self.run, wanted, self.progress)
        source = source_of(logs, cluster, number, self._missing)
        with_key = frozenset(change.row for change in logs[source].changes if change.key)
        if with_key:
            logs = read_logs(self.run, attrs.evolve(wanted, rows=with_key), self.progress)
        logs = {name: log if name == source else log.of_rows(with_key) for name, log in logs.items()}
        self._take(logs)
        its = (pads.field("transaction_id") == pa.scalar(number, pa.uint64())) & (pads.field("source") == source)
        outcomes = decided(self._outcomes(its | of_rows(with_key)))
        facts = attrs.evolve(self._facts(logs, outcomes, hears=frozenset()), open=self._open(with_key))
        told = self._tell(drafts_of(facts), facts)
        its_events = {each.number for each in told.events if (each.source, each.transaction_id) == (source, number)}
        if not its_events:
            message = f"transaction {number} of {source} committed before the first epoch of the result"
            raise HistoryError(message)
        events = tuple(told.events[each - 1] for each in answer_of(told, its_events))
        mine = [each for each in outcomes if (each["source"], each["transaction_id"]) == (source, number)]
        because, follows = self._reasons.trees(mine)
        functions = {
            (cluster, table): self._functions.text(cluster, table)
            for cluster in self.result.clusters
            for table in dict.fromkeys(event.table for event in events)
        }
        return Story(
            "",
            "",
            functions,
            events,
            transaction=f"{source}:{number}",
            because=because,
            follows=follows,
            doubts=self.doubts,
            notes=self._notes(logs, mine),
            file_names=self.file_names,
            key_columns=self._key_columns,
        )

    def rows(self, rows: Sequence[WantedRow], marked: DecidedOperation | None = None) -> list[Story]:
        """
        Return the stories of some rows; the binlogs are read once for all of them.

        Args:
            rows: The rows.
            marked: The outcome that was asked for, if one was.
        """
        logs = read_logs(self.run, WantedChanges(frozenset(rows)), self.progress)
        self._take(logs)
        outcomes: dict[WantedRow, list[DecidedOperation]] = {}
        for each in decided(self._outcomes(of_rows(rows))):
            outcomes.setdefault(each.row, []).append(each)
        changes = {name: log.by_row() for name, log in logs.items()}
        open_decisions = self._open(rows)
        return [
            self._story(
                row,
                {name: attrs.evolve(log, changes=changes[name].get(row, [])) for name, log in logs.items()},
                outcomes.get(row, []),
                marked,
                open_decisions,
            )
            for row in rows
        ]

    def _story(
        self,
        row: WantedRow,
        logs: Mapping[str, RowLog],
        outcomes: list[DecidedOperation],
        marked: DecidedOperation | None,
        open_decisions: Mapping[OpenDecision, tuple[str, ...]],
    ) -> Story:
        table, identity = row
        key = self.key_of(table)
        hears = frozenset(name for name in logs if self._by_epoch(name, table))
        facts = attrs.evolve(self._facts(logs, outcomes, hears), told_of={row: key.text(identity)}, open=open_decisions)
        drafts = drafts_of(facts)
        told = self._tell(drafts, facts)
        ends = {name: end_of(self.result, name, row, key) for name in self.result.clusters}
        number = next(
            (
                told.numbers[id(draft)]
                for draft in drafts
                if marked is not None and draft.decided is not None and draft.decided.columns == marked.columns
            ),
            None,
        )
        answer = () if number is None else answer_of(told, [number])
        because, follows = self._reasons.trees([] if marked is None else [marked])
        functions = {(name, table): self._functions.text(name, table) for name in logs}
        notes = (*unlogged_changes(self.result, row), *self._notes(logs, outcomes))
        story = Story(
            table,
            key.text(identity),
            functions,
            tuple(told.events),
            ends,
            identity=identity,
            given=key_as_given(table, key, identity),
            marked=number,
            because=because,
            follows=follows,
            chosen=answer,
            doubts=self.doubts,
            notes=notes,
            file_names=self.file_names,
            key_columns=self._key_columns,
        )
        if not story.differs:
            return story
        parting = parting_of(told, row, ends)
        chosen = answer or parting.events
        return attrs.evolve(story, parting=parting.sentence, parted_by=parting.number, chosen=chosen)

    def _outcomes(self, chosen: pads.Expression) -> pa.Table:
        return read_outcomes(self.result.folder, self.result.clusters, chosen)

    def _facts(
        self, logs: Mapping[str, RowLog], outcomes: Iterable[DecidedOperation], hears: frozenset[str]
    ) -> StoryFacts:
        kept = {
            name: attrs.evolve(log, changes=[each for each in log.changes if each.epoch >= self._starts.get(name, 0)])
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
            hears,
            filtered={each.name: self.run.filtered(each) for each in self.run.clusters},
            skipped=frozenset(skipped),
            again=applied_again(self.result),
            tables={table.full_name: table for table in self.run.data_schema.tables},
        )

    def _tell(self, drafts: Sequence[EventDraft], facts: StoryFacts) -> StorySoFar:
        replayed = ReplayedStory.of(self.run, facts, self._starts)
        return tell(drafts, facts, replayed, reason=self._reasons.reason, names=self.file_names)

    def _take(self, logs: Mapping[str, RowLog]) -> None:
        """Take from binlogs that were read when functions change."""
        changes = {name: log.statements for name, log in logs.items()}
        functions = attrs.evolve(self._functions, changes=changes)
        self._reasons = ConflictReasons(self.result, functions, self.file_names)

    def _by_epoch(self, cluster: str, table: str) -> bool:
        """Whether a cluster judges a table by epoch at any time."""
        role = next(each.role for each in self.run.clusters if each.name == cluster)
        found = self._functions.ever(cluster, table)
        return any(Deployed(each, role).refreshes for each in found)

    def _notes(self, logs: Mapping[str, RowLog], outcomes: Iterable[DecidedOperation]) -> tuple[str, ...]:
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

    def _open(self, rows: Iterable[WantedRow]) -> dict[OpenDecision, tuple[str, ...]]:
        """Return what else could have been decided on some rows, by the names of the exceptions table."""
        return open_decisions(
            self.result, rows, lambda *place: cause_name(self._exceptions_table(*place[:2]), place[2])
        )
