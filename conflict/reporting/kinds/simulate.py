"""
What a report says of simulated runs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from statistics import median
from typing import Any

import pyarrow as pa

from conflict.reporting.parts import Bytes, Chart, Form, Measured, Part, Table, shown
from conflict.reporting.wording.bytes_by_type import bytes_chart, format_name
from conflict.reporting.wording.logs import log_of
from conflict.reporting.wording.model_words import (
    against_recording,
    is_replayed,
    model_functions,
    model_types,
    model_words,
)
from conflict.shown_text import counted, listed

__all__ = ["simulate_part"]

Figures = Mapping[str, Any]
_WINDOW = {"until the epoch ends": "epoch", "on the link": "link", "behind other epochs": "queue", "applying": "apply"}
_QUANTILES = {"half": "p50", "90 %": "p90", "99 %": "p99", "all": "max"}
_PERCENT = 100.0
_MATRIX = {
    "row changes of users": ("changes",),
    "changes rejected": ("rejected",),
    "changes overwritten": ("overwritten",),
    "changes not settled at the end": ("unsettled",),
    "conflicts of its applier": ("applier", "conflicts"),
    "rows its applier refreshed": ("applier", "refreshes"),
    "transactions that failed": ("failed",),
    "reads of rows that differed": ("stale_reads",),
    "conflict window of its changes, ms": ("window_ms", "mean"),
    "of these, 99 % are below, ms": ("window_ms", "p99"),
}


def simulate_part(document: Figures, source: str) -> Part:
    """Return the part of a report on a document of `simulate`, read from `source`."""
    found, runs = document["intervals"], document["runs"]
    return Part(
        "A simulation",
        source,
        _asked(document),
        tuple(_answer(found, runs)),
        tuple(_warnings(found)),
        _matrix(found, len(runs)),
        tuple(_charts(found, runs, _of(document))),
        tuple(_tables(document, found)),
        {name: each for name, each in document.items() if name not in ("intervals", "runs", "closed_form")},
        bytes=_costs(document, found),
        basis=tuple(against_recording(document.get("model") or {})),
        recorded=False,
        lost_share=_replayed(document.get("model") or {}, runs),
        log=log_of((document.get("model") or {}).get("learnt_from", ())),
    )


def _asked(document: Figures) -> dict[str, str]:
    seeds, names = document["seeds"], list(document["intervals"]["clusters"])
    which = f"seeds {seeds[0]} to {seeds[-1]}" if len(seeds) > 1 else f"seed {seeds[0]}"
    return {
        "question": f"What becomes of this workload on {'two' if len(names) == 2 else len(names)} clusters?",
        "clusters": ", ".join(names),
        **model_words(document.get("model", {}) or {"seconds": document["seconds"]}),
        "runs": f"{counted(len(seeds), 'run')}, {which}",
    }


def _answer(found: Figures, runs: Sequence[Figures]) -> Iterator[str]:
    sums = [{name: _total(run, name) for name in ("changes", "rejected", "overwritten")} for run in runs]
    lost = [each["rejected"] + each["overwritten"] for each in sums]
    share = _PERCENT * median(map(_lost_share, runs))
    begun = "In the median of all runs, of" if len(runs) > 1 else "Of"
    yield (
        f"{begun} {shown(median(each['changes'] for each in sums))} row changes of users, "
        f"{'at least ' * bool(_unsettled(found))}{_spread(lost)} were lost "
        f"({shown(share)} %): {shown(median(each['rejected'] for each in sums))} rejected and "
        f"{shown(median(each['overwritten'] for each in sums))} overwritten."
    )
    took = [
        f"{shown(site['window_ms']['mean']['median'])} ms from {name}"
        for name, site in found["clusters"].items()
        if site["window_ms"]["max"]["high"]
    ]
    whither = "other" if len(found["clusters"]) == 2 else "next"
    travelled = f"It took {listed(took)} on average until a change was applied on the {whither} cluster."
    yield travelled if took else "No change reached another cluster."
    different, share_of_time = found["rows_that_end_different"], found["share_of_time_different"]["median"]
    ends = f"{_interval(different)} rows end different" if different["high"] else "no row ends different"
    average = shown(found["rows_different_on_average"]["median"])
    yield (
        f"The clusters differed for {_PERCENT * share_of_time:.1f} % of the time, in {average} rows on average; {ends}."
    )


def _replayed(model: Figures, runs: Sequence[Figures]) -> tuple[str, float] | None:
    """Return the function and what it loses, if there is one function, and epochs take as long as recorded ones."""
    names = {each.partition("(")[0] for each in model_functions(model)}
    if len(names) != 1 or not is_replayed(model) or not all(run["quiet_at_the_end"] for run in runs):
        return None
    return names.pop(), median(map(_lost_share, runs))


def _lost_share(run: Figures) -> float:
    changes = _total(run, "changes")
    return (_total(run, "rejected") + _total(run, "overwritten")) / changes if changes else 0.0


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


def _total(run: Figures, name: str) -> int:
    return int(sum(site[name] for site in run["clusters"].values()))


def _spread(values: Sequence[float]) -> str:
    return _interval({"median": median(values), "low": min(values), "high": max(values)})


def _interval(each: Mapping[str, float]) -> str:
    if each["low"] == each["high"]:
        return shown(each["median"])
    return f"{shown(each['median'])} ({shown(each['low'])} to {shown(each['high'])})"


def _warnings(found: Figures) -> Iterator[str]:
    for name, site in found["clusters"].items():
        stopped = site["applier"].get("stopped_at_ms")
        if stopped is not None:
            yield (
                f"The applier of {name} stopped after {_interval(stopped)} ms: an operation lacks the value that its "
                "function compares."
            )
    if found["quiet_at_the_end"]["low"] < 1:
        yield (
            f"Not settled at the end: up to {shown(_unsettled(found))} changes of users, which were not applied or "
            "rejected everywhere and do not count as lost; more may be lost, and rows may still differ."
        )


def _unsettled(found: Figures) -> float:
    return sum(float(site["unsettled"]["high"]) for site in found["clusters"].values())


def _matrix(found: Figures, runs: int) -> Table:
    sites = found["clusters"]
    rows: list[list[object]] = []
    for words, path in _MATRIX.items():
        cells = []
        for site in sites.values():
            for name in path:
                site = site[name]  # noqa: PLW2901  # the walk down to the figure
            cells.append(_interval(site))
        rows.append([words, *cells])
    title = "Both clusters" if len(sites) == 2 else "All clusters"
    note = "The median of all runs, and the extremes." if runs > 1 else "1 run."
    return Table(title, ("of cluster", *sites), rows, note=note)


def _charts(found: Figures, runs: Sequence[Figures], of: str) -> Iterator[Chart]:
    sites = found["clusters"]
    names = list(sites)
    losses = {
        name: [median(run["clusters"][each][name] for run in runs) for each in names]
        for name in ("rejected", "overwritten")
    }
    data = pa.table({"users of": names, **{name: pa.array(each, pa.float64()) for name, each in losses.items()}})
    yield Chart(
        "lost-updates",
        "Lost updates, in changes of users",
        Form.STACKED,
        data,
        "changes (median)" if len(runs) > 1 else "changes",
        note="At least so many: changes were not settled at the end." if _unsettled(found) else "",
    )
    columns = {words: [site["window_ms"][name]["median"] for site in sites.values()] for words, name in _WINDOW.items()}
    data = pa.table({"changes of": names, **columns})
    title = "Conflict window: how long changes take to the next cluster, in ms"
    note = "Each part is a median of all runs, so that the parts need not add up to the whole." if len(runs) > 1 else ""
    yield Chart("conflict-window", title, Form.STACKED, data, "ms, on average", note=note)
    data = pa.table(
        {
            "share": list(_QUANTILES),
            **{
                f"conflict window of {name}": [site["window_ms"][each]["median"] for each in _QUANTILES.values()]
                for name, site in sites.items()
            },
            "stale rows": [found["stale_ms"][each]["median"] for each in _QUANTILES.values()],
        }
    )
    note = "The label says how many of the conflict windows, and of the stale times, are at most that long."
    yield Chart("stale-time", "Conflict windows and stale times, in ms", Form.GROUPED, data, "ms", note=note)
    yield from bytes_chart(_bytes(found), f"simulated, {of}")


def _bytes(found: Figures) -> dict[str, float]:
    """Return bytes of row events of all clusters by binlog type, where the document has them."""
    sizes = [site.get("row_event_bytes", {}) for site in found["clusters"].values()]
    return {name: sum(each[name]["median"] for each in sizes) for name in sizes[0]}


def _tables(document: Figures, found: Figures) -> Iterator[Table]:
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
    yield Table("By table", (*headings, "rows that differ"), rows)
    predicted = [
        [each["applier"], each["table"], each["simulated"], each["expected"], each["ratio"]]
        for each in document.get("closed_form", ())
    ]
    if predicted:
        yield Table(
            "Conflicts against the closed form", ("applier", "table", "simulated", "closed form", "ratio"), predicted
        )
