"""
`ndb-conflict check-replica`: whether a replica's tables can take what a source logs, from both sides' CREATE TABLE.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import conflict.api.formats
from conflict.cli.common import console
from conflict.cli.from_functions import Call, command_of
from conflict.cli.outputs import ForceOption, JsonOption, write_json
from conflict.cli.refusals import code_of_findings, exit_with
from conflict.decoding.staging import check_output

if TYPE_CHECKING:
    from conflict.checking.replica_report import ReplicaReport


@command_of(conflict.api.formats.check_replica)
def check_replica(
    call: Call[ReplicaReport], source: Path, replica: Path, json_file: JsonOption = None, force: ForceOption = False
) -> None:
    """
    Check, table by table, whether changes of a source find their rows on a replica and give the same rows.

    Example: ndb-conflict check-replica source.sql replica.sql --row-image minimal
    """
    from conflict.telling.terminal import print_telling

    check_output(json_file, [source, replica], force=force)
    found = call()
    print_telling(console, found.telling())
    write_json(json_file, found.document())
    exit_with(code_of_findings(finding.severity for finding in found.findings))
