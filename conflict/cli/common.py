"""
What the commands have in common: options, progress bars, and how refused input and interruptions are reported.

Says that kernels are being compiled, which takes a minute when they run for the first time after an installation.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from conflict.cli.refusals import PlainConsole, messages

if TYPE_CHECKING:
    from collections.abc import Callable

    from conflict.config.arguments import StageProgress
    from ndb_formats.findings import LogRemark
    from ndb_formats.schema.tables import Schema

    _Show = Callable[[str, int, int | None], None]


_ONCE = "Compiling the kernels, which takes a minute or two and happens once."
_EVERY_TIME = (
    "Compiling the kernels for this command alone, which takes a minute or two: no folder of this user can keep them. "
    "Set NUMBA_CACHE_DIR to a folder that can, and it happens once; or ndb-conflict warm-up, run by the owner of the "
    "installation, compiles them for all users."
)


@contextmanager
def compilation_is_said() -> Iterator[None]:
    """Print a sentence when the first kernel is compiled in the block; one from numba's cache is not."""
    said = False

    def show(_: int) -> None:
        nonlocal said
        if not said:
            said = True
            from ndb_formats.compiled_cache import is_lasting

            messages.print(_ONCE if is_lasting() else _EVERY_TIME, highlight=False)

    with _compilation_is_shown(show):
        yield


@contextmanager
def _compilation_is_shown(show: Callable[[int], None]) -> Iterator[None]:
    """Call a function whenever the block begins to compile a kernel, with the number of those before it."""
    from ndb_formats.columnar.kernel_mode import before_numba  # numpy takes long

    with ExitStack() as listening:

        def begin() -> None:
            from numba.core.event import Event, Listener, install_listener  # small work does without

            class Counting(Listener):
                begun = open = 0

                def on_start(self, event: Event) -> None:  # noqa: ARG002  # numba's signature
                    if self.open == 0:
                        show(self.begun)
                        self.begun += 1
                    self.open += 1

                def on_end(self, event: Event) -> None:  # noqa: ARG002  # numba's signature
                    self.open -= 1

            listening.enter_context(install_listener("numba:compile", Counting()))

        with before_numba(begin):
            yield


console = PlainConsole()
FIRST_LINE, NEXT_LINE = 2.0, 10.0  # seconds before lines about progress


UnpackedOption = Annotated[
    int | None,
    typer.Option(
        "--unpacked-mib",
        min=1,
        max=1 << 20,
        help="Largest size of an unpacked transaction, in MiB; 256 by default.",
        show_default=False,
    ),
]


def allow_unpacked(mib: int | None) -> None:
    """Allow what `UnpackedOption` says, to this process and to those that it starts."""
    from ndb_formats import cursor

    if mib is not None:
        os.environ[cursor.UNPACKED_OPTION] = str(mib)
        cursor.allow_unpacked(str(mib))


def warn_of(remarks: Iterable[LogRemark]) -> bool:
    """Print what logs hold besides rows, and return whether that is anything."""
    said = [remark.sentence for remark in remarks]
    for sentence in said:
        messages.print(f"[yellow]warning:[/yellow] {escape(sentence)}", soft_wrap=True)
    return bool(said)


def say(sentence: str) -> None:
    """Print a sentence about the input, on standard error."""
    messages.print(sentence, highlight=False, markup=False, soft_wrap=True)


def say_folded(sentence: str) -> None:
    """Print a sentence on standard error, on lines that the terminal has room for; words stay whole."""
    say(fill(sentence, messages.width, break_long_words=False, break_on_hyphens=False))


def load_definitions(schema: Path | None, binlogs: Sequence[Path | str], *, inexact_keys: bool) -> Schema:
    """Read the definitions of the tables of binlogs, if there is a file with them."""
    from conflict.config.schema_file import load_schema
    from ndb_formats.schema.row_keys import with_inexact_keys

    definitions = load_schema(schema, binlogs=binlogs)
    return with_inexact_keys(definitions) if inexact_keys else definitions


@contextmanager
def progress_bars(*, time_left: bool = False) -> Iterator[StageProgress]:
    """
    Show how far the work is: on a terminal one bar per stage, elsewhere a line now and then, both on standard error.

    Kernels that are compiled are said once, and whether they are kept.

    Args:
        time_left: Whether the steps of a stage take about the same time, so that bars can tell the time that is left.
    """
    shown = _bars(time_left=time_left) if messages.is_interactive else _lines()
    with (
        compilation_is_said(),
        shown as show,
        _compilation_is_shown(lambda done: show("compiling kernels", done, None)),
    ):
        yield show


@contextmanager
def _bars(*, time_left: bool) -> Iterator[_Show]:
    columns: tuple[ProgressColumn, ...] = (
        TextColumn("{task.description:>16}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    if time_left:
        columns = (*columns, TimeRemainingColumn())
    stages: dict[str, TaskID] = {}
    progress = Progress(*columns, console=messages, transient=True)

    def show(stage: str, done: int, total: int | None) -> None:
        progress.start()  # not before: a password may be asked for
        if stage not in stages:
            stages[stage] = progress.add_task(stage, total=total)
        progress.update(stages[stage], completed=done, total=total)

    try:
        yield show
    finally:
        progress.stop()


@contextmanager
def _lines() -> Iterator[_Show]:
    """Print what is being done, if it takes longer than `FIRST_LINE`; by a thread, because a step may take long."""
    began, ended = time.monotonic(), threading.Event()
    now = ""

    def show(stage: str, done: int, total: int | None) -> None:
        nonlocal now
        now = f": {stage}" if total is None else f": {stage}, {done:,} of {total:,}"

    def tell() -> None:
        wait = FIRST_LINE
        while not ended.wait(wait):
            text = f"At work for {time.monotonic() - began:.0f} s{now}."
            with suppress(OSError, ValueError):  # nobody reads it any more
                messages.print(text, highlight=False, markup=False, soft_wrap=True)
            wait = NEXT_LINE

    teller = threading.Thread(target=tell, daemon=True)
    teller.start()
    try:
        yield show
    finally:
        ended.set()
        teller.join()
