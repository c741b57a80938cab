"""
`ndb-conflict logging`: whether statements are logged as statements, as rows, as both or not at all.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from conflict.cli.common import console
from conflict.cli.outputs import ForceOption, JsonOption, write_json
from conflict.config.schema_file import as_statements
from conflict.config.text_file import located, read_text, refuse_address
from conflict.decoding.staging import check_output
from conflict.errors import ConfigurationError
from ndb_formats.errors import did_you_mean
from ndb_formats.statement_logging.decision import BinlogFormat


def logging(
    source: Annotated[str, typer.Argument(metavar="SQL|FILE.sql|-", help="Statements, a file, or - for the input.")],
    binlog_format: Annotated[
        BinlogFormat | None, typer.Option("--format", help="The binlog_format at the start; all three if left out.")
    ] = None,
    schema: Annotated[
        Path | None,
        typer.Option(help="CREATE statements of tables, triggers, routines and views.", exists=True, dir_okay=False),
    ] = None,
    engine: Annotated[str | None, typer.Option(help="The engine of tables that the schema does not have.")] = None,
    json_file: JsonOption = None,
    force: ForceOption = False,
) -> None:
    """
    Show how statements are logged: as statements, as rows, both or not at all, with the server's messages.

    Example: ndb-conflict logging 'INSERT INTO t VALUES (UUID())'
    """
    from conflict.cli.views.logging_format import logging_json, print_logging
    from ndb_formats.statement_logging.session import LoggingSession
    from ndb_formats.statement_logging.settings import Settings
    from ndb_formats.statement_logging.sql_text import split_statements
    from ndb_formats.statement_logging.statement_log import catalog_of, log_statements

    # One word that has a dot or a slash is no statement.
    named = not any(each.isspace() for each in source) and any(each in source for each in "./")
    file = Path(source) if named or source.endswith(".sql") else None
    if file is not None:
        refuse_address(source, "argument SQL|FILE.sql|-")
    check_output(json_file, [file, schema], force=force)
    statements = split_statements(_text(source, file))
    if not statements:
        message = f"{source}: there is no statement"
        raise ConfigurationError(message)
    created = "" if schema is None else as_statements(read_text(schema))
    with located(schema):
        catalog = catalog_of(created)
    catalog.assumed_engine = None if engine is None else _known_engine(engine)
    formats = tuple(BinlogFormat) if binlog_format is None else (binlog_format,)
    logged = {each: log_statements(statements, LoggingSession(Settings(each), catalog.copy())) for each in formats}
    print_logging(console, logged)
    write_json(json_file, logging_json(logged))


def _known_engine(name: str) -> str:
    from ndb_formats.statement_logging.catalog import engine_name
    from ndb_formats.statement_logging.settings import ENGINES

    found = engine_name(name)
    if found not in ENGINES:
        meant = did_you_mean(name, ENGINES)
        message = f"--engine {name} is no storage engine of MySQL{meant}; give one of {', '.join(sorted(ENGINES))}"
        raise ConfigurationError(message)
    return found


def _text(source: str, file: Path | None) -> str:
    if source == "-":
        return sys.stdin.read()
    if file is None:
        return source
    return read_text(file)
