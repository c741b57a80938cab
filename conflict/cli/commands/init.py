"""
`ndb-conflict init`: bare binlogs to a run file.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import conflict.library
from conflict.cli.common import console
from conflict.cli.from_functions import options_of
from conflict.cli.outputs import check_output
from conflict.cli.sources import show_clusters
from conflict.config.arguments import ConflictFns
from conflict.decoding.staging import staged_file
from conflict.library import additions_of

__all__ = ["init"]


@options_of(conflict.library.resolve)
def init(
    binlogs: Annotated[
        list[Path], typer.Argument(help="The binlogs of both clusters: folders, index files, patterns or files.")
    ],
    *,
    out: Annotated[Path, typer.Option(help="The run file.")] = Path("run.toml"),
    schema: Path | None,
    ndb_replication: Path | None,
    conflict_fn: ConflictFns | None,
    primary: str | None,
    force: bool,
) -> None:
    """
    Write the run file for bare binlogs, with comments on what to check.

    Example: ndb-conflict init london/ paris/ --conflict-fn 'shop.*=NDB$MAX(v)'
    """
    from conflict.discovery.draft import draft_run

    check_output(out, [schema, ndb_replication], force=force)
    draft = draft_run(binlogs, additions_of(schema, ndb_replication, conflict_fn, primary), out)
    check_output(out, [file for each in draft.clusters for file in each.files], force=force)
    with staged_file(out) as file:
        file.write(draft.text.encode())
    show_clusters(draft.clusters)
    console.print(f"Wrote {out}. Check it, then: ndb-conflict resolve {out} --out result", markup=False, soft_wrap=True)
