r"""
Rows as the mysql client prints them.

    with tabs           names in the first line; in a pipe, or with --batch
    in a box            lines of | and +; on a terminal, or with --table
    below each other    a line for each value; with \G, or --vertical

NULL is the word NULL, as the client prints it, and values in hex are bytes (--binary-as-hex). Blanks at the ends of
values are lost in the first two.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

from conflict.config.table_rows import Cell, InputRow, delimited_rows
from conflict.errors import ConfigurationError

_ROW = re.compile(r"\*{5,} *\d+\. row *\*{5,}")
# What the client prints besides rows.
_COUNT = re.compile(r"(\d+ rows? in set|Empty set)\b.*|mysql>.*")
_ESCAPES = {"n": "\n", "t": "\t", "0": "\0"}
_HEX = re.compile(r"0x((?:[0-9A-Fa-f]{2})*)")


def printed_rows(text: str) -> Iterator[InputRow]:
    """
    Yield the rows of a text; names are in small letters. No rows of a text without any.

    Raises:
        ConfigurationError: A line does not fit the others.
    """
    lines = [line.rstrip("\r") for line in text.split("\n")]
    kept = [(number, line) for number, line in enumerate(lines, 1) if line.strip() and not _COUNT.fullmatch(line)]
    if not kept:
        return
    if any(_ROW.search(line) for _, line in kept):
        yield from _below_each_other(lines)
    elif kept[0][1].startswith("+-"):
        yield from _in_a_box([(number, line) for number, line in kept if not line.startswith("+-")], kept[0][1])
    elif "\t" in kept[0][1]:
        yield from _with_tabs(kept)
    else:
        yield from delimited_rows("\n".join(lines), ())  # one column alone, or commas as of another program


def _with_tabs(lines: list[tuple[int, str]]) -> Iterator[InputRow]:
    names = lines[0][1].lower().split("\t")
    for number, line in lines[1:]:
        cells = line.split("\t")
        if len(cells) != len(names):
            message = f"line {number} has {len(cells)} fields, the first line has {len(names)}"
            raise ConfigurationError(message)
        yield InputRow(f"line {number}", dict(zip(names, (_cell(_unescaped(cell)) for cell in cells), strict=True)))


def _unescaped(text: str) -> str:
    return re.sub(r"\\(.)", lambda found: _ESCAPES.get(found[1], found[1]), text)


def _in_a_box(lines: list[tuple[int, str]], border: str) -> Iterator[InputRow]:
    edges = [place for place, character in enumerate(border.rstrip()) if character == "+"]
    names: list[str] | None = None
    for number, line in lines:
        cells = line.strip().removeprefix("|").removesuffix("|").split("|")
        if len(cells) != len(edges) - 1:  # a value has a bar of its own
            cells = [line[left + 1 : right] for left, right in pairwise(edges)]
            if any(line[edge : edge + 1] != "|" for edge in edges):
                message = f"line {number} is no row of the box; print it with --batch in place of --table"
                raise ConfigurationError(message)
        if names is None:
            names = [cell.strip().lower() for cell in cells]
        else:
            yield InputRow(f"line {number}", dict(zip(names, (_cell(cell.strip()) for cell in cells), strict=True)))


def _below_each_other(lines: list[str]) -> Iterator[InputRow]:
    """Yield rows; names are as far to the right as the longest one, so the colon has one place in all lines."""
    row, start, colon, last = dict[str, str](), 0, 0, ""
    for number, line in enumerate([*lines, "***** 0. row *****"], 1):
        if _ROW.search(line):
            if row:
                yield InputRow(f"line {start}", {name: _cell(value) for name, value in row.items()})
            row, start, last = {}, number + 1, ""
        elif not last and ":" in line:
            colon = line.index(":")
            row[last := line[:colon].strip().lower()] = line[colon + 2 :]
        elif last and line[colon : colon + 1] == ":" and line[:colon].strip():
            row[last := line[:colon].strip().lower()] = line[colon + 2 :]
        elif last and line and not _COUNT.fullmatch(line):  # a value that goes on
            row[last] += f"\n{line}"


def _cell(text: str) -> Cell:
    if text == "NULL":
        return None
    found = _HEX.fullmatch(text)
    return bytes.fromhex(found[1]) if found else text
