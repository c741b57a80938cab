"""
Parts that a thread makes while those before them are used: on two cores, decoding and writing take turns no more.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

Part = TypeVar("Part")
_AHEAD = 2


def made_ahead(parts: Iterator[Part]) -> Iterator[Part]:
    """
    Yield the same parts in the same order, a few of them made before they are asked for.

    What making a part raises is raised in its place.
    """
    end = object()
    with ThreadPoolExecutor(1) as pool:
        waiting = deque(pool.submit(next, parts, end) for _ in range(_AHEAD))
        while (part := waiting.popleft().result()) is not end:
            waiting.append(pool.submit(next, parts, end))
            yield part  # type: ignore[misc] # it is not `end`
