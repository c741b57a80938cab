"""
Whether two SQL expressions are the same, as typed or as SHOW CREATE TABLE prints them.

The server prints more parentheses, quotes names, and puts the character set before strings; none of that matters.
"""

from __future__ import annotations

from functools import cache

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

__all__ = ["same_expression"]


def same_expression(one: str | None, other: str | None) -> bool:
    """Return whether two expressions are the same; None is no expression. Expressions are not evaluated."""
    if one is None or other is None:
        return one is other
    return one == other or _normal(one) == _normal(other)


@cache
def _normal(text: str) -> object:
    """Return what an expression is made of, as nested tuples; the text itself if it cannot be read."""
    try:
        return _parts(sqlglot.parse_one(text, read="mysql"))
    except SqlglotError:
        return text


def _parts(node: object) -> object:
    while isinstance(node, exp.Paren | exp.Introducer):
        node = node.args["expression" if isinstance(node, exp.Introducer) else "this"]
    if isinstance(node, exp.Identifier):
        return node.name.lower()
    if isinstance(node, exp.Expression):
        return (type(node).__name__, *((name, _parts(value)) for name, value in sorted(node.args.items())))
    return tuple(map(_parts, node)) if isinstance(node, list) else node
