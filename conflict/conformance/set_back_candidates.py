"""
Where the replicas of a recording may have been set back, if its binlogs alone are read.

A replica that is set back applies epochs again. Where they come to nothing, no binlog shows it, nor how often it
happened, nor after which epoch. How often is taken from the recording, as all that is compared; the epochs are tried.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice, product
from typing import Any

from conflict.history.scheduling.schedule import ClusterHints, Hint, Hints, Summary

__all__ = ["set_back_candidates"]

_MOST = 200


def set_back_candidates(
    steps: Sequence[Mapping[str, Any]], summaries: Mapping[str, Sequence[Summary]]
) -> Iterator[ClusterHints]:
    """
    Yield what the epochs may have been after which replicas were set back, 200 times at most; the vaguest come first.

    Args:
        steps: Steps of a scenario; if no replica was set back in them, there are no candidates.
        summaries: Per cluster, its own epochs.
    """
    times = Counter(step["applier"] for step in steps if step.get("action") == "rewind")
    if not times:
        return
    arriving = {
        name: [each.number for other in summaries if other != name for each in summaries[other]] for name in summaries
    }
    ways = [product([None, *arriving[name]], repeat=times[name]) for name in summaries]
    known = sorted(product(*ways), key=lambda way: sum(last is not None for lasts in way for last in lasts))
    for way in islice(known, _MOST):
        yield {name: _hints(arriving[name], lasts) for name, lasts in zip(summaries, way, strict=True)}


def _hints(epochs: Sequence[int], lasts: Sequence[int | None]) -> Hints:
    """Return what is known if an applier was set back after each of some epochs; None for one that is not known."""
    never = Hint(applied=False)
    return [{epoch: never for epoch in epochs if last is not None and epoch > last} for last in (*lasts, None)]
