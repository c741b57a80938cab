"""
A run to check that has no run file: tables, rows of mysql.ndb_replication, and settings of two servers.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, count, islice
from pathlib import Path

from conflict.config.additions import Additions, refuse_other_primary, refuse_unknown_primary
from conflict.config.replication_rows import load_replication_rows
from conflict.config.run_file import RunFile, parse_run_file
from conflict.config.server_settings import load_epoch_times, load_server_variables
from conflict.errors import ConfigurationError
from conflict.rules.functions import typed_function

_LIKE = str.maketrans({"%": "\\%", "_": "\\_", "*": "%", "?": "_"})


def draft_check(additions: Additions, variables: Mapping[str, Path], config_ini: Mapping[str, Path]) -> RunFile:
    """
    Return the run that a schema, functions and settings amount to; it has no binlogs.

    Args:
        additions: Schema, rows or functions, and the primary.
        variables: By cluster, the file with its server's variables.
        config_ini: By cluster, its config.ini.

    Raises:
        ConfigurationError: Something that is needed is missing, or a file is wrong.
    """
    if additions.schema is None:
        message = "give a run file, or --schema with the definitions of the tables"
        raise ConfigurationError(message)
    known = {name: load_server_variables(file) for name, file in variables.items()}
    server_ids = _server_ids(list(dict.fromkeys((*variables, *config_ini))), known, additions.ndb_replication)
    names = list(server_ids)
    if len(names) > 2:
        message = f"{len(names)} clusters ({', '.join(names)}) need a run file, which says who replicates from whom"
        raise ConfigurationError(message)
    refuse_unknown_primary(additions.primary, names)
    for file in config_ini.values():
        load_epoch_times(file)  # for a message that names it alone, not a run file that nobody wrote
    lines = [f"schema = {_path(additions.schema)}"]
    if additions.ndb_replication is not None:
        told = {name: int(known[name]["server_id"]) for name in names if "server_id" in known.get(name, {})}
        if len(told) == len(names):
            refuse_other_primary(additions.primary, told, additions.ndb_replication)
        lines.append(f"ndb_replication = {_path(additions.ndb_replication)}")
    for name in names:
        lines += [f"[clusters.{json.dumps(name)}]", f"server_id = {server_ids[name]}"]
        lines += [f"variables = {_path(variables[name])}"] if name in variables else []
        lines += [f"config_ini = {_path(config_ini[name])}"] if name in config_ini else []
        if additions.primary is not None:
            lines.append(f'role = "{"PRIMARY" if name == additions.primary else "SECONDARY"}"')
    lines += [*_rows(additions, names, server_ids), *additions.resolver_tables()]
    return parse_run_file("\n".join(lines) + "\n", Path("check.toml"), binlogs=False)


def _server_ids(names: Sequence[str], known: Mapping[str, Mapping[str, str]], rows: Path | None) -> dict[str, str]:
    """
    Return the server ids of the clusters by name, of two at least.

    One that no variable tells is taken from the rows of mysql.ndb_replication, else it is the next number. A cluster
    without a name has that of its server, as for `resolve`.
    """
    told = {name: known[name]["server_id"] for name in names if "server_id" in known.get(name, {})}
    in_rows = [] if rows is None else sorted({row.server_id for row in load_replication_rows(rows)} - {0})
    numbers = chain(in_rows, (number for number in count(1) if number not in in_rows))
    free = (str(number) for number in numbers if str(number) not in told.values())
    found = {name: told.get(name) or next(free) for name in names}
    others = (number for number in free if f"server{number}" not in found)
    return found | {f"server{number}": number for number in islice(others, max(0, 2 - len(found)))}


def _rows(additions: Additions, names: Sequence[str], server_ids: Mapping[str, str]) -> Iterator[str]:
    """Yield a row of mysql.ndb_replication for each function; its binlog type is left to the server options."""
    for pattern, text in additions.functions.items():
        spec = typed_function(text, additions.known).spec
        if spec.on_primary_alone and additions.primary is None:
            message = f"{text} works on a primary; say which cluster it is: --primary {' or --primary '.join(names)}"
            raise ConfigurationError(message)
        database, _, table = pattern.translate(_LIKE).rpartition(".")
        yield "[[ndb_replication]]"
        yield f"db = {json.dumps(database or '%')}"
        yield f"table_name = {json.dumps(table)}"
        yield f"server_id = {server_ids[additions.primary or ''] if spec.on_primary_alone else 0}"
        yield f"conflict_fn = {json.dumps(text)}"


def _path(path: Path) -> str:
    return json.dumps(str(path.absolute()), ensure_ascii=False)
