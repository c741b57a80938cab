"""
The folder that a result goes to: nothing of the user's is lost, and the result is there whole or not at all.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from pathlib import Path

from conflict.errors import ConfigurationError
from conflict.history.grid.folder import Folder
from conflict.history.grid.whole_files import put_back, refuse_unwritable, whole_folder

__all__ = ["check_target", "refuse_nesting", "whole_or_not_at_all"]

RESULT = "run.json"  # every result has one


def check_target(target: Folder, inputs: Iterable[Path], *, replace: bool) -> None:
    """
    Make sure, before the work, that a result can be written.

    Args:
        target: Where it is to go.
        inputs: Files and folders that the run reads.
        replace: Whether a result that is there may be replaced.

    Raises:
        ConfigurationError: Something else is there, or an input is inside it, or the folder cannot be made.
    """
    if "://" in target.uri:
        message = (
            f"{target.uri}: a result is written beside its place and then renamed, which only a local folder or a "
            "mounted share can; give a path. A History can be there"
        )
        raise ConfigurationError(message)
    _refuse_what_is_there(target, replace=replace, before=put_back(Path(target.uri)))
    path = Path(target.uri).resolve()
    inside = next((each for each in inputs if path in (each.resolve(), *each.resolve().parents)), None)
    if inside is not None:
        message = f"{inside}, which the run reads, is inside {target.uri}; give another folder for the result"
        raise ConfigurationError(message)
    refuse_unwritable(Path(target.uri))


def refuse_nesting(history: Folder, target: Folder) -> None:
    """
    Make sure that neither the History that is kept nor the result is inside the other.

    Raises:
        ConfigurationError: One is.
    """
    if "://" in history.uri:
        return
    first, second = (Path(each.uri).resolve() for each in (history, target))
    if first in (second, *second.parents) or second in first.parents:
        message = f"the History in {history.uri} and the result in {target.uri} must not be inside each other"
        raise ConfigurationError(message)


def _refuse_what_is_there(target: Folder, *, replace: bool, before: str = "") -> None:
    if not target.exists():
        return
    if not replace:
        message = f"{target.uri} exists already{before}; give another folder, or replace the result in it with --force"
        raise ConfigurationError(message)
    if not target.exists(RESULT):
        message = f"{target.uri} exists already and is no result, which is all that --force replaces"
        raise ConfigurationError(message)


@contextlib.contextmanager
def whole_or_not_at_all(target: Folder, *, replace: bool = False) -> Iterator[Folder]:
    """
    Give a folder to write to, and put it in place of `target` only if nothing went wrong.

    See `conflict.history.grid.whole_files`.

    Args:
        target: Where the result is to be.
        replace: Whether a result that is there is replaced.

    Raises:
        ConfigurationError: Something is there by now, see `check_target`; or another process writes there.
    """
    with whole_folder(Path(target.uri), lambda: _refuse_what_is_there(target, replace=replace)) as work:
        yield Folder(str(work))
