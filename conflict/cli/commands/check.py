"""
`ndb-conflict check`: what a configuration will do, before anyone changes a server.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import conflict.api.runs
from conflict.cli.common import console, progress_bars, say
from conflict.cli.from_functions import Call, command_of
from conflict.cli.outputs import ForceOption, JsonOption, write_json
from conflict.cli.refusals import code_of_findings, exit_with
from conflict.cli.sources import additions_of_call
from conflict.config.arguments import AskedServers
from conflict.decoding.staging import check_output
from conflict.errors import ConfigurationError

if TYPE_CHECKING:
    from conflict.checking.report import Report


@command_of(conflict.api.runs.check)
def check(call: Call[Report], run: Path | None, json_file: JsonOption = None, force: ForceOption = False) -> None:
    """
    Check what a configuration will do and what servers will refuse; read no changes.

    Example: ndb-conflict check --schema schema.sql --ndb-replication rows.sql

    Example: ndb-conflict check --server A=mysql://db1 --server B=mysql://db2
    """
    from conflict.api.runs import checked_run
    from conflict.checking.report import report_json, tell_report
    from conflict.telling.terminal import print_telling

    files = call.options.pop("variables"), call.options.pop("config_ini")
    servers = AskedServers(call.options.pop("server") or (), call.options.pop("defaults_file"))
    with progress_bars() as progress:
        loaded = call.options["run"] = checked_run(run, additions_of_call(call), *files, servers, say, progress)
        check_output(json_file, loaded.inputs, force=force)
        if not loaded.configuration.schema.tables:
            message = "the definition of no table is known, so nothing can be checked; give CREATE TABLE statements"
            raise ConfigurationError(message)
        report = call(progress=progress)
    print_telling(console, tell_report(report))
    write_json(json_file, report_json(report))
    exit_with(code_of_findings(finding.severity for finding in report.findings))
