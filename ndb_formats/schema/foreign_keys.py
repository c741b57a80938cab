"""
Foreign keys in definitions: how statements declare them.

Source: MySQL manual, "FOREIGN KEY Constraints".
"""

from __future__ import annotations

import attrs

from ndb_formats.schema.lexer import WordKind
from ndb_formats.schema.sql_words import Words
from ndb_formats.schema.tables import ForeignKey, ReferenceAction, Table
from ndb_formats.types.digits import whole_number

__all__ = ["split_reference", "take_foreign_key", "with_foreign_key", "without_foreign_key"]

_ACTIONS = {
    ("RESTRICT",): ReferenceAction.RESTRICT,
    ("CASCADE",): ReferenceAction.CASCADE,
    ("SET", "NULL"): ReferenceAction.SET_NULL,
    ("NO", "ACTION"): ReferenceAction.NO_ACTION,
}


def take_foreign_key(item: Words, symbol: str) -> ForeignKey:
    """
    Read what follows FOREIGN KEY.

    Args:
        item: The rest of the clause. A name of its index is skipped: it does not name the constraint.
        symbol: What CONSTRAINT names; empty if it names nothing.
    """
    while item.kind is not WordKind.L_PAREN:
        item.step()
    columns = tuple(part.step() for part in item.group().items())
    while item.word and not item.accept("REFERENCES"):
        item.step()
    return _reference(item, symbol, columns)


def split_reference(definition: Words) -> tuple[Words, ForeignKey | None]:
    """Split the definition of a column from the REFERENCES after it, which is a foreign key of that column."""
    depth = 0
    for place, (word, kind) in enumerate(definition.words):
        depth += (kind is WordKind.L_PAREN) - (kind is WordKind.R_PAREN)
        name = kind in (WordKind.IDENTIFIER, WordKind.STRING)
        if place and depth == 0 and not name and word.upper() == "REFERENCES":
            reference = Words(definition.words[place + 1 :])
            key = _reference(reference, "", (definition.words[0][0],))
            return Words(definition.words[:place]), attrs.evolve(key, inline=True)
    return definition, None


def _reference(words: Words, symbol: str, columns: tuple[str, ...]) -> ForeignKey:
    """Read a parent and what happens with it; without columns, its primary key is meant."""
    database, parent = "", words.step()
    if words.kind is WordKind.DOT:
        words.step()
        database, parent = parent, words.step()
    listed = words.group().items() if words.kind is WordKind.L_PAREN else ()
    found = ForeignKey(symbol, columns, database, parent, tuple(part.step() for part in listed))
    while words.word and words.upper != "MATCH":  # with MATCH the server ignores ON DELETE and ON UPDATE
        if words.accept("ON", "DELETE"):
            found = attrs.evolve(found, on_delete=_action(words))
        elif words.accept("ON", "UPDATE"):
            found = attrs.evolve(found, on_update=_action(words))
        else:
            words.step()
    return found


def _action(words: Words) -> ReferenceAction:
    """Read an action; SET DEFAULT, which the server refuses, counts as none."""
    return next((action for phrase, action in _ACTIONS.items() if words.accept(*phrase)), ReferenceAction.NO_ACTION)


def with_foreign_key(table: Table, key: ForeignKey) -> Table:
    """Return a table with one more foreign key; the server numbers those without a name."""
    if not key.name:
        prefix = f"{table.name}_fk_"
        numbers = (each.name.removeprefix(prefix) for each in table.foreign_keys if each.name.startswith(prefix))
        last = max((whole_number(number) or 0 for number in numbers), default=0)
        key = attrs.evolve(key, name=f"{prefix}{last + 1}")
    return attrs.evolve(table, foreign_keys=(*table.foreign_keys, key))


def without_foreign_key(table: Table, name: str) -> Table:
    """Return a table without a foreign key; the letter case of its name does not count."""
    kept = tuple(each for each in table.foreign_keys if each.name.lower() != name.lower())
    return attrs.evolve(table, foreign_keys=kept)
