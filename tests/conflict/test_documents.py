"""Documents as objects: each value is what its class declares, and what is not is refused with its path."""

from __future__ import annotations

from enum import IntEnum, StrEnum
from pathlib import Path
from typing import Annotated, Any, Literal

import attrs
import pytest

from conflict.documents import GIVEN, Epoch, Must, Name, Text, one_of, read, whole
from conflict.errors import ConfigurationError


class Code(IntEnum):
    """Numbers with names."""

    ONE = 1


class Colour(StrEnum):
    """Texts with names."""

    RED = "red"
    GREEN = "green"


@attrs.frozen
class Part:
    """A part of a document."""

    code: Code
    size: int = 0

    def __attrs_post_init__(self) -> None:
        if self.size > 9:
            message = "it does not fit"
            raise ConfigurationError(message)


def halved(value: int) -> int:
    """Return the half of an even number."""
    if value % 2:
        message = "it is odd"
        raise ConfigurationError(message)
    return value // 2


@attrs.frozen
class Whole:
    """A document."""

    file: Path
    names: tuple[str, ...]
    parts: dict[str, tuple[Part, ...]]
    error: str | None
    flag: bool = False
    share: float = 0
    digest: bytes = b""
    epoch: Epoch = 0
    place: Name | list[Name] = "x"
    title: Text = ""
    at: Literal["start", "end"] = "start"
    colour: Colour | None = None
    given: Annotated[Text | None, GIVEN] = None
    word: Annotated[str, one_of(["apply", "reject"])] = "apply"
    half: Annotated[int, Must("an even number", given=int, convert=halved)] = 0
    pair: Annotated[list[int], Must("two numbers", lambda found: len(found) == 2)] = attrs.field(factory=list)
    anything: Any = None


SOUND: dict[str, Any] = {
    "file": "a/b",
    "names": ["x"],
    "parts": {"A": [{"code": 1, "size": 7}, {"code": 1}]},
    "error": None,
}


def test_a_sound_document() -> None:
    """Each value becomes what its class declares; what is not given has its default."""
    assert read(Whole, SOUND) == Whole(Path("a/b"), ("x",), {"A": (Part(Code.ONE, 7), Part(Code.ONE))}, None)


@pytest.mark.parametrize(
    ("entry", "given", "found"),
    [
        ("share", 3, 3),
        ("share", 2.5, 2.5),
        ("digest", "00ff", b"\x00\xff"),
        ("epoch", 2**64 - 1, 2**64 - 1),
        ("place", ["a", "b"], ["a", "b"]),
        ("colour", "green", Colour.GREEN),
        ("half", 8, 4),
        ("anything", [None, True], [None, True]),
    ],
)
def test_values(entry: str, given: object, found: object) -> None:
    """A value is kept as it is, or becomes what its type makes of it."""
    assert getattr(read(Whole, {**SOUND, entry: given}), entry) == found


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"file": 1}, "file is 1; it must be a path"),
        ({"names": "x"}, "names is 'x'; it must be a list"),
        ({"names": [1]}, "names#1 is 1; it must be a text"),
        ({"parts": {"A": [{"code": 1}, {"code": 2}]}}, "parts.A#2.code is 2; it must be one of 1"),
        ({"parts": {"A": [{"code": True}]}}, "parts.A#1.code is True; it must be one of 1"),
        ({"parts": {"A": [{"code": 1, "size": True}]}}, "parts.A#1.size is True; it must be a whole number"),
        ({"parts": {"A": [{"code": 1, "size": 1.0}]}}, "parts.A#1.size is 1.0; it must be a whole number"),
        ({"parts": {"A": [{}]}}, "parts.A#1.code is missing; it must be one of 1"),
        ({"parts": {"A": [{"code": [1]}]}}, "parts.A#1.code is [1]; it must be one of 1"),
        ({"parts": {"A": [{"code": 1, "size": 10}]}}, "parts.A#1: it does not fit"),
        (
            {"parts": {"A": [{"cod": 1}]}},
            "parts.A#1 has unknown entries cod (did you mean code?); known are code, size",
        ),
        ({"parts": []}, "parts is []; it must be a table"),
        ({"error": 1}, "error is 1; it must be a text"),
        ({"flag": 1}, "flag is 1; it must be true or false"),
        ({"flag": None}, "flag is None; it must be true or false"),
        ({"share": True}, "share is True; it must be a number"),
        ({"digest": "0F"}, "digest is '0F'; it must be hexadecimal digits"),
        ({"epoch": -1}, f"epoch is -1; it must be a whole number from 0 to {2**64 - 1}"),
        ({"epoch": "1"}, f"epoch is '1'; it must be a whole number from 0 to {2**64 - 1}"),
        ({"epoch": 10**5000}, f"epoch is a number that is too long; it must be a whole number from 0 to {2**64 - 1}"),
        ({"place": 1}, "place is 1; it must be a text that is not empty, or a list"),
        ({"place": ["a", ""]}, "place#2 is ''; it must be a text that is not empty"),
        ({"title": "a\0"}, "title is 'a\\x00'; it must be a text"),
        ({"title": ["x" * 99]}, f"title is ['{'x' * 58}...; it must be a text"),
        ({"at": "begin"}, "at is 'begin'; it must be one of start, end"),
        ({"colour": "gren"}, "colour is 'gren'; it must be one of red, green (did you mean green?)"),
        ({"given": None}, "given is None; it must be a text"),
        ({"word": "aply"}, "word is 'aply'; it must be one of apply, reject (did you mean apply?)"),
        ({"half": 3}, "half: it is odd"),
        ({"pair": [1]}, "pair is [1]; it must be two numbers"),
        ({"pair": [1, "x"]}, "pair#2 is 'x'; it must be a whole number"),
        ({"fil": "x", "file": 1}, "it has unknown entries fil (did you mean file?); known are anything, at, colour"),
    ],
)
def test_a_document_that_does_not_fit(change: dict[str, Any], message: str) -> None:
    """The path is named, and what it must be."""
    with pytest.raises(ConfigurationError) as caught:
        read(Whole, {**SOUND, **change})
    assert str(caught.value).startswith(message)


@pytest.mark.parametrize("document", [[], None, 1, "x"])
def test_another_document(document: object) -> None:
    """It is refused as a whole."""
    with pytest.raises(ConfigurationError, match=r"^it is .*; it must be a table$"):
        read(Whole, document)


def test_a_part_of_a_document() -> None:
    """The path of the part stands before that of the entry."""
    assert read(Annotated[int, whole(1, 3)], 2, "a.b") == 2
    with pytest.raises(ConfigurationError, match=r"^a\.b#1\.code is missing"):
        read(list[Part], [{}], "a.b")
