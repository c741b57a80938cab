"""
What commands about a run are given: a run file, or bare binlogs and what they lack.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from conflict.api.runs import additions_of, run_of
from conflict.cli.common import progress_bars, say_folded

if TYPE_CHECKING:
    from conflict.cli.from_functions import Call
    from conflict.config.additions import Additions
    from conflict.config.run_file import RunFile
    from conflict.discovery.draft import Draft


def load_run_of(call: Call[Any]) -> RunFile:
    """
    Read a run file, or draft one from bare binlogs and print which were found; call the function with that.

    Raises:
        ConfigurationError: What is given is missing or wrong, or something is added to a run file.
    """
    drafts: list[Draft] = []
    with progress_bars() as progress:
        run = run_of(call.sources, additions_of_call(call), drafts.append, progress)
    for draft in drafts:
        show_draft(draft)
    call.sources = [run]
    return run


def additions_of_call(call: Call[Any]) -> Additions:
    """Return what is said besides bare binlogs, and take it from the call."""
    return additions_of(*(call.options.pop(name) for name in ("schema", "ndb_replication", "conflict_fn", "primary")))


def show_draft(draft: Draft) -> None:
    """Print the binlogs that were found, their SQL nodes, and the conflict functions that they show."""
    for cluster, log in ((each, log) for each in draft.clusters for log in each.logs):
        files = f"{len(log.files):,} binlog files" if len(log.files) > 1 else "1 binlog file"
        last = f" to {log.files[-1].name}" if len(log.files) > 1 else ""
        has = "is" if len(cluster.logs) == 1 else "has"
        say_folded(f"Cluster {cluster.name} {has} server {log.server_id}: {files}, {log.files[0].name}{last}.")
    for sentence in () if draft.shown is None else draft.shown.sentences:
        say_folded(sentence)
