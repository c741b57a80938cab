"""
How many examples a law tries.

Some for every commit, each time others; many in `make test-all` (the profile `long`).
"""

from hypothesis import settings

__all__ = ["EVERY_COMMIT", "LONG", "LONG_EXAMPLES", "examples"]

LONG = "long"
EVERY_COMMIT, LONG_EXAMPLES = 30, 100  # of a law that says nothing else
_TIMES = 20


def examples(number: int, *, long: int | None = None) -> settings:
    """
    Return the settings of a law.

    Args:
        number: How many examples it tries for every commit.
        long: How many under the profile `long`; 20 times as many, if it is not given.
    """
    most = number * _TIMES if long is None else long
    return settings(max_examples=most if settings.get_current_profile_name() == LONG else number)
