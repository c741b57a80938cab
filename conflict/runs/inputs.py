"""
What a result was made of, as `run.json` keeps it, so that the binlogs can be read again.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import attrs

from conflict.config.configuration import Configuration
from conflict.config.run_file import RunFile, parse_run_file
from conflict.errors import HistoryError
from conflict.history.ingestion.plan import digest_of, files_document

__all__ = ["configuration_of", "inputs_document"]


def inputs_document(run: RunFile) -> dict[str, Any]:
    """
    Return the entry `inputs` of `run.json`: the run file, and every file that it names with its size and digest.

    Files stand under absolute paths, because a result is read from anywhere. The digest is that of the first and the
    last 4 KiB of a file.
    """
    span = run.configuration.span
    files = dict.fromkeys(file.absolute() for file in run.inputs if file.is_file())
    return {
        "run_file": str(run.path.absolute()),
        "text": run.text,
        "inexact_keys": run.configuration.schema.inexact_keys,
        "last": dict(span.last),
        "stop_time": span.stop_time,
        "files": files_document(files),
    }


def configuration_of(document: Mapping[str, Any], result: str) -> Configuration:
    """
    Return the run that a result was made of.

    Args:
        document: The contents of its `run.json`.
        result: Where it is, for messages.

    Raises:
        HistoryError: The result does not say, or a file is missing or has changed since.
        ConfigurationError: The run file cannot be read any more.
    """
    inputs = document.get("inputs") or {}
    if not inputs.get("text"):
        message = f"the result in {result} does not say what it was made of; give the run file in its place"
        raise HistoryError(message)
    for file in inputs["files"]:
        _refuse_change(file, result)
    configuration = parse_run_file(inputs["text"], Path(inputs["run_file"])).configuration
    if inputs["inexact_keys"]:
        configuration = configuration.with_inexact_keys()
    span = attrs.evolve(configuration.span, last=inputs["last"], stop_time=inputs["stop_time"])
    return attrs.evolve(configuration, span=span)


def _refuse_change(file: Mapping[str, Any], result: str) -> None:
    """
    Make sure that a file is as it was.

    Raises:
        HistoryError: It is not.
    """
    path = Path(file["path"])
    if not path.is_file():
        problem = "is missing"
    elif path.stat().st_size != file["bytes"]:
        problem = f"has {path.stat().st_size} bytes, and had {file['bytes']}"
    elif digest_of(path, file["bytes"]) != file["digest"]:
        problem = "has changed"
    else:
        return
    message = f"{path} {problem} since the result in {result} was made of it; bring it back, or resolve again"
    raise HistoryError(message)
