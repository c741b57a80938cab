"""
What is decided of a bucket between two rounds, as far as is known.
"""

from __future__ import annotations

import attrs
import numpy as np

from conflict.columnar.kernels.arrays import Bool, Int32
from conflict.columnar.kernels.fold import Folded
from conflict.grid.folder import Folder

__all__ = ["LoggedRows", "keep_entries", "load_entries"]


@attrs.frozen(eq=False)
class LoggedRows:
    """
    Rows that an applier sent again or reflected, as far as is known. Shape (entries,).

    Attributes:
        key: The row.
        apply: The take.
    """

    key: Int32
    apply: Int32

    @classmethod
    def of(cls, folded: Folded) -> LoggedRows:
        """Return those that a fold found."""
        return cls(folded.logged.key, folded.logged.apply.astype(np.int32))

    def with_others(self, again: Bool, keys: Int32, others: LoggedRows) -> LoggedRows:
        """
        Return other entries in place of those of some rows.

        Args:
            again: Whether a key is one of them. Shape (keys,).
            keys: Numbers of those keys.
            others: Their entries, with keys numbered among these.
        """
        stays = ~again[self.key]
        key, apply = keys[others.key], others.apply
        return LoggedRows(np.append(self.key[stays], key), np.append(self.apply[stays], apply))


def keep_entries(entries: LoggedRows, folder: Folder, number: int) -> None:
    """Leave the entries that are known after a round; those of the round before stay, for a task that runs again."""
    folder.write_arrays(_entries(number), attrs.asdict(entries))


def load_entries(folder: Folder, number: int) -> LoggedRows:
    """Return what `keep_entries` left in a folder after a round."""
    return LoggedRows(**folder.read_arrays(_entries(number)))


def _entries(number: int) -> str:
    return f"entries-{number:05d}.arrow"
