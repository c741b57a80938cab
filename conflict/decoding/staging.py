"""
Outputs that appear whole or not at all: written beside their place, and renamed; one writer at a time.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from conflict.decoding.interruptions import stopped_politely
from conflict.errors import ConfigurationError
from conflict.grid.beside import (
    new_file,
    new_folder,
    new_name,
    put_back_left_over,
    refuse_unwritable,
    remove_left_over,
    take_place,
)

__all__ = ["CONTENTS", "check_target", "staged_file", "staged_folder"]

# The file in a folder of tables that says what is in it; a folder without it is not ours to replace.
CONTENTS = "tables.json"
PART = "part"  # how the names end of what is unfinished


def check_target(target: Path, inputs: Iterable[Path], *, force: bool, folder: bool) -> None:
    """
    Make sure that an output may be written.

    Args:
        target: The file or folder to write.
        inputs: The files that are read.
        force: Whether something that is there may be replaced; never an input, nor a folder that is not of our making.
        folder: Whether the target becomes a folder.

    Raises:
        ConfigurationError: It may not be written.
    """
    if str(target) == "-":
        message = "- is no name for an output file; leave the option out for standard output, or give another name"
        raise ConfigurationError(message)
    refuse_unwritable(target)
    if not target.exists():
        return
    for file in inputs:
        if file.exists() and (target.samefile(file) or target.resolve() in file.resolve().parents):
            same = "" if target == file else f" (it is or holds {file})"
            message = f"{target}{same} is an input of this command and would be overwritten; give another output"
            raise ConfigurationError(message)
    if target.is_dir() != folder and (target.is_file() or target.is_dir()):
        message = f"{target} is a {'file; give a folder' if folder else 'folder; give a file'}"
        raise ConfigurationError(message)
    if not target.is_file() and not target.is_dir():
        return  # a pipe or a device
    if not force:
        raise ConfigurationError(_there_already(target))
    if folder and any(target.iterdir()) and not (target / CONTENTS).is_file():
        message = f"{target} holds no {CONTENTS}, so decode did not write it; --force does not replace it"
        raise ConfigurationError(message)


def _there_already(target: Path) -> str:
    return f"{target} exists already; --force replaces it"


@contextmanager
def staged_file(target: Path, *, force: bool = True) -> Iterator[BinaryIO]:
    """
    Open a file that takes the place of `target` when all is written, and disappears on an error.

    Args:
        target: The file to be, a pipe or a device.
        force: Whether a file may be replaced that is there by now.

    Raises:
        ConfigurationError: Another process writes it, or it may not be replaced.
    """
    if target.exists() and not target.is_file():
        with target.open("wb") as out:
            yield out
        return
    with _only_writer(target, force=force):
        beside = new_name(target, PART)
        try:
            with stopped_politely(), new_file(beside) as out:
                yield out
            beside.replace(target)
        finally:
            beside.unlink(missing_ok=True)


@contextmanager
def staged_folder(target: Path, contents: dict[str, object], *, force: bool = True) -> Iterator[Path]:
    """
    Give a folder that takes the place of `target` when all is written, and disappears on an error.

    Args:
        target: The folder to be.
        contents: What to write into its `CONTENTS`, filled in until then.
        force: Whether a folder may be replaced that is there by now.

    Raises:
        ConfigurationError: Another process writes it, or it may not be replaced.
    """
    with _only_writer(target, force=force):
        beside = new_folder(target, PART)
        try:
            with stopped_politely():
                yield beside
            text = json.dumps(contents, indent=1, ensure_ascii=False) + "\n"
            (beside / CONTENTS).write_text(text, "utf-8", "replace")
            take_place(beside, target)
        finally:
            shutil.rmtree(beside, ignore_errors=True)


@contextmanager
def _only_writer(target: Path, *, force: bool) -> Iterator[None]:
    """Keep other writers out, make sure that none has just been here, and remove what killed ones left unfinished."""
    from conflict.grid.folder import Folder  # noqa: PLC0415  # loads Arrow, which help of commands need not
    from conflict.grid.lock import only_writer  # noqa: PLC0415

    with only_writer(Folder(str(target.absolute()))):
        put_back_left_over(target)
        if target.exists() and not force:
            raise ConfigurationError(_there_already(target))
        remove_left_over(target, PART)
        yield
