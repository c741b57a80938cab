"""
The files of a result: `files.parquet` lists them, and `run.json` says what `files.parquet` is.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from conflict.errors import HistoryError
from conflict.history.grid.catalogue import (
    FileFacts,
    damages,
    facts_of,
    read_catalogue,
    refuse_damages,
    write_catalogue,
)
from conflict.history.grid.folder import Folder

__all__ = ["RESOLVE_AGAIN", "catalogue_result", "refuse_damaged_result"]

FILES = "files.parquet"
ENTRY = "files"  # of `run.json`
RESOLVE_AGAIN = "Resolve again, with --force to replace it"


def catalogue_result(out: Folder) -> dict[str, Any]:
    """
    List the files of a result, and return what `run.json` says of the list.

    `run.json` is not there yet; an earlier list, of a sweep that goes on, is no part of the result.
    """
    return {ENTRY: attrs.asdict(write_catalogue(out, FILES, facts_of(out, sorted(out.sizes().keys() - {FILES}))))}


def refuse_damaged_result(out: Folder, run: Mapping[str, Any], remedy: str = RESOLVE_AGAIN) -> None:
    """
    Make sure that a result consists of the files that were written, as they were written.

    Args:
        out: Its folder.
        run: Its document `run.json`.
        remedy: What to do if it does not.

    Raises:
        HistoryError: It does not, or another version wrote it.
    """
    if ENTRY not in run:
        message = f"the result in {out.uri} was written by another version of ndb-conflict; resolve again"
        raise HistoryError(message)
    there = out.sizes()
    what = f"the result in {out.uri}"
    refuse_damages(what, damages(out, [FileFacts(**run[ENTRY])], there), remedy)
    facts = read_catalogue(out, FILES)
    refuse_damages(what, damages(out, facts, there), remedy)
    others = there.keys() - {FILES, *(each.path for each in facts)}
    foreign = (path for path in sorted(others) if path.endswith(".parquet"))
    refuse_damages(what, (f"{path} does not belong to it" for path in foreign), remedy)
