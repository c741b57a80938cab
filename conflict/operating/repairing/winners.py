"""
Rules that say which cluster's row stands where two differ. Computes docs/repair.md, "Rules".
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import attrs

from conflict.config.arguments import RepairRules
from conflict.config.text_file import located, parsed_toml, read_text
from conflict.documents import Name, Text, read
from conflict.errors import ConfigurationError
from ndb_formats.errors import did_you_mean

NEWEST, REVIEW = "newest", "review"
GREATEST = re.compile(r"greatest\((?P<column>.+)\)")
_FILE = ".toml"
_FORMS = f"a cluster, {NEWEST}, 'greatest(COLUMN)' or {REVIEW}"


class NotDecidedError(Exception):
    """A row that no rule decides; the message says why."""


@attrs.frozen
class Rule:
    """
    Which cluster's row stands, of the rows that the rule is for.

    Attributes:
        tables: Name of a table, ``database.table``, or a pattern such as ``shop.*``.
        wins: Name of a cluster, or `NEWEST`, ``greatest(COLUMN)`` or `REVIEW`.
        when: Values, as text, that a row has on one of the clusters, by column; empty for all rows.
        deletes: Whether a row may be deleted where the winning cluster does not have it.
    """

    tables: str
    wins: str
    when: Mapping[str, str] = attrs.field(factory=dict)
    deletes: bool = False

    @property
    def column(self) -> str | None:
        """The column whose greatest value wins; None of another rule."""
        found = GREATEST.fullmatch(self.wins)
        return None if found is None else found["column"].strip()

    def is_for(self, table: str) -> bool:
        """Whether it is for a table."""
        return fnmatchcase(table, self.tables)

    def __str__(self) -> str:
        return f"{self.tables}={self.wins}"


def rules_of(given: RepairRules, clusters: Sequence[str], tables: Iterable[str], *, deletes: bool) -> tuple[Rule, ...]:
    """
    Return rules in the order in which they are asked.

    Args:
        given: The rules, as users give them.
        clusters: Names of the clusters.
        tables: Names of all tables.
        deletes: Whether all rules may delete rows.

    Raises:
        ConfigurationError: A rule is not understood, or is for no table.
    """
    found = [*_rules(given)]
    names = list(tables)
    for rule in found:
        if rule.wins not in (*clusters, NEWEST, REVIEW) and rule.column is None:
            hint = did_you_mean(rule.wins, [*clusters, NEWEST, REVIEW])
            message = f"rule {rule}: {rule.wins} is not known{hint}; give {_FORMS}"
            raise ConfigurationError(message)
        if not any(map(rule.is_for, names)):
            message = f"rule {rule} is for no table{did_you_mean(rule.tables, names)}; there are {', '.join(names)}"
            raise ConfigurationError(message)
    return tuple(attrs.evolve(rule, deletes=rule.deletes or deletes) for rule in found)


def _rules(given: RepairRules) -> Iterable[Rule]:
    if isinstance(given, Mapping):
        yield from (Rule(table, wins) for table, wins in given.items())
        return
    for each in [given] if isinstance(given, str) else given:
        if each.endswith(_FILE):
            yield from _rules_of_file(Path(each))
            continue
        table, _, wins = (part.strip() for part in each.partition("="))
        if not (table and wins):
            message = f"rule {each} is not understood; give TABLE=WINNER, where the winner is {_FORMS}; or a .toml file"
            raise ConfigurationError(message)
        yield Rule(table, wins)


@attrs.frozen
class _RuleTable:
    """A table ``[[rule]]``."""

    table: Name
    wins: Text
    when: dict[str, Any] = attrs.field(factory=dict)
    deletes: bool = False


@attrs.frozen
class _RulesFile:
    """A file of rules."""

    rule: tuple[_RuleTable, ...]


def _rules_of_file(path: Path) -> list[Rule]:
    """
    Return the rules of a file.

    Raises:
        ConfigurationError: It is missing, or something in it is wrong.
    """
    with located(path):
        rules = read(_RulesFile, parsed_toml(read_text(path))).rule
    return [Rule(each.table, each.wins, {k: str(v) for k, v in each.when.items()}, each.deletes) for each in rules]
