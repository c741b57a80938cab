"""
`ndb-conflict logging`: whether statements are logged as statements, as rows, as both or not at all.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import conflict.api.formats
from conflict.cli.common import console
from conflict.cli.from_functions import Call, command_of
from conflict.cli.outputs import ForceOption, JsonOption, write_json
from conflict.decoding.staging import check_output
from ndb_formats.statement_logging.decision import BinlogFormat

if TYPE_CHECKING:
    from conflict.checking.logged_statements import LoggedStatements


@command_of(conflict.api.formats.logging)
def logging(
    call: Call[LoggedStatements],
    source: Annotated[str, typer.Argument(metavar="SQL|FILE.sql|-", help="Statements, a file, or - for the input.")],
    schema: Path | None,
    binlog_format: Annotated[
        BinlogFormat | None, typer.Option("--format", help="The binlog_format at the start; all three if left out.")
    ] = None,
    json_file: JsonOption = None,
    force: ForceOption = False,
) -> None:
    """
    Show how statements are logged: as statements, as rows, both or not at all, with the server's messages.

    Example: ndb-conflict logging 'INSERT INTO t VALUES (UUID())'
    """
    from conflict.telling.terminal import print_telling

    file = None if source == "-" else conflict.api.formats.statements_file(source)
    check_output(json_file, [file, schema], force=force)
    statements = f"{sys.stdin.read()}\n" if source == "-" else source
    call.options |= {"source": statements if file is None else file, "binlog_format": binlog_format}
    found = call()
    print_telling(console, found.telling())
    write_json(json_file, found.document())
