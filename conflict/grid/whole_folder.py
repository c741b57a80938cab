"""
Folders that are there whole or not at all, and that replace others without a moment at which both can be lost.

A folder is written beside its place. What it replaces is moved away, the new one is moved in, the old one removed last.
A run that is killed in between leaves the old one beside its place; the next one that wants to write there puts it back
before it looks at what is there.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from conflict.grid.beside import PART, is_moved_away, new_folder, put_back_left_over, remove_left_over, take_place

__all__ = ["one_writer", "put_back", "whole_folder"]


def put_back(target: Path) -> str:
    """
    Put back what a killed run had moved away from a place, and return what to say of it.

    Raises:
        ConfigurationError: Another process writes there.
    """
    if not is_moved_away(target):
        return ""
    with one_writer(target):
        put_back_left_over(target)
    return " (a run that replaced it was killed; it is as it was before)"


@contextmanager
def whole_folder(target: Path, check: Callable[[], None]) -> Iterator[Path]:
    """
    Give a folder to write to, and put it in place of `target` only if nothing went wrong; one writer at a time.

    Args:
        target: Where the folder is to be.
        check: Refuses what is there, if it may not be replaced; called when no other process can write there.

    Raises:
        ConfigurationError: Another process writes there.
    """
    with one_writer(target):
        put_back_left_over(target)
        check()
        remove_left_over(target, PART)
        work = new_folder(target, PART)
        try:
            yield work
            take_place(work, target)
        finally:  # what was written before an error, or what was replaced
            shutil.rmtree(work, ignore_errors=True)


@contextmanager
def one_writer(target: Path) -> Iterator[None]:
    """
    Keep all other writers of a file or folder out for the time of the block.

    Raises:
        ConfigurationError: Another process writes there.
    """
    from conflict.grid.folder import Folder  # noqa: PLC0415  # loads Arrow, which help of commands need not
    from conflict.grid.lock import only_writer  # noqa: PLC0415

    with only_writer(Folder(str(target.absolute()))):
        yield
