"""
`ndb-conflict lost`: the changes of users that did not survive.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import conflict.api.results
from conflict.cli.common import console, progress_bars
from conflict.cli.from_functions import Call, command_of
from conflict.cli.outputs import JsonOption, write_json
from conflict.decoding.staging import check_output, refuse_same_output

if TYPE_CHECKING:
    from conflict.operating.repairing.lost import Losses


_FIRST = 10


@command_of(conflict.api.results.lost)
def lost(
    call: Call[Losses],
    result: Path,
    out: Path | None,
    force: bool,
    top: Annotated[int, typer.Option(min=1, help="How many changes to show.")] = _FIRST,
    json_file: JsonOption = None,
) -> None:
    """
    List the changes of users that did not survive: what each set, why it was lost, and what took its place.

    Example: ndb-conflict lost build/result --out lost.csv

    Example: ndb-conflict lost build/result --table shop.orders --key 5
    """
    from conflict.operating.repairing.lost import tell_lost
    from conflict.telling.terminal import print_telling

    refuse_same_output(json_file, out)
    check_output(json_file, [result], force=force)
    with progress_bars() as progress:
        found = call(progress=progress)
    print_telling(console, tell_lost(found, top, str(result)))
    write_json(json_file, found.document())
    if out is not None:
        console.print(f"All of them are in {out}.", markup=False, highlight=False, soft_wrap=True)
