"""
`ndb-conflict requirements`: which conflict function can work with which binlog type.

One function with one type gives the answer in full; without one of the two, the command prints a table.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import attrs
import typer

import conflict.api.runs
from conflict.cli.common import console
from conflict.cli.from_functions import options_of
from conflict.cli.outputs import JsonOption, write_json
from conflict.cli.refusals import code_of_findings, exit_with
from conflict.config.arguments import DeploymentPolicy
from conflict.decoding.staging import check_output
from conflict.errors import ConfigurationError
from conflict.rules.replication_table import Role
from ndb_formats.errors import did_you_mean

if TYPE_CHECKING:
    from conflict.rules.functions import ConflictFunction
    from ndb_formats.rules.update_format import ServerOptions
    from ndb_formats.schema.tables import Table


@options_of(conflict.api.runs.resolve)
def requirements(
    *,
    function: Annotated[str | None, typer.Option(help="A conflict_fn, such as NDB$MAX(version).")] = None,
    binlog_type: Annotated[str | None, typer.Option(help="A binlog_type, by number or name.")] = None,
    schema: Annotated[Path | None, typer.Option(help="CREATE TABLE statements.", exists=True, dir_okay=False)] = None,
    table: Annotated[str | None, typer.Option(help="A table of the schema, with or without its database.")] = None,
    policy: DeploymentPolicy,
    role: Annotated[Role | None, typer.Option(help="ndb_applier_conflict_role of the applier.")] = None,
    transaction_ids: Annotated[
        bool | None, typer.Option(help="Whether the other cluster logs transaction ids.")
    ] = None,
    option: Annotated[
        list[str] | None,
        typer.Option(help="A server option for type 0, such as ndb_log_update_minimal=ON; can be repeated."),
    ] = None,
    json_file: JsonOption = None,
    force: bool,
) -> None:
    """
    Show which conflict function can work with which binlog type, why not, and what would work.

    Example: ndb-conflict requirements --function 'NDB$MAX(x)' --binlog-type 8
    """
    from conflict.checking.deployment import Deployment, TableLogging
    from conflict.checking.reasons import weight_of
    from conflict.checking.report import answer_json, tell_answer, tell_answers
    from conflict.checking.requirements import TABLE_TYPES, example_function
    from conflict.checking.requirements import requirements as requirements_of
    from conflict.rules.functions import FUNCTIONS, typed_function
    from conflict.telling.terminal import print_telling
    from ndb_formats.rules.update_format import parse_binlog_type

    check_output(json_file, [schema], force=force)
    options = _options(option or [])
    asked = None if function is None else typed_function(function)
    definition = _definition(schema, table, asked)
    types = TABLE_TYPES if binlog_type is None else (parse_binlog_type(binlog_type),)
    loggings = [TableLogging(number, options, transaction_ids) for number in types]
    rows = {
        each.spec.name: [
            requirements_of(Deployment(each, definition, logging, role=role), policy) for logging in loggings
        ]
        for each in ([asked] if asked else map(example_function, FUNCTIONS))
    }
    answers = [answer for row in rows.values() for answer in row]
    print_telling(console, tell_answer(answers[0]) if len(answers) == 1 else tell_answers(rows, policy))
    write_json(json_file, {"policy": policy.value, "answers": [answer_json(answer) for answer in answers]})
    if len(answers) == 1:
        exit_with(code_of_findings(map(weight_of, answers[0].reasons)))


def _options(settings: Sequence[str]) -> ServerOptions:
    from ndb_formats.rules.update_format import ServerOptions, server_options

    values: dict[str, str] = {}
    for name, _, value in (setting.partition("=") for setting in settings):
        if values.setdefault(name, value) != value:
            message = f"--option {name} is given as {values[name]} and as {value}; give one of them"
            raise ConfigurationError(message)
    known = [field.name for field in attrs.fields(ServerOptions)]
    for name in values:
        if name not in known:
            message = (
                f"--option {name} is unknown{did_you_mean(name, known)}; the options for type 0 are {', '.join(known)}"
            )
            raise ConfigurationError(message)
    return server_options(values)


def _definition(schema: Path | None, name: str | None, function: ConflictFunction | None) -> Table:
    """Return the named table, or an example table with the column that the function compares."""
    from conflict.checking.requirements import example_table
    from conflict.config.schema_file import load_schema

    if schema is None:
        if name is not None:
            message = "--table names a table of a schema; give --schema, too"
            raise ConfigurationError(message)
        return example_table() if function is None or function.column is None else example_table(function.column)
    if function is None:
        message = "--schema needs --function, which names the column to compare"
        raise ConfigurationError(message)
    tables = load_schema(schema).tables
    found = [each for each in tables if name in (None, each.name, each.full_name)]
    if not tables:
        message = f"{schema}: no CREATE TABLE statement; give what SHOW CREATE TABLE prints"
        raise ConfigurationError(message)
    if len(found) != 1:
        names = ", ".join(each.full_name for each in tables)
        meant = did_you_mean(name or "", (each.full_name for each in tables))
        message = f"{schema}: --table must name one of {names}{meant}"
        raise ConfigurationError(message)
    return found[0]
