"""
What both engines say alike of a run: whether its logs start in the middle after all, and what there is at their end.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar

import attrs

from conflict.history.model import Link
from conflict.history.run import Run
from conflict.history.scheduling.summaries import EpochSizes
from conflict.results.likely_causes import with_renames
from conflict.results.run_document import RunDocument, changes_under_way
from conflict.results.tables_not_there import tables_not_there

Found = TypeVar("Found")


def from_the_start(
    run: Run, attempt: Callable[[Run, Found | None], Found], unexplained: Callable[[Found], bool]
) -> Found:
    """
    Return what an attempt at a run finds; of logs that turn out to start in the middle, as of such ones.

    Args:
        run: The run.
        attempt: Resolves a run; it is given what it found before, if it takes the logs to start in the middle now.
        unexplained: Whether something remains unexplained that rows which are older than the logs can explain.
    """
    found = attempt(run, None)
    if run.start_is_open and unexplained(found):
        return attempt(run.from_the_middle, found)
    return found


def at_end_of_logs(resolved: RunDocument, applied: Mapping[Link, int], sizes: Mapping[str, EpochSizes]) -> RunDocument:
    """
    Return a result with what was under way when the logs ended, and what else the run says beside its figures.

    Args:
        resolved: The result.
        applied: Per link, the last epoch that was applied; a link without one may lack.
        sizes: Per cluster, the own epochs that count.
    """
    run = resolved.run
    return attrs.evolve(
        resolved,
        likely_causes=with_renames(resolved.likely_causes, run.renames),
        notes=run.notes,
        remarks=(*run.remarks, *tables_not_there(run, applied, sizes)),
        under_way=changes_under_way(run.links, applied, sizes),
    )
