"""
What can be done with a result that `resolve` wrote, on the terminal: a command a line, and the same in Python.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from enum import Enum
from pathlib import Path
from textwrap import wrap
from typing import Any

import typer
from rich.console import Console

from conflict.config.additions import functions_by_table
from conflict.engine.ledger.careful import CareKind
from conflict.engine.ledger.table_keys import TableKey
from conflict.explaining.keys_asked import key_as_given
from conflict.history.grid.stored_folder import folder_of
from conflict.results.files import contradicted_example
from conflict.results.run_document import RunDocument
from conflict.runs.settled import needs_reference
from ndb_formats.stored import Stored

_BY_NAME = ("conflict_fn", "start_epoch", "stop_epoch")  # NAME=VALUE; Python takes a dictionary
_NOT_IN_PYTHON = ("sources", "unpacked_mib")
_OF_BINLOGS = ("schema", "ndb_replication", "conflict_fn", "primary")
_NOT_COMPARED = (
    *("function", "inexact_keys", "on_missing"),
    *("start_epoch", "stop_epoch", "start_datetime", "stop_datetime"),
)


def print_next(
    console: Console, out: Path, resolved: RunDocument, examples: Sequence[Mapping[str, Any]], context: typer.Context
) -> None:
    """
    Print what to type next; nothing where the binlogs do not belong together.

    Args:
        console: Where to print.
        out: Folder of the result.
        resolved: What was resolved.
        examples: Some rejected operations.
        context: How `resolve` was called.
    """
    if resolved.unrelated:
        return
    commands: dict[str, str] = {}
    for words, why in (*_commands(out, resolved, examples), *_comparing(resolved, context)):
        if resolved.after is None or words[0] != "explain":  # which needs all that was applied
            commands.setdefault(shlex.join(words), why)
    lines = list[str]()
    for command, why in commands.items():
        line = f"  ndb-conflict {command}  # {why}"
        lines += [line] if len(line) <= console.width else [*_comment(why, console.width), f"  ndb-conflict {command}"]
    console.print("What to type next:")
    for line in (*lines, f"  Python: {_in_python(context)}"):
        console.print(line, markup=False, highlight=False, soft_wrap=True)


def _comment(text: str, width: int) -> list[str]:
    return wrap(text, width, initial_indent="  # ", subsequent_indent="  # ", break_long_words=False)


def _commands(
    out: Path, resolved: RunDocument, examples: Sequence[Mapping[str, Any]]
) -> Iterator[tuple[list[str], str]]:
    result = str(out)
    if resolved.summary.contradicted:
        keyed = [table.full_name for table in resolved.run.data_schema.tables if table.primary_key]
        other = contradicted_example(folder_of(out), [each.name for each in resolved.run.clusters], keyed)
        if other is not None:
            row = _row(resolved, other)
            yield ["explain", result, *row], "a row that the binlogs show otherwise; contradictions/ has all of them"
    if examples:
        row = _row(resolved, examples[0])
        yield ["conflicts", result], "which tables, rows and times have most conflicts"
        yield ["explain", result, *row], "why a change of this row was rejected"
    if not resolved.summary.contradicted and (examples or any(resolved.summary.overwritten.values())):
        yield ["lost", result], "which changes of users did not survive, and why"
    if any(resolved.summary.differing_rows.values()):
        yield ["explain", result, "--differences"], "why rows differ at the end"
    page = Path("report.html") if isinstance(out, Stored) else out.with_name("report.html")
    yield ["report", result, "--out", str(page)], "all of it on one page"


def _row(resolved: RunDocument, found: Mapping[str, Any]) -> list[str]:
    """Return the words that name the row of an outcome for `explain`."""
    name, identity = found["table"], found["identity"]
    table = next(each for each in resolved.run.data_schema.tables if each.full_name == name)
    key = found["key"]
    if table.primary_key:
        key = key_as_given(name, TableKey.that_gives(table, identity, key), identity)
    return ["--table", name, "--key", key]


def _comparing(resolved: RunDocument, context: typer.Context) -> Iterator[tuple[list[str], str]]:
    """Yield the command that compares functions on the same inputs, if it takes what `resolve` was given."""
    left_out = resolved.engine == "reference" or needs_reference(resolved.run, [CareKind.SINGLE_OPERATIONS]) is not None
    if left_out or any(_is_given(context, name) for name in _NOT_COMPARED):
        return
    words = ["compare", *map(str, context.params["sources"])]
    for name in _OF_BINLOGS:
        given = context.params[name] or ()
        for value in given if isinstance(given, list | tuple) else [given]:
            words += [f"--{name.replace('_', '-')}", str(value)]
    yield words, "what other conflict functions would have done"


def _in_python(context: typer.Context) -> str:
    """Return the call of `conflict.resolve` that does what the command line did."""
    given = [
        (name, _value(name, value))
        for name, value in context.params.items()
        if name not in _NOT_IN_PYTHON and _is_given(context, name)
    ]
    out = [] if any(name == "out" for name, _ in given) else [("out", str(context.params["out"]))]
    sources = [repr(str(each)) for each in context.params["sources"]]
    return f"conflict.resolve({', '.join([*sources, *(f'{name}={value!r}' for name, value in (*given, *out))])})"


def _is_given(context: typer.Context, name: str) -> bool:
    source = context.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"


def _value(name: str, value: object) -> object:
    if name in _BY_NAME:
        assert isinstance(value, (list, tuple))
        if name == "conflict_fn":
            return functions_by_table(value)
        return {key.strip(): int(text) for key, _, text in (each.partition("=") for each in value)}
    if isinstance(value, (list, tuple)):
        return [_value("", each) for each in value]
    if isinstance(value, Enum):
        return value.value
    return str(value) if isinstance(value, Path) else value
