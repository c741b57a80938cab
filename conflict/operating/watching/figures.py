"""
The figures of a watch, as metrics for Prometheus. Computes docs/metrics.md, "While logs grow".
"""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

import attrs

from conflict.history.epochs import BinlogEpoch
from conflict.history.timeline import EpochApply
from conflict.operating.alerting.metrics import Sample, metric_text, write_metrics
from conflict.operating.records.layout import CONFLICT
from conflict.operating.watching.clusters import DecidedPart

_EVERY = 5.0  # seconds between two writings


@attrs.define
class Figures:
    """
    What a watch counts from its beginning on.

    Attributes:
        read: Epochs that were read.
        decided: Epochs that were decided: their changes, and their applying.
        contradicted: Row changes of appliers that the binlogs show otherwise.
        conflicts: By applier, table and cause.
        lost: By source, table and how.
        applied: By applier and source, the last epoch that was applied.
        times: By cluster, when the last epoch committed that was read, in microseconds since 1970.
        applied_times: By applier, when the last epoch committed on the other cluster that it applied.
    """

    read: int = 0
    decided: int = 0
    contradicted: int = 0
    conflicts: Counter[tuple[str, str, str]] = attrs.field(factory=Counter)
    lost: Counter[tuple[str, str, str]] = attrs.field(factory=Counter)
    applied: dict[tuple[str, str], int] = attrs.field(factory=dict)
    times: dict[str, int] = attrs.field(factory=dict)
    applied_times: dict[str, int] = attrs.field(factory=dict)

    def note(self, cluster: str, epoch: BinlogEpoch) -> None:
        """Note an epoch that was read."""
        self.read += 1
        self.times[cluster] = epoch.committed

    def take(self, part: DecidedPart) -> None:
        """Take what was decided."""
        self.contradicted += part.contradicted
        for cluster in part.history.clusters:
            for item in cluster.timeline:
                if isinstance(item, EpochApply):
                    self.decided += 1
                    self.applied[cluster.name, item.source] = item.foreign_epoch
                    self.applied_times[cluster.name] = item.committed or 0

    def count(self, lines: Iterable[bytes]) -> None:
        """Count records."""
        for each in map(json.loads, lines):
            if each["kind"] == CONFLICT:
                self.conflicts[each["applier"], each["table"], each["cause"]] += 1
            if each["lost"]:
                self.lost[each["source"], each["table"], each["lost_by"]] += 1

    def text(self, now: float) -> str:
        """Return them in the text exposition format; `now`: seconds since 1970."""
        return "".join(metric_text(*each) for each in self._metrics(now))

    def _metrics(self, now: float) -> Iterator[tuple[str, str, list[Sample]]]:
        conflicts = (
            Sample(count, dict(zip(("applier", "table", "cause"), key, strict=True)))
            for key, count in sorted(self.conflicts.items())
        )
        lost = (
            Sample(count, dict(zip(("source", "table", "how"), key, strict=True)))
            for key, count in sorted(self.lost.items())
        )
        applied = (
            Sample(epoch, {"applier": applier, "source": source}) for (applier, source), epoch in self.applied.items()
        )
        yield "conflicts", "Operations that an applier rejected.", list(conflicts)
        yield "lost_changes", "Changes of users that did not survive.", list(lost)
        yield (
            "contradictions",
            "Row changes of appliers that the binlogs show otherwise.",
            [Sample(self.contradicted)],
        )
        yield "last_applied_epoch", "Last epoch of the source that the applier applied.", list(applied)
        yield "epochs_under_way", "Epochs that were read and are not decided.", [Sample(self.read - self.decided)]
        yield "run_time_seconds", "End of the run, in seconds since 1970.", [Sample(now)]


@attrs.define
class FigureFile:
    """
    The file of the figures.

    Attributes:
        path: The file; None for none.
    """

    path: Path | None
    _written: float = -_EVERY

    def write_in_time(self, figures: Figures) -> None:
        """Write figures, unless that was just now."""
        if time.monotonic() - self._written >= _EVERY:
            self.write(figures)

    def write(self, figures: Figures) -> None:
        """Write figures."""
        if self.path is not None:
            write_metrics(figures.text(time.time()), self.path)
        self._written = time.monotonic()
