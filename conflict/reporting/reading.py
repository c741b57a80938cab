"""
Reads results of every kind, and tells the kind from what is in them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from conflict.config.text_file import read_text
from conflict.discovery.logs import refuse_inputs
from conflict.errors import ConfigurationError
from conflict.history.grid.folder import Folder
from conflict.history.grid.whole_files import refuse_moved_away
from conflict.operating.repairing.part import repair_part
from conflict.operating.repairing.plan_files import PLAN
from conflict.operating.window.telling import window_part
from conflict.reporting.resolve_part import resolve_part
from conflict.results.result import read_result
from conflict.telling.part import Part
from conflict.whatif.comparing.part import compare_part
from conflict.whatif.diverging.part import diverge_part
from conflict.whatif.simulating.telling import simulate_part
from conflict.whatif.sizing.telling import sizes_part
from conflict.whatif.sweeping.result import RESULTS
from conflict.whatif.sweeping.sweep import RUNS
from conflict.whatif.sweeping.telling import sweep_part
from ndb_formats.stored import Stored

RUN = "run.json"
_KNOWN = (
    "a result folder of resolve, repair, compare or sweep, or a file that compare, simulate, sizes, diverge or window "
    "wrote by --json"
)
# By the entries that tell a document from others, what reads it.
_DOCUMENTS: dict[frozenset[str], Callable[[Mapping[str, Any], str], Part]] = {
    frozenset({"pairs", "prefer", "changes"}): compare_part,
    frozenset({"intervals", "runs", "seeds"}): simulate_part,
    frozenset({"formats", "totals", "file_bytes"}): sizes_part,
    frozenset({"searches"}): diverge_part,
    frozenset({"window_by", "channels", "times"}): window_part,
}


def part_of(path: Path) -> Part:
    """
    Return what a report says of a result.

    Args:
        path: The folder or the file of the result.

    Raises:
        ConfigurationError: It is no result that a report knows.
        HistoryError: It is damaged, or it is what a result is made of.
    """
    refuse_moved_away(path)
    if isinstance(path, Stored):
        return resolve_part(read_result(str(path)), str(path))
    if not path.is_dir():
        refuse_inputs(path)
        return _part_of_document(_document(path), path)
    if (path / RUN).is_file() and (path / "counters.json").is_file():
        return resolve_part(read_result(str(path)), str(path))
    if (path / RESULTS).is_file() and (path / RUN).is_file():
        return sweep_part(Folder(str(path)))
    if (path / RUN).is_file():
        return _part_of_document(Folder(str(path)).read_json(RUN), path)
    if (path / PLAN).is_file():
        return repair_part(path)
    if (path / RUNS).is_dir():
        message = f"{path} holds an unfinished sweep; run the same command again to continue it"
        raise ConfigurationError(message)
    refuse_inputs(path)
    message = f"{path} holds no result; give {_KNOWN}"
    raise ConfigurationError(message)


def _document(path: Path) -> Any:
    text = read_text(path)
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        message = f"{path} is no JSON ({error}); give {_KNOWN}"
        raise ConfigurationError(message) from error


def _part_of_document(document: Any, path: Path) -> Part:
    if isinstance(document, Mapping):
        for entries, part in _DOCUMENTS.items():
            if entries <= document.keys():
                return _read(part, document, path)
    message = f"{path} is no result that a report knows; give {_KNOWN}"
    raise ConfigurationError(message)


def _read(part: Callable[[Mapping[str, Any], str], Part], document: Mapping[str, Any], path: Path) -> Part:
    """Return the part of a document; it may be damaged, or another version may have written it."""
    try:
        return part(document, str(path))
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
        message = f"{path} is not as this version of ndb-conflict writes it ({error!r}); make it again"
        raise ConfigurationError(message) from error
