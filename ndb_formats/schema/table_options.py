"""
The options of tables and databases that matter: storage engine, character set, row versions.
"""

from __future__ import annotations

import attrs

from ndb_formats.errors import SchemaError
from ndb_formats.schema.column_type import charset_name, collation_name
from ndb_formats.schema.session import Session, Text
from ndb_formats.schema.sql_words import Words

__all__ = ["Options", "take_charset", "take_options"]


@attrs.frozen
class Options:
    """
    What options say.

    Attributes:
        engine: Storage engine in upper case; None if none is named.
        charset: Character set and collation; None if none is named.
        versioned: Whether they ask for row versions (MariaDB).
    """

    engine: str | None = None
    charset: Text | None = None
    versioned: bool = False


def take_options(words: Words, session: Session, default: Text) -> Options:
    """
    Read options to the end of the words; those that do not matter, or are not known, are passed over.

    Args:
        words: The options.
        session: The session that gives them.
        default: Character set and collation that DEFAULT stands for.

    Raises:
        SchemaError: Columns come from a query, which they do not tell.
    """
    found = Options()
    while words.word:
        if words.accept("ENGINE"):
            words.accept("=")
            found = attrs.evolve(found, engine=words.step().upper())
        elif (charset := take_charset(words, found.charset, session, default)) is not None:
            found = attrs.evolve(found, charset=charset)
        elif words.accept("WITH", "SYSTEM", "VERSIONING"):
            found = attrs.evolve(found, versioned=True)
        elif words.upper == "SELECT":
            message = "CREATE TABLE ... SELECT cannot be read; give what SHOW CREATE TABLE prints"
            raise SchemaError(message)
        elif words.accept("PARTITION"):
            words.to_the_end()
        else:
            words.step()
    return found


def take_charset(words: Words, before: Text | None, session: Session, default: Text) -> Text | None:
    """
    Read CHARACTER SET or COLLATE, if it comes next, and return character set and collation.

    Args:
        words: The options.
        before: What an earlier option said, if one did: a collation that was given stays if it fits the character set.
        session: The session that gives them.
        default: Character set and collation that DEFAULT stands for.
    """
    if words.accept("CHARSET") or words.accept("CHARACTER", "SET") or words.accept("CHAR", "SET"):
        words.accept("=")
        named = not words.accept("DEFAULT")
        if not named and not session.server.mariadb:
            return default
        charset = charset_name(words.step()) if named else default[0]  # MariaDB: with the set's own collation
        return before if before is not None and before[0] == charset else session.text_of(charset, None, default)
    if words.accept("COLLATE"):
        words.accept("=")
        if words.accept("DEFAULT"):
            return session.text_of(default[0], None, default) if session.server.mariadb else default
        return session.text_of(None if before is None else before[0], collation_name(words.step()), default)
    return None
