"""
`ndb-conflict zoo`: what breaks, of every resolver and format: the shortest schedule for each anomaly.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import conflict.api.searching
from conflict.cli.common import console, progress_bars
from conflict.cli.from_functions import Call, command_of
from conflict.cli.outputs import JsonOption, write_json

if TYPE_CHECKING:
    from conflict.whatif.zoo.zoo import Zoo


@command_of(conflict.api.searching.zoo)
def zoo(call: Call[Zoo], *, out: Path | None, recordings: Path | None, json_file: JsonOption = None) -> None:
    """
    Search what breaks: for every resolver, format and anomaly the shortest schedule that shows it.

    Example: ndb-conflict zoo --function 'NDB$MAX(x)' --formats 7
    """
    from conflict.decoding.staging import check_output, refuse_same_output
    from conflict.telling.terminal import print_telling

    refuse_same_output(out, json_file)
    check_output(json_file, [], force=True)
    with progress_bars(time_left=True) as progress:
        found = call(progress=progress)
    print_telling(console, found.telling())
    write_json(json_file, found.document())
    if out is not None:
        text = f"The page, pictures and tests are in {out}."
        console.print(text, highlight=False, markup=False, soft_wrap=True)
    if recordings is not None:
        console.print(f"The recordings are in {recordings}.", highlight=False, markup=False, soft_wrap=True)
