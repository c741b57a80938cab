"""
The file of a recording's steps, which a run file may name.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from pathlib import Path
from typing import Any

from conflict.config.structure import EPOCH, Kind, one_of
from conflict.config.text_file import read_text
from conflict.errors import ConfigurationError
from conflict.rules.roles import Role

__all__ = ["load_steps"]

# What each known entry of a step must be; a recording may say more.
_RESULT = Kind("a list or a text", lambda value: isinstance(value, list | str))


def load_steps(path: Path, clusters: Collection[str]) -> list[dict[str, Any]]:
    """
    Read a file of steps.

    Args:
        path: The file.
        clusters: Names of the clusters of the run.

    Raises:
        ConfigurationError: It cannot be read, or a step is not what it must be.
    """
    text = read_text(path)
    try:
        steps = json.loads(text)["steps"]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        message = f"{path}: a JSON object with a list of steps is needed ({error})"
        raise ConfigurationError(message) from error
    if not isinstance(steps, list):
        message = f"{path}: steps must be a list"
        raise ConfigurationError(message)
    cluster = Kind(f"a cluster of the run file ({', '.join(clusters)})", one_of(clusters).accepts)
    kinds = {"on": cluster, "applier": cluster, "epoch": EPOCH, "role": one_of(list(Role)), "result": _RESULT}
    for number, step in enumerate(steps, 1):
        fault = _fault(step, kinds)
        if fault:
            message = f"{path}, step {number}: {fault}"
            raise ConfigurationError(message)
    return steps


def _fault(step: Any, kinds: dict[str, Kind]) -> str | None:
    if not isinstance(step, dict):
        return "it must be an object"
    for name, kind in kinds.items():
        if name in step and not kind.accepts(step[name]):
            return f"{name} is {step[name]!r}; it must be {kind.words}"
    if step.get("action") == "role" and not {"applier", "role"} <= step.keys():
        return "an action role needs an applier and a role"
    return None
