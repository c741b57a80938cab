"""
What a result holds.
"""

from __future__ import annotations

import attrs

__all__ = ["DEFAULT_OPTIONS", "ResultOptions"]


@attrs.frozen(kw_only=True)
class ResultOptions:
    """
    Which parts of a result are written.

    Attributes:
        final_rows: Write the final rows of the tables, and compare them between the clusters. Without them no values
            are read: the number of rows that differ stays unknown where only values can tell.
        all_outcomes: Write an outcome for every operation, not only for operations that were not simply applied.
        whole_open_epochs: Read all rows of an epoch of which one may have been judged at several moments, and tell
            which others are rejected (`OpenEpoch.rejected`). The rows that are open are the same.
    """

    final_rows: bool = True
    all_outcomes: bool = False
    whole_open_epochs: bool = False


DEFAULT_OPTIONS = ResultOptions()
