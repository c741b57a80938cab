"""
`ndb-conflict requirements`: which conflict function can work with which binlog type.

One function with one type gives the answer in full; without one of the two, the command prints a table.
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
    from conflict.checking.answers import Requirements


@command_of(conflict.api.formats.requirements)
def requirements(
    call: Call[Requirements], schema: Path | None, json_file: JsonOption = None, force: ForceOption = False
) -> None:
    """
    Show which conflict function can work with which binlog type, why not, and what would work.

    Example: ndb-conflict requirements --function 'NDB$MAX(x)' --binlog-type 8
    """
    from conflict.telling.terminal import print_telling

    check_output(json_file, [schema], force=force)
    found = call()
    print_telling(console, found.telling())
    write_json(json_file, found.document())
    if len(found.answers) == 1:
        exit_with(code_of_findings(found.severities))
