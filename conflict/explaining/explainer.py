"""
Tells the stories of rows and transactions from a result and the binlogs that it was made of.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import attrs
import pyarrow as pa
import pyarrow.dataset as pads

from conflict.config.arguments import StageProgress, no_progress
from conflict.engine.ledger.layout import OUTCOME_PLACE
from conflict.errors import HistoryError
from conflict.explaining.asked import EXCEPTIONS_KEY, exceptions_row, source_of, transaction_asked
from conflict.explaining.carried_out import StoryRows
from conflict.explaining.drafts import EventDraft, StoryFacts, drafts_of
from conflict.explaining.explained_run import ExplainedRun
from conflict.explaining.keys_asked import GivenKey, identity_asked, key_as_given
from conflict.explaining.outcomes import RecordedOutcome, decided, of_rows, unlogged_changes, with_merges
from conflict.explaining.row_changes import RowLog, WantedChanges, WantedRow, read_logs
from conflict.explaining.row_ends import differing_rows, end_of
from conflict.explaining.short_story import answer_of, parting_of
from conflict.explaining.statements import FunctionsOverTime
from conflict.explaining.story import Story
from conflict.explaining.story_so_far import StorySoFar, tell
from conflict.explaining.transactions_in_conflict import ConflictReasons
from conflict.results.conflicts import read_outcomes
from conflict.results.result import Result
from conflict.rules.deployed import Deployed
from conflict.runs.run_inputs import refuse_later_part, run_of_result
from ndb_formats.events.rows_event import Operation


@attrs.define(slots=False)
class Explainer(ExplainedRun):
    """
    Tells stories from a result and its binlogs, which are read once for each that is asked for.

    Attributes:
        progress: As for `conflict.resolve`.
    """

    progress: StageProgress = no_progress

    @classmethod
    def of_result(cls, result: Result, progress: StageProgress = no_progress) -> Explainer:
        """
        Return the explainer of a result.

        Raises:
            HistoryError: A binlog has changed since, or what statements did in files that are not given is not known.
        """
        refuse_later_part(result.run, result.folder.uri)
        return cls(result, run_of_result(result.run, result.folder.uri), progress)

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
            missing = self.missing and f"; {self.missing}"
            message = f"nothing happened to the row {story.key} of {named.full_name} in these binlogs{missing}"
            raise HistoryError(message)
        return story

    def differences(self, table: str | None = None, most: int | None = None) -> list[Story]:
        """Return the stories of the rows that end different, of so many at most; see `explain_differences`."""
        if table is not None:
            table = self.table_named(table).full_name
        keyed = (each.full_name for each in self.tables.values() if each.primary_key)
        names = [each for each in keyed if table in (None, each) and self.result.run["differing_rows"].get(each)]
        rows = [row for each in names for row in differing_rows(self.result, each, self.key_of(each))]
        return self.rows(rows[:most]) if rows else []

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
            for each in self._decided(read_outcomes(self.result.folder, [str(place["applier"])], chosen))
            if all(each[name] == place[name] for name in names)
        ]
        # An update that spells its key anew has two outcomes: of a delete and of a write.
        told = row.get("NDB$OP_TYPE")
        found = min(here, key=lambda each: told not in (each["operation"], Operation[each["operation"]]), default=None)
        (story,) = self.rows([asked], found)
        exceptions = self.exceptions_table(cluster, table)
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
        source = source_of(logs, cluster, number, self.missing)
        with_key = frozenset(change.row for change in logs[source].changes if change.key)
        if with_key:
            logs = read_logs(self.run, attrs.evolve(wanted, rows=with_key), self.progress)
        logs = {name: log if name == source else log.of_rows(with_key) for name, log in logs.items()}
        reasons = self._reasons(logs)
        its = (pads.field("transaction_id") == pa.scalar(number, pa.uint64())) & (pads.field("source") == source)
        outcomes = self._decided(self._outcomes(its | of_rows(with_key)))
        facts = attrs.evolve(self.facts(logs, outcomes), open=self.open_decisions(with_key))
        told = self._tell(drafts_of(facts), facts, reasons)
        its_events = {each.number for each in told.events if (each.source, each.transaction_id) == (source, number)}
        if not its_events:
            message = f"transaction {number} of {source} committed before the first epoch of the result"
            raise HistoryError(message)
        events = tuple(told.events[each - 1] for each in answer_of(told, its_events))
        mine = [each for each in outcomes if (each["source"], each["transaction_id"]) == (source, number)]
        because, follows = reasons.trees(mine)
        functions = {
            (cluster, table): reasons.functions.text(cluster, table)
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
            notes=self.notes(logs, mine),
            file_names=self.file_names,
            key_columns=self.key_columns,
        )

    def rows(self, rows: Sequence[WantedRow], marked: RecordedOutcome | None = None) -> list[Story]:
        """
        Return the stories of some rows; the binlogs are read once for all of them.

        Args:
            rows: The rows.
            marked: The outcome that was asked for, if one was.
        """
        logs = read_logs(self.run, WantedChanges(frozenset(rows)), self.progress)
        reasons = self._reasons(logs)
        outcomes: dict[WantedRow, list[RecordedOutcome]] = {}
        for each in self._decided(self._outcomes(of_rows(rows))):
            outcomes.setdefault(each.row, []).append(each)
        facts = attrs.evolve(self.facts(logs, ()), open=self.open_decisions(rows))
        changes = {name: log.by_row() for name, log in facts.logs.items()}
        found = []
        for row in rows:
            own = {name: attrs.evolve(log, changes=changes[name].get(row, [])) for name, log in facts.logs.items()}
            of_row = attrs.evolve(facts, logs=own, decided=tuple(outcomes.get(row, ())))
            found.append(self._story(row, of_row, reasons, marked))
        return found

    def _story(
        self, row: WantedRow, facts: StoryFacts, reasons: ConflictReasons, marked: RecordedOutcome | None
    ) -> Story:
        """Return the story of a row from the facts of its operations."""
        table, identity = row
        key = self.key_of(table)
        by_epoch = self._by_epoch(table, reasons.functions)
        facts = attrs.evolve(facts, told_of={row: key.text(identity)}, by_epoch=by_epoch)
        drafts = drafts_of(facts)
        told = self._tell(drafts, facts, reasons)
        ends = {name: end_of(self.result, name, row, key) for name in self.result.clusters}
        asked = (each for each in drafts if marked is not None and each.decided is not None)
        number = next((told.numbers[id(each)] for each in asked if each.decided == marked), None)
        because, follows = reasons.trees([] if marked is None else [marked])
        story = Story(
            table,
            key.text(identity),
            {(name, table): reasons.functions.text(name, table) for name in facts.logs},
            tuple(told.events),
            ends,
            identity=identity,
            given=key_as_given(table, key, identity),
            marked=number,
            because=because,
            follows=follows,
            chosen=() if number is None else answer_of(told, [number]),
            doubts=self.doubts,
            notes=(*unlogged_changes(self.result, row), *self.notes(facts.logs, facts.decided)),
            file_names=self.file_names,
            key_columns=self.key_columns,
        )
        if not story.differs:
            return story
        parting = parting_of(told, row, ends)
        chosen = story.chosen or parting.events
        return attrs.evolve(story, parting=parting.sentence, parted_by=parting.number, chosen=chosen)

    def _decided(self, outcomes: pa.Table) -> list[RecordedOutcome]:
        return with_merges(self.result, decided(outcomes))

    def _outcomes(self, chosen: pads.Expression) -> pa.Table:
        return read_outcomes(self.result.folder, self.result.clusters, chosen)

    def _reasons(self, logs: Mapping[str, RowLog]) -> ConflictReasons:
        """Return why transactions are in conflict, with the functions that statements in the binlogs set up."""
        changes = {name: log.statements for name, log in logs.items()}
        functions = FunctionsOverTime(self.run.setups.at_start, changes)
        return ConflictReasons(self.result, functions, self.file_names)

    def _tell(self, drafts: Sequence[EventDraft], facts: StoryFacts, reasons: ConflictReasons) -> StorySoFar:
        roles = {each.name: each.role for each in self.run.clusters}
        rows = StoryRows.of(facts, self.run.setups.at_start, roles)
        return tell(drafts, facts, rows, reason=reasons.reason, names=self.file_names)

    def _by_epoch(self, table: str, functions: FunctionsOverTime) -> frozenset[str]:
        """Return the clusters that judge a table by epoch at any time."""
        return frozenset(
            cluster.name
            for cluster in self.run.clusters
            for each in functions.ever(cluster.name, table)
            if Deployed(each, cluster.role).refreshes
        )
