"""
`ndb-conflict init`: bare binlogs to a run file.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import conflict.api.setting_up
from conflict.cli.common import console, progress_bars, say_folded
from conflict.cli.from_functions import Call, command_of
from conflict.cli.sources import show_draft
from conflict.telling.shown_text import counted

if TYPE_CHECKING:
    from conflict.discovery.drafted import DraftedRun


@command_of(conflict.api.setting_up.init)
def init(
    call: Call[DraftedRun],
    binlogs: Annotated[
        list[Path] | None,
        typer.Argument(
            help="The binlogs of both clusters: folders, index files, patterns or files.", show_default=False
        ),
    ] = None,
    out: Annotated[Path, typer.Option(help="The run file.")] = Path("run.toml"),
) -> None:
    """
    Write the run file for bare binlogs, with comments on what to check; or for running servers, and what they say.

    Example: ndb-conflict init london/ paris/ --conflict-fn 'shop.*=NDB$MAX(v)'

    Example: ndb-conflict init --server A=mysql://db1 --server B=mysql://db2
    """
    call.sources, call.options["out"] = binlogs or (), out
    with progress_bars() as progress:
        found = call(progress=progress)
    for sentence in found.sentences:
        say_folded(sentence)
    if found.draft is not None:
        show_draft(found.draft)
        said = f"Wrote {out}. Check it, then: ndb-conflict resolve {out} --out result"
    else:
        files = counted(len(found.files) - 1, "file")
        said = f"Wrote {out} and {files} that it names. Check them with: ndb-conflict check {out}"
    console.print(said, markup=False, soft_wrap=True)
