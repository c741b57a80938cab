"""How many examples a law tries: some for every commit, 20 times as many in `make test-all` (the profile `long`)."""

from hypothesis import settings

__all__ = ["LONG", "examples"]

LONG = "long"
_TIMES = 20


def examples(number: int) -> settings:
    """Return the settings of a law that tries so many examples, and 20 times as many under the profile `long`."""
    return settings(max_examples=number * (_TIMES if settings.get_current_profile_name() == LONG else 1))
