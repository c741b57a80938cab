"""
Pictures of the window of conflicts over time.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa

from conflict.decoding.staging import staged_file
from conflict.errors import ConfigurationError
from conflict.telling.drawing import draw
from conflict.telling.value import Chart, Form

Document = Mapping[str, Any]

_MOST_BARS = 40  # of a picture, per channel
_SECOND = 1000.0  # ms


def charts_of(found: Document) -> Iterator[Chart]:
    """Yield pictures of a document; a bar has the greatest value of its steps, of which it takes as many as it must."""
    for name, title, column, measure, scale in (
        (
            "applied",
            "How long until the other cluster had applied an epoch, longest",
            "applied_ms_max",
            "seconds",
            _SECOND,
        ),
        ("window", "How long changes could conflict (conflict window), longest", "window_ms_max", "seconds", _SECOND),
        ("backlog", "Epochs that wait", "backlog", "epochs", 1),
    ):
        data = _over_time(found["times"], column, scale)
        if data is not None:
            yield Chart(f"window-{name}", title, Form.TIMELINE, data, measure, "UTC")


def _over_time(times: Sequence[Document], column: str, scale: float) -> pa.Table | None:
    """Return the greatest value of a column by time and channel; None where there is no value."""
    if all(row[column] is None for row in times):
        return None
    moments = sorted({datetime.fromisoformat(row["time"]) for row in times})
    first, last = moments[0], moments[-1]
    steps = sorted(later - earlier for earlier, later in pairwise(moments))
    step = max([(last - first) / (_MOST_BARS - 1), *steps[:1]], default=last - first)
    names = list(dict.fromkeys(map(name_of, times)))
    found: dict[str, dict[int, float]] = {name: {} for name in names}
    for row in times:
        if row[column] is not None:
            bar = int((datetime.fromisoformat(row["time"]) - first) / step) if step else 0
            mine = found[name_of(row)]
            mine[bar] = max(mine.get(bar, 0.0), row[column] / scale)
    bars = 1 + max(max(mine, default=0) for mine in found.values())
    return pa.table(
        {
            "from": [first + bar * step for bar in range(bars)],
            **{name: pa.array([mine.get(bar) for bar in range(bars)], pa.float64()) for name, mine in found.items()},
        }
    )


def write_chart(target: Path, found: Document) -> None:
    """
    Draw how long epochs took into a file.

    Raises:
        ConfigurationError: The document shows no epoch that was applied.
    """
    chart = next(charts_of(found), None)
    if chart is None:
        message = "no log shows an epoch of another cluster as applied, so that there is nothing to draw"
        raise ConfigurationError(message)
    with staged_file(target) as out:
        out.write(draw(chart, target.suffix[1:].lower()))


def name_of(channel: Document) -> str:
    """Return the name of a channel, or of a row of the table by time: source and applier."""
    return f"{channel['source']} → {channel['applier']}"
