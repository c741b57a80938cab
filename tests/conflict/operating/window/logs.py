"""Logs of clusters, put together by hand."""

from collections.abc import Mapping, Sequence

import numpy as np

from conflict.operating.window.logs import ClusterLog

SECOND = 1_000_000


def log(
    name: str,
    committed: Mapping[int, float],
    applied: Mapping[int, Sequence[int]] | None = None,
    *,
    source: str = "",
    idle: Sequence[int] = (),
    ahead: float = 0.0,
    exact: bool = True,
) -> ClusterLog:
    """
    Return a log.

    Args:
        name: The cluster.
        committed: When each epoch was logged, in seconds of true time; each has as many bytes as its number, and a row.
        applied: By own epoch, the foreign epochs that it shows as applied.
        source: The cluster that made those.
        idle: The epochs without changes of the cluster itself.
        ahead: By how many seconds its clock is ahead.
        exact: Whether its times are not cut to seconds.
    """
    numbers = sorted(committed)
    times = [round((committed[each] + ahead) * SECOND) for each in numbers]
    pairs = [(foreign, numbers.index(own)) for own, those in (applied or {}).items() for foreign in those]
    found = (np.array([each[0] for each in pairs], np.uint64), np.array([each[1] for each in pairs], np.int64))
    return ClusterLog(
        name,
        np.array(numbers, np.uint64),
        np.array([each if exact else each // SECOND * SECOND for each in times], np.int64),
        np.array(numbers, np.int64),
        np.ones(len(numbers), np.int64),
        np.array([each not in idle for each in numbers], np.int64),
        {source: found} if source else {},
        exact,
    )
