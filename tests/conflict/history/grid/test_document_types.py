"""Documents whose values are of another type than their class declares."""

from __future__ import annotations

from enum import IntEnum
from pathlib import Path
from typing import Any

import attrs
import pytest

from conflict.history.grid.documents import MisfitError, object_of


class Code(IntEnum):
    """Numbers with names."""

    ONE = 1


@attrs.frozen
class Part:
    """A part of a document."""

    code: Code
    size: int = 0


@attrs.frozen
class Whole:
    """A document."""

    file: Path
    names: tuple[str, ...]
    parts: dict[str, tuple[Part, ...]]
    error: str | None


SOUND: dict[str, Any] = {
    "file": "a/b",
    "names": ["x"],
    "parts": {"A": [{"code": 1, "size": 7}, {"code": 1}]},
    "error": None,
}


def test_a_sound_document() -> None:
    """Each value becomes what its class declares; what is not told has its default."""
    assert object_of(Whole, SOUND) == Whole(Path("a/b"), ("x",), {"A": (Part(Code.ONE, 7), Part(Code.ONE))}, None)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"file": 1}, "file is '1'"),
        ({"names": "x"}, "names is 'x'"),
        ({"names": [1]}, r"names\[0\] is '1'"),
        ({"parts": {"A": [{"code": 2}]}}, r"parts.A\[0\].code is '2'"),
        ({"parts": {"A": [{"code": 1, "size": True}]}}, r"parts.A\[0\].size is 'True'"),
        ({"parts": {"A": [{}]}}, r"parts.A\[0\] lacks code"),
        ({"parts": {"A": [{"code": [1]}]}}, r"parts.A\[0\].code is '\[1\]'"),
        ({"error": 1}, "error is '1'"),
        ({"more": 1}, "it has 'more'"),
    ],
)
def test_a_document_that_does_not_fit(change: dict[str, Any], message: str) -> None:
    """The place is named."""
    with pytest.raises(MisfitError, match=f"^{message}$"):
        object_of(Whole, {**SOUND, **change})


@pytest.mark.parametrize("document", [[], None, 1, "x"])
def test_another_document(document: object) -> None:
    """It is refused as a whole."""
    with pytest.raises(MisfitError, match=r"^it is "):
        object_of(Whole, document)
