"""
Figures of epochs by time: percentiles, sums and the largest of each minute, hour or epoch.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

import attrs
import numpy as np
import pyarrow as pa

from conflict.config.option_values import Grid
from conflict.operating.window.channels import NOT_KNOWN, Channel
from conflict.operating.window.logs import SECOND, Bool, Int64

_SHARES = {"p50": 50, "p99": 99, "max": 100}  # percent
_TIME = pa.timestamp("us", tz="UTC")
_TO_MS = 1000.0
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


_STEPS = {Grid.MINUTE: 60 * SECOND, Grid.HOUR: 3600 * SECOND}


@attrs.frozen(eq=False)
class Groups:
    """
    The group of each of several things, by number, and how many groups there are.

    Attributes:
        of: The group of each. Shape (things,).
        count: How many groups there are.
    """

    of: Int64
    count: int

    def sums(self, values: Int64) -> Int64:
        """Return the sum of the values of each group."""
        found = np.zeros(self.count, np.int64)
        np.add.at(found, self.of, values)
        return found

    def percentiles(self, values: Int64, chosen: Bool | None = None) -> dict[str, pa.Array]:
        """
        Return percentiles of each group: the least value that so many percent do not exceed; NULL of no value.

        Args:
            values: The values of all things.
            chosen: The things to take; None for all.
        """
        of = self.of if chosen is None else self.of[chosen]
        values = values if chosen is None else values[chosen]
        order = np.lexsort((values, of))
        values, starts = values[order], np.searchsorted(of[order], np.arange(self.count + 1))
        counts = np.diff(starts)
        found = {}
        for name, percent in _SHARES.items():
            place = starts[:-1] + np.maximum(-(-counts * percent // 100) - 1, 0)
            taken = np.append(values, 0)[np.minimum(place, len(values))]
            found[name] = pa.array(taken, pa.int64(), mask=counts == 0)
        return found


def percentiles(values: Int64) -> dict[str, int | None]:
    """Return percentiles of values; None of no value."""
    found = Groups(np.zeros(len(values), np.int64), 1).percentiles(values)
    return {name: column[0].as_py() for name, column in found.items()}


def known(times: Int64) -> Int64:
    """Return the times that are known."""
    found: Int64 = times[times != NOT_KNOWN]
    return found


def moment(time: int) -> str:
    """Return microseconds since 1970 as text as in ISO 8601."""
    return (_EPOCH + timedelta(microseconds=time)).isoformat()


def in_ms(found: Mapping[str, int | None]) -> dict[str, float | None]:
    """Return microseconds by name in milliseconds."""
    return {name: None if value is None else value / _TO_MS for name, value in found.items()}


def by_time(channel: Channel, grid: Grid, conflicts: Int64 | None) -> pa.Table:
    """
    Return the figures of a channel by time; a step in which the source logged no epoch has no row.

    Args:
        channel: The channel.
        grid: The step.
        conflicts: How many operations of each epoch the applier rejected; None if no result tells. Shape (epochs,).

    Returns:
        Columns ``source``, ``applier``, ``time`` (the begin of the step), ``epoch`` (the first of it), ``epochs``,
        ``rows``, ``bytes``, ``largest_bytes``; ``applied_ms_...``, how long until the applier had applied an epoch, and
        ``window_ms_...``, how long until this came back, each with ``p50``, ``p99`` and ``max``; ``backlog``, the most
        epochs that waited at a time; ``conflicts``, of the epochs of this step.
    """
    if grid is Grid.EPOCH:
        starts, groups = channel.committed, Groups(np.arange(len(channel.number)), len(channel.number))
        first = np.arange(len(channel.number))
    else:
        step = _STEPS[grid]
        steps, first, of = np.unique(channel.committed // step, return_index=True, return_inverse=True)
        starts, groups = steps * step, Groups(of.astype(np.int64), len(steps))
    columns = {
        "source": pa.array([channel.source] * groups.count, pa.string()),
        "applier": pa.array([channel.applier] * groups.count, pa.string()),
        "time": pa.array(starts).cast(_TIME),
        "epoch": pa.array(channel.number[first]),
        "epochs": pa.array(groups.sums(np.ones(len(channel.number), np.int64))),
        "rows": pa.array(groups.sums(channel.rows)),
        "bytes": pa.array(groups.sums(channel.size)),
        "largest_bytes": groups.percentiles(channel.size)["max"],
        **_times("applied_ms", groups, channel.delay),
        **_times("window_ms", groups, channel.window),
        "backlog": pa.array(_backlog(channel, starts)),
        "conflicts": pa.nulls(groups.count, pa.int64()) if conflicts is None else pa.array(groups.sums(conflicts)),
    }
    return pa.table(columns)


def _times(name: str, groups: Groups, times: Int64) -> dict[str, pa.Array]:
    found = groups.percentiles(times, times != NOT_KNOWN)
    return {
        f"{name}_{share}": pa.array(
            column.fill_null(0).to_numpy() / _TO_MS, mask=column.is_null().to_numpy(zero_copy_only=False)
        )
        for share, column in found.items()
    }


def _backlog(channel: Channel, starts: Int64) -> Int64:
    """Return the most epochs that waited at a time from each of some moments to the next one."""
    moments, waiting = (
        np.concatenate([[first], column]) for first, column in zip((-1, 0), channel.backlog, strict=True)
    )
    order = np.argsort(starts, kind="stable")
    at = np.searchsorted(moments, starts[order]) - 1  # what waited when the step began counts, too
    ends = np.append(at[1:], len(moments) - 1)
    found = np.zeros(len(starts), np.int64)
    found[order] = np.maximum(np.maximum.reduceat(waiting, at), waiting[ends])
    return found
