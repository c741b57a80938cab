"""
`ndb-conflict check-replica`: whether a replica's tables can take what a source logs, from both sides' CREATE TABLE.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from conflict.cli.common import console
from conflict.cli.outputs import ForceOption, JsonOption, write_json
from conflict.cli.refusals import code_of_findings, exit_with
from conflict.decoding.staging import check_output
from ndb_formats.constants import DEFAULT_CHARSET

if TYPE_CHECKING:
    from ndb_formats.rules.replica.check import ReplicaSettings
    from ndb_formats.schema.tables import Schema


SchemaArgument = Annotated[Path, typer.Argument(help="CREATE TABLE statements.", exists=True, dir_okay=False)]


def check_replica(
    source: SchemaArgument,
    replica: SchemaArgument,
    row_image: Annotated[
        str | None, typer.Option(help="binlog_row_image of the source: full, minimal or noblob; for tables not of NDB.")
    ] = None,
    binlog_type: Annotated[str | None, typer.Option(help="A binlog_type, by number or name; for NDB tables.")] = None,
    type_conversions: Annotated[
        str, typer.Option(help="replica_type_conversions of the replica, such as ALL_NON_LOSSY,ALL_UNSIGNED.")
    ] = "",
    database: Annotated[str, typer.Option(help="Database of tables that are not qualified.")] = "",
    charset: Annotated[str, typer.Option(help="Character set of tables that declare none.")] = DEFAULT_CHARSET,
    json_file: JsonOption = None,
    force: ForceOption = False,
) -> None:
    """
    Check, table by table, whether changes of a source find their rows on a replica and give the same rows.

    Example: ndb-conflict check-replica source.sql replica.sql --row-image minimal
    """
    from conflict.checking.report import replica_report_json, tell_replica_report
    from conflict.checking.rules.replicas import check_schemas
    from conflict.telling.terminal import print_telling

    check_output(json_file, [source, replica], force=force)
    settings = _settings(row_image, binlog_type, type_conversions)
    report = check_schemas(_schema(source, database, charset), _schema(replica, database, charset), settings)
    print_telling(console, tell_replica_report(report))
    write_json(json_file, replica_report_json(report))
    exit_with(code_of_findings(finding.severity for finding in report.findings))


def _settings(row_image: str | None, binlog_type: str | None, conversions: str) -> ReplicaSettings:
    """Return the settings; the one of the two formats that is given alone also rules tables without ENGINE."""
    from ndb_formats.rules.images import Logging
    from ndb_formats.rules.replica.check import ReplicaSettings
    from ndb_formats.rules.replica.conversions import parse_type_conversions
    from ndb_formats.rules.row_image_rules import RowImageRule, parse_row_image
    from ndb_formats.rules.update_format import effective_format, parse_binlog_type

    logging = Logging(
        effective_format(parse_binlog_type(binlog_type)),
        RowImageRule.FULL if row_image is None else parse_row_image(row_image),
    )
    of_ndb = binlog_type is not None and row_image is None
    return ReplicaSettings(logging, parse_type_conversions(conversions), undeclared_is_ndb=of_ndb)


def _schema(file: Path, database: str, charset: str) -> Schema:
    from conflict.config.schema_file import load_schema

    return load_schema(file, database=database, charset=charset)
