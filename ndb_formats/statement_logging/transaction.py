"""
The transaction cache of the binary log: what a session logs, when it gets into the log, and what ROLLBACK leaves.

Source: MySQL's `binlog.cc` (statement and transaction cache, savepoints); recorded.
"""

from __future__ import annotations

import attrs

from ndb_formats.statement_logging.decision import LoggedAs


@attrs.frozen
class TransactionEntry:
    """Something in the log: a statement or rows, and the number of the statement that it comes from."""

    logged: LoggedAs
    source: int


@attrs.define
class TransactionLog:
    """
    The binary log of a session, and its caches.

    Attributes:
        log: What is in the binary log.
        cache: The transaction cache: what waits for the end of the transaction.
        ndb_rows: Rows of NDB tables, which NDB logs itself after the commit.
        open: Whether a transaction of several statements is open.
        xa: Whether that is an XA transaction.
        registered: Whether it has logged anything.
        uses_ndb: Whether it has used NDB, which has no savepoints.
        keeps_cache: Whether the cache holds something that cannot be rolled back, so that ROLLBACK logs all of it.
        savepoints: Name and length of the cache for each savepoint.
        dropped: Numbers of the statements that ROLLBACK undid wholly.
    """

    log: list[TransactionEntry] = attrs.field(factory=list)
    cache: list[TransactionEntry] = attrs.field(factory=list)
    ndb_rows: list[TransactionEntry] = attrs.field(factory=list)
    open: bool = False
    xa: bool = False
    registered: bool = False
    uses_ndb: bool = False
    keeps_cache: bool = False
    savepoints: list[tuple[str, int]] = attrs.field(factory=list)
    dropped: set[int] = attrs.field(factory=set)

    def copy(self) -> TransactionLog:
        """Return a copy that changes by itself."""
        return attrs.evolve(
            self,
            log=list(self.log),
            cache=list(self.cache),
            ndb_rows=list(self.ndb_rows),
            savepoints=list(self.savepoints),
            dropped=set(self.dropped),
        )

    def begin(self, *, xa: bool = False) -> None:
        """Begin a transaction, after committing the one that is open."""
        self.commit()
        self.open, self.xa = True, xa

    def write(self, entry: TransactionEntry, *, cached: bool, keeps: bool = False) -> None:
        """Add an entry: to the transaction cache or directly to the log; `keeps` if it cannot be rolled back."""
        self.registered = True
        if not cached:
            self.log.append(entry)
            return
        if self.xa and not self.cache:
            self.cache.append(TransactionEntry(LoggedAs.STATEMENT, entry.source))  # XA START
        self.cache.append(entry)
        self.keeps_cache |= keeps

    def commit(self) -> None:
        """End the transaction and log what it has."""
        if self.xa and self.cache:
            self.cache.append(TransactionEntry(LoggedAs.STATEMENT, self.cache[-1].source))  # XA END
        self.log += self.cache
        self.log += self.ndb_rows
        self._end()

    def rollback(self) -> None:
        """End the transaction and log only what cannot be rolled back."""
        if self.keeps_cache:
            self.log += self.cache
            self.cache = []
        kept = {entry.source for entry in self.log}
        self.dropped |= {entry.source for entry in self.cache + self.ndb_rows} - kept
        self._end()

    def _end(self) -> None:
        self.cache, self.ndb_rows, self.savepoints = [], [], []
        self.open = self.xa = self.registered = self.uses_ndb = self.keeps_cache = False

    def savepoint(self, name: str, source: int) -> bool:
        """Set a savepoint, which is logged if the transaction has logged anything; return whether NDB allows it."""
        if self.uses_ndb:
            return False
        if self.open:
            if self.registered:
                self.write(TransactionEntry(LoggedAs.STATEMENT, source), cached=True)
            self.savepoints = [each for each in self.savepoints if each[0] != name] + [(name, len(self.cache))]
        return True

    def rollback_to(self, name: str, source: int) -> bool:
        """Roll back to a savepoint; return whether there is one of this name."""
        lengths = [length for each, length in self.savepoints if each == name]
        if not lengths:
            return False
        position = [each for each, _ in self.savepoints].index(name)
        self.savepoints = self.savepoints[: position + 1]
        if self.keeps_cache:
            self.write(TransactionEntry(LoggedAs.STATEMENT, source), cached=True)
        else:
            kept = {entry.source for entry in self.log + self.cache[: lengths[0]]}
            self.dropped |= {entry.source for entry in self.cache[lengths[0] :]} - kept
            self.cache = self.cache[: lengths[0]]
        return True
