"""
The figures of a result as metrics, in the text exposition format of Prometheus. Computes docs/metrics.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType

import attrs
import pyarrow as pa
import pyarrow.compute as pc

from conflict.config.option_values import Grid
from conflict.decoding.staging import staged_file
from conflict.operating.repairing.reading_lost import read_lost
from conflict.operating.window.grouped import known, percentiles
from conflict.operating.window.logs import SECOND
from conflict.operating.window.window import window_of_result
from conflict.results.conflicts import ALL
from conflict.results.result import Result
from conflict.rules.decision import Cause

_PREFIX = "ndb_conflict_"
_NO_LABELS: Mapping[str, str] = MappingProxyType({})
_QUANTILES = {"p50": "0.5", "p99": "0.99", "max": "1"}
_CAUSES = tuple(cause.name for cause in Cause if cause)


@attrs.frozen
class Sample:
    """
    One value of a metric.

    Attributes:
        value: The value.
        labels: Its labels.
    """

    value: float
    labels: Mapping[str, str] = _NO_LABELS


Samples = Iterable[Sample]


@attrs.frozen
class Metric:
    """
    A metric: a gauge, since each run counts anew.

    Attributes:
        name: Its name, without the prefix.
        help: What it is.
        samples: Its values in a result.
    """

    name: str
    help: str
    samples: Callable[[Result], Samples]


def _conflicts(result: Result) -> Iterator[Sample]:
    for applier, tables in result.run["tables"].items():
        for table, tally in tables.items():
            for cause in _CAUSES:
                yield Sample(tally.get(cause, 0), {"applier": applier, "table": table, "cause": cause})


def _lost(result: Result) -> Iterator[Sample]:
    changes = read_lost(result, ALL)
    how = pc.if_else(changes["cause"].is_valid(), "rejected", "overwritten")
    counts = pa.table({"source": changes["cluster"], "table": changes["table"], "how": how})
    counts = counts.group_by(["source", "table", "how"]).aggregate([([], "count_all")])
    found = {(row["source"], row["table"], row["how"]): row["count_all"] for row in counts.to_pylist()}
    tables = dict.fromkeys((table for own in result.run["tables"].values() for table in own), None)
    for source in result.clusters:
        for table in tables:
            for each in ("rejected", "overwritten"):
                yield Sample(found.get((source, table, each), 0), {"source": source, "table": table, "how": each})


def _differing(result: Result) -> Iterator[Sample]:
    for table, rows in result.run["differing_rows"].items():
        if rows is not None:
            yield Sample(rows, {"table": table})


def _by_applier(entry: str) -> Callable[[Result], Samples]:
    """Return the number of things of an applier in a list of `run.json`."""

    def samples(result: Result) -> Samples:
        names = [each["applier"] for each in result.run[entry]]
        return [Sample(names.count(name), {"applier": name}) for name in result.clusters]

    return samples


def _last_epochs(result: Result) -> Iterator[Sample]:
    for applier in result.clusters:
        applied = result.applied_epochs(applier).group_by("source").aggregate([("source_epoch", "max")])
        for row in applied.to_pylist():
            yield Sample(row["source_epoch_max"], {"applier": applier, "source": row["source"]})


def _under_way(result: Result) -> Iterator[Sample]:
    for each in result.run["changes_under_way"]:
        yield Sample(each["changes"], {"applier": each["applier"], "source": each["source"]})


def _lag(result: Result) -> Iterator[Sample]:
    """Yield percentiles of how long epochs took; none if the binlogs are not as they were, or show nothing."""
    found = window_of_result(result, Grid.HOUR)
    for channel in () if found is None else found.channels:
        took = percentiles(known(channel.delay))
        for share, quantile in _QUANTILES.items():
            if (time := took[share]) is not None:
                labels = {"applier": channel.applier, "source": channel.source, "quantile": quantile}
                yield Sample(time / SECOND, labels)


METRICS = (
    Metric("conflicts", "Operations that an applier rejected.", _conflicts),
    Metric("lost_changes", "Changes of users that did not survive.", _lost),
    Metric("differing_rows", "Rows that differ between the clusters at the end.", _differing),
    Metric("skipped_epochs", "Epochs that an applier never applied.", _by_applier("skipped_epochs")),
    Metric(
        "holes",
        "Places where the binlogs may lack changes.",
        lambda result: [Sample(sum(each["lost"] for each in result.run["log_remarks"]))],
    ),
    Metric(
        "open_decisions",
        "Decisions that the binlogs leave open.",
        lambda result: [Sample(result.run["undecided"].get(name, 0), {"applier": name}) for name in result.clusters],
    ),
    Metric(
        "contradictions",
        "Row changes of appliers that the binlogs show otherwise.",
        lambda result: [Sample(result.run["contradicted_by_binlogs"])],
    ),
    Metric("last_applied_epoch", "Last epoch of the source that the applier applied.", _last_epochs),
    Metric("lag_seconds", "How long epochs took until the applier had logged that it applied them.", _lag),
    Metric("changes_under_way", "Row changes not applied yet when the logs end.", _under_way),
)


@attrs.frozen
class Timing:
    """
    When a run was made.

    Attributes:
        ended: Its end, in seconds since 1970.
        seconds: How long it took.
    """

    ended: float
    seconds: float


def metrics_text(result: Result, timing: Timing | None = None) -> str:
    """
    Return the figures of a result in the text exposition format of Prometheus.

    Args:
        result: The result.
        timing: When it was made; None to leave that out.
    """
    parts = [metric_text(each.name, each.help, each.samples(result)) for each in METRICS]
    if timing is not None:
        parts.append(metric_text("run_seconds", "How long the run took.", [Sample(timing.seconds)]))
        parts.append(metric_text("run_time_seconds", "End of the run, in seconds since 1970.", [Sample(timing.ended)]))
    return "".join(parts)


def write_metrics(text: str, target: Path) -> None:
    """Write metrics; the file appears whole, in place of an earlier one."""
    with staged_file(target) as out:
        out.write(text.encode())


def metric_text(name: str, said: str, samples: Samples) -> str:
    """Return a metric as text."""
    lines = [f"# HELP {_PREFIX}{name} {said}\n", f"# TYPE {_PREFIX}{name} gauge\n"]
    for each in samples:
        labels = ",".join(f'{label}="{_escaped(value)}"' for label, value in each.labels.items())
        lines.append(f"{_PREFIX}{name}{f'{{{labels}}}' if labels else ''} {each.value}\n")
    return "".join(lines)


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
