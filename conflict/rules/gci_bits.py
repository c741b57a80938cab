"""
Extra GCI bits: whether they tell the epochs of a global checkpoint apart, and what it costs if they do not.

A row keeps the low word of its epoch in that many bits; the greatest number stands for all from it on.
Source: MySQL manual, "NDB$EPOCH()".
"""

from __future__ import annotations

from conflict.rules.functions import ConflictFunction


def needed_gci_bits(epochs: int) -> int:
    """Return how many bits tell the epochs of a global checkpoint apart: 2^bits - 1 have a number of their own."""
    return epochs.bit_length()


def cost_of_few_gci_bits(function: ConflictFunction, epochs: int, times: str) -> str | None:
    """
    Return in a sentence what too few bits cost; None if there are enough.

    Args:
        function: A function; one that does not judge by epoch needs no bits.
        epochs: How many epochs a global checkpoint has.
        times: In words, how long epochs and global checkpoints last.
    """
    if not function.spec.by_epoch or function.gci_bits >= needed_gci_bits(epochs):
        return None
    return (
        f"{function} keeps {function.gci_bits} bits of the number that an epoch has within its global checkpoint, and "
        f"a global checkpoint has {epochs:,} epochs ({times}): epochs that are not told apart count as later than they "
        "are, so changes are rejected that do not conflict."
    )
