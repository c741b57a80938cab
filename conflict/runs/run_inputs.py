"""
What a run is made of: a run file, and what a History knows of binlogs that are not given any more.

`run.json` keeps what a result was made of, so that the binlogs can be read again.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import attrs

from conflict.config.configuration import Configuration
from conflict.config.run_file import RunFile, parse_run_file
from conflict.errors import HistoryError
from conflict.history.grid.folder import Folder
from conflict.history.grid.kept_outlines import OutlinesOf, earlier_outlines, known_or_made
from conflict.history.grid.manifest import load_manifest, read_manifest
from conflict.history.grid.stored_folder import folder_of
from conflict.history.ingestion.extension import files_kept_alone, refuse_other_statements
from conflict.history.ingestion.plan import files_document
from conflict.history.preparing.definitions_over_time import make_run
from conflict.history.run import KeptAlone, Run
from conflict.history.scheduling.hints import hints_of_run_file
from conflict.resolvers.user_policies import load_functions
from conflict.telling.shown_text import listed
from ndb_formats.columnar.file_outline import outlines_of
from ndb_formats.stored import digest_of_ends, is_address, path_of


def run_of(run_file: RunFile, history: Folder | None = None, make: OutlinesOf = outlines_of) -> Run:
    """
    Return the run of a run file, with what it says of the schedule.

    Args:
        run_file: The run file.
        history: A History that may keep outlines of its binlogs; None for none.
        make: Makes the outlines of all others.

    Raises:
        HistoryError: The History is of another format, or damaged; else as of `make_run`.
    """
    held = None if history is None else load_manifest(history)
    configuration, hints = run_file.configuration, partial(hints_of_run_file, run_file)
    if held is None:
        return make_run(configuration, hints, make)
    earlier = {
        each.name: earlier_outlines(held.outlines, held.files.get(each.name, ()), each.log.files)
        for each in configuration.clusters
        if len(each.servers) == 1
    }
    run = make_run(configuration, hints, known_or_made(held.outlines, make), earlier)
    return attrs.evolve(run, kept_alone=files_kept_alone(run, held))


def inputs_document(run: RunFile, kept_alone: Mapping[str, KeptAlone], history: Folder | None) -> dict[str, Any]:
    """
    Return the entry `inputs` of `run.json`: the run file, and every file that it names with its size and digest.

    Files stand under absolute paths, because a result is read from anywhere. The digest is that of the first and the
    last 4 KiB of a file. The History is named if it alone has what some files held, and which these are.
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
        "history": _history_document(history, kept_alone) if history is not None and kept_alone else None,
        **({"resolvers": list(run.resolvers)} if run.resolvers else {}),
    }


def _history_document(history: Folder, kept_alone: Mapping[str, KeptAlone]) -> dict[str, Any]:
    held = read_manifest(history)
    folder = history.uri if is_address(history.uri) else str(Path(history.uri).absolute())
    files = {name: list(each.files) for name, each in kept_alone.items()}
    return {"folder": folder, "files": files, "last_epochs": held.last_epochs}


def configuration_of(document: Mapping[str, Any], result: str) -> Configuration:
    """
    Return the configuration of the run that a result was made of; arguments and errors as of `run_file_of`.
    """
    return run_file_of(document, result).configuration


def run_file_of(document: Mapping[str, Any], result: str, missing: Collection[str] = ()) -> RunFile:
    """
    Return the run that a result was made of.

    Args:
        document: The contents of its `run.json`.
        result: Where it is, for messages.
        missing: Binlogs that are known to be missing; the run is without them.

    Raises:
        HistoryError: The result does not say, or a file is missing or has changed since.
        ConfigurationError: The run file cannot be read any more.
    """
    inputs = document.get("inputs") or {}
    if not inputs.get("text"):
        message = f"the result in {result} does not say what it was made of; give the run file in its place"
        raise HistoryError(message)
    for file in inputs["files"]:
        if file["path"] not in missing:
            _refuse_change(file, result)
    run_file = parse_run_file(inputs["text"], path_of(inputs["run_file"]), binlogs=not missing)
    configuration = run_file.configuration
    functions = load_functions(inputs.get("resolvers", ()), configuration.functions)
    configuration = attrs.evolve(configuration, functions=functions)
    if inputs["inexact_keys"]:
        configuration = configuration.with_inexact_keys()
    span = attrs.evolve(configuration.span, last=inputs["last"], stop_time=inputs["stop_time"])
    return attrs.evolve(run_file, configuration=attrs.evolve(configuration, span=span))


def run_of_result(document: Mapping[str, Any], result: str) -> Run:
    """
    Return the run of a result, with the statements of files that its History alone has read.

    Args:
        document: The contents of its `run.json`.
        result: Where it is, for messages.

    Raises:
        HistoryError: As of `run_file_of`; or the History is missing, or another one.
        ConfigurationError: The run file cannot be read any more.
    """
    run_file, kept = run_file_of(document, result), document["inputs"]["history"]
    if kept is None:
        return run_of(run_file)
    history = folder_of(kept["folder"])
    held, run = load_manifest(history), run_of(run_file, history)
    given = {str(file) for file in run.configuration.files}
    known = given.union(*(each.files for each in run.kept_alone.values()))
    files = [file for own in kept["files"].values() for file in own]
    if held is None or not known.issuperset(files):
        now = "is missing" if held is None else "is another one"
        message = (
            f"the result in {result} was made of the History in {kept['folder']}, which alone had read "
            f"{listed(files)}, and {now}: what statements in them did to tables is not known; bring the History or "
            "these binlogs back, or resolve again"
        )
        raise HistoryError(message)
    refuse_other_statements(run, held)
    for name, each in run.kept_alone.items():
        if not each.in_front:
            message = (
                f"the History in {kept['folder']} has read {listed(each.files)} of cluster {name}, and they are not "
                "given, although not all of them come before the binlogs that are; give the later ones, and resolve "
                "again"
            )
            raise HistoryError(message)
    return run


def refuse_later_part(document: Mapping[str, Any], result: str) -> None:
    """
    Make sure that a result tells of all that its run applied.

    Raises:
        HistoryError: It goes on from an earlier one.
    """
    if document["after"] is not None:
        message = f"{result} tells only of what came after {document['after']['result']}; resolve all for this"
        raise HistoryError(message)


def _refuse_change(file: Mapping[str, Any], result: str) -> None:
    """
    Make sure that a file is as it was.

    Raises:
        HistoryError: It is not.
    """
    path = path_of(file["path"])
    if not path.is_file():
        problem = "is missing"
    elif path.stat().st_size != file["bytes"]:
        problem = f"has {path.stat().st_size} bytes, and had {file['bytes']}"
    elif digest_of_ends(path, file["bytes"]) != file["digest"]:
        problem = "has changed"
    else:
        return
    message = f"{path} {problem} since the result in {result} was made of it; bring it back, or resolve again"
    raise HistoryError(message)
