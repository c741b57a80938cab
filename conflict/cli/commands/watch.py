"""
`ndb-conflict watch`: follows logs that grow, and records conflicts and lost changes as they come.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import conflict.api.operations
from conflict.cli.common import console, progress_bars
from conflict.cli.from_functions import Call, command_of
from conflict.cli.refusals import ExitCode, exit_with

if TYPE_CHECKING:
    from conflict.config.arguments import StageProgress


@command_of(conflict.api.operations.watch)
def watch(call: Call[Iterator[dict[str, Any]]], out: Path) -> None:
    """
    Follow the binlogs of a run as they grow, and append a record of each conflict and lost change.

    SIGTERM and Ctrl-C end it; the same command goes on from there, also after it was killed.

    Example: ndb-conflict watch run.toml --out watch
    """
    count = 0
    with progress_bars() as progress, _ended_in_time(progress) as ending:
        for _ in call(progress=ending):
            count += 1
    word = "record" if count == 1 else "records"
    console.print(f"Wrote {count:,} {word} to {out / 'records.jsonl'}.", markup=False, highlight=False, soft_wrap=True)
    exit_with(ExitCode.DONE)


@contextmanager
def _ended_in_time(progress: StageProgress) -> Iterator[StageProgress]:
    """Take signals that end the command as a wish to end, which the next look at the files fulfils."""
    from conflict.operating.watching.watch import EndOfWatch

    asked = False

    def ask(*_: object) -> None:
        nonlocal asked
        asked = True

    def look(stage: str, done: int, total: int) -> None:
        progress(stage, done, total)
        if asked:
            raise EndOfWatch

    before = {each: signal.signal(each, ask) for each in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield look
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)
