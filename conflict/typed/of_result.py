"""
The History of a result: of all rows, or of those that somebody asks for.

Where a function judges transactions, what becomes of a row depends on the other rows of its transactions, and on those
of theirs; all these are in the History, too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import attrs

from conflict.config.run_file import RunFile, is_run_file, load_run_file
from conflict.engine.ledger.table_keys import TableKey
from conflict.engine.reference.row_store import RowKey
from conflict.errors import ConfigurationError, HistoryError
from conflict.explaining.asked import table_named, transaction_asked
from conflict.explaining.keys_asked import GivenKey, identity_asked
from conflict.history.model import History as RunHistory
from conflict.history.run import Run
from conflict.history.timeline import Transaction as LoggedTransaction
from conflict.results.result import Result, read_result
from conflict.rules.decision import stored_precision
from conflict.runs.reference_run import replay_in_memory
from conflict.runs.run_inputs import refuse_later_part, run_of, run_of_result
from conflict.typed.retyped import NotingCluster, retyped
from conflict.typed.schedule import Schedule
from conflict.typed.steps import FIRST_EPOCH, Apply, Restart, Step, Transaction
from conflict.typed.tables import Tables
from ndb_formats.schema.sql_of_tables import sql_of_tables
from ndb_formats.schema.tables import Schema, Table


def of_result(
    source: Result | RunFile | Path | str, table: str | None, key: GivenKey | None, transaction: int | str | None
) -> Schedule:
    """Return the History of a result; arguments and errors as of `History.from_result`."""
    if (key is not None and table is None) or (transaction is not None and table is not None):
        message = "ask for one thing: a row (table and key), a table, or a transaction"
        raise ConfigurationError(message)
    run = _run_of(source)
    replayed = replay_in_memory(run, made_of=NotingCluster)
    named = None if table is None else table_named({each.full_name: each for each in run.data_schema.tables}, table)
    wanted = None
    if named is not None and key is not None:
        wanted = frozenset([(named.full_name, identity_asked(named.full_name, TableKey.of(named), key))])
    elif transaction is not None:
        wanted = _rows_of_transaction(replayed.history, transaction)
    if wanted is not None and _judges_transactions(run):
        wanted = _with_dependent(replayed.history, wanted)
    names = {name for name, _ in wanted} if wanted is not None else {named.full_name} if named is not None else None
    found = retyped(replayed, _tables(run, names), wanted)
    if all(isinstance(step, Restart) for steps in found.lanes.values() for step in steps):
        message = f"nothing happened to {f'row {key}' if key is not None else 'the rows'} of {table} in these binlogs"
        raise HistoryError(message)
    return _renumbered(_plain(found, with_restarts=_judges_transactions(run)), run)


def _run_of(source: Result | RunFile | Path | str) -> Run:
    if isinstance(source, RunFile):
        return run_of(source)
    if isinstance(source, Path | str) and is_run_file(Path(source)):
        return run_of(load_run_file(Path(source)))
    result = source if isinstance(source, Result) else read_result(str(source))
    refuse_later_part(result.run, result.folder.uri)
    return run_of_result(result.run, result.folder.uri)


def _transactions(history: RunHistory) -> Iterator[tuple[str, LoggedTransaction]]:
    for cluster in history.clusters:
        yield from ((cluster.name, item) for item in cluster.timeline if isinstance(item, LoggedTransaction))


def _rows_of_transaction(history: RunHistory, asked: int | str) -> frozenset[RowKey]:
    """Return the rows that a transaction changed."""
    cluster, number = transaction_asked(asked, [each.name for each in history.clusters])
    found = {
        name: [(change.table, change.key) for change in item.changes]
        for name, item in _transactions(history)
        if item.changes[0].transaction_id == number and cluster in (None, name)
    }
    if len(found) != 1:
        what = f"of {' and of '.join(found)}; say which: {next(iter(found))}:{number}" if found else "in no binlog"
        message = f"transaction {number} is {what}"
        raise ConfigurationError(message) if found else HistoryError(message)
    return frozenset(next(iter(found.values())))


def _judges_transactions(run: Run) -> bool:
    setups = (setup for own in run.setups.at_start.values() for setup in own.values())
    return any(setup.function is not None and setup.function.spec.transactional for setup in setups)


def _with_dependent(history: RunHistory, rows: frozenset[RowKey]) -> frozenset[RowKey]:
    """Return rows with all that their transactions changed, and the transactions of these, and so on."""
    left = [{(change.table, change.key) for change in item.changes} for _, item in _transactions(history)]
    found, more = set(rows), True
    while more:
        touching = [each for each in left if each & found]
        left = [each for each in left if not each & found]
        more = bool(touching)
        found.update(*touching)
    return frozenset(found)


def _tables(run: Run, names: set[str] | None) -> Tables:
    """Return the tables of some names, or all that have a primary key, with their exceptions tables."""
    tables = {table.full_name: table for table in run.schema.tables}
    chosen = [
        table
        for name, table in tables.items()
        if (name in names if names is not None else bool(table.primary_key) or _is_exceptions(table))
    ]
    for table in [*chosen]:
        chosen += [each for each in run.schema.tables if each not in chosen and _serves(each, table)]
    return Tables.of(sql_of_tables(Schema(tuple(chosen))))


def _is_exceptions(table: Table) -> bool:
    return table.name.endswith(("$EX", "$ex"))


def _serves(exceptions: Table, table: Table) -> bool:
    names = (f"{table.name}$EX", f"{table.name}$ex")
    return exceptions.database == table.database and exceptions.name in names


def _plain(history: Schedule, *, with_restarts: bool) -> Schedule:
    """Return a History without transaction ids, and without restarts that change nothing for its functions."""
    lanes: dict[str, list[Step]] = {name: [] for name in history.names}
    for name, steps in history.lanes.items():
        for step in steps:
            if isinstance(step, Transaction):
                lanes[name].append(attrs.evolve(step, id=None))
            elif with_restarts or not isinstance(step, Restart) or step.rewound:
                lanes[name].append(step)
    return Schedule(tables=history.tables, start=history.start, **lanes)


def _renumbered(history: Schedule, run: Run) -> Schedule:
    """Return a History with the epochs 1, 2, 3 of each cluster, if no function tells epochs of a checkpoint apart."""
    setups = (setup for own in run.setups.at_start.values() for setup in own.values())
    bits = [each.function.gci_bits for each in setups if each.function is not None and each.function.spec.refreshes]
    numbers = {name: _numbers(steps, min(bits, default=31)) for name, steps in history.lanes.items()}
    lanes: dict[str, list[Step]] = {
        name: [_moved(step, numbers[name], numbers[history.other(name)]) for step in steps]
        for name, steps in history.lanes.items()
    }
    return Schedule(tables=history.tables, start=history.start, **lanes)


def _numbers(steps: tuple[Step, ...], bits: int) -> dict[int, int]:
    """Return the new number of each epoch; of those that functions confound, low words are kept."""
    epochs = sorted({step.epoch or 0 for step in steps if not isinstance(step, Restart)})
    if all(stored_precision(epoch, bits) == epoch for epoch in epochs):
        return {epoch: number * FIRST_EPOCH for number, epoch in enumerate(epochs, start=1)}
    high = {each: number for number, each in enumerate(sorted({epoch // FIRST_EPOCH for epoch in epochs}), start=1)}
    return {epoch: high[epoch // FIRST_EPOCH] * FIRST_EPOCH + epoch % FIRST_EPOCH for epoch in epochs}


def _moved(step: Step, own: Mapping[int, int], theirs: Mapping[int, int]) -> Step:
    if isinstance(step, Restart):
        return step
    moved = attrs.evolve(step, epoch=own[step.epoch or 0])
    return attrs.evolve(moved, foreign_epoch=theirs[moved.foreign_epoch or 0]) if isinstance(moved, Apply) else moved
