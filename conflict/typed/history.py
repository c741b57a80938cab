"""
A History as it is typed in: the steps of two clusters.

It holds no consequences. What appliers decide, and what rows become, follows from the steps and a conflict function:
`History.resolve`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import attrs

from conflict.errors import ConfigurationError
from conflict.typed.json_lines import history_of_json_lines, json_lines_of
from conflict.typed.notation import change_text, read_step, step_text
from conflict.typed.order import PlacedStep, placed_steps
from conflict.typed.steps import (
    FIRST_EPOCH,
    Apply,
    Change,
    Restart,
    Step,
    Transaction,
    epoch_text,
    next_epoch,
)
from conflict.typed.tables import Tables
from ndb_formats.errors import FormatError
from ndb_formats.events.rows_event import Operation
from ndb_formats.stored import path_of

if TYPE_CHECKING:
    from conflict.config.run_file import RunFile
    from conflict.explaining.keys_asked import GivenKey
    from conflict.resolvers.resolver import Resolver
    from conflict.results.result import Result
    from conflict.rules.functions import ConflictFunction
    from conflict.typed.debezium import Events
    from conflict.typed.verdicts import Verdicts

    Function = str | Resolver | ConflictFunction | None

TypedStep = Step | Change | str
_CLUSTERS = 2


@attrs.frozen(init=False, repr=False, slots=False)
class History:
    """
    What users of two clusters did, and which epochs of each other the clusters applied, in each cluster's order.

        History(
            start=["insert 1 v=0"],
            A=["update 1 v=5", "apply 1"],
            B=["update 1 v=7", "apply 1"],
        )

    Each step is an epoch of its cluster: step 2 is epoch 2, unless steps name their epochs.

    Attributes:
        tables: The tables.
        start: Inserts of the rows that both clusters held at first.
        lanes: The steps of each cluster, each with its epoch.
    """

    tables: Tables
    start: tuple[Change, ...]
    lanes: Mapping[str, tuple[Step, ...]] = attrs.field(hash=False)

    def __init__(
        self,
        *,
        tables: str | Tables | None = None,
        start: Iterable[Change | str] = (),
        **clusters: Iterable[TypedStep],
    ) -> None:
        """
        Take the steps, as texts (see `conflict.typed.notation`) or as values (see `conflict.typed.steps`).

        Args:
            tables: CREATE TABLE statements; by default one table `t` with ``id``, ``v`` and ``x INT UNSIGNED``.
            start: Inserts of the rows that both clusters hold at first.
            clusters: The steps of each of two clusters, by its name.

        Raises:
            ConfigurationError: A step cannot be read or does not fit the tables, or steps wait for each other.
            SchemaError: A definition cannot be read.
        """
        known = tables if isinstance(tables, Tables) else Tables.of(tables)
        _refuse_number(clusters)
        read = {name: list(_read_steps(known, name, steps)) for name, steps in clusters.items()}
        rows = tuple(_start(known, start))
        numbered = {name: list(_numbered(name, steps, FIRST_EPOCH if rows else 1)) for name, steps in read.items()}
        first, second = numbered
        others = {first: numbered[second], second: numbered[first]}
        lanes = {name: tuple(_with_applies(name, steps, others[name])) for name, steps in numbered.items()}
        self.__attrs_init__(known, rows, lanes)
        _refuse_unknown_rows(self)
        _ = self.placed

    def __repr__(self) -> str:
        lanes = {name: list(short_texts(self, steps)) for name, steps in self.lanes.items()}
        given: dict[str, object] = {} if self.tables.is_default else {"tables": self.tables.sql}
        if self.start:
            given["start"] = [change_text(change, self.tables.first.name) for change in self.start]
        return f"History({', '.join(f'{name}={value!r}' for name, value in (given | lanes).items())})"

    def __str__(self) -> str:
        from conflict.telling.terminal import telling_text  # noqa: PLC0415  # as below
        from conflict.typed.telling import tell_history  # noqa: PLC0415  # it imports this module

        return telling_text(tell_history(self))

    def _repr_html_(self) -> str:
        from conflict.typed.telling import history_picture  # noqa: PLC0415  # as above

        return history_picture(self)

    @property
    def names(self) -> tuple[str, str]:
        """The names of the clusters."""
        first, second = self.lanes
        return first, second

    def other(self, name: str) -> str:
        """Return the name of the other cluster."""
        first, second = self.names
        return second if name == first else first

    @cached_property
    def placed(self) -> list[PlacedStep]:
        """All steps in an order in which everything comes after its cause."""
        return placed_steps(self.lanes)

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
    def from_json_lines(cls, source: Path | str) -> History:
        """
        Return the History of JSON lines.

        Args:
            source: A file, or the lines as one text.

        Raises:
            ConfigurationError: A line is no JSON, or no step; the message names it.
        """
        text = str(source)
        if isinstance(source, str) and source.lstrip().startswith("{"):
            return history_of_json_lines(text.split("\n"))
        path = path_of(source)
        return history_of_json_lines(path.read_text("utf-8").split("\n"), f"{path}: line")

    @classmethod
    def from_debezium(
        cls,
        *,
        tables: str,
        server_ids: Mapping[str, int] | None = None,
        delay_ms: int | None = None,
        **clusters: Events,
    ) -> History:
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
        from conflict.typed.debezium import of_debezium  # noqa: PLC0415  # it imports this module

        _refuse_number(clusters)
        return of_debezium(clusters, tables, server_ids, delay_ms)

    @classmethod
    def from_recording(cls, folder: Path | str) -> History:
        """
        Return the History of a recording of two clusters, with its epochs and transaction ids.

        Args:
            folder: The folder, which holds a `scenario.json` and the binlogs.

        Raises:
            ConfigurationError: It is no such folder, or has something that cannot be typed.
        """
        from conflict.typed.retyped import of_recording  # noqa: PLC0415  # as above

        return of_recording(path_of(folder))

    @classmethod
    def from_result(
        cls,
        run: Result | RunFile | Path | str,
        *,
        table: str | None = None,
        key: GivenKey | None = None,
        transaction: int | str | None = None,
    ) -> History:
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

        return of_result(run, table, key, transaction)

    def settled(self) -> History:
        """
        Return the History in which at the end both clusters apply all that they have not applied, twice.

        The second time brings back what the first one made: rows that a primary refreshed, and the news of what
        arrived.
        """
        lanes = {name: list[TypedStep](steps) for name, steps in self.lanes.items()}
        ends = {name: max([0, *map(_epoch, steps)]) for name, steps in self.lanes.items()}
        for name in self.names * 2:
            other = self.other(name)
            if ends[other] > _last_applied(lanes[name]):
                ends[name] = next_epoch(ends[name])
                lanes[name].append(Apply(ends[other], ends[name]))
        return History(tables=self.tables, start=self.start, **lanes)


def _refuse_number(clusters: Mapping[str, object]) -> None:
    """
    Make sure that there are two clusters.

    Raises:
        ConfigurationError: There are not.
    """
    if len(clusters) != _CLUSTERS:
        message = f"{len(clusters)} clusters are given; give two, as in A=[...], B=[...]"
        raise ConfigurationError(message)


def _read_steps(tables: Tables, cluster: str, steps: Iterable[TypedStep]) -> Iterator[Step]:
    """Yield steps with their values as the tables have them."""
    if isinstance(steps, str):
        message = f"the steps of {cluster} are one text; give a list of steps: {cluster}=[{steps!r}]"
        raise ConfigurationError(message)
    for number, given in enumerate(steps, start=1):
        try:
            step = read_step(given) if isinstance(given, str) else given
            step = Transaction((step,)) if isinstance(step, Change) else step
            if not isinstance(step, Step):
                message = f"{given!r} is no step; give a text, as in 'update 1 v=5', or a step of conflict.typed.steps"
                raise ConfigurationError(message)  # told with its place, as all others
            if isinstance(step, Transaction):
                if not step.changes:
                    message = "the transaction changes nothing; give it a change, or leave it out"
                    raise ConfigurationError(message)  # as above
                step = attrs.evolve(step, changes=tuple(map(tables.checked, step.changes)))
        except (ConfigurationError, FormatError) as error:
            raise _at(f"step {number} of {cluster}", given, error) from error
        yield step


def _start(tables: Tables, start: Iterable[Change | str]) -> Iterator[Change]:
    """Yield the inserts of the rows at first."""
    found = set[tuple[str, bytes]]()
    for number, given in enumerate([start] if isinstance(start, str) else start, start=1):
        try:
            step = read_step(given) if isinstance(given, str) else Transaction((given,))
            changes = step.changes if isinstance(step, Transaction) else ()
            if not changes or any(change.operation is not Operation.WRITE_ROW for change in changes):
                message = "it holds the rows that both clusters have at first, as inserts: insert 1 v=0"
                raise ConfigurationError(message)  # told with its place
            for change in map(tables.checked, changes):
                row = change.table, tables.named(change.table).identity(change.key)
                if row in found:
                    message = "the row is there already"
                    raise ConfigurationError(message)  # as above
                found.add(row)
                yield change
        except (ConfigurationError, FormatError) as error:
            raise _at(f"row {number} of start", given, error) from error


def _at(place: str, given: object, error: Exception) -> ConfigurationError:
    """Return an error with the step that it is about."""
    text = given if isinstance(given, str) else step_text(given) if isinstance(given, Step) else ""
    named = f" ({text})" if text and text not in str(error) else ""
    return ConfigurationError(f"{place}{named}: {error}")


def _numbered(cluster: str, steps: Sequence[Step], least: int) -> Iterator[Step]:
    """Yield steps with their epochs; those that name none have the next one. None is below `least`."""
    last = 0
    for number, step in enumerate(steps, start=1):
        if isinstance(step, Restart):
            yield step
            continue
        epoch = (next_epoch(last) if last else FIRST_EPOCH) if step.epoch is None else step.epoch
        if epoch < max(last, least):
            before = f"the step before it is in epoch {epoch_text(last)}" if last else "the first epoch is 1"
            message = f"it names epoch {epoch_text(epoch)}, but {before}; epochs never fall"
            raise _at(f"step {number} of {cluster}", step, ConfigurationError(message))
        last = epoch
        yield attrs.evolve(step, epoch=epoch)


def _with_applies(cluster: str, steps: Sequence[Step], others: Sequence[Step]) -> Iterator[Step]:
    """Yield steps with the foreign epochs that they apply; a step that names none applies the next one."""
    known = sorted({_epoch(step) for step in others} - {0})
    last = 0
    for number, step in enumerate(steps, start=1):
        if isinstance(step, Restart):
            last = 0 if step.rewound else last
        if not isinstance(step, Apply):
            yield step
            continue
        foreign = step.foreign_epoch
        if foreign is None:
            foreign = next((epoch for epoch in known if epoch > last), None)
        if foreign not in known or foreign <= last:
            message = _no_such_epoch(step.foreign_epoch, last, known)
            raise _at(f"step {number} of {cluster}", step, ConfigurationError(message))
        last = foreign
        yield attrs.evolve(step, foreign_epoch=foreign)


def _no_such_epoch(foreign: int | None, last: int, known: Sequence[int]) -> str:
    """Return why an epoch cannot be applied."""
    epochs = ", ".join(map(epoch_text, known)) or "none"
    if foreign is None:
        return (
            f"the other cluster has no epoch after {epoch_text(last)}; it has {epochs}"
            if last
            else ("the other cluster has no epoch that could be applied; give it a step")
        )
    if foreign in known:
        return (
            f"epoch {epoch_text(foreign)} was applied before, with all up to {epoch_text(last)}; an applier that is to "
            "apply epochs again needs a step rewind"
        )
    return f"the other cluster has no epoch {epoch_text(foreign)}; it has {epochs}. Each of its steps is one"


def _refuse_unknown_rows(history: History) -> None:
    """
    Refuse a change of a row that nobody ever inserts.

    Raises:
        ConfigurationError: There is one.
    """
    tables = history.tables
    made = {_row(tables, change) for change in history.start}
    changes = [
        (name, number, change)
        for name, steps in history.lanes.items()
        for number, step in enumerate(steps, start=1)
        if isinstance(step, Transaction)
        for change in step.changes
    ]
    inserted = {_row(tables, change) for _, _, change in changes if change.operation is Operation.WRITE_ROW}
    moved = {row for _, _, change in changes if (row := _moved_to(tables, change))}
    for name, number, change in changes:
        if _row(tables, change) not in made | inserted | moved:
            text = change_text(change, tables.first.name)
            message = (
                f"step {number} of {name} ({text}): no step inserts this row; insert it before, or give it to both "
                f"clusters at first, as in start=['insert {text.split(' ')[1]} ...']"
            )
            raise ConfigurationError(message)


def _row(tables: Tables, change: Change) -> tuple[str, bytes]:
    return change.table, tables.named(change.table).identity(change.key)


def _moved_to(tables: Tables, change: Change) -> tuple[str, bytes] | None:
    """Return the row that an update of the key makes of another one."""
    table, values = tables.named(change.table), dict(change.values)
    if change.operation is not Operation.UPDATE_ROW or values.keys().isdisjoint(table.table.primary_key):
        return None
    names = zip(table.table.primary_key, change.key, strict=True)
    return change.table, table.identity(tuple(values.get(name, old) for name, old in names))


def _epoch(step: Step) -> int:
    return 0 if isinstance(step, Restart) else step.epoch or 0


def _last_applied(steps: Iterable[TypedStep]) -> int:
    """Return the last epoch that was applied since the last rewind."""
    last = 0
    for step in steps:
        if isinstance(step, Restart) and step.rewound:
            last = 0
        elif isinstance(step, Apply):
            last = step.foreign_epoch or 0
    return last


def short_texts(history: History, steps: Sequence[Step]) -> Iterator[str]:
    """Yield the texts of the steps of a cluster; a step names its epoch if it would not have it without that."""
    last = 0
    for step in steps:
        expected = _epoch(step) == (next_epoch(last) if last else FIRST_EPOCH)
        named = not expected or (isinstance(step, Transaction) and step.id is not None)
        yield step_text(step, first_table=history.tables.first.name, with_epoch=named)
        last = _epoch(step) or last
