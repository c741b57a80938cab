"""
What decides in a session how its statements are logged: its variables, and what each storage engine can log.

Source for engines: the manual, "Binary Logging Formats", table of engines; for NDB the recordings: under STATEMENT it
logs statements as others do, under ROW and MIXED it logs its rows itself, after the commit.
"""

from __future__ import annotations

from enum import Enum

import attrs

from ndb_formats.schema.lexer import WordKind, Words
from ndb_formats.statement_logging.decision import BinlogFormat, Capability

# The engines that come with MySQL and MySQL NDB Cluster, and that tables can have.
ENGINES = frozenset(
    {"ARCHIVE", "BLACKHOLE", "CSV", "EXAMPLE", "FEDERATED", "INNODB", "MEMORY", "MRG_MYISAM", "MYISAM", "NDB"}
)
_ROW_ONLY = frozenset({"EXAMPLE"})
# BLACKHOLE has nothing to roll back, and its statements wait for the end of a transaction as those of InnoDB do.
_TRANSACTIONAL = frozenset({"BLACKHOLE", "INNODB", "NDB"})


class Isolation(Enum):
    """The transaction isolation levels, as spelled in ``transaction_isolation``."""

    READ_UNCOMMITTED = "READ-UNCOMMITTED"
    READ_COMMITTED = "READ-COMMITTED"
    REPEATABLE_READ = "REPEATABLE-READ"
    SERIALIZABLE = "SERIALIZABLE"

    @property
    def below_repeatable_read(self) -> bool:
        """Whether it is READ COMMITTED or READ UNCOMMITTED."""
        return self in (Isolation.READ_UNCOMMITTED, Isolation.READ_COMMITTED)


@attrs.frozen
class StorageEngine:
    """
    A storage engine in a session.

    Attributes:
        name: Its name in upper case.
        transactional: Whether its changes can be rolled back.
        rows: Whether it can log rows.
        statements: Whether statements on it can be logged.
        self_logging: Whether it writes its rows to the binary log itself.
    """

    name: str
    transactional: bool
    rows: bool = True
    statements: bool = True
    self_logging: bool = False


def engine_of(name: str, binlog_format: BinlogFormat, isolation: Isolation) -> StorageEngine:
    """Return an engine as it logs under a format and an isolation level."""
    if name == "NDB":
        statement = binlog_format is BinlogFormat.STATEMENT
        return StorageEngine(name, transactional=True, statements=statement, self_logging=not statement)
    if name == "INNODB":
        return StorageEngine(name, transactional=True, statements=not isolation.below_repeatable_read)
    return StorageEngine(name, transactional=name in _TRANSACTIONAL, statements=name not in _ROW_ONLY)


def together(engines: list[StorageEngine]) -> Capability:
    """Return what several engines can log together; no engine at all can log both."""
    rows, statements = all(each.rows for each in engines), all(each.statements for each in engines)
    if rows:
        return Capability.BOTH if statements else Capability.ROW
    return Capability.STATEMENT if statements else Capability.NEITHER


@attrs.define
class Settings:
    """
    Variables of a session.

    Attributes:
        binlog_format: ``binlog_format``.
        engine: ``default_storage_engine``, in upper case.
        temporary_engine: ``default_tmp_storage_engine``, in upper case.
        binary_log: ``sql_log_bin``.
        binlog_direct: ``binlog_direct_non_transactional_updates``.
        autocommit: ``autocommit``.
        isolation: ``transaction_isolation``.
        next_isolation: Isolation level of the next transaction only.
        texts: User variables that hold a known text, by name in lower case.
    """

    binlog_format: BinlogFormat
    engine: str = "INNODB"
    temporary_engine: str = "INNODB"
    binary_log: bool = True
    binlog_direct: bool = False
    autocommit: bool = True
    isolation: Isolation = Isolation.REPEATABLE_READ
    next_isolation: Isolation | None = None
    texts: dict[str, str] = attrs.field(factory=dict)

    def copy(self) -> Settings:
        """Return a copy that changes by itself."""
        return attrs.evolve(self, texts=dict(self.texts))

    def set(self, words: Words) -> None:
        """Follow what comes after SET; variables that do not matter, and those of GLOBAL, are ignored."""
        if words.upper in ("GLOBAL", "PERSIST", "PERSIST_ONLY"):
            return
        scoped = words.accept("SESSION") or words.accept("LOCAL")
        if words.accept("TRANSACTION"):
            level = "-".join(text.upper() for text, _ in words.rest().words)
            if "LEVEL-" in level:
                self._set_isolation(level.split("LEVEL-")[1].split(",")[0].strip("-"), once=not scoped)
            return
        for part in words.rest().items():
            if part.kind is WordKind.PARAMETER:
                self._set_text(part)
            else:
                self._set_one(part)

    def _set_text(self, words: Words) -> None:
        words.step()
        name = words.step().lower()
        words.step()
        if words.kind is WordKind.STRING:
            self.texts[name] = words.word
        else:
            self.texts.pop(name, None)

    def _set_one(self, words: Words) -> None:
        names = []
        while words.kind is not None and words.word not in ("=", ":="):
            names.append(words.step().lower())
        if words.kind is None or not names:
            return  # SET NAMES, and others without a value
        words.step()
        if words.kind is not None and "global" not in names:
            # Without SESSION, @@transaction_isolation is that of the next transaction only.
            self._set_variable(names[-1], words.word.upper(), once=names[0] == "@@" and len(names) == 2)

    def _set_isolation(self, name: str, *, once: bool) -> None:
        level = next((each for each in Isolation if each.value == name), self.isolation)
        if once:
            self.next_isolation = level
        else:
            self.isolation, self.next_isolation = level, None

    def _set_variable(self, name: str, value: str, *, once: bool) -> None:
        on = value in ("1", "ON", "TRUE")
        if name == "binlog_format" and value in BinlogFormat.__members__:
            self.binlog_format = BinlogFormat[value]
        elif name == "sql_log_bin":
            self.binary_log = on
        elif name == "binlog_direct_non_transactional_updates":
            self.binlog_direct = on
        elif name == "transaction_isolation":
            self._set_isolation(value, once=once)
        elif name == "default_storage_engine":
            self.engine = value
        elif name == "default_tmp_storage_engine":
            self.temporary_engine = value
        elif name == "autocommit":
            self.autocommit = on
