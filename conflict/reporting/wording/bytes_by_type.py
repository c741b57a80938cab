"""
Bytes by format in words and as a chart, which several kinds of results have.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

import pyarrow as pa

from conflict.telling.value import Chart, Form

__all__ = [
    "BYTES_CHART",
    "LACKING",
    "amount_of_bytes",
    "bytes_between",
    "bytes_chart",
    "change_of_bytes",
    "format_name",
]

BYTES_CHART = "bytes-by-format"  # the name of the chart among the figures

LACKING = "≥: the log lacks values that this format logs; it takes more."
_IMAGES = ("FULL", "MINIMAL", "NOBLOB")  # of binlog_row_image
_PERCENT = 100.0
_KILO = 1000


def format_name(name: str) -> str:
    """Return what a binlog type, or a value of binlog_row_image, is called in a table or a chart."""
    return f"type {name}" if name.isdigit() else f"image {name}" if name in _IMAGES else name


def amount_of_bytes(count: float) -> str:
    """Return about how many bytes that are, with three digits, in units of 1,000."""
    for unit in ("bytes", "kB", "MB", "GB"):
        if float(f"{count:.3g}") < _KILO:
            return f"{count:.3g} {unit}" if unit == "bytes" else f"{count:#.3g} {unit}".replace(". ", " ")
        count /= _KILO
    return f"{float(f'{count:.3g}'):,.10g} TB"


def bytes_between(least: int, most: int) -> str:
    """Return a number of bytes of which the bounds are known."""
    return f"{least:,}" if least == most else f"{least:,} to {most:,}"


def change_of_bytes(bounds: tuple[int, int], base: tuple[int, int]) -> str:
    """
    Return how many percent a format takes more, or less, than another one.

    Args:
        bounds: The bytes that the format takes, at least and at most.
        base: Those of the other format.
    """
    least, most = bounds[0] / base[1] - 1, bounds[1] / base[0] - 1
    words = dict.fromkeys(f"{_PERCENT * each:+.1f}" for each in (least, most))
    return f"{' to '.join(words)} %".replace("+0.0", "0.0").replace("-0.0", "0.0")


def bytes_chart(
    least: Mapping[str, float], of: str, most: Mapping[str, float] | None = None, lower: Collection[str] = ()
) -> Iterator[Chart]:
    """
    Yield a chart of bytes by format; none if there are no two formats.

    Args:
        least: By format, the bytes of row events that it takes at least.
        of: What they are of, for the title.
        most: By format, those that it takes at most, if that is not known exactly.
        lower: Formats that take more, by an amount that is not known.
    """
    if len(least) < 2:
        return
    names = [f"{format_name(name)}{' ≥' * (name in lower)}" for name in least]
    columns = {"at least" if most else "bytes": list(least.values())}
    if most and any(most[name] > least[name] for name in least):
        columns["possibly more"] = [most[name] - least[name] for name in least]
    data = pa.table({"format": names, **columns})
    note = LACKING if lower else ""
    yield Chart(BYTES_CHART, f"Bytes of row events by format: {of}", Form.STACKED, data, "bytes", note=note)
