"""
The schedule section of a run file to hints on when foreign epochs were applied.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import attrs

from conflict.config.run_file import RunFile
from conflict.config.steps_file import load_steps
from conflict.errors import ConfigurationError
from conflict.history.model import LAST_GROUP
from conflict.history.scheduling.schedule import ClusterHints, Hint, Summary
from conflict.history.scheduling.steps import hints_of_steps
from conflict.rules.roles import Role

__all__ = ["hints_of_run_file"]


def hints_of_run_file(run_file: RunFile, summaries: Mapping[str, Sequence[Summary]]) -> ClusterHints:
    """
    Return the hints of a run file, per applying cluster.

    Raises:
        ConfigurationError: There are steps, and other than a pair of clusters; or an applier has other than one source.
    """
    configuration = run_file.configuration
    if "steps" in run_file.schedule and not configuration.links.is_pair:
        message = (
            "[schedule] steps are those of two clusters that replicate to each other; give [[schedule.applied]] and "
            "[[schedule.stopped]]"
        )
        raise ConfigurationError(message)
    if "steps" in run_file.schedule:
        steps = load_steps(run_file.path.parent / run_file.schedule["steps"], list(configuration.links.server_ids))
        return hints_of_steps(steps, summaries)
    hints: dict[str, dict[int, Hint]] = {name: {} for name in summaries}
    for entry in (each for name in ("applied", "stopped", "role") for each in run_file.schedule.get(name, ())):
        if len(configuration.links.sources(entry["applier"])) != 1:
            message = f"[schedule] is for appliers with one source; cluster {entry['applier']} has another number"
            raise ConfigurationError(message)
    for apply in run_file.schedule.get("applied", ()):
        place = (apply["after_epoch"], LAST_GROUP)
        hints[apply["applier"]][apply["epoch"]] = Hint(earliest=place, latest=place)
    for stop in run_file.schedule.get("stopped", ()):
        (source,) = configuration.links.sources(stop["applier"])
        later = (each.number for each in summaries[source.name] if each.number > stop["after_epoch"])
        hints[stop["applier"]].update({number: Hint(applied=False) for number in later})
    for change in sorted(run_file.schedule.get("role", ()), key=lambda each: int(each["after_epoch"])):
        mine, (source,) = hints[change["applier"]], configuration.links.sources(change["applier"])
        for number in (each.number for each in summaries[source.name] if each.number > change["after_epoch"]):
            before = mine.get(number, Hint())
            # The applier was stopped for it.
            mine[number] = attrs.evolve(before, run=before.run + 1, role=Role(change["role"]))
    return {name: [each] for name, each in hints.items()}
