"""
The run file of a typed History: what its binlogs do not show is when epochs without a trace were applied.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping

from conflict.errors import ConfigurationError
from conflict.history.timeline import EpochApply
from conflict.rules.functions import FunctionSpec
from conflict.rules.replication_table import Role
from conflict.typed.playing import Played
from conflict.typed.rules import Rules, server_ids
from conflict.typed.schedule import Schedule


def run_file_lines(
    history: Schedule, rules: Rules, played: Played, binlogs: Mapping[str, str], steps: str
) -> Iterator[str]:
    """
    Yield the lines of a run file.

    Args:
        history: The History.
        rules: What decides.
        played: The History as it was carried out.
        binlogs: By cluster, the name of its binlog.
        steps: The file of the steps; empty to tell where epochs were applied that left no trace.

    Raises:
        ConfigurationError: A function is a value of Python, which no file can name.
    """
    database = history.tables.first.table.database
    yield from ('schema = "schema.sql"', f"database = {_quoted(database)}", 'start = "empty"', "")
    for name, number in server_ids(history).items():
        yield from (f"[clusters.{_quoted(name)}]", f"server_id = {number}", f"binlogs = [{_quoted(binlogs[name])}]")
        if rules.roles[name] is not Role.NONE:
            yield f'role = "{rules.roles[name].value}"'
        yield ""
    if steps:
        yield from ("[schedule]", f"steps = {_quoted(steps)}", "")
    else:
        for name in history.names:
            yield from _schedule(history, played, name)
    for spec, reference in rules.own:
        yield from ("[[conflict_function]]", *_declared(spec, reference), "")
    for row in rules.rows:
        yield from ("[[ndb_replication]]", f"db = {_quoted(row.db)}", f"table_name = {_quoted(row.table_name)}")
        yield from (f"server_id = {row.server_id}", f"binlog_type = {row.binlog_type}")
        yield from ([] if row.conflict_fn is None else [f"conflict_fn = {_quoted(row.conflict_fn)}"])
        yield ""


def _declared(spec: FunctionSpec, reference: str) -> Iterator[str]:
    """Yield the lines that declare a function that no server has."""
    if reference:
        yield f"rule = {_quoted(reference)}"
    elif spec.own is None:
        yield f"name = {_quoted(spec.name)}"
        yield from (f"{kind} = {_quoted(getattr(spec, kind).words)}" for kind in ("write", "update", "delete"))
    else:
        message = f"a run file cannot name the resolver {spec.name}, which is a value; put it into a module and give "
        raise ConfigurationError(f"{message}it as 'module:name'")


def _schedule(history: Schedule, played: Played, name: str) -> Iterator[str]:
    """Yield where an applier applied the epochs that left no trace, and what it did not apply."""
    timelines = {cluster.name: cluster.timeline for cluster in played.history.clusters}
    logged = {
        cluster: sorted({item.epoch for item in items if not isinstance(item, EpochApply) or item.traced})
        for cluster, items in timelines.items()
    }
    last = 0
    for item in timelines[name]:
        if isinstance(item, EpochApply):
            last = item.foreign_epoch
            if not item.traced:
                before = max((epoch for epoch in logged[name] if epoch < item.epoch), default=0)
                yield from ("[[schedule.applied]]", f"applier = {_quoted(name)}", f"epoch = {last}")
                yield from (f"after_epoch = {before}", "")
    if any(epoch > last for epoch in logged[history.other(name)]):
        yield from ("[[schedule.stopped]]", f"applier = {_quoted(name)}", f"after_epoch = {last}", "")


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
