"""
Writes a schedule as a recording: a folder that `conformance` and `resolve` take.

It has the files of a recording of real clusters; the expected rows, counters and stops are what the search found.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO

from conflict.engine.ledger.resolution import ClusterResult
from conflict.engine.reference.replay import resolve
from conflict.history.grid.whole_files import new_folder
from conflict.history.timeline import EpochApply, RowChange, Transaction
from conflict.judge.result_differences import setup_lines
from conflict.rules.replication_table import Role
from conflict.typed.binlogs import VERSION, write_binlogs
from conflict.whatif.diverging.retelling import TakenStep, history_of, retell
from conflict.whatif.diverging.scope import DATABASE, NAMES, TABLE, Scope
from conflict.whatif.diverging.search import Found
from conflict.whatif.diverging.state import NAME, cells
from conflict.whatif.diverging.steps import Commit, Load, SetBack
from ndb_formats.events.rows_event import Operation

_MOMENT = 1_700_000_000_000_000  # microseconds since 1970; the first epoch
_BETWEEN_EPOCHS = 100_000


def _write_binlogs(scope: Scope, walk: Sequence[TakenStep], files: Sequence[BinaryIO]) -> None:
    """Write the binlog of each cluster to its file."""
    history = history_of(scope, walk)
    moments = {
        cluster.name: {
            epoch: _MOMENT + order * _BETWEEN_EPOCHS
            for order, epoch in enumerate(sorted({item.epoch for item in cluster.timeline}))
        }
        for cluster in history.clusters
    }
    setups = dict(zip(NAMES, scope.setups, strict=True))
    write_binlogs(history, setups, moments, dict(zip(NAMES, files, strict=True)))


_BINLOG = "{}.binlog.000001"
_QUIESCE = {"action": "quiesce"}


def write_recordings(found: Iterable[Found], target: Path) -> None:
    """Write the schedule of each search that found one into a new folder, below it one folder for each goal."""
    beside = new_folder(target, "part")
    try:
        for each in found:
            if each.steps is not None:
                folder = beside / each.goal.value
                folder.mkdir()
                description = f"The shortest schedule that the search for {each.goal.value} found."
                write_recording(each.scope, retell(each.scope, each.steps), description, folder)
        beside.rename(target)
    finally:
        shutil.rmtree(beside, ignore_errors=True)


def write_recording(scope: Scope, walk: Sequence[TakenStep], description: str, folder: Path) -> None:
    """Write a recording into an empty folder."""
    paths = [folder / _BINLOG.format(name) for name in NAMES]
    with paths[0].open("wb") as first, paths[1].open("wb") as second:
        _write_binlogs(scope, walk, (first, second))
    results = resolve(history_of(scope, walk), dict(zip(NAMES, scope.setups, strict=True))).clusters
    steps = list(_steps(scope, walk))
    _write_json(folder / "scenario.json", {**_scenario(scope, description), "steps": steps})
    _write_json(folder / "expected.json", {name: _expected(scope, name, results[name]) for name in NAMES})
    (folder / "schema.sql").write_text(f"{scope.definition};\n", "utf-8")
    (folder / "run.toml").write_text("".join(f"{line}\n" for line in _run_file(scope, description)), "utf-8")


def _write_json(path: Path, document: object) -> None:
    path.write_text(json.dumps(document, indent=1) + "\n", "utf-8")


def _scenario(scope: Scope, description: str) -> dict[str, Any]:
    rows = [
        {
            "db": row.db,
            "table_name": row.table_name,
            "server_id": row.server_id,
            "binlog_type": row.binlog_type,
            "conflict_fn": row.conflict_fn,
        }
        for row in scope.replication_rows
    ]
    roles = {name: role.name for name, role in zip(NAMES, scope.roles, strict=True)}
    return {
        "fn": None if scope.parsed is None else scope.parsed.spec.name,
        "binlog_type": scope.binlog_type,
        "description": description,
        "made_by": "ndb-conflict diverge",
        "concurrent": False,
        "database": DATABASE,
        "tables": [{"name": TABLE, "create": scope.definition, "ex": None, "fn": scope.function is not None}],
        "ndb_replication": rows,
        "roles": roles,
        "globals": {name: _variables(scope, number, roles[name]) for number, name in enumerate(NAMES)},
        "binlog_files": {name: [_BINLOG.format(name)] for name in NAMES},
    }


def _variables(scope: Scope, number: int, role: str) -> dict[str, str]:
    """Return the variables of a server that matter to the run."""
    return {
        "server_id": str(scope.clusters[number].server_id),
        "version": VERSION,
        "character_set_server": "utf8mb4",
        "log_replica_updates": "ON",
        "ndb_applier_conflict_role": role,
        "ndb_log_apply_status": "ON",
        "ndb_log_transaction_id": "ON",
        "ndb_log_update_as_write": "ON",
        "ndb_log_update_minimal": "OFF",
        "ndb_log_updated_only": "ON",
        "replica_type_conversions": "",
    }


def _steps(scope: Scope, walk: Sequence[TakenStep]) -> Iterator[dict[str, Any]]:
    """Yield the steps of the scenario; an applier runs only while it takes epochs, and a stop names the last one."""
    taken = [0, 0]
    for each in walk:
        step = each.step
        for event in each.events:
            if isinstance(event.item, EpochApply):
                taken[event.side] = event.item.foreign_epoch
        if isinstance(step, Load):
            for event in each.events:
                if isinstance(event.item, Transaction):
                    inserts = [Operation.WRITE_ROW] * len(event.item.changes)
                    yield _transaction(scope, event.side, event.item, inserts)
            yield _QUIESCE
            yield from (_stopped(number, taken[number]) for number in (0, 1))
        elif isinstance(step, Commit):
            for event in each.events:
                assert isinstance(event.item, Transaction)
                yield _transaction(scope, step.side, event.item, [wish.operation for wish in step.wishes])
        elif isinstance(step, SetBack):
            yield {"applier": NAMES[step.side], "action": "rewind"}
        else:
            yield {"applier": NAMES[step.side], "action": "start"}
            if each.events[-1].stop is None:
                yield _stopped(step.side, taken[step.side])


def _stopped(number: int, epoch: int) -> dict[str, Any]:
    """Return the step that stops an applier after an epoch of the other cluster."""
    return {"applier": NAMES[number], "action": "stop", "epoch": epoch}


def _transaction(
    scope: Scope, number: int, transaction: Transaction, operations: Sequence[Operation]
) -> dict[str, Any]:
    sql = [_sql(scope, change, each) for change, each in zip(transaction.changes, operations, strict=True)]
    result = [{"affected": 1} for _ in sql]
    return {"on": NAMES[number], "sql": sql, "result": result, "epoch": transaction.epoch}


def _sql(scope: Scope, change: RowChange, operation: Operation) -> str:
    """Return a statement that makes a change; it names all columns that the event carries."""
    names = [column.name for column in scope.table.columns]
    row = scope.keys.index(change.key) + 1
    if operation is Operation.DELETE_ROW:
        return f"DELETE FROM {TABLE} WHERE {names[0]}={row}"  # noqa: S608  # shown, not run
    values = dict(zip(names[1:], cells(change.after, scope) or (), strict=True))
    if operation is Operation.WRITE_ROW:
        inserted = ",".join(map(str, (row, *values.values())))
        return f"INSERT INTO {TABLE} ({','.join(names)}) VALUES ({inserted})"  # noqa: S608  # shown, not run
    changed = ",".join(f"{name}={value}" for name, value in values.items() if value >= 0)
    return f"UPDATE {TABLE} SET {changed} WHERE {names[0]}={row}"  # noqa: S608  # shown, not run


def _expected(scope: Scope, name: str, result: ClusterResult) -> dict[str, Any]:
    columns = scope.table.columns
    rows = {
        "columns": [column.name for column in columns],
        "types": [f"{column.type}{' unsigned' if column.unsigned else ''}" for column in columns],
        "charsets": [None] * len(columns),
        "primary_key": [columns[0].name],
        "rows": [list(row) for row in sorted(result.rows[NAME], key=lambda row: str(row[0]))],
    }
    stop = result.stop
    return {
        "tables": {TABLE: rows},
        "exceptions": {},
        "status_difference": {counter: value for counter, value in result.counters.items() if value},
        "applier": {"running": stop is None, "errno": stop.error if stop else 0, "error": stop.message if stop else ""},
        "error_log": list(setup_lines(NAME, scope.setups[NAMES.index(name)][NAME])),
        "setup_messages": [],
    }


def _run_file(scope: Scope, description: str) -> Iterator[str]:
    yield f"# {description}"
    yield from ('schema = "schema.sql"', f'database = "{DATABASE}"', "")
    for cluster in scope.clusters:
        yield from (f"[clusters.{cluster.name}]", f"server_id = {cluster.server_id}")
        yield f'binlogs = ["{_BINLOG.format(cluster.name)}"]'
        if cluster.role is not Role.NONE:
            yield f'role = "{cluster.role.value}"'
        yield ""
    yield from ("[schedule]", 'steps = "scenario.json"')
    for row in scope.replication_rows:
        yield from ("", "[[ndb_replication]]", f'db = "{row.db}"', f'table_name = "{row.table_name}"')
        yield from (f"server_id = {row.server_id}", f"binlog_type = {row.binlog_type}")
        if row.conflict_fn is not None:
            yield f"conflict_fn = {json.dumps(row.conflict_fn, ensure_ascii=False)}"
