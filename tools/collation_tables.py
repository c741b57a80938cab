"""
Make the tables of collations from what a MySQL server says of the weights of all characters.

    python -m tools.collation_tables --socket /run/mysqld/mysqld.sock --out ndb_formats/types/collation_data

The server needs 1 GB of disk; what it is given goes into a database of its own, which is dropped at the end. Contractions
are found by asking for the weights of pairs of letters, and of longer texts around those pairs that are contractions.
See `ndb_formats.types.collation_tables` for the files.
"""

from __future__ import annotations

import argparse
import lzma
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import attrs

from ndb_formats.types.charsets import PYTHON_CODEC, decode_text
from tools.collation_elements import AmbiguousError, canonical_of_parts, canonical_texts, levels_of
from tools.collation_server import GUARD, CollationFacts, WeightServer

DATABASE = "collation_tables"
ROOTS = ("unicode_ci", "unicode_520_ci", "0900_ai_ci", "0900_as_ci", "0900_as_cs")
PLAIN = {"utf8mb4": ("general_ci",), "utf8mb3": ("general_mysql500_ci", "tolower_ci")}
DEPTHS = {"_ai_ci": 1, "_as_ci": 2, "_as_cs": 3, "_as_cs_ks": 4}
# Where contractions may be: Latin and Cyrillic letters, combining marks, Kana.
LETTERS = "".join(map(chr, [*range(0x41, 0x5B), *range(0x61, 0x7B), *range(0xC0, 0x180), *range(0x300, 0x370)]))
LETTERS += "".join(map(chr, range(0x400, 0x460)))
KANA = "".join(map(chr, [*range(0x3041, 0x3097), *range(0x3099, 0x3100), *range(0x31F0, 0x3200), *range(0xFF66, 0xFFA0)]))
_MAX_TAILORED = 600
Texts = dict[str, str]


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
        weights |= changed | self._contractions(collation, weights | changed, changed)
        try:
            return name, canonical_texts(weights, _depth(name))
        except AmbiguousError as error:
            return name, str(error)

    def _contractions(self, collation: str, weights: Mapping[str, bytes], changed: Iterable[str]) -> dict[str, bytes]:
        """Return the weights of contractions."""
        letters = {*LETTERS, *(KANA if "_ja_" in collation else ""), *sorted(c for c in changed if not _is_han(c))[:_MAX_TAILORED]}
        units = [(letter, levels_of(weights[letter])) for letter in sorted(letters)]
        depth = max(len(levels) for _, levels in units)
        padded = [(letter, (*levels, *((),) * (depth - len(levels)))) for letter, levels in units]
        if depth == len(DEPTHS):
            pairs = [one + two for one in sorted(letters) for two in sorted(letters)]
        else:
            pairs = self.server.odd_pairs(self.database, collation, padded)
        found = self._unlike(collation, pairs, weights)
        longer = dict(found)
        while longer:
            near = {letter for unit in found for letter in unit}
            texts = sorted({text for unit in longer for letter in near for text in (unit + letter, letter + unit)})
            longer = self._unlike(collation, texts, {**weights, **found})
            found |= longer
        return found

    def _unlike(self, collation: str, texts: Iterable[str], weights: Mapping[str, bytes]) -> dict[str, bytes]:
        """Return those of some texts, and their weights, that weigh other than their units together."""
        texts = list(texts)
        units = sorted((unit for unit in weights if len(unit) > 1), key=len, reverse=True)
        cut = re.compile("|".join([*map(re.escape, units), "."]), re.DOTALL)
        guarded = [f"{GUARD}{text}{GUARD}" for text in texts]
        weighed = self.server.weights_of([text.encode() for text in guarded], "utf8mb4", collation)
        unlike = [
            text
            for text, weight in zip(texts, weighed, strict=True)
            if levels_of(weight) != _together([levels_of(weights[unit]) for unit in cut.findall(f"{GUARD}{text}{GUARD}")])
        ]
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
        if each.name.endswith("_bin") or codec is None or codec.startswith("utf") or each.charset in _WIDE:
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


_WIDE = frozenset("big5 cp932 eucjpms euckr gb18030 gb2312 gbk sjis ujis ucs2 utf16 utf16le utf32".split())


def main() -> None:
    """Ask, and write the files."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--socket", required=True, help="socket of a MySQL 9 server")
    parser.add_argument("--client", default="mysql", help="the program mysql")
    parser.add_argument("--user", default="root")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args()
    server = WeightServer(options.socket, options.client, options.user)
    facts = server.collations()
    server.drop(DATABASE)
    server.set_up(DATABASE)
    try:
        write_tables(server, facts, options.out, options.workers)
    finally:
        server.drop(DATABASE)


def write_tables(server: WeightServer, facts: Iterable[CollationFacts], out: Path, workers: int) -> None:
    """Write one file for all collations of a kind."""
    names = [each.name.removeprefix("utf8mb4_") for each in facts if each.charset == "utf8mb4"]
    languages = [name for name in names if name not in {*ROOTS, "general_ci", "bin", "0900_bin"}]
    maker = Maker(server)
    with ProcessPoolExecutor(workers) as pool:
        tables: dict[str, Texts] = {}
        for name, texts in [*pool.map(maker.root, ROOTS), *_plain(maker)]:
            tables[name] = texts
            print(f"{name}: {len(texts):,} units", file=sys.stderr)
        for name, found in pool.map(maker.language, languages):
            if isinstance(found, str):
                print(f"{name}: left out: {found}", file=sys.stderr)
                continue
            tables[name] = found
            print(f"{name}: {len(found):,} units, {sum(len(unit) > 1 for unit in found)} contractions", file=sys.stderr)
    bytewise: dict[str, Texts] = {}
    for name, made in _single_bytes(server, facts):
        if isinstance(made, str):
            print(f"{name}: left out: {made}", file=sys.stderr)
        else:
            bytewise[name] = made
    out.mkdir(exist_ok=True)
    kinds = {
        "uca_900": [name for name in tables if "0900" in name],
        "uca_520": ["unicode_520_ci"],
        "uca_400": [name for name in tables if "0900" not in name and name != "unicode_520_ci" and name not in _general()],
        "general": _general(),
    }
    for kind, members in kinds.items():
        _write(out / f"{kind}.xz", {name: _section(name, tables) for name in members})
    _write(out / "single_byte.xz", {name: ("-", texts) for name, texts in bytewise.items()})


def _general() -> list[str]:
    return [name for names in PLAIN.values() for name in names]


def _section(name: str, tables: Mapping[str, Texts]) -> tuple[str, Texts]:
    """Return the base of a table, and what differs from it."""
    base = root_of(name)
    if name in ROOTS or name in _general():
        return "-", tables[name]
    units = tables[name].keys() | tables[base].keys()
    return base, {
        unit: text for unit in units if (text := tables[name].get(unit, unit)) != tables[base].get(unit, unit)
    }


def _write(path: Path, sections: Mapping[str, tuple[str, Texts]]) -> None:
    text = "".join(
        f"{name} {base}\n" + "".join(f" {line}\n" for line in lines_of(texts)) for name, (base, texts) in sections.items()
    )
    path.write_bytes(lzma.compress(text.encode(), preset=9 | lzma.PRESET_EXTREME))
    print(f"{path.name}: {len(sections)} collations, {path.stat().st_size:,} bytes", file=sys.stderr)


if __name__ == "__main__":
    main()
