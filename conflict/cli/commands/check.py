"""
`ndb-conflict check`: what a configuration will do, before anyone changes a server.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from conflict.checking.deployment import DeploymentPolicy
from conflict.cli.common import FunctionOption, console, load_run
from conflict.cli.outputs import ForceOption, JsonOption, check_output, write_json
from conflict.cli.refusals import ExitCode, code_of_findings, exit_with
from conflict.cli.sources import additions_of
from conflict.config.text_file import refuse_address
from conflict.errors import ConfigurationError

if TYPE_CHECKING:
    from conflict.config.run_file import RunFile
    from conflict.discovery.draft import Additions

__all__ = ["check"]


def check(
    run_file: Annotated[Path | None, typer.Argument(help="The run file (TOML); its binlogs need not be there.")] = None,
    schema: Annotated[Path | None, typer.Option(help="Without a run file: CREATE TABLE statements.")] = None,
    ndb_replication: Annotated[
        Path | None, typer.Option(help="Rows of mysql.ndb_replication: .sql, .csv, .tsv or .toml.")
    ] = None,
    conflict_fn: Annotated[
        list[str] | None,
        typer.Option(metavar="TABLE=FUNCTION", help="In place of rows: shop.orders=NDB$MAX(version), or shop.*=..."),
    ] = None,
    primary: Annotated[str | None, typer.Option(metavar="CLUSTER", help="The primary, for functions by epoch.")] = None,
    variables: Annotated[
        list[str] | None,
        typer.Option(
            metavar="CLUSTER=FILE", help="A name for a cluster, and its my.cnf or what SHOW GLOBAL VARIABLES prints."
        ),
    ] = None,
    config_ini: Annotated[
        list[str] | None, typer.Option(metavar="CLUSTER=FILE", help="A cluster's config.ini.")
    ] = None,
    policy: Annotated[
        DeploymentPolicy,
        typer.Option(help="With needs, leave out what the manual advises against and the server accepts."),
    ] = DeploymentPolicy.MANUAL,
    function: FunctionOption = None,
    json_file: JsonOption = None,
    force: ForceOption = False,
) -> None:
    """
    Check what a configuration will do and what servers will refuse; read no binlog.

    Example: ndb-conflict check --schema schema.sql --ndb-replication rows.sql
    """
    from conflict.checking.check import check_configuration
    from conflict.cli.views.checks import print_report, report_json

    additions = additions_of(schema, ndb_replication, conflict_fn, primary)
    loaded = _run_of(run_file, additions, _files("--variables", variables), _files("--config-ini", config_ini))
    loaded = load_run(loaded, function)
    check_output(json_file, loaded.inputs, force=force)
    if not loaded.configuration.schema.tables:
        message = "the definition of no table is known, so nothing can be checked; give CREATE TABLE statements"
        raise ConfigurationError(message)
    report = check_configuration(loaded.configuration, policy)
    print_report(console, report)
    write_json(json_file, report_json(report))
    severities = (finding.severity for finding in report.findings)
    exit_with(code_of_findings(severities, refused=ExitCode.REFUSED, error=ExitCode.WARNED))


def _run_of(
    run_file: Path | None, additions: Additions, variables: dict[str, Path], config_ini: dict[str, Path]
) -> RunFile:
    from conflict.checking.draft import draft_check
    from conflict.config.run_file import load_run_file
    from conflict.discovery.draft import Additions

    if run_file is None:
        return draft_check(additions, variables, config_ini)
    if additions != Additions() or variables or config_ini:
        message = f"{run_file} is a run file, which has entries for these options; change it there"
        raise ConfigurationError(message)
    return load_run_file(run_file.absolute(), binlogs=False)


def _files(option: str, given: Sequence[str] | None) -> dict[str, Path]:
    """Return files by cluster."""
    found = {}
    for text in given or ():
        cluster, equals, file = text.partition("=")
        if not (cluster and equals and file):
            message = f"{option} {text} is not understood; give CLUSTER=FILE, as in {option} london=london.txt"
            raise ConfigurationError(message)
        if cluster in found:
            message = f"{option} is given twice for {cluster}; give one file per cluster"
            raise ConfigurationError(message)
        refuse_address(file, option)
        found[cluster] = Path(file)
    return found
