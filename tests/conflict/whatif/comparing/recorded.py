"""What a recording shows of a comparison's figures."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import attrs

from conflict.config.configuration import Span
from conflict.config.run_file import GivenSchedule, RunFile
from conflict.judge.case import ConflictCase
from conflict.whatif.comparing.comparison import Comparison, ComparisonWanted, compare_run


def compared(
    case: ConflictCase,
    functions: str = "",
    formats: tuple[int, ...] = (),
    steps: Path | None = None,
    *,
    empty: bool | None = True,
) -> Comparison:
    """
    Compare the run of a recording.

    Args:
        case: The recording.
        functions: As of `ComparisonWanted`.
        formats: As of `ComparisonWanted`.
        steps: A file for its steps, which tell when appliers were stopped.
        empty: Whether its tables were empty before; None if its logs have to show it.
    """
    schedule = GivenSchedule()
    if steps is not None:
        steps.write_text(json.dumps({"steps": case.scenario["steps"]}))
        schedule = GivenSchedule(str(steps.absolute()))
    configuration = attrs.evolve(case.configuration(), span=Span(empty=empty))
    run = RunFile(case.path / "run.toml", configuration, schedule, ())
    return compare_run(run, ComparisonWanted(functions, formats), engine="local")


def differing_rows(expected: Mapping[str, Any]) -> dict[str, int]:
    """Return how many rows of each table end different on the two sides, as they were read from the servers."""
    found = {}
    for name, first in expected["A"]["tables"].items():
        key = [first["columns"].index(column) for column in first["primary_key"]]
        one, other = (
            {tuple(row[place] for place in key): row for row in expected[side]["tables"][name]["rows"]} for side in "AB"
        )
        found[name] = sum(one.get(each) != other.get(each) for each in one.keys() | other.keys())
    return found


def load(folder: Path) -> ConflictCase:
    """Read a recording."""
    return ConflictCase.load(folder)
