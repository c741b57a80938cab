"""
What is wanted of a run, whichever engine resolves it.
"""

from __future__ import annotations

import attrs

from conflict.grid.folder import Folder

__all__ = ["DEFAULTS", "ResolveOptions", "no_progress"]


@attrs.frozen(kw_only=True)
class ResolveOptions:
    """
    What is wanted of a result, and what is there already.

    Attributes:
        history: A finished History of the run's binlogs, which are not read again; None to read them.
        keep_history: Where the History that is made of the binlogs is kept; None if nobody wants it.
        final_rows: Whether the rows of the tables at the end are wanted; the reference engine writes them anyway.
        all_outcomes: Whether outcomes are written of every operation, or of those alone that were not applied as they
            stood.
        whole_open_epochs: Whether an epoch with rows that are open is told with its other rejected operations; judges
            of recordings need them.
        replace: Whether a result that is in the folder already is replaced.
    """

    history: Folder | None = None
    keep_history: Folder | None = None
    final_rows: bool = True
    all_outcomes: bool = False
    whole_open_epochs: bool = False
    replace: bool = False


DEFAULTS = ResolveOptions()


def no_progress(stage: str, done: int, total: int) -> None:
    """Report nothing."""
