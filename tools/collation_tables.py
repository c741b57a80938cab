"""
Make the tables of collations from what a MySQL server says of the weights of all characters.

    python -m tools.collation_tables --socket /run/mysqld/mysqld.sock --out ndb_formats/types/collation_data

The server needs 1 GB of disk; what it is given goes into a database of its own, which is dropped at the end.
Contractions are found by asking for the weights of pairs of letters, of letters with their marks apart, and of longer
texts around those that are contractions. All files take about twenty minutes with one worker.
See `ndb_formats.types.collations` for the files.
"""

from __future__ import annotations

import argparse
import lzma
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import Executor, ProcessPoolExecutor
from itertools import chain
from pathlib import Path
from unicodedata import normalize

import attrs

from ndb_formats.types.charsets import PYTHON_CODEC, decode_text
from ndb_formats.types.collation_names import max_bytes
from tools.collation_elements import AmbiguousError, canonical_of_parts, canonical_texts, levels_of
from tools.collation_server import GUARD, CollationFacts, WeightServer

DATABASE = "collation_tables"
ROOTS = ("unicode_ci", "unicode_520_ci", "0900_ai_ci", "0900_as_ci", "0900_as_cs")
PLAIN = {"utf8mb4": ("general_ci",), "utf8mb3": ("general_mysql500_ci", "tolower_ci")}
DEPTHS = {"_ai_ci": 1, "_as_ci": 2, "_as_cs": 3, "_as_cs_ks": 4}
# Where contractions may be: Latin and Cyrillic letters, combining marks, Kana.
LETTERS = "".join(map(chr, [*range(0x41, 0x5B), *range(0x61, 0x7B), *range(0xC0, 0x180), *range(0x300, 0x370)]))
LETTERS += "".join(map(chr, range(0x400, 0x460)))
KANA = "".join(map(chr, [*range(0x3041, 0x3097), *range(0x3099, 0x3100), *range(0x31F0, 0x3200)]))
KANA += "".join(map(chr, range(0xFF66, 0xFFA0)))
_MAX_TAILORED = 600
_MAX_ROUNDS = 4
Texts = dict[str, str]
Section = tuple[str, tuple[str, Texts]]


@attrs.frozen
class Maker:
    """Makes the table of one collation of utf8mb4 after another; `database` has all characters."""

    server: WeightServer
    database: str = DATABASE

    def root(self, name: str) -> tuple[str, Texts]:
        """Return the table of a collation with weights of its own."""
        collation = f"utf8mb4_{name}"
        return name, canonical_texts(self.server.weights(self.database, collation), _depth(name))

    def language(self, name: str) -> tuple[str, Texts | str]:
        """Return the table of a language; a reason if its weights cannot be cut into elements."""
        collation, base = f"utf8mb4_{name}", f"utf8mb4_{root_of(name)}"
        weights = self.server.weights(self.database, base)
        changed = self.server.weights(self.database, collation, base)
        try:
            weights |= changed | self._contractions(collation, weights | changed, changed)
            return name, canonical_texts(weights, _depth(name))
        except AmbiguousError as error:
            return name, str(error)

    def _contractions(self, collation: str, weights: Mapping[str, bytes], changed: Iterable[str]) -> dict[str, bytes]:
        """Return the weights of contractions."""
        if collation.endswith("_ks"):
            # To tell Hiragana from Katakana adds a level, and no contraction.
            return self._of_insensitive(collation)
        tailored = sorted(letter for letter in changed if not _is_han(letter))[:_MAX_TAILORED]
        letters = {*LETTERS, *(KANA if "_ja_" in collation else ""), *tailored}
        depth = _depth(collation)
        units = [(letter, levels_of(weights[letter], depth)) for letter in sorted(letters)]
        padded = [(letter, (*levels, *((),) * (depth - len(levels)))) for letter, levels in units]
        spelled = {normalize("NFD", letter) for letter in changed} - {*changed}
        pairs = self.server.odd_pairs(self.database, collation, padded)
        found = self._unlike(collation, sorted({*pairs, *spelled}), weights)
        longer = dict(found)
        for _ in range(_MAX_ROUNDS):
            near = {letter for unit in found for letter in unit}
            texts = sorted({text for unit in longer for letter in near for text in (unit + letter, letter + unit)})
            longer = self._unlike(collation, texts, {**weights, **found})
            if not longer:
                return found
            found |= longer
        message = f"contractions of contractions: {sorted(longer)[:3]}"
        raise AmbiguousError(message)

    def _of_insensitive(self, collation: str) -> dict[str, bytes]:
        """Return the weights of the contractions that a collation has without sensitivity to Kana."""
        plain = collation.removesuffix("_ks")
        base = f"utf8mb4_{root_of(plain)}"
        changed = self.server.weights(self.database, plain, base)
        units = sorted(self._contractions(plain, self.server.weights(self.database, base) | changed, changed))
        weighed = self.server.weights_of([unit.encode() for unit in units], "utf8mb4", collation)
        return dict(zip(units, weighed, strict=True))

    def _unlike(self, collation: str, texts: Iterable[str], weights: Mapping[str, bytes]) -> dict[str, bytes]:
        """Return those of some texts, and their weights, that weigh other than their units together."""
        texts = list(texts)
        units = sorted((unit for unit in weights if len(unit) > 1), key=len, reverse=True)
        cut = re.compile("|".join([*map(re.escape, units), "."]), re.DOTALL)
        guarded = [f"{GUARD}{text}{GUARD}" for text in texts]
        weighed = self.server.weights_of([text.encode() for text in guarded], "utf8mb4", collation)
        depth = _depth(collation)
        expected = (_together([levels_of(weights[unit], depth) for unit in cut.findall(text)]) for text in guarded)
        pairs = zip(texts, weighed, expected, strict=True)
        unlike = [text for text, weight, own in pairs if levels_of(weight, depth) != own]
        return dict(
            zip(unlike, self.server.weights_of([text.encode() for text in unlike], "utf8mb4", collation), strict=True)
        )


def _together(parts: list[tuple[tuple[bytes, ...], ...]]) -> tuple[tuple[bytes, ...], ...]:
    depth = max(map(len, parts))
    return tuple(tuple(each for part in parts if level < len(part) for each in part[level]) for level in range(depth))


def root_of(name: str) -> str:
    """Return the collation that a language's is made from."""
    if "0900" in name:
        return "0900_ai_ci" if name.endswith("_ai_ci") else "0900_as_cs"
    return "unicode_ci"


def _depth(name: str) -> int:
    return next((depth for end, depth in DEPTHS.items() if name.endswith(end)), 1) if "0900" in name else 1


def _is_han(unit: str) -> bool:
    return "\u2e80" <= unit < "\u3040" or unit >= "\u3100"


def lines_of(texts: Mapping[str, str]) -> Iterator[str]:
    """
    Yield the lines of a table: unit, count, step and text.

    A line stands for `count` characters in a row; the last character of the text moves on by `step` with each.
    """
    units = sorted(unit for unit in texts if len(unit) == 1)
    place = 0
    while place < len(units):
        first, text = units[place], texts[units[place]]
        runs = [_run(units, texts, place, step) for step in (0, 1)]
        step = int(runs[1] > runs[0])
        count = max(runs)
        yield f"{ord(first):X} {count} {step} {_digits(text)}"
        place += count
    for unit in sorted(unit for unit in texts if len(unit) > 1):
        yield f"{_digits(unit)} 1 0 {_digits(texts[unit])}"


def _run(units: list[str], texts: Mapping[str, str], place: int, step: int) -> int:
    first, text = ord(units[place]), texts[units[place]]
    count = 1
    while place + count < len(units) and ord(units[place + count]) == first + count:
        expected = text if not step else (text[:-1] + chr(ord(text[-1]) + count) if text else None)
        if texts[units[place + count]] != expected:
            break
        count += 1
    return count


def _digits(text: str) -> str:
    return "+".join(f"{ord(letter):X}" for letter in text) or "-"


def _plain(maker: Maker) -> Iterator[tuple[str, Texts]]:
    """Yield the tables of the collations that weigh every character by one number."""
    for charset, names in PLAIN.items():
        for name in names:
            if charset == "utf8mb4":
                weights = maker.server.weights(maker.database, f"utf8mb4_{name}")
            else:
                letters = [chr(code) for code in range(0x10000) if not 0xD800 <= code < 0xE000]
                weighed = maker.server.weights_of([letter.encode() for letter in letters], charset, f"{charset}_{name}")
                weights = dict(zip(letters, weighed, strict=True))
            yield name, canonical_of_parts(weights, 2)


def _single_bytes(server: WeightServer, facts: Iterable[CollationFacts]) -> Iterator[tuple[str, Texts | str]]:
    """Yield the tables of the collations of character sets of one byte a character."""
    for each in facts:
        codec = PYTHON_CODEC.get(each.charset)
        if each.name.endswith("_bin") or codec is None or max_bytes(each.charset) > 1:
            continue
        one = [bytes([byte]) for byte in range(256)]
        weights = server.weights_of_bytes(one, each.charset, each.name)
        pairs = [first + second for first in one for second in one]
        weighed = server.weights_of_bytes(pairs, each.charset, each.name)
        if weighed != [first + second for first in weights for second in weights]:
            yield each.name, "the weight of a text is not made of those of its characters"
            continue
        letters = [decode_text(byte, each.charset) for byte in one]
        yield each.name, canonical_of_parts(dict(zip(letters, weights, strict=True)), 1)


KINDS = ("general", "single_byte", "uca_400", "uca_520", "uca_900")


def main() -> None:
    """Ask, and write the files."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--socket", required=True, help="socket of a MySQL 9 server")
    parser.add_argument("--client", default="mysql", help="the program mysql")
    parser.add_argument("--user", default="root")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=KINDS, help="the files to write")
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args()
    server = WeightServer(options.socket, options.client, options.user)
    facts = server.collations()
    options.out.mkdir(exist_ok=True)
    server.drop(DATABASE)
    server.set_up(DATABASE)
    try:
        with ProcessPoolExecutor(options.workers) as pool:
            for kind in options.kinds:
                _write(options.out / f"{kind}.xz", dict(_sections(kind, facts, Maker(server), pool)))
    finally:
        server.drop(DATABASE)


def _sections(kind: str, facts: Iterable[CollationFacts], maker: Maker, pool: Executor) -> Iterator[Section]:
    """Yield the tables of one file, each with its name and its base, and say what is left out."""
    names = [each.name.removeprefix("utf8mb4_") for each in facts if each.charset == "utf8mb4"]
    roots = [name for name in ROOTS if kind_of(name) == kind]
    others = [name for name in names if kind_of(name) == kind and name not in ROOTS]
    bases = dict[str, Texts]()
    if kind == "general":
        made: Iterable[tuple[str, Texts | str]] = _plain(maker)
    elif kind == "single_byte":
        made = _single_bytes(maker.server, facts)
    else:
        bases = dict(pool.map(maker.root, roots))
        made = chain(bases.items(), pool.map(maker.language, others))
    for name, texts in made:
        if isinstance(texts, str):
            print(f"{name}: left out: {texts}", file=sys.stderr)
            continue
        contractions = sum(len(unit) > 1 for unit in texts)
        print(f"{name}: {len(texts):,} units, {contractions} contractions", file=sys.stderr)
        base = root_of(name)
        yield name, ("-", texts) if name in bases or base not in bases else (base, _changes(texts, bases[base]))


def kind_of(name: str) -> str:
    """Return the file that has a collation of utf8mb4."""
    if "0900" in name:
        return "" if name.endswith("_bin") else "uca_900"
    if name in ("general_ci", "bin"):
        return ""
    return "uca_520" if name == "unicode_520_ci" else "uca_400"


def _changes(texts: Texts, base: Texts) -> Texts:
    """Return what a table says other than its base."""
    units = texts.keys() | base.keys()
    return {unit: text for unit in units if (text := texts.get(unit, unit)) != base.get(unit, unit)}


def _write(path: Path, sections: Mapping[str, tuple[str, Texts]]) -> None:
    lines: list[str] = []
    for name, (base, texts) in sections.items():
        lines += [f"{name} {base}", *(f" {line}" for line in lines_of(texts))]
    path.write_bytes(lzma.compress("".join(f"{line}\n" for line in lines).encode(), preset=9 | lzma.PRESET_EXTREME))
    print(f"{path.name}: {len(sections)} collations, {path.stat().st_size:,} bytes", file=sys.stderr)


if __name__ == "__main__":
    main()
