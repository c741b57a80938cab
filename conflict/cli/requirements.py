"""
`ndb-conflict requirements`: which conflict function can work with which binlog type.

One function and one type give one answer in full; leave out either, and all of them are set side by side.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import attrs
import typer
from rich.console import Console

from conflict.cli.output_file import refuse_overwriting
from conflict.cli.requirements_view import answer_json, print_answer, print_table
from conflict.compatibility.pairing import Pairing, Policy, TableLogging
from conflict.compatibility.requirements import TABLE_TYPES, Answer, example_function, example_table, requirements
from conflict.errors import ConfigurationError
from conflict.rules.conflict_fn_text import parse_conflict_function
from conflict.rules.functions import FUNCTIONS, ConflictFunction
from conflict.rules.roles import Role
from ndb_formats.rules.update_format import ServerOptions, parse_binlog_type, server_options
from ndb_formats.schema.create_table import parse_schema
from ndb_formats.schema.tables import Table

__all__ = ["requirements_command"]

console = Console()


def requirements_command(
    function: Annotated[str | None, typer.Option(help="A conflict_fn, as NDB$MAX(version).")] = None,
    binlog_type: Annotated[str | None, typer.Option(help="A binlog_type, by number or name.")] = None,
    schema: Annotated[Path | None, typer.Option(help="CREATE TABLE statements.", exists=True, dir_okay=False)] = None,
    table: Annotated[str | None, typer.Option(help="Table of the schema, with or without its database.")] = None,
    policy: Annotated[Policy, typer.Option(help="How strictly the manual is taken.")] = Policy.MANUAL,
    role: Annotated[Role | None, typer.Option(help="ndb_applier_conflict_role of the applier.")] = None,
    transaction_ids: Annotated[
        bool | None, typer.Option(help="Whether the other cluster logs transaction ids.")
    ] = None,
    option: Annotated[
        list[str] | None, typer.Option(help="A server option for type 0, as ndb_log_update_minimal=ON.")
    ] = None,
    json_file: Annotated[Path | None, typer.Option("--json", help="Also write the answers here.")] = None,
) -> None:
    """Say which conflict function can work with which binlog type, why not, and what would work."""
    refuse_overwriting(json_file, [schema])
    options = _options(option or [])
    asked = None if function is None else parse_conflict_function(function)
    definition = _definition(schema, table, asked)
    types = TABLE_TYPES if binlog_type is None else (parse_binlog_type(binlog_type),)
    rows: dict[str, list[Answer]] = {}
    for chosen in [asked] if asked else [example_function(spec) for spec in FUNCTIONS]:
        for number in types:
            logging = TableLogging(number, options, transaction_ids)
            pairing = Pairing(chosen, definition, logging, role=role)
            rows.setdefault(chosen.spec.name, []).append(requirements(pairing, policy))
    answers = [answer for row in rows.values() for answer in row]
    if len(answers) == 1:
        print_answer(console, answers[0])
    else:
        print_table(console, rows, policy)
    if json_file is not None:
        document = {"policy": policy.value, "answers": [answer_json(answer) for answer in answers]}
        json_file.write_text(json.dumps(document, indent=1) + "\n", "utf-8")


def _options(settings: Sequence[str]) -> ServerOptions:
    values = dict(setting.partition("=")[::2] for setting in settings)
    known = [field.name for field in attrs.fields(ServerOptions)]
    for name in values:
        if name not in known:
            message = f"{name} is none of the options that count here: {', '.join(known)}"
            raise ConfigurationError(message)
    return server_options(values)


def _definition(schema: Path | None, name: str | None, function: ConflictFunction | None) -> Table:
    """Return the table that was named, or a small one with the column that the function compares."""
    if schema is None:
        if name is not None:
            message = "--table names a table of a schema; give --schema, too"
            raise ConfigurationError(message)
        return example_table() if function is None or function.column is None else example_table(function.column)
    if function is None:
        message = "--schema needs --function: which column is compared is a part of it"
        raise ConfigurationError(message)
    tables = parse_schema(schema.read_text("utf-8")).tables
    found = [each for each in tables if name in (None, each.name, each.full_name)]
    if len(found) != 1:
        names = ", ".join(each.full_name for each in tables)
        message = f"{schema}: --table must name one of {names}"
        raise ConfigurationError(message)
    return found[0]
