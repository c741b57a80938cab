"""
Which tables' changes an applier drops before any conflict function sees them: the ``replicate_*`` filters of a server.

Source: MySQL manual, "How Servers Evaluate Replication Filtering Rules" and the sections on database-level and
table-level options. NDB logs rows, so the database of a change is that of its table.
"""

from __future__ import annotations

import re
from functools import cache

import attrs

__all__ = ["FILTER_OPTIONS", "ReplicationFilter"]


@attrs.frozen
class ReplicationFilter:
    """
    The filters of one applier, by the names of the server's options.

    Attributes:
        do_db: ``replicate_do_db``: the only databases whose changes it applies.
        ignore_db: ``replicate_ignore_db``; without effect if there is a `do_db`.
        do_table: ``replicate_do_table``, ``database.table``.
        ignore_table: ``replicate_ignore_table``, ``database.table``.
        wild_do_table: ``replicate_wild_do_table``: patterns with ``%`` and ``_``.
        wild_ignore_table: ``replicate_wild_ignore_table``: patterns likewise.
    """

    do_db: tuple[str, ...] = ()
    ignore_db: tuple[str, ...] = ()
    do_table: tuple[str, ...] = ()
    ignore_table: tuple[str, ...] = ()
    wild_do_table: tuple[str, ...] = ()
    wild_ignore_table: tuple[str, ...] = ()

    def drops(self, database: str, table: str) -> bool:
        """Whether the applier drops changes of a table."""
        if self.do_db:
            if database not in self.do_db:
                return True
        elif database in self.ignore_db:
            return True
        return self._drops_table(f"{database}.{table}")

    def _drops_table(self, name: str) -> bool:
        """Whether the options for tables drop one: the first that fits decides, those without patterns first."""
        if name in self.do_table:
            return False
        if name in self.ignore_table:
            return True
        if any(_pattern(each).fullmatch(name) for each in self.wild_do_table):
            return False
        if any(_pattern(each).fullmatch(name) for each in self.wild_ignore_table):
            return True
        return bool(self.do_table or self.wild_do_table)


# The server's option of each attribute.
FILTER_OPTIONS = {f"replicate_{field.name}": field.name for field in attrs.fields(ReplicationFilter)}


@cache
def _pattern(text: str) -> re.Pattern[str]:
    r"""Return a pattern of the server, in which ``\`` makes ``%`` and ``_`` themselves, as a regular expression."""
    parts = re.findall(r"\\.|.", text, re.DOTALL)
    wild = {"%": ".*", "_": "."}
    return re.compile(
        "".join(wild.get(each) or re.escape(each.removeprefix("\\") or each) for each in parts), re.DOTALL
    )
