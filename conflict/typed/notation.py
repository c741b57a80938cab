"""
Steps as texts: the short notation, in which Histories are typed and printed.

    insert 1 v=0              a transaction; the key comes first, of several columns in brackets: (1, 'two')
    update orders 1 v=5       a row of another table than the first one
    update 1 v=5; delete 2    a transaction of two changes
    read 1; delete 2          a read under an exclusive lock that is logged (ndb_log_exclusive_reads)
    apply 2                   epochs of the other cluster up to 2;  apply  takes the next one
    restart, rewind           the applier is stopped and started; after a rewind it begins at the first epoch
    4: delete 1               the step is in epoch 4
    apply 2 logged            its own epoch is logged whatever it changes;  unlogged  is never

Values are as in SQL: 5, -1.5, 'text', x'00FF', NULL.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import Any

import attrs

from conflict.errors import ConfigurationError
from conflict.typed.steps import OPERATIONS, READ, Apply, Change, Restart, Step, Transaction, epoch_of, epoch_text
from ndb_formats.errors import did_you_mean
from ndb_formats.schema.tables import split_full_name
from ndb_formats.types.decimals import decimal_text
from ndb_formats.types.values import Value

_TOKEN = re.compile(
    r"\s*(?:(?P<hex>[xX]'(?:[0-9a-fA-F]{2})*')|(?P<text>'(?:[^']|'')*')"
    r"|(?P<number>[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)"
    r"|(?P<name>(?:`(?:[^`]|``)+`|[^\W\d][\w$]*)(?:\.(?:`(?:[^`]|``)+`|[^\W\d][\w$]*))?)|(?P<mark>[=,;:()#/]))"
)
_PLAIN_NAME = re.compile(r"[^\W\d][\w$]*")
_NULL = "null"
_LOGGED = {"logged": True, "unlogged": False}


@attrs.frozen
class _Token:
    """A piece of a text: its kind, and itself."""

    kind: str
    text: str


@attrs.define
class _Reader:
    """Reads a step from its pieces."""

    text: str
    tokens: list[_Token]

    def accept(self, *texts: str) -> str | None:
        """Take the next piece if it is one of some, and return it in lower case."""
        if self.tokens and self.tokens[0].kind in ("mark", "name") and self.tokens[0].text.lower() in texts:
            return self.tokens.pop(0).text.lower()
        return None

    def expect(self, mark: str, what: str) -> None:
        """Take a mark."""
        if self.accept(mark) is None:
            raise self.unread(f"{what} needs a {mark}")

    def unread(self, why: str) -> ConfigurationError:
        """Return the error of a step that cannot be read."""
        rest = " ".join(each.text for each in self.tokens)
        message = f"cannot read {self.text!r}{f' from {rest!r} on' if rest else ''}: {why}"
        return ConfigurationError(message)

    def literal(self) -> Any:
        """Take a value."""
        token = self.tokens[0] if self.tokens else _Token("", "")
        readers = {"text": _text, "hex": lambda text: bytes.fromhex(text[2:-1]), "number": _number}
        if token.kind in readers:
            self.tokens.pop(0)
            return readers[token.kind](token.text)
        if self.accept(_NULL):
            return None
        why = "here comes a value: a number, NULL, or a text in single quotes"
        raise self.unread(why)

    def epoch(self) -> int:
        """Take an epoch."""
        parts = [self.tokens.pop(0).text] if self.tokens and self.tokens[0].kind == "number" else []
        if parts and self.accept("/") and self.tokens:
            parts.append(self.tokens.pop(0).text)
        try:
            return epoch_of("/".join(parts))
        except ValueError as error:
            why = "here comes the number of an epoch, such as 3 or 3/1"
            raise self.unread(why) from error

    def name(self) -> str:
        """Take the name of a column."""
        if not self.tokens or self.tokens[0].kind != "name":
            why = "here comes a column, as in v=5"
            raise self.unread(why)
        return _unquoted(self.tokens.pop(0).text)


def read_step(text: str) -> Step:
    """
    Return the step of a text.

    Raises:
        ConfigurationError: It cannot be read; the message says from where on.
    """
    reader = _Reader(text, list(_tokens(text)))
    epoch = identity = None
    if reader.tokens and reader.tokens[0].kind == "number":
        epoch = reader.epoch()
        if reader.accept("#"):
            identity = reader.literal()
        reader.expect(":", "the epoch of a step")
    step = _step(reader, epoch, identity)
    if reader.tokens:
        why = "nothing more was expected"
        raise reader.unread(why)
    return step


def _step(reader: _Reader, epoch: int | None, identity: int | None) -> Step:
    if reader.accept("apply"):
        foreign = reader.epoch() if reader.tokens and reader.tokens[0].kind == "number" else None
        word = reader.accept(*_LOGGED)
        return Apply(foreign, epoch, None if word is None else _LOGGED[word])
    word = reader.accept("restart", "rewind")
    if word is not None:
        if epoch is not None:
            why = f"{word} belongs to no epoch"
            raise reader.unread(why)
        return Restart(word == "rewind")
    changes = [_change(reader)]
    while reader.accept(";"):
        changes.append(_change(reader))
    return Transaction(tuple(changes), epoch, identity)


def _change(reader: _Reader) -> Change:
    word = reader.accept(*OPERATIONS)
    if word is None:
        given = reader.tokens[0].text if reader.tokens else ""
        meant = did_you_mean(given.lower(), [*OPERATIONS, "apply", "restart", "rewind"]) if given else ""
        why = f"a step is insert, update, delete or read, apply, restart or rewind{meant}"
        raise reader.unread(why)
    named = reader.tokens and reader.tokens[0].kind == "name" and reader.tokens[0].text.lower() != _NULL
    table = reader.tokens.pop(0).text if named else ""
    key = _key(reader, word)
    values = []
    while reader.tokens and reader.tokens[0].text != ";":
        reader.accept(",")
        name = reader.name()
        reader.expect("=", f"column {name}")
        values.append((name, reader.literal()))
    change = Change(OPERATIONS[word], key, tuple(values), table)
    if change.word != word:  # an update that sets nothing reads, and a read that sets something does not
        why = f"{word} sets no column" if word != READ else "a read sets no column"
        raise reader.unread(f"{why}; write update {key_text(key)} v=5, or read {key_text(key)}")
    return change


def _key(reader: _Reader, word: str) -> tuple[Any, ...]:
    if not reader.accept("("):
        if not reader.tokens or reader.tokens[0].kind not in ("number", "text", "hex"):
            why = f"the key of the row comes after {word}, as in {word} 1; a text in single quotes"
            raise reader.unread(why)
        return (reader.literal(),)
    key = [reader.literal()]
    while reader.accept(","):
        key.append(reader.literal())
    reader.expect(")", "a key of several columns")
    return tuple(key)


def _tokens(text: str) -> Iterator[_Token]:
    place, end = 0, len(text.rstrip())
    while place < end:
        found = _TOKEN.match(text, place)
        if found is None:
            message = f"cannot read {text!r} from {text[place:].strip()!r} on; texts stand in single quotes"
            raise ConfigurationError(message)
        place = found.end()
        assert found.lastgroup is not None
        yield _Token(found.lastgroup, found[found.lastgroup])


def _text(token: str) -> str:
    return token[1:-1].replace("''", "'")


def _number(token: str) -> int | Decimal:
    return int(token) if re.fullmatch(r"[-+]?\d+", token) else Decimal(token)


def _unquoted(name: str) -> str:
    return name[1:-1].replace("``", "`") if name.startswith("`") else name


def step_text(step: Step, *, first_table: str = "", with_epoch: bool = True) -> str:
    """
    Return the text of a step, for `read_step`.

    Args:
        step: The step.
        first_table: The table that is not named.
        with_epoch: Whether it says its epoch.
    """
    if isinstance(step, Restart):
        return "rewind" if step.rewound else "restart"
    if isinstance(step, Apply):
        foreign = "" if step.foreign_epoch is None else f" {epoch_text(step.foreign_epoch)}"
        text = f"apply{foreign}{''.join(f' {word}' for word, each in _LOGGED.items() if each is step.logged)}"
    else:
        text = "; ".join(change_text(change, first_table) for change in step.changes)
    if step.epoch is None or not with_epoch:
        return text
    identity = f"#{step.id}" if isinstance(step, Transaction) and step.id is not None else ""
    return f"{epoch_text(step.epoch)}{identity}: {text}"


def change_text(change: Change, first_table: str = "") -> str:
    """Return the text of a change."""
    named = "" if change.table in ("", first_table) else f" {_table(change.table)}"
    values = "".join(f" {_name(name)}={literal(value)}" for name, value in change.values)
    return f"{change.word}{named} {key_text(change.key)}{values}"


def key_text(key: Sequence[Value]) -> str:
    """Return the text of a key."""
    return literal(key[0]) if len(key) == 1 else f"({', '.join(map(literal, key))})"


def literal(value: Value) -> str:
    """Return the text of a value, as in SQL."""
    if value is None:
        return "NULL"
    if isinstance(value, bytes):
        return f"x'{value.hex().upper()}'"
    if isinstance(value, Decimal):
        return decimal_text(value)
    return "'" + value.replace("'", "''") + "'" if isinstance(value, str) else str(value)


def _table(name: str) -> str:
    return ".".join(map(_name, split_full_name(name))) if "." in name or "`" in name else _name(name)


def _name(name: str) -> str:
    plain = _PLAIN_NAME.fullmatch(name) and name.lower() != _NULL
    return name if plain else "`" + name.replace("`", "``") + "`"
