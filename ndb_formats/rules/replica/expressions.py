"""
Whether two SQL expressions are the same, of generated columns, defaults and unique keys.

Neither parentheses nor quotes nor the character set before a string matter: SHOW CREATE TABLE adds them, and writes the
operators of JSON as functions. Expressions are not evaluated.
"""

from __future__ import annotations

import re
from functools import cache


def same_expression(one: str | None, other: str | None) -> bool:
    """Return whether two expressions are the same; None is no expression. Expressions are not evaluated."""
    if one is None or other is None:
        return one is other
    return one == other or normal_expression(one) == normal_expression(other)


# What SHOW CREATE TABLE makes of the operators of JSON and of CAST to a text.
_COLUMN, _STRING = r"(`(?:[^`]|``)*`|\w+)", r"('(?:[^']|'')*')"
_AS_SHOWN = (
    (re.compile(rf"_\w+ {_STRING}"), r"\1"),
    (re.compile(rf"{_COLUMN} ?->> ?{_STRING}"), r"json_unquote ( json_extract ( \1 , \2 ) )"),
    (re.compile(rf"{_COLUMN} ?-> ?{_STRING}"), r"json_extract ( \1 , \2 )"),
    (re.compile(r"(\bas char ?\( ?\d+ ?\)) (?:charset|character set) \w+"), r"\1"),
)


@cache
def normal_expression(text: str) -> object:
    """Return what an expression is made of, as nested tuples; the text itself if it cannot be read."""
    for pattern, spelled in _AS_SHOWN:
        text = pattern.sub(spelled, text)
    import sqlglot  # noqa: PLC0415  # takes long to load, and few definitions have expressions
    from sqlglot.errors import SqlglotError  # noqa: PLC0415  # as above

    try:
        return _parts(sqlglot.parse_one(text, read="mysql"))
    except SqlglotError:
        return text


def _parts(node: object) -> object:
    from sqlglot import exp  # noqa: PLC0415  # as above

    while isinstance(node, exp.Paren | exp.Introducer):
        node = node.args["expression" if isinstance(node, exp.Introducer) else "this"]
    if isinstance(node, exp.Identifier):
        return node.name.lower()
    if isinstance(node, exp.Expression):
        return (type(node).__name__, *((name, _parts(value)) for name, value in sorted(node.args.items())))
    return tuple(map(_parts, node)) if isinstance(node, list) else node
