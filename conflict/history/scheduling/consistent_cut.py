"""
How far the binlogs of all clusters go together.

A binlog that ends earlier than the others, because it was cut short or copied before them, ends the others too: what
they hold after it follows from epochs that are not there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import permutations

from conflict.errors import HistoryError
from conflict.history.model import END
from conflict.history.scheduling.schedule import Summary

__all__ = ["consistent_cut"]


def consistent_cut(
    summaries: Mapping[str, Sequence[Summary]], server_ids: Mapping[str, int]
) -> dict[str, list[Summary]]:
    """
    Return each cluster's epochs up to the first one that depends on a missing epoch.

    A binlog can show that epochs of another cluster were applied although that cluster's binlog ends before them,
    because it was cut short or copied earlier. What follows from missing epochs cannot be derived.

    Args:
        summaries: Per cluster, its own epochs.
        server_ids: Per cluster, its server id.

    Raises:
        HistoryError: Epochs are missing in the middle: a file was left out.
    """
    kept = {name: list(own) for name, own in summaries.items()}
    while True:
        before = {name: len(own) for name, own in kept.items()}
        for name, own in kept.items():
            last = {server_ids[peer]: kept[peer][-1].number if kept[peer] else -1 for peer in kept if peer != name}
            for place, summary in enumerate(own):
                if any(item.server_id in last and item.epoch > last[item.server_id] for item in summary.applied):
                    del own[place:]
                    break
        if before == {name: len(own) for name, own in kept.items()}:
            _check_gaps(kept, server_ids)
            return kept


def _check_gaps(kept: Mapping[str, Sequence[Summary]], server_ids: Mapping[str, int]) -> None:
    for name, peer in permutations(kept, 2):
        known = {summary.number for summary in kept[peer]}
        first = min(known, default=END[0])
        for summary in kept[name]:
            for item in summary.applied:
                if item.server_id == server_ids[peer] and item.epoch > first and item.epoch not in known:
                    message = (
                        f"cluster {name} applied epoch {item.epoch} of cluster {peer}, whose binlogs hold epochs "
                        "before and after it, but not this one; give all binlog files between the first and the last"
                    )
                    raise HistoryError(message)
