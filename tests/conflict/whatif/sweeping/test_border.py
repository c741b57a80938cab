"""Borders by bisection, judged by functions whose border is known."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conflict.errors import ConfigurationError
from conflict.whatif.sweeping.border import Border, Condition, check_axis, find_borders, parse_condition
from conflict.whatif.sweeping.sweep_file import Design, Point

SWEEP = Design({}, {"function": ("f", "g"), "latency_ms": (0, 1000)})


@given(st.integers(0, 999), st.booleans())
def test_the_border_is_found_exactly(border: int, below: bool) -> None:
    """Whole values: the condition holds at one and fails at its neighbour, whichever side it holds on."""

    def judge(points: Sequence[Point]) -> list[int]:
        return [int((point["latency_ms"] <= border) == below) for point in points]

    holds, fails = (border, border + 1) if below else (border + 1, border)
    found = find_borders(SWEEP, "latency_ms", judge)
    assert found == [Border({"function": name}, holds, fails, only=True) for name in ("f", "g")]


def test_all_points_are_judged_together() -> None:
    """So that they run side by side; a point whose border is found is not judged again."""
    asked: list[int] = []

    def judge(points: Sequence[Point]) -> list[int]:
        asked.append(len(points))
        return [int(point["function"] == "f" or point["latency_ms"] < 300) for point in points]

    found = find_borders(SWEEP, "latency_ms", judge, within=250)
    assert found == [Border({"function": "f"}, 1000, None, only=True), Border({"function": "g"}, 250, 500, only=True)]
    assert asked == [4, 1, 1]


def test_a_border_among_several_is_the_first() -> None:
    """The values of the grid show that there are more."""
    sweep = Design({}, {"x": (0.0, 1.0, 2.0)})
    judge = lambda points: [int(not 0.5 < point["x"] < 1.5) for point in points]  # noqa: E731  # short
    (found,) = find_borders(sweep, "x", judge, within=0.1)
    assert (found.holds, found.fails, found.only) == (0.5, 0.5625, False)


SEEDS = st.lists(st.integers(0, 999), min_size=3, max_size=3)


@given(borders=SEEDS, below=st.booleans())
def test_seeds_that_differ(borders: list[int], below: bool) -> None:
    """Each seed has a border of its own: up to the least it holds with all of them, beyond the most with none."""
    sweep = Design({}, {"latency_ms": (0, 1000)}, seeds=3)

    def judge(points: Sequence[Point]) -> list[int]:
        return [sum((point["latency_ms"] <= each) == below for each in borders) for point in points]

    (found,) = find_borders(sweep, "latency_ms", judge)
    least, most = min(borders), max(borders)
    assert (found.holds, found.fails) == ((least, most + 1) if below else (most + 1, least))


def test_a_seed_that_never_fails() -> None:
    """Then there is no value at which it fails with every seed, though it holds with every one nowhere."""
    sweep = Design({}, {"latency_ms": (0, 1000)}, seeds=2)
    (found,) = find_borders(sweep, "latency_ms", lambda points: [1] * len(points))
    assert (found.holds, found.fails, found.only) == (None, None, True)


def test_conditions() -> None:
    """A figure, an operator, a number; it does not hold where the figure is not known."""
    assert parse_condition("lost_updates == 0") == Condition("lost_updates", "==", 0)
    assert parse_condition(" stale_ms_p99<=1e3 ") == Condition("stale_ms_p99", "<=", 1000)
    condition = Condition("n", ">=", 3)
    assert [condition.holds({"n": each}) for each in (3, 4.5, 2, None, "3")] == [True, True, False, False, False]
    for text in ("lost_updates", "lost_updates = 0", "lost_updates == zero", "== 0", "x < --1"):
        with pytest.raises(ConfigurationError, match="give a figure"):
            parse_condition(text)
    with pytest.raises(ConfigurationError, match="there is no figure losses; there are, for example, n"):
        Condition("losses", "==", 0).check([{"n": 1}])


def test_figures_of_clusters_with_any_name() -> None:
    """A name of a cluster is part of the names of its figures, and may hold more than letters."""
    for name in ("site-1", "new york", "a<b"):
        condition = parse_condition(f"{name}_rejected <= 2")
        assert condition == Condition(f"{name}_rejected", "<=", 2)
        condition.check([{f"{name}_rejected": 1}])


def test_text_is_no_figure() -> None:
    """No condition could hold for it."""
    with pytest.raises(ConfigurationError, match="model is text, and no figure"):
        Condition("model", "!=", 3).check([{"model": "{}"}])
    Condition("stopped_at", "<", 3).check([{"stopped_at": None}])


def test_axes_to_look_along() -> None:
    """Numbers, and two of them."""
    for over in ("function", "skew"):
        with pytest.raises(ConfigurationError, match="with two numbers"):
            check_axis(SWEEP, over)
    check_axis(SWEEP, "latency_ms")
    with pytest.raises(ConfigurationError, match="its numbers are names"):
        check_axis(Design({}, {"binlog_type": (2, 7)}), "binlog_type")


def test_a_distance_that_whole_numbers_do_not_have() -> None:
    """Between whole numbers only whole ones are tried, so no border is nearer than 1."""
    with pytest.raises(ConfigurationError, match=r"write a value of latency_ms with a decimal point, as in 0\.0"):
        check_axis(SWEEP, "latency_ms", within=0.5)
    check_axis(SWEEP, "latency_ms", within=1)
    check_axis(Design({}, {"latency_ms": (0.0, 1000)}), "latency_ms", within=0.5)
