"""
`ndb-conflict audit`: what is wrong with the values of the columns that conflict functions compare.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import conflict.api.operations
from conflict.cli.common import console, progress_bars
from conflict.cli.from_functions import Call, command_of
from conflict.cli.outputs import ForceOption, JsonOption, write_json
from conflict.cli.refusals import ExitCode, exit_with
from conflict.decoding.staging import check_output

if TYPE_CHECKING:
    from conflict.operating.audit.audit import Audit


@command_of(conflict.api.operations.audit)
def audit(call: Call[Audit], run: Path, json_file: JsonOption = None, force: ForceOption = False) -> None:
    """
    Check the values that conflict functions compare: that they rise, are set once, and come from no clock ahead.

    Example: ndb-conflict audit build/result
    """
    from conflict.operating.audit.telling import tell_audit
    from conflict.telling.terminal import print_telling

    check_output(json_file, [run], force=force)
    with progress_bars() as progress:
        found = call(progress=progress)
    document = found.document()
    print_telling(console, tell_audit(document))
    write_json(json_file, document)
    exit_with(ExitCode.WARNED if found.findings else ExitCode.DONE)
