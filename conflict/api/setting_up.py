"""
What Python users and commands call to begin with: the run file for bare binlogs, or for running servers.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from conflict.api.runs import additions_of, draft_of
from conflict.config.arguments import CLUSTER, CONFLICT_FN, SERVER, ConflictFns, StageProgress, no_progress, typed
from conflict.config.option_values import path_of, words_of
from conflict.config.text_file import places_of
from conflict.errors import ConfigurationError

if TYPE_CHECKING:
    from conflict.discovery.drafted import DraftedRun


@typed(server=SERVER, conflict_fn=CONFLICT_FN, primary=CLUSTER)
def init(
    *binlogs: Path | str | Iterable[Path | str],
    server: str | Sequence[str] | None = None,
    defaults_file: Path | str | None = None,
    out: Path | str | None = None,
    schema: Path | str | None = None,
    ndb_replication: Path | str | None = None,
    conflict_fn: ConflictFns | None = None,
    primary: str | None = None,
    force: bool = False,
    progress: StageProgress = no_progress,
) -> DraftedRun:
    """
    Draft the run file for bare binlogs, or for running servers; as the command ``init``.

    Args:
        binlogs: The binlogs of both clusters: folders, index files, patterns or files.
        server: In place of binlogs, a running server: what it says is written to files.
        defaults_file: As for `check`.
        out: The run file; what servers say goes to files beside it. Without it, nothing is written.
        schema: As for `resolve`.
        ndb_replication: As for `resolve`.
        conflict_fn: As for `resolve`.
        primary: As for `resolve`.
        force: As for `resolve`.
        progress: As for `resolve`.

    Raises:
        ConfigurationError: The binlogs are not those of two clusters, a server cannot be asked, or a file not written.
    """
    from conflict.config.additions import Additions
    from conflict.decoding.staging import check_output, staged_file
    from conflict.discovery.drafted import DraftedRun

    additions = additions_of(schema, ndb_replication, conflict_fn, primary)
    given = [place for each in binlogs for place in places_of(each)]
    target, servers = path_of(out), words_of(server)
    if servers:
        if given or additions != Additions():
            message = "--server asks for what the run file says; leave out binlogs, and what is said besides of these"
            raise ConfigurationError(message)
        return _of_servers(servers, path_of(defaults_file), target, progress, force=force)
    if not given:
        message = "give the binlogs of both clusters, or --server"
        raise ConfigurationError(message)
    path = target or Path("run.toml")
    check_output(target, [path_of(schema), path_of(ndb_replication)], force=force)
    draft = draft_of(given, additions, path, progress)
    check_output(target, [file for each in draft.clusters for file in each.files], force=force)
    if target is not None:
        with staged_file(target) as file:
            file.write(draft.text.encode())
    return DraftedRun(draft.run, {path: draft.text}, draft)


def _of_servers(
    given: Sequence[str], defaults_file: Path | None, out: Path | None, progress: StageProgress, *, force: bool
) -> DraftedRun:
    """Return what servers say; write it as files beside the run file that names them, the run file last."""
    from conflict.config.servers.saved import RUN_FILE, read_servers
    from conflict.decoding.staging import check_output, check_target, staged_file
    from conflict.discovery.drafted import DraftedRun

    check_output(out, [defaults_file], force=force)
    found = read_servers(given, defaults_file, progress)
    run = found.run({})  # refuses what does not fit together, before anything is written
    path = out or Path(RUN_FILE)
    named = sorted(found.files.items(), key=lambda each: each[0] == RUN_FILE)
    files = {path.parent / name if name != RUN_FILE else path: text for name, text in named}
    for target in files if out is not None else ():
        check_target(target, [defaults_file] if defaults_file else [], force=force, folder=False)
    for target, text in files.items() if out is not None else ():
        target.parent.mkdir(parents=True, exist_ok=True)
        with staged_file(target, force=force) as file:
            file.write(text.encode())
    return DraftedRun(run, files, sentences=tuple(found.sentences))
