"""
A typed History as files: binlogs with a run file, and a recording, which `conformance` takes.

A recording has the files of one of real clusters: the expected rows, exceptions, counters and stops are those that the
reference engine finds. Its appliers run only while they apply: each apply starts its applier, and stops it again.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from conflict.engine.ledger.resolution import ClusterResult
from conflict.engine.reference.replay import resolve
from conflict.errors import ConfigurationError
from conflict.history.grid.whole_files import PART, new_folder
from conflict.judge.result_differences import plain_value, setup_lines
from conflict.operating.repairing.sql_values import name_in_sql, sql_value
from conflict.rules.replication_table import Role
from conflict.typed.binlogs import VERSION, write_binlogs
from conflict.typed.playing import Played, StepTaken, play
from conflict.typed.rules import Rules, server_ids
from conflict.typed.run_file import run_file_lines
from conflict.typed.schedule import Schedule
from conflict.typed.steps import Apply, Change, Restart, Step, Transaction
from ndb_formats.events.rows_event import Operation
from ndb_formats.schema.create_table import parse_schema
from ndb_formats.schema.scripts import split_script
from ndb_formats.schema.tables import Table

BINLOG = "{}.binlog.000001"
SCENARIO = "scenario.json"
_QUIESCE = {"action": "quiesce"}


def write_run(history: Schedule, rules: Rules, target: Path) -> None:
    """
    Write the binlogs of a History into a new folder, with a run file for them.

    Raises:
        ConfigurationError: The folder is there.
    """
    with _appearing(target) as folder:
        played = play(history, rules)
        _write_files(history, rules, played, folder)
        restarts = any(isinstance(step, Restart) for steps in history.lanes.values() for step in steps)
        if restarts:  # a run file alone cannot tell them
            _write_json(folder / SCENARIO, {"steps": list(_steps(history, played))})
        _write_run_file(history, rules, played, folder, SCENARIO if restarts else "")


def write_recording(history: Schedule, rules: Rules, description: str, target: Path) -> None:
    """
    Write a History as a recording into a new folder.

    Raises:
        ConfigurationError: The folder is there, or tables are in several databases.
    """
    history = _with_restarts(history)
    with _appearing(target) as folder:
        played = play(history, rules)
        _write_files(history, rules, played, folder)
        _write_json(folder / SCENARIO, _scenario(history, rules, played, description))
        results = resolve(played.history, rules.setups).clusters
        _write_json(folder / "expected.json", {name: _expected(rules, name, results[name]) for name in history.names})
        _write_run_file(history, rules, played, folder, SCENARIO)


@contextmanager
def _appearing(target: Path) -> Iterator[Path]:
    """Give a folder that appears whole or not at all."""
    if target.exists():
        message = f"{target} is there already; name another folder"
        raise ConfigurationError(message)
    beside = new_folder(target, PART)
    try:
        yield beside
        beside.rename(target)
    finally:
        shutil.rmtree(beside, ignore_errors=True)


def _with_restarts(history: Schedule) -> Schedule:
    """Return a History in which appliers are started for every apply, as the steps of a recording do."""
    lanes: dict[str, list[Step]] = {name: [] for name in history.names}
    for name, steps in history.lanes.items():
        for step in steps:
            lanes[name] += [Restart(), step] if isinstance(step, Apply) else [step]
    return type(history)(tables=history.tables, start=history.start, **lanes)


def _write_files(history: Schedule, rules: Rules, played: Played, folder: Path) -> None:
    """Write the binlogs, and the definitions of their tables."""
    (folder / "schema.sql").write_text(history.tables.sql, "utf-8")
    with ExitStack() as stack:
        files = {name: stack.enter_context((folder / BINLOG.format(name)).open("wb")) for name in history.names}
        write_binlogs(played.history, rules.setups, played.moments, files)


def _write_run_file(history: Schedule, rules: Rules, played: Played, folder: Path, steps: str) -> None:
    lines = run_file_lines(history, rules, played, {name: BINLOG.format(name) for name in history.names}, steps)
    (folder / "run.toml").write_text("".join(f"{line}\n" for line in lines), "utf-8")


def _write_json(path: Path, document: object) -> None:
    path.write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n", "utf-8")


def _scenario(history: Schedule, rules: Rules, played: Played, description: str) -> dict[str, Any]:
    tables = list(history.tables.by_name.values())
    databases = {table.table.database for table in tables}
    if len(databases) > 1:
        message = f"the tables of a recording are in one database, and these are in {', '.join(sorted(databases))}"
        raise ConfigurationError(message)
    texts = _definitions(history.tables.sql, *databases)
    functions = {text for text in rules.functions.values() if text is not None}
    return {
        "fn": functions.pop().partition("(")[0] if len(functions) == 1 else None,
        "binlog_type": rules.binlog_type,
        "description": description,
        "made_by": "conflict.History",
        "concurrent": False,
        "database": databases.pop(),
        "tables": [_table(rules, table.table, texts) for table in tables],
        "ndb_replication": [
            {name: getattr(row, name) for name in ("db", "table_name", "server_id", "binlog_type", "conflict_fn")}
            for row in rules.rows
        ],
        "roles": {name: role.name for name, role in rules.roles.items()},
        "globals": {name: _variables(history, name, rules.roles[name]) for name in history.names},
        "binlog_files": {name: [BINLOG.format(name)] for name in history.names},
        "steps": list(_steps(history, played)),
    }


def _definitions(sql: str, database: str) -> dict[str, str]:
    """Return the statement of each table."""
    found: dict[str, str] = {}
    for statement in split_script(sql):
        found |= {table.name: statement.text for table in parse_schema(f"{statement.text};", database=database).tables}
    return found


def _table(rules: Rules, table: Table, texts: Mapping[str, str]) -> dict[str, Any]:
    exceptions = next((texts[each] for each in (f"{table.name}$EX", f"{table.name}$ex") if each in texts), None)
    judged = rules.functions[table.full_name] is not None
    return {"name": table.name, "create": texts[table.name], "ex": exceptions, "fn": judged}


def _variables(history: Schedule, name: str, role: Role) -> dict[str, str]:
    """Return the variables of a server that matter to the run."""
    return {
        "server_id": str(server_ids(history)[name]),
        "version": VERSION,
        "character_set_server": "utf8mb4",
        "log_replica_updates": "ON",
        "ndb_applier_conflict_role": role.name,
        "ndb_log_apply_status": "ON",
        "ndb_log_exclusive_reads": "ON",
        "ndb_log_transaction_id": "ON",
        "ndb_log_update_as_write": "ON",
        "ndb_log_update_minimal": "OFF",
        "ndb_log_updated_only": "ON",
        "replica_type_conversions": "",
    }


def _steps(history: Schedule, played: Played) -> Iterator[dict[str, Any]]:
    """Yield the steps of the scenario; an applier runs only while it takes epochs, and a stop names the last one."""
    if not history.start:
        yield from ({"applier": name, "action": "stop", "epoch": 0} for name in history.names)
    loaded = 0
    for taken in played.taken:
        if taken.placed is None:
            loaded += 1
            yield from _load(history, taken, loaded)
        elif isinstance(taken.placed.step, Transaction):
            yield _transaction(history, taken, taken.placed.step)
        elif isinstance(taken.placed.step, Restart):
            if taken.placed.step.rewound:
                yield {"applier": taken.cluster, "action": "rewind"}
        elif taken.items:
            yield {"applier": taken.cluster, "action": "start"}
            if not taken.stopped:
                yield _stopped(taken.cluster, taken.placed.step)


def _load(history: Schedule, taken: StepTaken, number: int) -> Iterator[dict[str, Any]]:
    """Yield the steps that load the rows at first: the insert, and a wait until both appliers have nothing to do."""
    if number == 1:
        yield _transaction(history, taken, Transaction(history.start))
        yield _QUIESCE
        epoch = taken.items[0].epoch
        yield from ({"applier": name, "action": "stop", "epoch": epoch} for name in history.names)


def _stopped(name: str, step: Apply) -> dict[str, Any]:
    """Return the step that stops an applier after an epoch of the other cluster."""
    return {"applier": name, "action": "stop", "epoch": step.foreign_epoch}


def _transaction(history: Schedule, taken: StepTaken, step: Transaction) -> dict[str, Any]:
    sql = [_sql(history, change) for change in step.changes]
    result = [{"affected": int(bool(taken.items))} for _ in sql]
    found: dict[str, Any] = {"on": taken.cluster, "sql": sql, "result": result}
    found["epoch"] = taken.items[0].epoch if taken.items else 0
    return found if taken.items else found | {"rolled_back": True}


def _sql(history: Schedule, change: Change) -> str:
    """Return the statement of a change."""
    table = history.tables.named(change.table)
    columns, codecs = table.table.columns, table.layout.codecs
    key, written, name = table.key_payloads(change.key), table.written(change), name_in_sql(table.table.name)

    def assigned(payloads: Mapping[int, bytes | None]) -> dict[str, str]:
        values = {place: sql_value(columns[place], codecs[place], each).literal for place, each in payloads.items()}
        return {name_in_sql(columns[place].name): text for place, text in values.items()}

    if change.operation is Operation.WRITE_ROW:
        texts = assigned({**key, **written})
        return f"INSERT INTO {name} ({', '.join(texts)}) VALUES ({', '.join(texts.values())})"  # noqa: S608  # shown
    where = " AND ".join(f"{column}={text}" for column, text in assigned(key).items())
    if change.reads:
        return f"SELECT * FROM {name} WHERE {where} FOR UPDATE"  # noqa: S608  # shown, not run
    if change.operation is Operation.DELETE_ROW:
        return f"DELETE FROM {name} WHERE {where}"  # noqa: S608  # shown, not run
    sets = ", ".join(f"{column}={text}" for column, text in assigned(written).items())
    return f"UPDATE {name} SET {sets} WHERE {where}"  # noqa: S608  # shown, not run


def _expected(rules: Rules, name: str, result: ClusterResult) -> dict[str, Any]:
    setups, stop = rules.setups[name], result.stop
    exceptions = (each.exceptions.table for each in setups.values() if each.exceptions is not None)
    definitions = {table.full_name: table for table in exceptions}
    return {
        "tables": {each.table.name: _contents(each.table, result.rows[full]) for full, each in setups.items()},
        "exceptions": {
            table.name: _contents(table, result.exceptions.get(full, [])) for full, table in definitions.items()
        },
        "status_difference": {counter: value for counter, value in result.counters.items() if value},
        "applier": {"running": stop is None, "errno": stop.error if stop else 0, "error": stop.message if stop else ""},
        "error_log": [line for full, setup in setups.items() for line in setup_lines(full, setup)],
        "setup_messages": [],
    }


def _contents(table: Table, rows: Any) -> dict[str, Any]:
    """Return the rows of a table as recordings have them."""
    columns = [column for column in table.columns if column.generated != "virtual"]
    keys = [columns.index(column) for column in table.key_columns]
    plain = [[plain_value(value) for value in row] for row in rows]
    return {
        "columns": [column.name for column in columns],
        "types": [column.sql_type for column in columns],
        "charsets": [column.charset for column in columns],
        "primary_key": list(table.primary_key),
        "rows": sorted(plain, key=lambda row: [str(row[place]) for place in keys]),
    }
