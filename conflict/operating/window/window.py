"""
The window of conflicts over time: what `conflict.window` returns.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import attrs
import numpy as np
import pyarrow as pa
import pyarrow.dataset as pads

from conflict.config.arguments import StageProgress, no_progress
from conflict.config.configuration import Configuration
from conflict.config.option_values import Grid
from conflict.errors import ConflictError
from conflict.operating.window.channels import Channel, channel_of
from conflict.operating.window.clocks import ClockDifference
from conflict.operating.window.grouped import by_time, in_ms, known, moment, percentiles
from conflict.operating.window.logs import ClusterLog, Int64, UInt64, cluster_logs, places_of
from conflict.operating.window.telling import tell_window
from conflict.results.conflicts import read_outcomes
from conflict.results.result import Result
from conflict.rules.decision import Verdict
from conflict.runs.run_inputs import configuration_of, refuse_later_part
from conflict.telling.html import telling_html
from conflict.telling.terminal import telling_text
from ndb_formats.errors import FormatError

if TYPE_CHECKING:
    from conflict.explaining.beginning import Beginning

_MICROSECONDS_OF_MS = 1000


@attrs.frozen(eq=False, repr=False)
class Window:
    """
    How long epochs took between clusters, and how long their changes could conflict. Printed, it says which side lags.

    Attributes:
        by: The step of `times`.
        channels: The epochs of each source on their way to each applier whose log shows some of them as applied.
        silent: Source and applier of each channel whose applier's log shows none.
        times: A row for each channel and step of time; see docs/window.md.
        logs: The epochs of each cluster.
        conflicts: By source and applier, how many operations were rejected; None without a result.
        beginning: When rows that end different began to differ; None without a result.
    """

    by: Grid
    channels: tuple[Channel, ...]
    silent: tuple[tuple[str, str], ...]
    times: pa.Table
    logs: Mapping[str, ClusterLog]
    conflicts: Mapping[tuple[str, str], int] | None = None
    beginning: Beginning | None = None

    @property
    def clocks(self) -> tuple[ClockDifference, ...]:
        """By how much the clocks of each pair of clusters differ."""
        found = {(each.clocks.first, each.clocks.second): each.clocks for each in self.channels}
        return tuple(found.values())

    @property
    def whole(self) -> bool:
        """Whether all binlogs could be read to their ends."""
        return all(log.whole for log in self.logs.values())

    @property
    def doubtful(self) -> bool:
        """Whether a log shows nothing of a channel, or no difference of clocks fits."""
        return bool(self.silent) or any(each.moved for each in self.clocks)

    def document(self) -> dict[str, Any]:
        """Return the same as a document. Times are in ms, moments texts as in ISO 8601."""
        rows = self.times.to_pylist()
        return {
            "window_by": self.by.value,
            "clocks": [_clocks_document(each) for each in self.clocks],
            "channels": [self._channel(each) for each in self.channels],
            "silent": [{"source": source, "applier": applier} for source, applier in self.silent],
            "clusters": {name: _sizes(log) for name, log in self.logs.items()},
            "beginning": None if self.beginning is None else self.beginning.document(),
            "times": [{**row, "time": row["time"].isoformat()} for row in rows],
        }

    def _channel(self, channel: Channel) -> dict[str, Any]:
        stops = channel.stops
        columns = (stops.begin, stops.end, stops.open, stops.after)
        return {
            "source": channel.source,
            "applier": channel.applier,
            "epochs": len(channel.number),
            "applied_ms": in_ms(percentiles(known(channel.delay))),
            "applied_shown": len(known(channel.delay)),
            "applied_within_ms": None if channel.clocks.bound is None else channel.clocks.bound / _MICROSECONDS_OF_MS,
            "window_ms": in_ms(percentiles(known(channel.window))),
            "window_shown": len(known(channel.window)),
            "backlog": int(channel.backlog[1].max(initial=0)),
            "left": channel.left,
            "conflicts": None if self.conflicts is None else self.conflicts[channel.source, channel.applier],
            "stops": [
                {
                    "begin": moment(begin),
                    "end": None if is_open else moment(end),
                    "seconds": (end - begin) / 1e6,
                    "after_epoch": after or None,
                }
                for begin, end, is_open, after in zip(*(each.tolist() for each in columns), strict=True)
            ],
        }

    def __repr__(self) -> str:
        return telling_text(tell_window(self.document()))

    def _repr_html_(self) -> str:
        return telling_html(tell_window(self.document()))


def _clocks_document(clocks: ClockDifference) -> dict[str, Any]:
    """Return a difference of clocks as a document."""
    numbers = {
        "least_ms": clocks.least,
        "most_ms": clocks.most,
        "corrected_ms": clocks.estimate,
        "within_ms": clocks.bound,
    }
    return {"first": clocks.first, "second": clocks.second, **in_ms(numbers), "moved": clocks.moved}


def _sizes(log: ClusterLog) -> dict[str, Any]:
    """Return how large the epochs of a cluster are."""
    largest = int(np.argmax(log.size))
    return {
        "epochs": len(log),
        "bytes": percentiles(log.size),
        "rows": percentiles(log.rows),
        "largest_epoch": int(log.number[largest]),
        "whole": log.whole,
    }


def window_of(
    configuration: Configuration,
    by: Grid,
    result: Result | None = None,
    beginning: Beginning | None = None,
    progress: StageProgress = no_progress,
) -> Window:
    """
    Return how long epochs took between clusters over time.

    Args:
        configuration: The clusters and their binlogs.
        by: The step of time.
        result: What was resolved of them; None for nothing.
        beginning: When rows of the result began to differ.
        progress: Called with the name of a stage, what is done, and all that there is.

    Raises:
        ConfigurationError: As `cluster_logs`.
        HistoryError: The result does not tell of all that was applied.
    """
    if result is not None:
        refuse_later_part(result.run, result.folder.uri)
    logs = cluster_logs(configuration, progress)
    names = list(logs)
    channels, silent, tables = list[Channel](), list[tuple[str, str]](), list[pa.Table]()
    counts: dict[tuple[str, str], int] | None = None if result is None else {}
    for applier, source in ((one.name, other.name) for one, other in configuration.links.channels()):
        placed = None if result is None else _placed(result, applier, source)
        first = names.index(source) < names.index(applier)
        channel = channel_of(logs[source], logs[applier], source_first=first, placed=placed)
        if channel is None:
            silent.append((source, applier))
            continue
        channels.append(channel)
        conflicts = None if result is None else _conflicts(result, channel)
        if conflicts is not None and counts is not None:
            counts[source, applier] = int(conflicts.sum())
        tables.append(by_time(channel, by, conflicts))
    times = pa.concat_tables(tables) if tables else pa.table({})
    return Window(by, tuple(channels), tuple(silent), times, logs, counts, beginning)


def window_of_result(result: Result, by: Grid) -> Window | None:
    """Return the window of a result; None if its binlogs are not as they were, or cannot be read."""
    try:
        return window_of(configuration_of(result.run, result.folder.uri), by, result)
    except (ConflictError, FormatError, OSError):
        return None


def _placed(result: Result, applier: str, source: str) -> tuple[UInt64, UInt64]:
    """Return the epochs of a source that an applier applied, and the own epochs that were logged then or next."""
    applied = result.applied_epochs(applier)
    mine = applied.filter(pads.field("source") == source)
    return mine["source_epoch"].to_numpy(), mine["epoch"].to_numpy()


def _conflicts(result: Result, channel: Channel) -> Int64:
    """Return how many operations of each epoch of a channel were rejected."""
    chosen = (pads.field("verdict") == Verdict.REJECTED.name) & (pads.field("source") == channel.source)
    found = read_outcomes(result.folder, [channel.applier], chosen, ["source_epoch"])
    epochs, counts = np.unique(found["source_epoch"].to_numpy(), return_counts=True)
    place, held = places_of(channel.number, epochs)
    numbers = np.zeros(len(channel.number), np.int64)
    numbers[place[held]] = counts[held]
    return numbers
