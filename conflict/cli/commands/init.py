"""
`ndb-conflict init`: bare binlogs to a run file.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import conflict.api.runs
from conflict.api.runs import additions_of, draft_of
from conflict.cli.common import console, progress_bars, say
from conflict.cli.from_functions import help_of, options_of
from conflict.cli.sources import show_draft
from conflict.config.arguments import SERVER, ConflictFns
from conflict.decoding.staging import check_output, check_target, staged_file
from conflict.errors import ConfigurationError
from conflict.telling.shown_text import counted


@options_of(conflict.api.runs.resolve)
def init(
    binlogs: Annotated[
        list[Path] | None,
        typer.Argument(
            help="The binlogs of both clusters: folders, index files, patterns or files.", show_default=False
        ),
    ] = None,
    *,
    server: Annotated[
        list[str] | None,
        typer.Option(
            metavar=SERVER.metavar,
            help="In place of binlogs, a running server: what it says is written to files. Can be repeated.",
            show_default=False,
        ),
    ] = None,
    defaults_file: Annotated[
        Path | None, typer.Option(help=help_of(conflict.api.runs.check)["defaults_file"], show_default=False)
    ] = None,
    out: Annotated[Path, typer.Option(help="The run file.")] = Path("run.toml"),
    schema: Path | None,
    ndb_replication: Path | None,
    conflict_fn: ConflictFns | None,
    primary: str | None,
    force: bool,
) -> None:
    """
    Write the run file for bare binlogs, with comments on what to check; or for running servers, and what they say.

    Example: ndb-conflict init london/ paris/ --conflict-fn 'shop.*=NDB$MAX(v)'

    Example: ndb-conflict init --server A=mysql://db1 --server B=mysql://db2
    """
    from conflict.config.additions import Additions

    additions = additions_of(schema, ndb_replication, conflict_fn, primary)
    if server:
        if binlogs or additions != Additions():
            message = "--server asks for what the run file says; leave out binlogs, and what is said besides of these"
            raise ConfigurationError(message)
        _save_servers(server, defaults_file, out, force=force)
        return
    if not binlogs:
        message = "give the binlogs of both clusters, or --server"
        raise ConfigurationError(message)
    check_output(out, [schema, ndb_replication], force=force)
    with progress_bars() as progress:
        draft = draft_of(binlogs, additions, out, progress)
    check_output(out, [file for each in draft.clusters for file in each.files], force=force)
    with staged_file(out) as file:
        file.write(draft.text.encode())
    show_draft(draft)
    console.print(f"Wrote {out}. Check it, then: ndb-conflict resolve {out} --out result", markup=False, soft_wrap=True)


def _save_servers(given: list[str], defaults_file: Path | None, out: Path, *, force: bool) -> None:
    """Write what servers say as files beside the run file that names them; the run file last."""
    from conflict.config.servers.saved import RUN_FILE, read_servers

    check_output(out, [defaults_file], force=force)
    with progress_bars() as progress:
        found = read_servers(given, defaults_file, progress)
    for sentence in found.sentences:
        say(sentence)
    found.run({})  # refuses what does not fit together, before anything is written
    targets = {out.parent / name if name != RUN_FILE else out: text for name, text in found.files.items()}
    for target in targets:
        check_target(target, [defaults_file] if defaults_file else [], force=force, folder=False)
    for target, text in targets.items():
        target.parent.mkdir(parents=True, exist_ok=True)
        with staged_file(target, force=force) as file:
            file.write(text.encode())
    files = counted(len(targets) - 1, "file")
    console.print(
        f"Wrote {out} and {files} that it names. Check them with: ndb-conflict check {out}",
        markup=False,
        soft_wrap=True,
    )
