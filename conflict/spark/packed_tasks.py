"""
Tasks of a stage as bytes, so that each process gets what its own tasks need, and what all tasks share once.

A task is an object with few small values of its own, such as the number of a bucket. The other ones, such as the tables
of a run, are the same objects in many tasks; they go with the function that Spark ships to each process once.
"""

from __future__ import annotations

import io
import pickle
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

import attrs
from pyspark.cloudpickle import CloudPickler

_PLAIN = (int, float, str, bytes, type(None))  # as short as a reference to them, or nearly


@attrs.frozen
class SharedValues:
    """
    The values that several tasks have.

    Attributes:
        values: They.
    """

    values: Sequence[object] = attrs.field(repr=False)

    def load(self, row: bytes) -> list[Any]:
        """Return the tasks of a row."""
        return _Unpickler(io.BytesIO(row), self.values).load()  # type: ignore[no-any-return]  # what `pack` wrote


def pack(tasks: Sequence[object], rows: int) -> tuple[SharedValues, list[bytes]]:
    """
    Return what several tasks have, and the tasks.

    Args:
        tasks: The tasks; what attrs objects among them hold can be shared.
        rows: Into how many rows they are divided; each holds neighbours, about as many as the others, at least one.
    """
    shared = _in_several(tasks)
    places = {id(value): place for place, value in enumerate(shared)}
    bounds = [len(tasks) * row // rows for row in range(rows + 1)]
    return SharedValues(shared), [_pickled(tasks[first:stop], places) for first, stop in pairwise(bounds)]


def _in_several(tasks: Sequence[object]) -> list[object]:
    """Return the values that several tasks hold."""
    values = {id(value): value for task in tasks for value in _values(task)}
    counts = Counter(id(value) for task in tasks for value in _values(task))
    return [value for key, value in values.items() if counts[key] > 1]


def _values(task: object) -> Iterator[object]:
    """Yield what a task holds, without what is short."""
    kind: type[Any] = type(task)
    if attrs.has(kind):
        for field in attrs.fields(kind):
            value = getattr(task, field.name)
            if not isinstance(value, _PLAIN):
                yield value


def _pickled(tasks: Sequence[object], places: dict[int, int]) -> bytes:
    stream = io.BytesIO()
    _Pickler(stream, places).dump(list(tasks))  # type: ignore[no-untyped-call]  # pyspark ships it untyped
    return stream.getvalue()


class _Pickler(CloudPickler):
    """Writes the place of a value among those that are shared."""

    def __init__(self, stream: io.BytesIO, places: dict[int, int]) -> None:
        super().__init__(stream, protocol=pickle.HIGHEST_PROTOCOL)  # type: ignore[no-untyped-call]  # as above
        self._places = places

    def persistent_id(self, value: object) -> int | None:
        return self._places.get(id(value))


class _Unpickler(pickle.Unpickler):
    def __init__(self, stream: io.BytesIO, values: Sequence[object]) -> None:
        super().__init__(stream)
        self._values = values

    def persistent_load(self, place: int) -> object:
        return self._values[place]
