"""
`ndb-conflict channel`: where a channel goes on that is to read from another SQL node.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import conflict.api.operations
from conflict.cli.common import compilation_is_said, console
from conflict.cli.from_functions import Call, command_of
from conflict.cli.outputs import JsonOption, write_json
from conflict.cli.refusals import ExitCode, exit_with
from conflict.decoding.staging import check_output, refuse_same_output

if TYPE_CHECKING:
    from conflict.operating.channel.channels import MovedChannels


@command_of(conflict.api.operations.channel)
def channel(
    call: Call[MovedChannels],
    sql: Path | None,
    parquet: Path | None,
    force: bool,
    json_file: JsonOption = None,
) -> None:
    """
    Show where a channel goes on that is to read from another SQL node: file, position, and what may be missing.

    Example: ndb-conflict channel london/ paris/ --to 4
    """
    from conflict.operating.channel.telling import tell_channels
    from conflict.telling.terminal import print_telling

    refuse_same_output(json_file, sql, parquet)
    check_output(json_file, [Path(each) for each in call.sources], force=force)
    with compilation_is_said():
        found = call()
    document = found.document()
    print_telling(console, tell_channels(document))
    write_json(json_file, document)
    for target in (sql, parquet):
        if target is not None:
            console.print(f"The epochs are in {target}.", markup=False, highlight=False, soft_wrap=True)
    lost = any(each.lost or each.contradicts for each in found.remarks) or not found.channels
    exit_with(ExitCode.CUT_SHORT if lost else ExitCode.WARNED if found.remarks else ExitCode.DONE)
