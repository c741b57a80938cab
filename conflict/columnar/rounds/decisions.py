"""
What is decided of a bucket between two rounds, as far as is known.
"""

from __future__ import annotations

import attrs
import numpy as np

from conflict.columnar.kernels.abridged import DEVIATION, Abridged
from conflict.columnar.kernels.arrays import Bool, Int32
from conflict.columnar.kernels.fold import Folded
from conflict.grid.folder import Folder

__all__ = ["Entries", "keep_decisions", "keep_entries", "load_decisions", "load_entries"]


@attrs.frozen(eq=False)
class Entries:
    """
    Rows that an applier sent again or reflected, as far as is known. Shape (entries,).

    Attributes:
        key: The row.
        apply: The take.
    """

    key: Int32
    apply: Int32

    @classmethod
    def of(cls, folded: Folded) -> Entries:
        """Return those that a fold found."""
        return cls(folded.logged.key, folded.logged.apply.astype(np.int32))

    def with_others(self, again: Bool, keys: Int32, others: Entries) -> Entries:
        """
        Return other entries in place of those of some rows.

        Args:
            again: Whether a key is one of them. Shape (keys,).
            keys: Numbers of those keys.
            others: Their entries, with keys numbered among these.
        """
        stays = ~again[self.key]
        key, apply = keys[others.key], others.apply
        return Entries(np.append(self.key[stays], key), np.append(self.apply[stays], apply))


def keep_entries(entries: Entries, folder: Folder, number: int) -> None:
    """Leave the entries that are known after a round; those of the round before stay, for a task that runs again."""
    folder.write_arrays(_entries(number), attrs.asdict(entries))


def load_entries(folder: Folder, number: int) -> Entries:
    """Return what `keep_entries` left in a folder after a round."""
    return Entries(**folder.read_arrays(_entries(number)))


def _entries(number: int) -> str:
    return f"entries-{number:05d}.arrow"


def keep_decisions(found: Abridged, keys: Int32 | None, folder: Folder, number: int) -> None:
    """Leave the decisions that a round made on some keys; None for all."""
    arrays: dict[str, np.ndarray] = {
        "deviations": found.deviations.view(np.uint8),
        "exists": found.exists.ravel().view(np.uint8),
        "unexplained": found.unexplained.ravel(),
    }
    folder.write_arrays(_decisions(number), arrays if keys is None else {**arrays, "keys": keys})


def load_decisions(folder: Folder, number: int) -> Abridged | None:
    """Return the last decisions on every key that `keep_decisions` left up to a round; None if it was not called."""
    rounds: list[tuple[Int32 | None, Abridged]] = []
    while not rounds or rounds[-1][0] is not None:
        if not folder.exists(_decisions(number)):
            return None
        found = folder.read_arrays(_decisions(number))
        exists, unexplained = found["exists"].view(np.bool_), found["unexplained"]
        deviations = found["deviations"].view(DEVIATION)
        abridged = Abridged(deviations, exists.reshape(2, -1), unexplained.reshape(2, -1))
        rounds.append((found.get("keys"), abridged))
        number -= 1
    _, first = rounds[-1]
    exists, unexplained = first.exists.copy(), first.unexplained.copy()
    settled = np.zeros(exists.shape[1], np.bool_)
    parts = []
    for keys, later in rounds:
        parts.append(later.deviations[~settled[later.deviations["key"]]])
        if keys is not None:
            settled[keys] = True
    for keys, later in rounds[-2::-1]:
        exists[:, keys], unexplained[:, keys] = later.exists, later.unexplained
    return Abridged(np.concatenate(parts), exists, unexplained)


def _decisions(number: int) -> str:
    return f"decisions-{number:05d}.arrow"
