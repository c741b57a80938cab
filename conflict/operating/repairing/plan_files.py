"""
The folder of a plan: the SQL files, its tables, and its figures. It appears whole or not at all.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

from conflict.decoding.staging import check_target
from conflict.errors import ConfigurationError
from conflict.history.grid.whole_files import whole_folder
from conflict.operating.repairing.lost_files import write_lost
from conflict.operating.repairing.plan import Plan

PLAN = "plan.json"  # every plan has one
REVIEW, STATEMENTS = "review.parquet", "statements.parquet"


def check_plan_folder(target: Path | None, inputs: Iterable[Path], *, force: bool) -> None:
    """
    Make sure, before the work, that a plan can be written.

    Args:
        target: The folder; None if none is given.
        inputs: What is read.
        force: Whether a plan that is there may be replaced.

    Raises:
        ConfigurationError: It cannot.
    """
    if target is None:
        return
    check_target(target, inputs, force=force, folder=True, contents=PLAN)


def write_plan(plan: Plan, target: Path, *, force: bool, unproved: bool) -> None:
    """
    Write a plan.

    Args:
        plan: The plan.
        target: The folder.
        force: Whether a plan that is there may be replaced.
        unproved: Whether it is written though it does not come out; its files say so first.

    Raises:
        ConfigurationError: It does not come out, or the folder may not be written.
    """
    if not plan.proved and not unproved:
        alarm = plan.telling.alarms[-1]
        message = f"{alarm} Nothing was written; --unproved writes it, with a warning in each file"
        raise ConfigurationError(message)
    with whole_folder(target, lambda: check_plan_folder(target, (), force=force)) as folder:
        for script in plan.scripts:
            (folder / script.name).write_text(script.text, "utf-8", newline="\n")
        write_lost(plan.review, folder / "review.csv")
        write_lost(plan.review, folder / REVIEW)
        write_lost(plan.statements, folder / STATEMENTS)
        (folder / PLAN).write_text(json.dumps(plan.document(), indent=1) + "\n", "utf-8")
