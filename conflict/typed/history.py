"""
A History as it is typed in: a schedule, with what becomes of it, and its doors.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Self

import attrs

from conflict.typed.json_lines import json_lines_of, schedule_of_json_lines
from conflict.typed.schedule import Schedule, TypedStep, refuse_number
from conflict.typed.steps import Apply, Restart, Step, next_epoch
from ndb_formats.stored import path_of

if TYPE_CHECKING:
    from conflict.config.run_file import RunFile
    from conflict.explaining.keys_asked import GivenKey
    from conflict.results.result import Result
    from conflict.typed.debezium import Events
    from conflict.typed.rules import Function
    from conflict.typed.verdicts import Verdicts


@attrs.frozen(init=False, repr=False, slots=False)
class History(Schedule):
    """
    What users of two clusters did, and which epochs of each other the clusters applied, in each cluster's order.

        History(
            start=["insert 1 v=0"],
            A=["update 1 v=5", "apply 1"],
            B=["update 1 v=7", "apply 1"],
        )

    Each step is an epoch of its cluster: step 2 is epoch 2, unless steps name their epochs. What appliers decide, and
    what rows become, follows from the steps and a conflict function: `resolve`.
    """

    @classmethod
    def of(cls, schedule: Schedule) -> Self:
        """Return a schedule as a History."""
        return cls(tables=schedule.tables, start=schedule.start, **schedule.lanes)

    def __str__(self) -> str:
        from conflict.telling.terminal import telling_text  # noqa: PLC0415  # what is told is loaded when it is
        from conflict.typed.telling import tell_history  # noqa: PLC0415  # as above

        return telling_text(tell_history(self))

    def _repr_html_(self) -> str:
        from conflict.typed.telling import history_picture  # noqa: PLC0415  # as above

        return history_picture(self)

    def resolve(
        self, function: Function | Mapping[str, Function] = None, binlog_type: int | str = 7, primary: str | None = None
    ) -> Verdicts:
        """
        Return what becomes of the History under a conflict function.

        Args:
            function: The function of all tables, as in `mysql.ndb_replication`, such as ``NDB$MAX(x)``; None for none;
                or by table.
            binlog_type: NDB binlog type of all tables.
            primary: The primary, for functions by epoch: NDB$EPOCH and NDB$EPOCH_TRANS are on it alone. By default the
                first cluster.

        Raises:
            ConfigurationError: A function is not known, or the servers refuse a table.
        """
        from conflict.typed.rules import rules_of  # noqa: PLC0415  # what resolves is loaded when it is needed
        from conflict.typed.verdicts import verdicts_of  # noqa: PLC0415  # as above

        return verdicts_of(self, rules_of(self, function, binlog_type, primary))

    def to_binlogs(
        self,
        folder: Path | str,
        function: Function | Mapping[str, Function] = None,
        binlog_type: int | str = 7,
        primary: str | None = None,
    ) -> Path:
        """
        Write the binlogs of both clusters, and a run file for them, and return its path.

        Args:
            folder: A new folder.
            function: As for `resolve`.
            binlog_type: As for `resolve`.
            primary: As for `resolve`.

        Raises:
            ConfigurationError: As for `resolve`; or the folder is there.
        """
        from conflict.typed.recording import write_run  # noqa: PLC0415  # as above
        from conflict.typed.rules import rules_of  # noqa: PLC0415  # as above

        write_run(self, rules_of(self, function, binlog_type, primary), path_of(folder))
        return path_of(folder) / "run.toml"

    def to_recording(
        self,
        folder: Path | str,
        function: Function | Mapping[str, Function] = None,
        binlog_type: int | str = 7,
        primary: str | None = None,
        description: str = "A History that was typed in.",
    ) -> Path:
        """
        Write a recording, for `conformance`: the scenario, binlogs, and what clusters are expected to end with.

        Args:
            folder: A new folder.
            function: As for `resolve`.
            binlog_type: As for `resolve`.
            primary: As for `resolve`.
            description: What the recording is about.

        Raises:
            ConfigurationError: As for `resolve`; or the folder is there, or tables are in several databases.
        """
        from conflict.typed.recording import write_recording  # noqa: PLC0415  # as above
        from conflict.typed.rules import rules_of  # noqa: PLC0415  # as above

        write_recording(self, rules_of(self, function, binlog_type, primary), description, path_of(folder))
        return path_of(folder)

    def to_json_lines(self) -> str:
        """Return the History as JSON lines, one step a line."""
        return json_lines_of(self)

    @classmethod
    def from_json_lines(cls, source: Path | str) -> Self:
        """
        Return the History of JSON lines.

        Args:
            source: A file, or the lines as one text.

        Raises:
            ConfigurationError: A line is no JSON, or no step; the message names it.
        """
        text = str(source)
        if isinstance(source, str) and source.lstrip().startswith("{"):
            return cls.of(schedule_of_json_lines(text.split("\n")))
        path = path_of(source)
        return cls.of(schedule_of_json_lines(path.read_text("utf-8").split("\n"), f"{path}: line"))

    @classmethod
    def from_debezium(
        cls,
        *,
        tables: str,
        server_ids: Mapping[str, int] | None = None,
        delay_ms: int | None = None,
        **clusters: Events,
    ) -> Self:
        """
        Return the History of change events of Debezium's MySQL connector, one connector on each of two clusters.

        Args:
            tables: CREATE TABLE statements; the events do not say all of a table.
            server_ids: By cluster, the server id under which its own changes are logged; needed where events have
                several.
            delay_ms: After how many milliseconds a transaction reaches the other cluster; needed where no event is one
                that an applier made.
            clusters: By cluster, its events in order: a file of JSON lines, or texts or mappings; with or without the
                schema, and without tombstones or with them.

        Raises:
            ConfigurationError: An event cannot be read, or what was applied when does not follow from the events.
        """
        from conflict.typed.debezium import of_debezium  # noqa: PLC0415  # as above

        refuse_number(clusters)
        return cls.of(of_debezium(clusters, tables, server_ids, delay_ms))

    @classmethod
    def from_recording(cls, folder: Path | str) -> Self:
        """
        Return the History of a recording of two clusters, with its epochs and transaction ids.

        Args:
            folder: The folder, which holds a `scenario.json` and the binlogs.

        Raises:
            ConfigurationError: It is no such folder, or has something that cannot be typed.
        """
        from conflict.typed.retyped import of_recording  # noqa: PLC0415  # as above

        return cls.of(of_recording(path_of(folder)))

    @classmethod
    def from_result(
        cls,
        run: Result | RunFile | Path | str,
        *,
        table: str | None = None,
        key: GivenKey | None = None,
        transaction: int | str | None = None,
    ) -> Self:
        """
        Return the History of a run, or what it did to a row, or to the rows of a transaction.

        Epochs are numbered anew, in the same order. The binlogs are read once more, in memory.

        Args:
            run: A result, its folder, or a run file.
            table: Table of the row, database.table, or the table alone; without a key, all rows of it.
            key: The key of the row: its values by column, or as text, ``a=1, b=two``.
            transaction: The id of a transaction; ``CLUSTER:ID`` if two have it.

        Raises:
            ConfigurationError: What is asked for is not understood, or has something that cannot be typed.
            HistoryError: There is no such table, row or transaction, or a binlog has changed since.
        """
        from conflict.typed.of_result import of_result  # noqa: PLC0415  # as above

        return cls.of(of_result(run, table, key, transaction))

    def settled(self) -> Self:
        """
        Return the History in which at the end both clusters apply all that they have not applied, twice.

        The second time brings back what the first one made: rows that a primary refreshed, and the news of what
        arrived.
        """
        lanes = {name: list[TypedStep](steps) for name, steps in self.lanes.items()}
        ends = {name: _last_epoch(steps) for name, steps in self.lanes.items()}
        for name in self.names * 2:
            other = self.other(name)
            if ends[other] > _last_applied(lanes[name]):
                ends[name] = next_epoch(ends[name])
                lanes[name].append(Apply(ends[other], ends[name]))
        return type(self)(tables=self.tables, start=self.start, **lanes)


def _last_epoch(steps: Iterable[Step]) -> int:
    """Return the last epoch of a cluster."""
    return max((step.epoch or 0 for step in steps if not isinstance(step, Restart)), default=0)


def _last_applied(steps: Iterable[TypedStep]) -> int:
    """Return the last epoch that was applied since the last rewind."""
    last = 0
    for step in steps:
        if isinstance(step, Restart) and step.rewound:
            last = 0
        elif isinstance(step, Apply):
            last = step.foreign_epoch or 0
    return last
