"""
Bytes by format in words and as a chart, which several kinds of results have.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pyarrow as pa

from conflict.telling.value import Chart, Form

BYTES_CHART = "bytes-by-format"  # the name of the chart among the figures

_KILO = 1000


def format_name(name: str) -> str:
    """Return what a binlog type, or a value of binlog_row_image, is called in a table or a chart."""
    return f"type {name}" if name.isdigit() else name


def amount_of_bytes(count: float) -> str:
    """Return about how many bytes that are, with three digits, in units of 1,000."""
    for unit in ("bytes", "kB", "MB", "GB"):
        if float(f"{count:.3g}") < _KILO:
            return f"{count:.3g} {unit}" if unit == "bytes" else f"{count:#.3g} {unit}".replace(". ", " ")
        count /= _KILO
    return f"{float(f'{count:.3g}'):,.10g} TB"


def bytes_chart(least: Mapping[str, float], of: str, most: Mapping[str, float] | None = None) -> Iterator[Chart]:
    """
    Yield a chart of bytes by format; none if there are no two formats.

    Args:
        least: By format, the bytes of row events that it takes at least.
        of: What they are of, for the title.
        most: By format, those that it takes at most, if that is not known exactly.
    """
    if len(least) < 2:
        return
    columns = {"at least" if most else "bytes": list(least.values())}
    if most and any(most[name] > least[name] for name in least):
        columns["possibly more"] = [most[name] - least[name] for name in least]
    data = pa.table({"format": list(map(format_name, least)), **columns})
    yield Chart(BYTES_CHART, f"Bytes of row events by format: {of}", Form.STACKED, data, "bytes")
