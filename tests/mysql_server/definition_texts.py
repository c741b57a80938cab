"""
Random CREATE TABLE, ALTER TABLE and other definitions, of small parts; a server throws out those that are not legal.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator

import attrs

from tests.mysql_server import definition_parts as parts

__all__ = ["Case", "DefinitionMaker"]


@attrs.frozen
class Case:
    """
    Statements that are run one after the other in one session.

    Attributes:
        database: The default database.
        charset: Character set of the client, in which the statements are sent.
        settings: Statements that set up the session.
        statements: The definitions.
    """

    database: str
    charset: str
    settings: tuple[str, ...]
    statements: tuple[str, ...]


class DefinitionMaker:
    """Makes cases; the same seed makes the same ones."""

    def __init__(self, seed: int, *, mariadb: bool) -> None:
        self._random = random.Random(seed)
        self._mariadb = mariadb
        self._words: tuple[str, ...] = ()
        self._columns: list[str] = []
        self._mode = ""

    def cases(self, count: int) -> Iterator[Case]:
        """Yield so many cases; one has a table, and a few changes of it."""
        for _ in range(count):
            yield self.case(self._pick(*parts.WORDS), self._pick_mode())

    def case(self, charset: str, mode: str) -> Case:
        """Return a case with a character set of the client and an sql_mode."""
        self._words, self._mode, self._columns = parts.WORDS[charset], mode, []
        setting = self._pick(*(parts.SETTINGS_OF_MARIADB if self._mariadb else parts.SETTINGS))
        settings = [f"SET NAMES {charset}", f"SET sql_mode = '{mode}'", *filter(None, [setting])]
        statements = [self._create()] + [self._change() for _ in range(self._random.randrange(4))]
        return Case(self._pick(*parts.DATABASES), charset, tuple(settings), tuple(map(self._laid_out, statements)))

    def _pick_mode(self) -> str:
        return self._pick(*parts.MODES, *(parts.MODES_OF_MARIADB if self._mariadb else ()))

    def _pick(self, *choices: str) -> str:
        return self._random.choice(choices)

    def _often(self, chance: float) -> bool:
        return self._random.random() < chance

    # Statements

    def _create(self) -> str:
        columns = [self._new_column() for _ in range(self._random.randint(1, 4))]
        keys = [self._filled(self._pick(*parts.KEYS)) for _ in range(self._pick_count())]
        kinds = [*parts.OPTIONS, *(parts.OPTIONS_OF_MARIADB if self._mariadb else ())]
        options = [self._filled(self._pick(*kinds)) for _ in range(self._pick_count())]
        partition = self._filled(self._pick(*parts.PARTITIONS)) if self._often(0.1) else ""
        between = self._pick(" ", ", ")
        optional = self._pick("", "", "", "IF NOT EXISTS ")
        replaced = "OR REPLACE " if self._mariadb and not optional and self._often(0.2) else ""
        name = self._pick("t", "`t`", "`t`")
        return (
            f"CREATE {replaced}TABLE {optional}{name} ({', '.join(columns + keys)}) {between.join(options)} {partition}"
        )

    def _pick_count(self) -> int:
        return self._random.choice((0, 0, 1, 1, 2))

    def _new_column(self) -> str:
        name = self._new_name()
        text = f"{self._quoted(name)} {self._definition()}"
        self._columns.append(name)
        return text

    def _change(self) -> str:
        if self._often(0.3):
            others = parts.AFTERWARDS_OF_MARIADB if self._mariadb and self._often(0.6) else parts.AFTERWARDS
            return self._filled(self._pick(*others))
        if self._often(0.3) and len(self._columns) > 1:
            one, two = (self._quoted(name) for name in self._random.sample(self._columns, 2))
            together = self._pick(*parts.CLAUSES_TOGETHER).replace("{0}", one).replace("{1}", two)
            return f"ALTER TABLE t {self._filled(together)}"
        kinds = [*parts.CLAUSES, *(parts.CLAUSES_OF_MARIADB if self._mariadb else ())]
        clauses = [self._pick(*kinds) for _ in range(self._random.choice((1, 1, 2, 2, 3)))]
        if self._often(0.05):
            clauses = [self._pick(*parts.PARTITION_CLAUSES)]
        return f"ALTER TABLE {self._pick('t', '`t`')} {self._filled(', '.join(clauses))}"

    # Parts

    def _definition(self) -> str:
        kind = self._random.randrange(8)
        if kind == 0:
            found = [self._pick(*parts.INTEGERS), self._pick(*parts.NUMBER_ATTRIBUTES)]
            return self._with_attributes(found, parts.INTEGER_DEFAULTS)
        if kind == 1:
            found = [self._pick(*parts.NUMBERS), self._pick(*parts.NUMBER_ATTRIBUTES)]
            return self._with_attributes(found, parts.NUMBER_DEFAULTS)
        if kind == 2:
            return self._with_attributes([self._pick(*parts.TIMES)], parts.TIME_DEFAULTS)
        if kind == 3:
            return self._with_attributes([self._pick(*parts.BYTES)], parts.TEXT_DEFAULTS)
        if kind == 4:
            return self._with_attributes(
                [self._pick(*parts.NATIONAL), self._pick(*parts.NATIONAL_ATTRIBUTES)], parts.TEXT_DEFAULTS
            )
        if kind == 5:
            special = parts.OTHERS_OF_MARIADB if self._mariadb else parts.OTHERS_OF_MYSQL
            special += parts.OF_ORACLE if "ORACLE" in self._mode else ()
            return self._with_attributes([self._pick(*parts.OTHERS, *special)], ("DEFAULT NULL",))
        charsets = [*parts.CHARSETS, *(parts.CHARSETS_OF_MARIADB if self._mariadb else ())]
        charset = self._pick(*charsets) if self._often(0.6) else ""
        return self._with_attributes([self._pick(*parts.TEXTS), charset], parts.TEXT_DEFAULTS)

    def _with_attributes(self, found: list[str], defaults: tuple[str, ...]) -> str:
        if self._often(0.1):
            found.append(self._pick(*parts.GENERATED))
        else:
            found += [self._pick(*parts.NULLS), self._pick(*defaults) if self._often(0.4) else ""]
            if self._often(0.3):
                found.append(self._pick(*parts.ANY_ATTRIBUTES))
        return self._filled(" ".join(filter(None, found)))

    def _filled(self, part: str) -> str:
        """Return a part with its places filled; what fills them may have places, too."""
        return re.sub(r"\{\{\}\}|\{([a-z])\}", self._filler, part)

    def _filler(self, found: re.Match[str]) -> str:
        match found[1]:
            case "n":
                self._columns.append(self._new_name())
                return self._quoted(self._columns[-1])
            case "c":
                return self._quoted(self._pick(*self._columns) if self._columns else "id")
            case "w":
                return f"'{self._pick(*self._words)}'"
            case "m":
                return self._filled(self._pick(*parts.MEMBERS))
            case "d":
                return self._definition()
            case "k":
                return self._filled(self._pick(*parts.KEYS))
            case "p":
                return self._filled(self._pick(*parts.PARTITIONS))
            case "o":
                kinds = [*parts.OPTIONS, *(parts.OPTIONS_OF_MARIADB if self._mariadb else ())]
                return self._filled(self._pick(*kinds))
        return "{}"

    def _new_name(self) -> str:
        free = [name for name in (*parts.NAMES, *self._words) if name not in self._columns]
        return self._pick(*free) if free and self._often(0.8) else f"c{len(self._columns)}"

    def _quoted(self, name: str) -> str:
        if "ANSI" in self._mode and self._often(0.5):
            return '"' + name.replace('"', '""') + '"'
        plain = re.fullmatch(r"[a-zA-Z_]\w*", name) and name.lower() not in ("key", "order", "select", "if")
        return name if plain and self._often(0.5) else "`" + name.replace("`", "``") + "`"

    def _laid_out(self, text: str) -> str:
        """Return a statement with comments and other blanks at some of its blanks outside quotes."""
        if self._often(0.6):
            return text.strip()
        pieces = re.split(r"('(?:[^'\\]|\\.|'')*'|\"[^\"]*\"|`[^`]*`)", text.strip())
        blank = lambda _: f" {self._pick(*parts.COMMENTS)} " if self._often(0.15) else " "  # noqa: E731  # short
        pieces[::2] = [piece if "/*!" in piece else re.sub(" ", blank, piece) for piece in pieces[::2]]
        return "".join(pieces)
