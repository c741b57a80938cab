"""
What `conflict.init` returns: a run file that was drafted, and the files that it names.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import attrs

from conflict.config.run_file import RunFile
from conflict.discovery.draft import Draft
from conflict.telling.shown import Shown
from conflict.telling.value import Entry, Listing, Telling


@attrs.frozen(repr=False, eq=False)
class DraftedRun(Shown):
    """
    A run file that was drafted. Printed, it is its text.

    Attributes:
        run: What it says, for `resolve`, `check` and all others that take a run file.
        files: By path, the text of the run file, which is the last one, and of what it names if servers were asked.
        draft: What was found in binlogs; None if servers were asked.
        sentences: What servers said besides.
    """

    run: RunFile
    files: Mapping[Path, str]
    draft: Draft | None = None
    sentences: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """The text of the run file."""
        return list(self.files.values())[-1]

    def telling(self) -> Telling:
        """Return what is told of it."""
        lines = [Entry("", line) for line in self.text.rstrip("\n").split("\n")]
        return Telling("A run file", sentences=self.sentences, listings=(Listing("", lines),))

    def __repr__(self) -> str:
        return self.text
