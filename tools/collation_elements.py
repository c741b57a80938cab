"""
Collation elements of characters and contractions, from their weights; and one text for all texts that are equal.

A weight has a part per level. Two texts are equal if the parts of all their *units* (characters and contractions), one
after the other, are equal on every level. `elements_of` cuts the weights of units into *elements* of all levels, in the
only way there is: then texts are equal exactly if their elements are. `canonical_texts` gives every element a character
that stands for it, so that the text of a unit's symbols can be compared instead.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from unicodedata import category

import attrs

__all__ = ["AmbiguousError", "canonical_of_parts", "canonical_texts", "levels_of"]

Level = tuple[bytes, ...]
Element = tuple[Level, ...]
Elements = tuple[Element, ...]
# Joins the characters of a symbol of more than one. It is ignorable, so it never stands for itself.
JOINER = "\u034f"


class AmbiguousError(Exception):
    """The weights can be cut in more than one way; the message says where."""


def levels_of(weight: bytes, depth: int) -> tuple[Level, ...]:
    """
    Split the result of WEIGHT_STRING() into levels of weights of two bytes.

    Zero stands between levels. In Lithuanian it is a primary weight too, so the last ones count.
    """
    weights = [weight[place : place + 2] for place in range(0, len(weight), 2)]
    zeros = [place for place, each in enumerate(weights) if each == b"\0\0"]
    ends = [*zeros[len(zeros) - min(depth - 1, len(zeros)) :], len(weights)]
    starts = [0, *(end + 1 for end in ends)]
    return tuple(tuple(weights[start:end]) for start, end in zip(starts, ends, strict=False))


def elements_of(weights: Mapping[str, bytes], depth: int) -> dict[str, Elements]:
    """
    Cut the weights of units into elements.

    Args:
        weights: The weight of each unit.
        depth: Number of levels.

    Raises:
        AmbiguousError: There may be another way to cut them.
    """
    levels = [dict[str, tuple[Level, ...]]() for _ in range(depth)]
    for unit, weight in weights.items():
        for place, found in enumerate((*levels_of(weight, depth), *((),) * depth)[:depth]):
            levels[place][unit] = tuple((each,) for each in found)
    _join_leads(levels)
    if depth == 1:
        return {unit: tuple((primary,) for primary in found) for unit, found in levels[0].items()}
    for level, extra in zip(levels, _EXTRA, strict=False):
        _join_extra(level, extra)
    # Every element has the last of the first three levels; the second one tells whether it has the first.
    carriers = {found[0][0] for unit, found in levels[1].items() if levels[0][unit]}
    elements = {unit: _elements(unit, [level[unit] for level in levels[:3]], carriers) for unit in weights}
    return _with_fourth(elements, levels[3]) if depth > 3 else elements


# What the server adds to the weights of a character that a language moves: weights from here on follow others.
_EXTRA = (range(0x54A5, 0x5500), range(0x115, 0x10000), range(0x21, 0x10000))


def _elements(unit: str, levels: Sequence[tuple[Level, ...]], carriers: set[bytes]) -> Elements:
    first, second, third = levels if len(levels) > 2 else (*levels, levels[1])
    rest, own = iter(first), []
    for each, last in zip(second, third, strict=False):
        primary = next(rest, None) if each[0] in carriers else ()
        if primary is None:
            message = f"{unit!r} lacks primary weights: {levels}"
            raise AmbiguousError(message)
        own.append((primary, each, last)[: len(levels)])
    if next(rest, None) is not None or len(second) != len(third):
        message = f"{unit!r} has other numbers of weights on each level: {levels}"
        raise AmbiguousError(message)
    return tuple(own)


def _join_leads(levels: Sequence[dict[str, tuple[Level, ...]]]) -> None:
    """Join primary weights that are never alone, the first of two of one character, with those after them."""
    first = levels[0]
    if len(levels) == 1:
        leads = {bytes((0xFB, low)) for low in range(0x40, 0xE2)}
    else:
        leads = {own[0][0] for unit, own in first.items() if len(own) == 2 and len(levels[1][unit]) == 1}
        leads -= {own[0][0] for own in first.values() if len(own) == 1}
    for unit, own in first.items():
        joined: list[Level] = []
        for each in own:
            if joined and joined[-1][-1] in leads and len(joined[-1]) == 1:
                joined[-1] += each
            else:
                joined.append(each)
        if joined and joined[-1][0] in leads and len(joined[-1]) == 1:
            message = f"{unit!r} ends within a primary weight"
            raise AmbiguousError(message)
        first[unit] = tuple(joined)


def _join_extra(level: dict[str, tuple[Level, ...]], extra: range) -> None:
    """Join extra weights with those before them; if a character starts with one, they are no extra weights here."""
    if any(own and int.from_bytes(own[0][0], "big") in extra for own in level.values()):
        return
    for unit, own in level.items():
        joined: list[Level] = []
        for each in own:
            if int.from_bytes(each[0], "big") in extra:
                joined[-1] += each
            else:
                joined.append(each)
        level[unit] = tuple(joined)


def _with_fourth(elements: Mapping[str, Elements], fourth: Mapping[str, tuple[Level, ...]]) -> dict[str, Elements]:
    """Add the fourth level, of those elements that have one; none has one in a unit without."""
    carrying = {each for unit, own in elements.items() if own and len(own) == len(fourth[unit]) for each in own}
    found = {}
    for unit, own in elements.items():
        carry = [each in carrying and bool(fourth[unit]) for each in own]
        if sum(carry) != len(fourth[unit]):
            message = f"{unit!r} has {len(fourth[unit])} weights on the fourth level: {own}"
            raise AmbiguousError(message)
        rest = iter(fourth[unit])
        found[unit] = tuple((*each, next(rest) if has else ()) for each, has in zip(own, carry, strict=True))
    return found


def canonical_texts(weights: Mapping[str, bytes], depth: int) -> dict[str, str]:
    """
    Return the text of symbols of every unit that is not its own: equal for texts exactly if their weights are equal.

    Args:
        weights: The weight of each unit, all characters among them.
        depth: Number of levels.

    Raises:
        AmbiguousError: The weights can be cut into elements in more than one way.
    """
    kept, alone = _divided(weights)
    elements = elements_of(kept, depth)
    if elements.get(JOINER):
        message = "U+034F is not ignorable"
        raise AmbiguousError(message)
    # Characters that only their own kind has, where others have them as parts.
    parts = {each for own in elements.values() if len(own) > 1 for each in own}
    found = {unit for each in parts if (unit := alone.get(_weight_of(each))) is not None}
    if found:
        elements = elements_of(kept | {unit: weights[unit] for unit in found}, depth)
    code = _code_of(elements)
    texts = {}
    for unit, own in elements.items():
        parsed = code.parsed(own)
        if parsed is None:
            message = f"{unit!r} has elements without symbols"
            raise AmbiguousError(message)
        if parsed != unit:
            texts[unit] = parsed
    return texts


def canonical_of_parts(weights: Mapping[str, bytes], size: int) -> dict[str, str]:
    """As `canonical_texts`, of weights that are parts of `size` bytes and have one level."""
    elements: dict[str, Elements] = {
        unit: tuple(((weight[place : place + size],),) for place in range(0, len(weight), size))
        for unit, weight in weights.items()
    }
    code = _code_of(elements)
    return {unit: parsed for unit, own in elements.items() if (parsed := code.parsed(own)) not in (None, unit)}


def _divided(weights: Mapping[str, bytes]) -> tuple[dict[str, bytes], dict[bytes, str]]:
    """Return the weights of units to work on, and the units of the others: unassigned, private and Han, all unequal."""
    uses = Counter(weights.values())
    kept, alone = {}, {}
    for unit, weight in weights.items():
        if len(unit) == 1 and uses[weight] == 1 and (category(unit) in ("Cn", "Co") or _is_han(unit)):
            alone[weight] = unit
        else:
            kept[unit] = weight
    return kept, alone


def _is_han(unit: str) -> bool:
    return "\u3400" <= unit < "\ua000" or "\U00017000" <= unit < "\U00019000" or unit >= "\U00020000"


def _weight_of(element: Element) -> bytes:
    return b"\0\0".join(b"".join(level) for level in element)


def _code_of(elements: Mapping[str, Elements]) -> _Code:
    """Return symbols for all elements: one per element, or for as many as a unit has that no others can stand for."""
    code = _Code()
    for unit in sorted(elements, key=_preference):
        if len(unit) == 1 and len(elements[unit]) == 1:
            code.symbols.setdefault(elements[unit], unit)
    many = [unit for unit, own in elements.items() if len(own) > 1 or (own and len(unit) > 1)]
    units = sorted(many, key=lambda u: (len(elements[u]), *_preference(u)))
    while True:
        for unit in units:
            if code.parsed(elements[unit]) is None:
                code.add(elements[unit], JOINER.join(unit))
        broken = code.ambiguous()
        if not broken:
            return code
        for own in broken:
            unit = code.remove(own)
            for place, each in enumerate(own):
                code.symbols.setdefault((each,), f"{unit}{JOINER}{place}")
        for own in [own for words in code.starts.values() for own in words]:
            code.remove(own)


def _preference(unit: str) -> tuple[bool, bool, bool, str]:
    """Sort first what should stand for others: ASCII, small letters, the lowest code point."""
    return len(unit) > 1, not unit.isascii(), unit != unit.lower(), unit


@attrs.define
class _Code:
    """Symbols of sequences of elements; `starts` has those of two and more by their first element."""

    symbols: dict[Elements, str] = attrs.field(factory=dict)
    starts: dict[Element, list[Elements]] = attrs.field(factory=dict)

    def add(self, own: Elements, symbol: str) -> None:
        self.symbols[own] = symbol
        if len(own) > 1:
            self.starts.setdefault(own[0], []).append(own)

    def remove(self, own: Elements) -> str:
        self.starts[own[0]].remove(own)
        return self.symbols.pop(own)

    def words(self, first: Element) -> Iterable[Elements]:
        """Yield the code words that start with an element."""
        if (first,) in self.symbols:
            yield (first,)
        yield from self.starts.get(first, ())

    def parsed(self, own: Elements) -> str | None:
        """Return the symbols of elements; None if they have none."""
        if len(own) == 1:
            return self.symbols.get(own)
        texts: list[str | None] = [None] * len(own) + [""]
        for place in reversed(range(len(own))):
            for word in self.words(own[place]):
                end = place + len(word)
                if own[place:end] == word and texts[end] is not None:
                    texts[place] = self.symbols[word] + texts[end]
        return texts[0]

    def ambiguous(self) -> set[Elements]:
        """Return words that make the code ambiguous, by the test of Sardinas and Patterson; none if it is not."""
        todo = [
            (word[len(other) :], word)
            for words in self.starts.values()
            for word in words
            for other in self.words(word[0])
            if len(other) < len(word) and word[: len(other)] == other
        ]
        seen, broken = set(), set()
        while todo:
            rest, origin = todo.pop()
            if (rest, origin) in seen:
                continue
            seen.add((rest, origin))
            if rest in self.symbols:
                broken.add(origin)
                continue
            for word in self.words(rest[0]):
                size = min(len(word), len(rest))
                if word[:size] == rest[:size]:
                    todo.append(((word if len(word) > size else rest)[size:], origin))
        return broken
