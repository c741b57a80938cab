"""
Outputs that appear whole or not at all, also when a signal ends the command.

They are written beside their place, and renamed; one writer at a time.
"""

from __future__ import annotations

import json
import signal
import sys
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import BinaryIO

from conflict.errors import ConfigurationError
from conflict.history.grid.whole_files import (
    PART,
    new_file,
    new_name,
    one_writer,
    put_back,
    refuse_unwritable,
    remove_left_over,
    whole_folder,
)

STANDARD_OUTPUT = Path("-")

_AGAIN = 0.01  # seconds after which an interruption that was swallowed comes again


def _stop(*_: object) -> None:
    raise KeyboardInterrupt


@contextmanager
def stopped_politely() -> Iterator[None]:
    """
    Treat the signal to terminate as an interruption from the keyboard, so that nothing half is left.

    Python raises an interruption wherever the main thread is. A destructor, a callback and some compiled libraries
    can only print it and go on; then it is raised again, and not printed.
    """
    if signal.getsignal(signal.SIGTERM) is _stop:  # a command is polite already
        yield
        return
    try:
        before = signal.signal(signal.SIGTERM, _stop)
    except ValueError:  # not the main thread
        yield
        return
    try:
        with _never_swallowed():
            yield
    finally:
        signal.signal(signal.SIGTERM, before)


@contextmanager
def _never_swallowed() -> Iterator[None]:
    """Raise an interruption again, by an alarm, that could not be raised where it came."""
    hook = sys.unraisablehook
    with ExitStack() as undo:

        def again(swallowed: sys.UnraisableHookArgs) -> None:
            if not issubclass(swallowed.exc_type, KeyboardInterrupt):
                hook(swallowed)
                return
            undo.callback(signal.signal, signal.SIGALRM, signal.signal(signal.SIGALRM, _stop) or signal.SIG_DFL)
            undo.callback(signal.setitimer, signal.ITIMER_REAL, *signal.setitimer(signal.ITIMER_REAL, _AGAIN))

        undo.callback(setattr, sys, "unraisablehook", hook)
        sys.unraisablehook = again
        yield


# The file in a folder of tables that says what is in it; a folder without it is not ours to replace.
CONTENTS = "tables.json"


def check_target(target: Path, inputs: Iterable[Path], *, force: bool, folder: bool, contents: str = CONTENTS) -> None:
    """
    Make sure that an output may be written.

    Args:
        target: The file or folder to write.
        inputs: The files that are read.
        force: Whether something that is there may be replaced; never an input, nor a folder that is not of our making.
        folder: Whether the target becomes a folder.
        contents: The file that a folder of the same making has.

    Raises:
        ConfigurationError: It may not be written.
    """
    if str(target) == "-":
        message = "- is no name for an output file; leave the option out for standard output, or give another name"
        raise ConfigurationError(message)
    refuse_unwritable(target)
    before = put_back(target) if folder else ""
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
    _refuse_by_now(target, force=force, before=before)
    if folder and any(target.iterdir()) and not (target / contents).is_file():
        message = f"{target} holds no {contents}, so this command did not write it; --force does not replace it"
        raise ConfigurationError(message)


def _refuse_by_now(target: Path, *, force: bool, before: str = "") -> None:
    if target.exists() and not force:
        message = f"{target} exists already{before}; --force replaces it"
        raise ConfigurationError(message)


def check_output(target: Path | None, inputs: Iterable[Path | None], *, force: bool) -> None:
    """
    Make sure, before the work, that a command may write a file.

    Args:
        target: The file; None for an option that was not given; ``-`` is standard output, for JSON.
        inputs: The files, and folders with all their files, that the command reads; None for an option that was not
            given.
        force: Whether a file that is there may be replaced.

    Raises:
        ConfigurationError: It is an input, is there already, or its folder is missing or not writable.
    """
    if target is None or target == STANDARD_OUTPUT:
        return
    given = [each for each in inputs if each is not None]
    check_target(target, given, force=force, folder=False)
    for folder in given:
        if target.exists() and folder.is_dir() and folder.resolve() in target.resolve().parents:
            message = (
                f"{target} is in {folder}, an input of this command, and would be overwritten; give another output"
            )
            raise ConfigurationError(message)
    if not target.parent.is_dir():
        message = f"{target}: there is no folder {target.parent}; create it first"
        raise ConfigurationError(message)


def refuse_same_output(*targets: Path | None) -> None:
    """
    Make sure, before the work, that no two outputs of a command have the same place.

    Args:
        targets: The files and folders; None for an option that was not given.

    Raises:
        ConfigurationError: One would take the place of another.
    """
    seen = set()
    for target in targets:
        if target is None:
            continue
        if target.resolve() in seen:
            message = f"{target} is given for two outputs; give each a place of its own"
            raise ConfigurationError(message)
        seen.add(target.resolve())


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
    with one_writer(target):
        _refuse_by_now(target, force=force)
        remove_left_over(target, PART)
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
    with stopped_politely(), whole_folder(target, partial(_refuse_by_now, target, force=force)) as beside:
        yield beside
        text = json.dumps(contents, indent=1, ensure_ascii=False) + "\n"
        (beside / CONTENTS).write_text(text, "utf-8", "replace")
