"""
Finds the statements in what the mysql client prints for SHOW CREATE TABLE.

The client prints it as a box, with --vertical as lines below each other, and in a pipe as columns between tabs.
"""

from __future__ import annotations

import re

__all__ = ["as_statements"]

# What stands before a statement: the box's or the tabs' first column, or the label of --vertical.
_BEFORE = re.compile(r"^(?:\|[^\n|]*\| |[^\n\t`']*\t| *Create Table: )(?=CREATE (?:TEMPORARY )?TABLE )", re.MULTILINE)
# What ends one, besides the next: the edge of the box, the header of the next answer, the client's count or prompt.
_AFTER = re.compile(r" *\|\n|^(?:\*{5,}|\+-|\d+ rows? in set|mysql>|Table\tCreate Table)", re.MULTILINE)
# --batch prints line breaks, tabs and backslashes in this way, --raw does not.
_ESCAPED = re.compile(r"\\(.)")
_CHARACTERS = {"n": "\n", "t": "\t", "0": "\0"}


def as_statements(text: str) -> str:
    """Return the statements that a text prints, each with a semicolon; a text of plain SQL as it is."""
    starts = list(_BEFORE.finditer(text))
    if not starts:
        return text
    ends = [*(start.start() for start in starts[1:]), len(text)]
    found = (_statement(text[start.end() : end]) for start, end in zip(starts, ends, strict=True))
    return "".join(f"{statement.rstrip().removesuffix(';')};\n" for statement in found)


def _statement(text: str) -> str:
    line = text.partition("\n")[0]
    if "(\\n" in line:
        return _ESCAPED.sub(lambda found: _CHARACTERS.get(found[1], found[1]), line)
    end = _AFTER.search(text)
    return text if end is None else text[: end.start()]
