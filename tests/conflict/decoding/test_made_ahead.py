"""Parts that a thread makes ahead are the same ones, in order, with their errors in place; few are made in vain."""

from collections.abc import Iterator
from threading import current_thread

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conflict.decoding.made_ahead import made_ahead
from ndb_formats.errors import FormatError

_DAMAGED = "the event is damaged"


@given(st.lists(st.integers() | st.none()))
def test_the_same_parts_come_in_order(parts: list[int | None]) -> None:
    assert list(made_ahead(iter(parts))) == parts


@given(st.integers(0, 6))
def test_an_error_comes_after_the_parts_before_it(count: int) -> None:
    def failing() -> Iterator[int]:
        yield from range(count)
        raise FormatError(_DAMAGED)

    found: list[int] = []
    with pytest.raises(FormatError, match=_DAMAGED):
        found.extend(made_ahead(failing()))
    assert found == list(range(count))


def test_few_parts_are_made_in_vain_and_not_by_who_uses_them() -> None:
    made = []

    def counted() -> Iterator[int]:
        for number in range(100):
            made.append((number, current_thread()))
            yield number

    parts = made_ahead(counted())
    assert next(parts) == 0
    parts.close()  # type: ignore[attr-defined] # it is a generator
    assert len(made) <= 4
    assert all(thread is not current_thread() for _, thread in made)
