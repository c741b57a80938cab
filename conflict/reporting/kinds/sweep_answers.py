"""
What the top of a report, and the head of its section, say of a sweep.
"""

from __future__ import annotations

from collections.abc import Iterator

from conflict.reporting.answers.limit import (
    limit_question,
    limit_sentences,
    losses_sentence,
    search_sentence,
    stale_sentence,
    waits_sentence,
)
from conflict.reporting.answers.simulated import (
    AXES,
    different_sentence,
    least_lost,
    point_label,
    seeds_sentence,
    without_stops,
)
from conflict.reporting.kinds.sweep_result import SweepResult
from conflict.reporting.parts import Headline, Topic
from conflict.reporting.wording.model_words import against_recording, beyond_limit, is_learnt, model_words
from conflict.shown_text import counted

__all__ = ["sweep_basis", "sweep_findings", "sweep_headlines"]


def sweep_headlines(sweep: SweepResult) -> Iterator[Headline]:
    """Yield which function loses least, and which value of the main axis is too much, or what it costs."""
    lost, stopping, seeds = sweep.grid("lost_share"), sweep.stopping, len(sweep.document["seeds"])
    least = least_lost(lost, stopping, sweep.ranges)
    if least:
        of_function = lost.axes == ("function",)
        question = "Which function loses least?" if of_function else f"Which {' and '.join(lost.axes)} lose least?"
        sentences = (least, seeds_sentence(sweep.results, sweep.axes, seeds))
        yield Headline(Topic.FUNCTION, question, point_label(lost, sweep.best), sentences)
    if lost.over is not None:
        question = f"What does {'latency' if lost.over == 'latency_ms' else lost.over} cost?"
        if sweep.borders:
            question = limit_question(sweep.borders[0]["over"], sweep.borders[0]["condition"])
        limit = sweep.limits.get(sweep.function)
        answer = "" if limit is None else limit.words
        yield Headline(Topic.LIMIT, question, answer, tuple(_told(sweep)), tuple(_setting(sweep, lost.over)))


def _told(sweep: SweepResult) -> Iterator[str]:
    """Yield where it is too much, what is lost along the axis, and how that is in the recording."""
    going, seeds = without_stops(sweep.grid("lost_share"), sweep.stopping), len(sweep.document["seeds"])
    if sweep.borders:
        condition = sweep.borders[0]["condition"]
        yield from limit_sentences(sweep.limits, sweep.function, condition, seeds)
        yield from _recorded(sweep)
    yield losses_sentence(going, sweep.best, seeds)
    stale = stale_sentence(going, sweep.grid("stale_ms_p99"), sweep.best)
    if stale and not sweep.borders:
        yield stale


def _setting(sweep: SweepResult, over: str) -> Iterator[str]:
    """Yield what was simulated, what the axis is, and how that differs from the recording."""
    runs = counted(sweep.results.num_rows, "simulation")
    work = model_words(sweep.document["model"]).get("simulated", "")
    yield f"From {runs}{f' of {work}' if work else ''}; {over} is {AXES[over]}." if over in AXES else f"From {runs}."
    if over == "latency_ms":
        yield waits_sentence(sweep.results)
    if sweep.borders:
        yield f"The limit, `{sweep.borders[0]['condition']}`, was given with `--find`, and found with more simulations."
    elif is_learnt(sweep.document["model"]):
        yield from sweep_basis(sweep)


def _recorded(sweep: SweepResult) -> Iterator[str]:
    """Yield how many epochs took longer in the recording than a latency that is too much."""
    limit = sweep.limits[sweep.function]
    if limit.over == "latency_ms" and limit.rises and limit.holds is not None:
        yield from beyond_limit(sweep.document["model"], limit.holds)


def sweep_basis(sweep: SweepResult) -> Iterator[str]:
    """Yield how the simulations differ from the recording that their model was learnt from."""
    return against_recording(sweep.document["model"], sweep.axes.get("latency_ms", ()))


def sweep_findings(sweep: SweepResult) -> Iterator[str]:
    """Yield what else was found: how to look for a limit, and in how many simulations rows end different."""
    lost = without_stops(sweep.grid("lost_share"), sweep.stopping)
    if lost.over is not None and not sweep.borders:
        yield from search_sentence(lost, sweep.best)
    yield different_sentence(sweep.results)
