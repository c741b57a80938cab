"""
What was concluded from the changes of appliers that binlogs show.
"""

from __future__ import annotations

import attrs

__all__ = ["MAX_CONTRADICTIONS", "Inference"]

# More contradictions than this do not come from an order; another function was in force.
MAX_CONTRADICTIONS = 200


@attrs.frozen
class Inference:
    """
    Rows of an epoch that were judged before changes that the binlog lists in front of it.

    Attributes:
        cluster: The cluster whose applier it is about.
        foreign_epoch: Epoch of the other cluster.
        judged_earlier: How many rows were judged earlier; so few explain what the binlog shows.
        candidates: From how many possible answers it was chosen.
        rows: How many rows contradicted the order of the binlog.
    """

    cluster: str
    foreign_epoch: int
    judged_earlier: int
    candidates: int
    rows: int
