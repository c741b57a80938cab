"""
What Python users and commands call about recordings of real clusters.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from conflict.config.arguments import JudgedEngine, StageProgress, Typed, no_progress, typed
from conflict.errors import ConfigurationError
from conflict.telling.shown_text import listed

if TYPE_CHECKING:
    from conflict.judge.report import Conformance
    from conflict.resolvers.user_policies import Given

_FOLDER = Typed("FOLDER", "A folder with recordings.")
_RESOLVER = Typed("MODULE:NAME")


@typed(folder=_FOLDER, resolver=_RESOLVER)
def conformance(
    folder: Path | str,
    *,
    resolver: Given | str | None = None,
    engine: JudgedEngine | str = "local",
    without_steps: bool = False,
    progress: StageProgress = no_progress,
) -> Conformance:
    """
    Compare an engine, or a resolver, with recordings of real clusters; as the command ``conformance``.

    Args:
        folder: A folder with recordings.
        resolver: A resolver, or a function of the server, that stands in place of the recorded functions: where does it
            decide otherwise than the clusters did?
        engine: The engine: ``reference`` works change by change; the columnar engine in this process is ``local``, or
            ``spark``. A resolver is judged by the reference engine.
        without_steps: Ignore the recorded steps: take the schedule from the binlogs alone.
        progress: As for `resolve`.

    Raises:
        ConfigurationError: The folder holds no recording, or something that is asked for is not known.
    """
    from conflict.judge.case import find_recordings
    from conflict.judge.judge import judge_all
    from conflict.judge.other_resolver import name_of_resolver
    from conflict.judge.report import Conformance
    from conflict.resolvers.user_policies import asked_function

    if engine not in tuple(JudgedEngine):
        message = f"engine {engine} is not known; use {listed([*JudgedEngine], 'or')}"
        raise ConfigurationError(message)
    place = Path(folder)
    if not place.is_dir():
        message = f"{folder} is no folder; give one with recordings: ndb-conflict demo --cases DIR writes some"
        raise ConfigurationError(message)
    found, told = find_recordings(place), partial(progress, "judging cases")
    asked = None if resolver is None else asked_function(resolver)
    name = None if asked is None else name_of_resolver(*asked)
    verdicts = judge_all(found, str(engine), told, use_steps=not without_steps, resolver=asked)
    return Conformance(tuple(verdicts), name)
