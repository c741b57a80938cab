"""
`ndb-conflict workers`: how many times faster parallel workers would apply the epochs in binlogs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import conflict.api.models
from conflict.cli.common import console, progress_bars, warn_of
from conflict.cli.from_functions import Call, command_of
from conflict.cli.outputs import ForceOption, JsonOption, write_json
from conflict.cli.refusals import ExitCode, exit_with
from conflict.cli.sources import load_run_of
from conflict.decoding.staging import check_output

if TYPE_CHECKING:
    from conflict.whatif.workers import ParallelWorkers


@command_of(conflict.api.models.workers)
def workers(call: Call[ParallelWorkers], json_file: JsonOption = None, force: ForceOption = False) -> None:
    """
    Show what parallel workers would bring to an applier: how many times faster, and which rows keep epochs waiting.

    Example: ndb-conflict workers london/ paris/
    """
    from conflict.telling.terminal import print_telling
    from ndb_formats.columnar.log_remarks import log_remarks

    loaded = load_run_of(call)
    check_output(json_file, loaded.inputs, force=force)
    with progress_bars() as progress:
        found = call(progress=progress)
    print_telling(console, found.telling())
    write_json(json_file, found.document())
    warned = warn_of(remark for cluster in loaded.configuration.clusters for remark in log_remarks(cluster.files))
    exit_with(ExitCode.WARNED if warned else ExitCode.DONE)
