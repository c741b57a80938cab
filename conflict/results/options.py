"""
What a result holds.
"""

from __future__ import annotations

import attrs

__all__ = ["DEFAULT_OPTIONS", "ResultOptions"]


@attrs.frozen
class ResultOptions:
    """
    Which parts of a result are written.

    Attributes:
        final_rows: Write the final rows of the tables, and compare them between the clusters. Without them no values
            are read: the number of rows that differ stays unknown where only values can tell.
        all_outcomes: Write an outcome for every operation, not only for operations that were not simply applied.
    """

    final_rows: bool = True
    all_outcomes: bool = False


DEFAULT_OPTIONS = ResultOptions()
