"""
What an applier drops or renames before any conflict function sees it: the ``replicate_*`` options of a server.

Source: MySQL manual, "How Servers Evaluate Replication Filtering Rules" and the sections on database-level and
table-level options. NDB logs rows, so the database of a change is that of its table. A database is renamed before the
filters are asked, by the first rule that names it (``Rpl_filter::get_rewrite_db``).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, Self

import attrs

from conflict.errors import ConfigurationError


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
        rewrite_db: ``replicate_rewrite_db``: pairs of the source's name of a database and the applier's.
    """

    do_db: tuple[str, ...] = ()
    ignore_db: tuple[str, ...] = ()
    do_table: tuple[str, ...] = ()
    ignore_table: tuple[str, ...] = ()
    wild_do_table: tuple[str, ...] = ()
    wild_ignore_table: tuple[str, ...] = ()
    rewrite_db: tuple[tuple[str, str], ...] = ()

    @classmethod
    def of(cls, options: Mapping[str, Sequence[str]]) -> Self:
        """
        Return the filters that options give.

        Args:
            options: By the server's name of an option, its values; a rule of ``replicate_rewrite_db`` is ``from->to``,
                or ``(from,to)`` as SHOW REPLICA STATUS prints it.

        Raises:
            ConfigurationError: A rule is no such rule.
        """
        return cls().with_options(options)

    def with_options(self, options: Mapping[str, Sequence[str]]) -> Self:
        """Return the filters with others for some options; arguments and errors as for `of`."""
        given: dict[str, Any] = {FILTER_OPTIONS[name]: tuple(values) for name, values in options.items()}
        if "rewrite_db" in given:
            given["rewrite_db"] = tuple(map(_rule, given["rewrite_db"]))
        return attrs.evolve(self, **given)

    def rewritten(self, database: str) -> str:
        """Return the name that a database of the source has for the applier."""
        return next((after for before, after in self.rewrite_db if before == database), database)

    def drops(self, database: str, table: str) -> bool:
        """Whether the applier drops changes of a table, given by the applier's name."""
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


def channels_of(options: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    """Return the channels that values of options are for: ``channel:value``; one without a channel is for all."""
    found = (each.partition(":")[0] for values in options.values() for each in values if ":" in each)
    return tuple(dict.fromkeys(found))


def options_of(options: Mapping[str, Sequence[str]], channel: str) -> dict[str, tuple[str, ...]]:
    """Return the values of options for a channel: of each option its own, or those of all channels if it has none."""
    chosen: dict[str, tuple[str, ...]] = {}
    for name, values in options.items():
        own = tuple(value.partition(":")[2] for value in values if value.partition(":")[:2] == (channel, ":"))
        chosen[name] = own or tuple(value for value in values if ":" not in value)
    return chosen


_RULE = re.compile(r"\s*(?:\(\s*(\S+?)\s*,\s*(\S+?)\s*\)|(\S+?)\s*->\s*(\S+?))\s*")


def _rule(text: str) -> tuple[str, str]:
    found = _RULE.fullmatch(text)
    if found is None:
        message = f"replicate_rewrite_db is {text!r}; give each rule as from->to, the source's name of a database first"
        raise ConfigurationError(message)
    before, after = (each for each in found.groups() if each is not None)
    return before, after


@cache
def _pattern(text: str) -> re.Pattern[str]:
    r"""Return a pattern of the server, in which ``\`` makes ``%`` and ``_`` themselves, as a regular expression."""
    parts = re.findall(r"\\.|.", text, re.DOTALL)
    wild = {"%": ".*", "_": "."}
    return re.compile(
        "".join(wild.get(each) or re.escape(each.removeprefix("\\") or each) for each in parts), re.DOTALL
    )
