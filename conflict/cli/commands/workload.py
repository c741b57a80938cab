"""
`ndb-conflict workload`: a simulation learnt from the binlogs of two clusters.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape

import conflict.api.models
from conflict.cli.common import console, progress_bars, warn_of
from conflict.cli.from_functions import Call, command_of
from conflict.cli.refusals import ExitCode, exit_with, messages
from conflict.cli.sources import load_run_of

if TYPE_CHECKING:
    from conflict.telling.value import Telling


@command_of(conflict.api.models.workload)
def workload(
    call: Call[dict[str, Any]],
    out: Annotated[Path, typer.Option(help="File for the learnt model (TOML), for `simulate`.")],
) -> None:
    """
    Learn a workload from the binlogs of two clusters: what users change, and how long epochs are on their way.

    Example: ndb-conflict workload london/ paris/ --out model.toml
    """
    from conflict.telling.shown_text import counted
    from conflict.telling.terminal import print_telling
    from ndb_formats.columnar.log_remarks import log_remarks

    loaded = load_run_of(call)
    with progress_bars(time_left=True) as progress:
        document = call(progress=progress)
    print_telling(console, _told(document))
    console.print(f"Written to {out}; `ndb-conflict simulate` takes it.", highlight=False, markup=False)
    warned = warn_of(remark for cluster in loaded.configuration.clusters for remark in log_remarks(cluster.files))
    late = document.get("not_arrived", {})
    for name, count in late.items():
        if count:
            said = (
                f"{counted(count, 'epoch')} of {name} had not arrived where the binlogs end, after longer than any "
                "other took; how long they travel is not known, and the model has no such outage"
            )
            messages.print(f"[yellow]warning:[/yellow] {escape(said)}", soft_wrap=True)
    exit_with(ExitCode.WARNED if warned or late else ExitCode.DONE)


def _told(document: Mapping[str, Any]) -> Telling:
    """Return what is told of a model that was learnt."""
    from conflict.results.doubts import start_words
    from conflict.telling.value import Table, Telling

    rows = []
    for name, cluster in document["clusters"].items():
        work, trace = cluster["workload"], sorted(took for _, took in cluster["link"]["trace_ms"])
        rate = sum(work["transactions_per_second"]) * work["slot_seconds"] / document["seconds"]
        sizes = {int(size): weight for size, weight in work["rowspertransaction"].items()}
        mean = sum(size * weight for size, weight in sizes.items()) / max(sum(sizes.values()), 1)
        rows.append([name, rate, mean, cluster["epoch_ms"], trace[len(trace) // 2], trace[-1]])
    headings = ("cluster", "transactions per second", "rows each", "epoch, ms", "median travel, ms", "longest, ms")
    table = Table("What users change, and how long epochs are on their way", headings, rows)
    tables = ", ".join(f"{each['name']} ({each['recordcount']:,} rows at first)" for each in document["tables"])
    said = [f"Learnt from {document['seconds']:g} s of the logs; tables: {tables}."]
    starts = document.get("starts_in_the_middle")
    if starts:
        said.append(
            f"{start_words(starts)}: the model has what users did while both were written, and of the rows from before "
            "those alone that they changed; others are not known."
        )
    return Telling("A model", sentences=tuple(said), tables=(table,))
