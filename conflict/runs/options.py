"""
What is wanted of a run.
"""

from __future__ import annotations

import attrs

from conflict.engine.ledger.layout import ResultOptions
from conflict.history.grid.folder import Folder


@attrs.frozen(kw_only=True)
class ResolveOptions(ResultOptions):
    """
    What is wanted of a result, and what is there already. The reference engine writes the final rows in any case.

    Attributes:
        history: A finished History of the run's binlogs, which are not read again; None to read them.
        keep_history: Where the History that is made of the binlogs is kept; None if nobody wants it.
        replace: Whether a result that is in the folder already is replaced.
    """

    history: Folder | None = None
    keep_history: Folder | None = None
    replace: bool = False


DEFAULTS = ResolveOptions()
