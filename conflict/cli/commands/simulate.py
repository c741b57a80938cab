"""
`ndb-conflict simulate`: what becomes of a workload on two clusters or more, before anyone deploys it.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import conflict.api.models
from conflict.cli.common import console, progress_bars
from conflict.cli.from_functions import Call, command_of
from conflict.cli.outputs import JsonOption, write_json
from conflict.cli.refusals import ExitCode, exit_with
from conflict.decoding.staging import check_output, refuse_same_output

if TYPE_CHECKING:
    from conflict.whatif.simulating.simulation import Simulation


@command_of(conflict.api.models.simulate)
def simulate(
    call: Call[Simulation],
    model: Path,
    out: Path | None,
    write_binlogs: Path | None,
    force: bool,
    json_file: JsonOption = None,
) -> None:
    """
    Simulate clusters that replicate to each other: conflicts, lost updates, stale rows, the conflict window.

    Example: ndb-conflict simulate model.toml --seeds 20

    Example: ndb-conflict simulate model.toml --out result --write-binlogs binlogs
    """
    from conflict.telling.terminal import print_telling

    check_output(json_file, [model], force=force)
    binlogs = conflict.api.models.binlogs_of(out, write_binlogs)
    refuse_same_output(out, binlogs, json_file)
    with progress_bars() as progress:
        found = call(progress=progress)
    print_telling(console, found.telling())
    _print_kept(found.seeds[0], binlogs, out)
    write_json(json_file, found.document())
    settled = ExitCode.DONE if found.settled else ExitCode.WARNED
    exit_with(ExitCode.CONTRADICTED if found.contradicted else settled)


def _print_kept(seed: int, binlogs: Path | None, out: Path | None) -> None:
    """Print where binlogs and result of the first run are, if they were asked for."""
    if binlogs is not None:
        text = f"Binlogs of seed {seed} and their run file are in {binlogs}."
        console.print(text, highlight=False, markup=False)
    if out is not None:
        text = f"Its result is in {out}; `ndb-conflict conflicts` and `ndb-conflict explain` take it."
        console.print(text, highlight=False, markup=False)
