"""
The chart of bytes by format, which several kinds of results have.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pyarrow as pa

from conflict.reporting.parts import Chart, Form

__all__ = ["bytes_chart"]

_IMAGES = ("FULL", "MINIMAL", "NOBLOB")  # of binlog_row_image


def bytes_chart(least: Mapping[str, float], most: Mapping[str, float] | None = None) -> Iterator[Chart]:
    """
    Yield a chart of bytes by format; none if there are no two formats.

    Args:
        least: By format, the bytes of row events that it takes at least.
        most: By format, those that it takes at most, if that is not known exactly.
    """
    if len(least) < 2:
        return
    names = [f"type {name}" if name.isdigit() else f"image {name}" if name in _IMAGES else name for name in least]
    columns = {"at least" if most else "bytes": list(least.values())}
    if most and any(most[name] > least[name] for name in least):
        columns["possibly more"] = [most[name] - least[name] for name in least]
    data = pa.table({"format": names, **columns})
    yield Chart("bytes-by-format", "Bytes of row events by format", Form.STACKED, data, "bytes")
