"""
Simulated runs: their document, what is told of them, and their part of a report.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from statistics import median
from typing import Any

import attrs
import pyarrow as pa

from conflict.rules.decision import Cause
from conflict.telling.bytes_by_type import bytes_chart, format_name
from conflict.telling.part import Bytes, Measured, Part, log_of
from conflict.telling.shown_text import counted, percent
from conflict.telling.value import Chart, Form, Table, Telling, shown
from conflict.whatif.estimates import LEAST_RUNS, METHOD, Estimate, estimate
from conflict.whatif.simulating.configuration import MOST_EPOCHS, Model, followers_of
from conflict.whatif.simulating.remarks import remarks_of
from conflict.whatif.simulating.report import intervals_of
from conflict.whatif.simulating.theory import predictions
from conflict.whatif.simulating.totals import totals_of
from conflict.whatif.simulating.words import (
    against_recording,
    is_replayed,
    learnt_from_the_middle,
    model_functions,
    model_types,
    model_words,
)

Figures = Mapping[str, Any]
Columns = Mapping[str, Figures]
_SECOND, _PERCENT = 1_000_000, 100.0
_USERS = {
    "transactions": "transactions",
    "tried again": "tried_again",
    "failed": "failed",
    "row changes": "changes",
    "found no row": "found_no_row",
    "reads of rows that differed": "stale_reads",
    "changes rejected": "rejected",
    "changes overwritten": "overwritten",
    "changes not settled at the end": "unsettled",
    "transactions with a rejected change": "rejected_transactions",
    "  of these, rejected in part": "partly_rejected_transactions",
}
_TOGETHER = {
    "row changes": "changes",
    "changes lost": "lost_updates",
    "% of changes lost": "lost_share",
    "conflicts": "conflicts",
    "rows that end different": "rows_that_end_different",
}
_APPLIER = {
    "changes received": "received",
    "applied": "applied",
    "conflicts": "conflicts",
    **{f"  {cause.name.lower().replace('_', ' ')}": cause.name.lower() for cause in Cause if cause},
    "conflicts per second": "conflicts_per_second",
    "% of changes in conflict": "share_in_conflict",
    "rows refreshed": "refreshes",
    "rows reflected": "reflected",
    "reflected rows discarded": "discarded",
}
_PARTS = {"until the epoch ends": "epoch", "on the link": "link", "behind other epochs": "queue", "applying": "apply"}
_WINDOW = {
    **_PARTS,
    "in all: the conflict window": "mean",
    "  median": "p50",
    "  99 %": "p99",
    "  longest": "max",
    "until known to have arrived": "back",
}
_EVERYWHERE = {"median": "p50", "99 %": "p99", "longest": "max"}
_QUANTILES = {"half": "p50", "90 %": "p90", "99 %": "p99", "all": "max"}
_ALWAYS = {"transactions", "changes", "received", "conflicts", "rejected", "overwritten", "mean"}
_UNITS = {"bytes": 1.0, "kB": 1e-3, "MB": 1e-6}
_MOST_DIGITS = 1e5  # of a figure with its extremes; two of them fit beside each other


def simulation_document(model: Model, runs: Sequence[Figures]) -> dict[str, Any]:
    """Return the figures as a document: of each run, and their intervals."""
    found = intervals_of(runs)
    names = [site.name for site in model.sites]
    followers = [followers_of(model, side) for side in range(len(names))]
    return {
        "seconds": model.duration / _SECOND,
        "seeds": list(range(model.seed, model.seed + len(runs))),
        "intervals": _plain(found),
        "closed_form": [attrs.asdict(each) | {"ratio": each.ratio} for each in predictions(model, found)],
        "runs": list(runs),
        "followers": {name: [names[each] for each in own] for name, own in zip(names, followers, strict=True)},
        "remarks": remarks_of(model),
        "not_settled": "" if found["quiet_at_the_end"].low == 1 else _why_unsettled(model, found["clusters"]),
    }


def _plain(found: Any) -> Any:
    if isinstance(found, Estimate):
        sure = () if found.median_interval is None else ("mean", "median_interval", "mean_interval")
        return {name: getattr(found, name) for name in ("median", "low", "high", *sure)}
    return {name: _plain(each) for name, each in found.items()} if isinstance(found, Mapping) else found


def _why_unsettled(model: Model, sites: Figures) -> str:
    if not any(site["unsettled"].high for site in sites.values()):
        return "Rows that appliers refreshed or reflected were still on their way."
    if model.endless:
        return f"In the model, {' and '.join(model.endless)}."
    if any(site["applier"]["stopped_at_ms"] is not None for site in sites.values()):
        return "An applier stopped."
    if model.drain is not None:
        return (
            f"drain_seconds ends the run {model.drain / _SECOND:g} s after the last transaction; without it, a run "
            "goes on until all is applied."
        )
    return f"To apply all would take more than {MOST_EPOCHS:,} epochs."


def simulate_part(document: Figures, source: str) -> Part:
    """Return the part of a report on a document of `simulate`, read from `source`."""
    found, runs, model = document["intervals"], document["runs"], document.get("model") or {}
    return Part(
        tell_simulation(document),
        source,
        _asked(document),
        {name: each for name, each in document.items() if name not in ("intervals", "runs", "closed_form")},
        bytes=_costs(document, found),
        basis=tuple(against_recording(model)),
        recorded=False,
        lost_share=_replayed(model, runs),
        log=log_of(model.get("learnt_from", ())),
    )


def tell_simulation(document: Figures) -> Telling:
    """Return what is told of a document of `simulate`; of several runs, medians and extremes."""
    found, runs = document["intervals"], document["runs"]
    return Telling(
        "A simulation",
        _lost(found, runs),
        (*_differing(document, found), *learnt_from_the_middle(document.get("model") or {})),
        tuple(_tables(document, found)),
        tuple(_charts(found, runs, _of(document))),
        tuple(_stops(found)),
        (*document.get("remarks", ()), *_unsettled(document, found)),
    )


def _asked(document: Figures) -> dict[str, str]:
    names = list(document["intervals"]["clusters"])
    return {
        "question": f"What becomes of this workload on {'two' if len(names) == 2 else len(names)} clusters?",
        "clusters": ", ".join(names),
        **model_words(document.get("model", {}) or {"seconds": document["seconds"]}),
        "runs": _runs(document),
    }


def _runs(document: Figures) -> str:
    seeds = document["seeds"]
    which = f"seeds {seeds[0]} to {seeds[-1]}" if len(seeds) > 1 else f"seed {seeds[0]}"
    return f"{counted(len(seeds), 'run')} of {document['seconds']:g} s, {which}"


def _lost(found: Figures, runs: Sequence[Figures]) -> str:
    sums = {name: [_total(run, name) for run in runs] for name in ("changes", "rejected", "overwritten")}
    lost = [sum(each) for each in zip(sums["rejected"], sums["overwritten"], strict=True)]
    begun = "In the median of all runs, of" if len(runs) > 1 else "Of"
    at_least = "at least " * any(site["unsettled"]["high"] for site in found["clusters"].values())
    extremes = "" if min(lost) == max(lost) else f"; extremes {shown(min(lost))} to {shown(max(lost))}"
    return (
        f"{begun} {shown(median(sums['changes']))} row changes of users, {at_least}{shown(median(lost))} were lost "
        f"({percent(median(map(_lost_share, runs)), None)}{extremes}): {shown(median(sums['rejected']))} rejected "
        f"and {shown(median(sums['overwritten']))} overwritten."
    )


def _differing(document: Figures, found: Figures) -> Iterator[str]:
    different, share = found["rows_that_end_different"], found["share_of_time_different"]["median"]
    average = shown(found["rows_different_on_average"]["median"])
    ends = f"{_interval(different)} rows end different" if different["high"] else "at the end no row differs"
    yield f"The clusters differed for {percent(share)} of the time, in {average} rows on average; {ends}."
    yield f"{_runs(document)}."


def _stops(found: Figures) -> Iterator[str]:
    for name, site in found["clusters"].items():
        stopped = site["applier"].get("stopped_at_ms")
        if stopped is not None:
            yield (
                f"The applier of {name} stopped after {_interval(stopped)} ms: an operation lacks the value that its "
                "function compares; use another binlog_type."
            )


def _unsettled(document: Figures, found: Figures) -> Iterator[str]:
    if found["quiet_at_the_end"]["low"] < 1:
        changes = sum(float(site["unsettled"]["high"]) for site in found["clusters"].values())
        lost = f"up to {shown(changes)} changes of users, not counted as lost; more may be lost. " * bool(changes)
        yield f"Not settled at the end: {lost}{document.get('not_settled', '')}".rstrip(": ")


def _replayed(model: Figures, runs: Sequence[Figures]) -> tuple[str, float] | None:
    """Return the function and what it loses, if there is one function, and epochs take as long as recorded ones."""
    names = {each.partition("(")[0] for each in model_functions(model)}
    if len(names) != 1 or not is_replayed(model) or not all(run["quiet_at_the_end"] for run in runs):
        return None
    return names.pop(), median(map(_lost_share, runs))


def _lost_share(run: Figures) -> float:
    changes = _total(run, "changes")
    return (_total(run, "rejected") + _total(run, "overwritten")) / changes if changes else 0.0


def _total(run: Figures, name: str) -> int:
    return int(sum(site[name] for site in run["clusters"].values()))


def _costs(document: Figures, found: Figures) -> Bytes | None:
    """Return what the binlog types take, related to the one that was simulated; None if that is not known."""
    sizes = {name: (round(size), round(size)) for name, size in _bytes(found).items()}
    types = model_types(document["model"]) if document.get("model") else []
    if len(types) != 1 or types[0] not in sizes:
        return None
    base, functions = format_name(types[0]), model_functions(document["model"])
    of = f"a simulated run of all clusters ({_of(document)})"
    return Bytes(Measured.SIMULATED, sizes, base, sizes[types[0]][0], of, functions=functions)


def _of(document: Figures) -> str:
    """Return what was simulated, for a title: the functions, and of how many runs figures are the medians."""
    functions = model_functions(document["model"]) if document.get("model") else []
    runs = len(document["runs"])
    return ", ".join([*functions, f"median of {runs:,} runs" if runs > 1 else "1 run"])


def _bytes(found: Figures) -> dict[str, float]:
    """Return bytes of row events of all clusters by binlog type, where the document has them."""
    sizes = [site.get("row_event_bytes", {}) for site in found["clusters"].values()]
    return {name: sum(each[name]["median"] for each in sizes) for name in sizes[0]}


# -----------------------------------------------------------------------------------------------------------
# Tables
# -----------------------------------------------------------------------------------------------------------


def _tables(document: Figures, found: Figures) -> Iterator[Table]:
    sites, runs = found["clusters"], len(document["runs"])
    yield from _together(document["runs"])
    yield from _figures("What users did, and what they lost", "", _USERS, sites, runs)
    yield from _figures("What the appliers did", "", _APPLIER, _of_each(sites, "applier"), runs)
    followers = document.get("followers") or {name: [] for name in sites}
    arrows = {name: f"{name} → {', '.join(own)}" if own else name for name, own in followers.items()}
    windows = {arrows[name]: site["window_ms"] for name, site in sites.items()}
    title = f"How long changes took to reach the {'other' if len(sites) == 2 else 'next'} cluster, ms"
    yield from _figures(title, "on average", _WINDOW, _measured(windows), runs)
    everywhere = {name: each for name, each in _measured(_of_each(sites, "everywhere_ms")).items() if each}
    yield from _figures("How long until all clusters had them, ms", "", _EVERYWHERE, everywhere, runs)
    stale = _measured({"all clusters": found["stale_ms"]})
    if any(stale.values()):
        note = "But for rows that end different." * bool(found["rows_that_end_different"]["high"])
        yield from _figures("How long rows differed, ms", "", _QUANTILES, stale, runs, note)
    yield from _bytes_table(sites, runs)
    predicted = [
        [each["applier"], each["table"], each["simulated"], each["expected"], each["ratio"]]
        for each in document.get("closed_form", ())
    ]
    if predicted:
        headings = ("applier", "table", "simulated", "closed form", "ratio")
        yield Table("Conflicts against the closed form", headings, predicted, texts=2)
    yield _by_table(found)


def _together(runs: Sequence[Figures]) -> Iterator[Table]:
    """Yield how sure the figures of all clusters together are; nothing of runs that are too few for intervals."""
    if len(runs) < LEAST_RUNS:
        return
    rows = []
    for words, name in _TOGETHER.items():
        scale = _PERCENT if name == "lost_share" else 1.0
        each = estimate([scale * {**run, **totals_of(run)}[name] for run in runs])
        spans = each.median_interval, each.mean_interval, (each.low, each.high)
        of_median, of_mean, extremes = (_span(*(span or (math.nan, math.nan))) for span in spans)
        rows.append([words, each.median, of_median, each.mean, of_mean, extremes])
    headings = ("", "median", "its 95 % interval", "mean", "its 95 % interval", "extremes")
    yield Table("All clusters together", headings, rows, note=f"Intervals of {len(runs):,} runs: {METHOD}.")


def _span(low: float, high: float) -> str:
    return f"{shown(low)} to {shown(high)}"


def _of_each(sites: Figures, name: str) -> dict[str, Any]:
    return {cluster: site.get(name, {}) for cluster, site in sites.items()}


def _measured(columns: Columns) -> dict[str, Figures]:
    """Return times, or nothing where none was measured."""
    return {name: each if each and each["max"]["high"] else {} for name, each in columns.items()}


def _figures(
    title: str, what: str, lines: Mapping[str, str], columns: Columns, runs: int, note: str = ""
) -> Iterator[Table]:
    """Yield a table with a row per line that holds anything, and a column per cluster; none without a row."""
    rows = [
        [words, *(_interval(each.get(name), _PERCENT if name == "share_in_conflict" else 1.0) for each in cells)]
        for words, name in lines.items()
        for cells in [list(columns.values())]
        if cells and (name in _ALWAYS or any((each.get(name) or {"high": 0})["high"] for each in cells))
    ]
    if rows:
        yield Table(title, (what, *_headings(columns, runs)), rows, note=note)


def _headings(names: Iterator[str] | Mapping[str, object], runs: int) -> list[str]:
    return [f"{name} median (extremes)" if runs > 1 else name for name in names]


def _bytes_table(sites: Figures, runs: int) -> Iterator[Table]:
    """Yield how long the log of each cluster gets in every format, where that was counted."""
    sizes = _of_each(sites, "row_event_bytes")
    most = max((each["high"] for own in sizes.values() for each in own.values()), default=0.0)
    if not most:
        return
    unit = next((name for name, scale in _UNITS.items() if scale * most < _MOST_DIGITS), "MB")
    numbers = next(own for own in sizes.values() if own)
    rows = [[number, *(_interval(own.get(number), _UNITS[unit]) for own in sizes.values())] for number in numbers]
    title = f"Row events, those of the applier among them, had all tables this binlog type: {unit}"
    yield Table(title, ("binlog type", *_headings(sizes, runs)), rows)


def _by_table(found: Figures) -> Table:
    sites = found["clusters"]
    rows = [
        [
            table,
            *(_interval(site["changes_by_table"][table]) for site in sites.values()),
            *(_interval(site["applier"]["conflicts_by_table"][table]) for site in sites.values()),
            _interval(different),
        ]
        for table, different in found["different_by_table"].items()
    ]
    headings = ("table", *(f"changes of {name}" for name in sites), *(f"conflicts on {name}" for name in sites))
    return Table("By table", (*headings, "rows that differ"), rows)


def _interval(each: Mapping[str, float] | None, scale: float = 1.0) -> str:
    if each is None:
        return "-"
    middle, low, high = (shown(scale * each[name]) for name in ("median", "low", "high"))
    return middle if low == high else f"{middle} ({low} to {high})"


# -----------------------------------------------------------------------------------------------------------
# Charts
# -----------------------------------------------------------------------------------------------------------


def _charts(found: Figures, runs: Sequence[Figures], of: str) -> Iterator[Chart]:
    sites, several = found["clusters"], len(runs) > 1
    losses = {
        name: pa.array([median(run["clusters"][each][name] for run in runs) for each in sites], pa.float64())
        for name in ("rejected", "overwritten")
    }
    data = pa.table({"users of": list(sites), **losses})
    unsettled = any(site["unsettled"]["high"] for site in sites.values())
    note = "At least so many: changes were not settled at the end." * unsettled
    measure = "changes (median)" if several else "changes"
    yield Chart("lost-updates", "Lost updates, in changes of users", Form.STACKED, data, measure, note=note)
    columns = {words: [site["window_ms"][name]["median"] for site in sites.values()] for words, name in _PARTS.items()}
    data = pa.table({"changes of": list(sites), **columns})
    title = "Conflict window: how long changes take to the next cluster, in ms"
    note = "Each part is a median of all runs, so that the parts need not add up to the whole." * several
    yield Chart("conflict-window", title, Form.STACKED, data, "ms, on average", note=note)
    times = {f"conflict window of {name}": site["window_ms"] for name, site in sites.items()}
    times["stale rows"] = found["stale_ms"]
    columns = {words: [own[each]["median"] for each in _QUANTILES.values()] for words, own in times.items()}
    data = pa.table({"share": list(_QUANTILES), **columns})
    note = "The label says how many of the conflict windows, and of the stale times, are at most that long."
    yield Chart(
        "stale-time",
        "Conflict windows and stale times, in ms",
        Form.GROUPED,
        data,
        "ms",
        note=note,
        clusters=len(sites),
    )
    yield from bytes_chart(_bytes(found), f"simulated, {of}")
