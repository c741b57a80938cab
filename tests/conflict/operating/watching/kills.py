"""Kills of a watch: nothing is left of it but its files, as some moment has them."""

from __future__ import annotations

import random
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import attrs
import pytest

from conflict.config.run_file import load_run_file
from conflict.operating.watching import watch as watching
from conflict.operating.watching.saved import STATE_FILE, RecordFile, StateOf
from conflict.operating.watching.watch import Watch

MOMENTS = ("while a record is written", "after it", "while the state is written", "after it was", "between")


class Killed(BaseException):
    """The watch is gone."""


@attrs.define
class Killer:
    """
    Kills watches.

    Attributes:
        chosen: Chooses.
        moment: When the next one is killed; None for never.
        kills: How many were.
    """

    chosen: random.Random
    moment: str | None = None
    kills: int = 0

    def install(self, patch: pytest.MonkeyPatch) -> None:
        """Take the place of what writes files."""
        append, save = RecordFile.append, StateOf.save

        def append_or_die(record: RecordFile, lines: Iterable[bytes]) -> list[bytes]:
            before = record.path.read_bytes() if record.path.exists() else b""
            found = append(record, lines)
            if self.moment == MOMENTS[0]:
                after = record.path.read_bytes() if record.path.exists() else b""
                record.path.write_bytes(after[: self.chosen.randint(len(before), len(after))])
            self.kill(*MOMENTS[:2])
            return found

        def save_or_die(of: StateOf, folder: Path, state: Any, record: RecordFile) -> None:
            place = folder / STATE_FILE
            before = place.read_bytes() if place.exists() else None
            save(of, folder, state, record)
            if self.moment == MOMENTS[2]:
                whole = place.read_bytes()
                (folder / f"{STATE_FILE}.part").write_bytes(whole[: self.chosen.randint(0, len(whole))])
                place.unlink() if before is None else place.write_bytes(before)
            self.kill(*MOMENTS[2:4])

        patch.setattr(RecordFile, "append", append_or_die)
        patch.setattr(StateOf, "save", save_or_die)

    def kill(self, *moments: str) -> None:
        """Kill the watch if its moment has come."""
        if self.moment in moments:
            self.moment, self.kills = None, self.kills + 1
            raise Killed


def watched_with_kills(
    run_file: Path, out: Path, growth: Iterable[None], killer: Killer, most: int, patch: pytest.MonkeyPatch
) -> list[bytes]:
    """Return the records of a watch that is killed now and then while its logs grow; its state is written often."""
    killer.install(patch)
    run, chosen = load_run_file(run_file), killer.chosen
    watch = Watch.opened(run, out)
    for _ in growth:
        if killer.kills < most and chosen.random() < 0.5:
            killer.moment = chosen.choice(MOMENTS)
        patch.setattr(watching, "_SAVED_AFTER", chosen.choice([-1.0, 1e9]))
        patch.setattr(watching, "_SAVING", 0)
        try:
            watch.look()
            killer.kill(MOMENTS[4])
        except Killed:
            watch = Watch.opened(run, out)
    killer.moment = None
    patch.undo()
    return finished(watch)


def finished(watch: Watch) -> list[bytes]:
    """Return the records of a watch once its logs are whole and grow no more."""
    while watch.look()[0]:
        pass
    watch.look()
    watch.step(ended=True)
    path = watch.record.path
    return path.read_bytes().splitlines(keepends=True) if path.exists() else []
