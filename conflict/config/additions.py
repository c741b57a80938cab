"""
What is said besides bare binlogs: by the user, or by the binlogs themselves once functions were tried on them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import attrs

from conflict.config.arguments import ConflictFns
from conflict.config.option_values import words_of
from conflict.config.replication_rows import load_replication_rows
from conflict.config.text_file import place_of
from conflict.errors import ConfigurationError
from conflict.resolvers.user_policies import asked_function, load_functions
from conflict.rules.functions import FUNCTIONS, ConflictFunction, FunctionSpec, parse_conflict_function
from conflict.telling.shown_text import listed
from ndb_formats.errors import did_you_mean


@attrs.frozen
class Additions:
    """
    What a user adds to the binlogs.

    Attributes:
        schema: File of CREATE TABLE statements.
        ndb_replication: File with the rows of ``mysql.ndb_replication``.
        functions: Conflict function by table, or by a pattern such as ``shop.*``; the first that matches counts.
        primary: Name of the cluster that is the primary, for functions by epoch.
        resolvers: Names of the resolvers of one's own among the functions, as `load_functions` takes them.
    """

    schema: Path | None = None
    ndb_replication: Path | None = None
    functions: Mapping[str, str] = attrs.field(factory=dict)
    primary: str | None = None
    resolvers: tuple[str, ...] = ()

    @property
    def known(self) -> tuple[FunctionSpec, ...]:
        """The functions of the server, and these resolvers."""
        return load_functions(self.resolvers)

    def resolver_tables(self) -> Iterator[str]:
        """Yield the lines of a run file that define the resolvers."""
        for each in self.resolvers:
            yield from ("[[conflict_function]]", f"rule = {json.dumps(each)}", "")


def additions_of(
    schema: Path | str | None, ndb_replication: Path | str | None, conflict_fn: ConflictFns | None, primary: str | None
) -> Additions:
    """
    Return what a user adds to bare binlogs.

    Raises:
        ConfigurationError: A conflict function has no table or no text, or there are rows of their own.
    """
    functions = functions_by_table(conflict_fn or {})
    if functions and ndb_replication is not None:
        message = "--ndb-replication and --conflict-fn both say which functions are in force; give one of them"
        raise ConfigurationError(message)
    definitions, rows = (None if file is None else place_of(file) for file in (schema, ndb_replication))
    resolvers = dict[str, None]()
    for pattern, text in functions.items():
        functions[pattern], known = asked_function(text)
        if len(known) > len(FUNCTIONS):
            resolvers[text.partition("(")[0].strip()] = None
    return Additions(definitions, rows, functions, primary, tuple(resolvers))


def functions_by_table(given: ConflictFns) -> dict[str, str]:
    """
    Return conflict functions by table or pattern.

    Args:
        given: That already; or texts, or one with commas between several, of a table, ``=`` and a function each.

    Raises:
        ConfigurationError: A table or a function is missing.
    """
    if isinstance(given, Mapping):
        texts = [f"{table}={function}" for table, function in given.items()]
    else:
        texts = [word for text in ([given] if isinstance(given, str) else given) for word in words_of(text)]
    found = {}
    for text in texts:
        table, _, function = (part.strip() for part in text.partition("="))
        if not (table and function):
            example = "'shop.orders=NDB$MAX(version)', in single quotes in a shell"
            message = f"--conflict-fn {text} is not understood; give TABLE=FUNCTION, as in {example}"
            raise ConfigurationError(message)
        found[table] = function
    return found


@attrs.frozen
class ShownFunctions:
    """
    The conflict functions that binlogs show.

    Attributes:
        functions: By table.
        primary: Name of the primary; None if there is no function by epoch.
        others: By table, functions that fit as well; None for no function.
        sentences: What was found, and by what.
    """

    functions: Mapping[str, ConflictFunction]
    primary: str | None
    others: Mapping[str, Sequence[ConflictFunction | None]]
    sentences: tuple[str, ...]

    @property
    def doubt(self) -> str:
        """What else may have been in force, and what it concerns, as a sentence; empty if nothing."""
        named = {
            table: listed(["none" if each is None else each.short for each in own], "or")
            for table, own in sorted(self.others.items())
        }
        if not named:
            return ""
        return (
            "Conflict functions were found by trial, and others fit what the binlogs show as well: "
            f"{'; '.join(f'{others} on {table}' for table, others in named.items())}. Counters and causes are those "
            "of the functions that were chosen; give those that were in force (--conflict-fn)"
        )


def refuse_unknown_primary(primary: str | None, names: Sequence[str]) -> None:
    """
    Refuse a primary that is none of the clusters.

    Raises:
        ConfigurationError: It is none.
    """
    if primary is not None and primary not in names:
        message = f"--primary {primary} is no cluster{did_you_mean(primary, names)}; they are {' and '.join(names)}"
        raise ConfigurationError(message)


def refuse_other_primary(primary: str | None, server_ids: Mapping[str, int], rows: Path) -> None:
    """
    Refuse a primary on which no row sets NDB$EPOCH or NDB$EPOCH_TRANS, where one does so on the other cluster alone.

    Args:
        primary: Name of the primary; None if none is given.
        server_ids: By cluster, the id of its server.
        rows: File with the rows of ``mysql.ndb_replication``.

    Raises:
        ConfigurationError: The rows contradict the primary.
    """
    if primary is None:
        return
    on = {row.server_id: row for row in load_replication_rows(rows) if _of_primary(row.conflict_fn)}
    other = next((name for name, server_id in server_ids.items() if name != primary and server_id in on), None)
    if other is not None and server_ids[primary] not in on and 0 not in on:
        row = on[server_ids[other]]
        message = (
            f"--primary {primary}: {rows} sets {row.conflict_fn} for {row.db}.{row.table_name} on server "
            f"{row.server_id}, which is {other}, and on no server of {primary}; give --primary {other}, or correct the "
            "rows"
        )
        raise ConfigurationError(message)


def _of_primary(text: str | None) -> bool:
    """Whether a function is set on the primary alone; a text that is none is refused elsewhere."""
    try:
        spec = None if not text else parse_conflict_function(text).spec
    except ConfigurationError:
        return False
    return spec is not None and spec.on_primary_alone
