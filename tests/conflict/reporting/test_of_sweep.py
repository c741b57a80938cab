"""What a report says of borders."""

from typing import Any

from conflict.reporting.of_sweep import border_sentence


def border(function: str, skew: int, holds: float | None, fails: float | None) -> dict[str, Any]:
    """Return a row of `borders.parquet`."""
    what = {"condition": "lost_updates == 0", "over": "latency_ms"}
    return {**what, "function": function, "clock_skew_ms": skew, "holds": holds, "fails": fails, "only": 1}


def test_the_worst_of_the_other_axes_counts() -> None:
    """Up to the least latency at which it holds whatever the skew; nowhere if it fails everywhere at one skew."""
    rows = [border("f", 0, 20, 21), border("f", 50, 12.5, 13), border("g", 0, 7, None), border("h", 0, None, 0)]
    assert border_sentence(rows) == (
        "lost_updates == 0 holds up to latency_ms 12.5 with f; at all latency_ms with g; "
        "at some points at no latency_ms with h."
    )
    assert border_sentence([border("f", 0, 30, 29)]) == "lost_updates == 0 holds from latency_ms 30 with f."


def test_a_condition_without_a_border() -> None:
    """It holds everywhere, or nowhere."""
    assert border_sentence([border("f", 0, 0, None)]) == "lost_updates == 0 holds at all latency_ms that were tried."
    assert border_sentence([border("f", 0, None, 0)]) == "lost_updates == 0 holds at no latency_ms that was tried."
