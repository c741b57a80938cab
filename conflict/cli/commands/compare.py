"""
`ndb-conflict compare`: what other functions and formats would have made of the same changes.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import conflict.api.runs
from conflict.cli.common import console, progress_bars
from conflict.cli.from_functions import Call, command_of
from conflict.cli.outputs import JsonOption, write_json
from conflict.cli.refusals import ExitCode, exit_with
from conflict.cli.sources import load_run_of
from conflict.decoding.staging import check_output, refuse_same_output

if TYPE_CHECKING:
    from conflict.whatif.comparing.comparison import Comparison


@command_of(conflict.api.runs.compare)
def compare(call: Call[Comparison], out: Path | None, force: bool, json_file: JsonOption = None) -> None:
    """
    Compare what other conflict functions and formats would have done with the same changes.

    Example: ndb-conflict compare run.toml --functions 'NDB$MAX(v),NDB$EPOCH()'
    """
    from conflict.telling.terminal import print_telling
    from conflict.whatif.comparing.telling import tell_comparison

    loaded = load_run_of(call)
    check_output(json_file, loaded.inputs, force=force)
    refuse_same_output(out, json_file)
    with progress_bars() as progress:
        found = call(progress=progress)
    print_telling(console, tell_comparison(found.to_json()))
    write_json(json_file, found.to_json())
    if found.run.errors or found.run.unrelated or found.cut:
        exit_with(ExitCode.CUT_SHORT)
    if found.run.contradicted:
        exit_with(ExitCode.CONTRADICTED)
    if any(remark.lost for remark in found.run.remarks):
        exit_with(ExitCode.CUT_SHORT)
    exit_with(ExitCode.WARNED if found.run.remarks else ExitCode.DONE)
