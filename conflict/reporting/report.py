"""
A report of one result or of several: the page, and the figures as files.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow.csv as pacsv

from conflict.decoding.staging import staged_file
from conflict.history.grid.folder import Folder
from conflict.reporting.html.page import page_of
from conflict.results.files import RESULT
from conflict.telling.drawing import draw
from conflict.telling.part import Part
from conflict.telling.value import Chart


def write_page(target: Path, title: str, parts: Sequence[Part]) -> None:
    """Write the page of a report; it appears whole."""
    with staged_file(target) as out:
        out.write(page_of(title, parts).encode())


def write_figures(folder: Folder, parts: Sequence[Part]) -> None:
    """Write each figure as SVG and PNG and its data as CSV, and a list of them."""
    named = dict(_named(parts))
    for name, chart in named.items():
        for kind in ("svg", "png"):
            folder.write_bytes(f"{name}.{kind}", draw(chart, kind))
        data = io.BytesIO()
        pacsv.write_csv(chart.data, data)
        folder.write_bytes(f"{name}.csv", data.getvalue())
    titles = {name: chart.title for name, chart in named.items()}
    folder.write_json(RESULT, {"results": [part.source for part in parts], "figures": titles})


def figure_count(parts: Sequence[Part]) -> int:
    """Return how many figures a report has."""
    return sum(len(part.telling.charts) for part in parts)


def _named(parts: Sequence[Part]) -> Iterator[tuple[str, Chart]]:
    """Yield the figures with their names; of several results, each begins with the number of its part."""
    for number, part in enumerate(parts, 1):
        for chart in part.telling.charts:
            yield (f"{number}-{chart.name}" if len(parts) > 1 else chart.name), chart
