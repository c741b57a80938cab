"""
The command line `ndb-conflict`: its commands, and `main`.

Commands are imported when they run, so that `ndb-conflict --help` does not load Arrow, the kernels and Spark.

Binlogs are mapped into memory. If another program makes one shorter, reading what is gone raises SIGBUS, which would
end this program without a word. No exception can be raised from there, so the program ends with a sentence. A server
never does that: it appends, and it removes whole files, which stay readable as long as they are mapped.
"""

from __future__ import annotations

import ctypes
import gc
import os
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from importlib import import_module
from importlib.abc import MetaPathFinder
from pathlib import Path
from typing import Annotated, Any, get_args, get_type_hints

import typer
from typer.core import TyperCommand, TyperGroup

from conflict.cli.refusals import ExitCode, closed_pipe, interrupted, refused, refusing_bad_input, with_addresses
from conflict.config.text_file import place_of, refuse_address
from conflict.decoding.staging import stopped_politely
from conflict.errors import ConfigurationError
from conflict.extras import program_version
from ndb_formats.errors import did_you_mean


class _LazyCommand(TyperCommand):
    """A command that knows its name and what it does; its module is imported when the command line names it."""

    def __init__(self, name: str, place: str, summary: str) -> None:
        super().__init__(name, callback=None, help=summary)
        self._place = place

    def make_context(self, info_name: str | None, args: list[str], parent: Any = None, **extra: Any) -> Any:
        """Return the context of the real command, which then parses the arguments and runs."""
        module, name = self._place.split(":")
        function: Callable[..., None] = getattr(import_module(module), name)
        app = typer.Typer(add_completion=False, rich_markup_mode=None)
        app.command(self.name)(refusing_bad_input(function))
        command: Any = typer.main.get_command(app)
        kinds = get_type_hints(function)
        for parameter in command.params:
            kind = kinds.get(parameter.name)
            if Path.__name__ in str(kind):
                _name_places(parameter, at_addresses=parameter.name in AT_ADDRESSES.get(str(self.name), ()))
            for one in (kind, *get_args(kind)):
                if isinstance(one, type) and issubclass(one, Enum):
                    _name_nearest(parameter, [str(each.value) for each in one])
        try:
            made = command.make_context(info_name, args, parent, **extra)
        except ConfigurationError as error:
            raise refused(error) from error
        if made.obj is not None and self.name not in _WITHOUT_ARROW:
            made.obj()
        return made


_RUN = frozenset({"sources", "schema", "ndb_replication"})
# What may be on object storage, by command; other paths are local.
AT_ADDRESSES = {
    "resolve": _RUN | {"out", "history", "keep_history"},
    "ingest": _RUN | {"out"},
    "compare": _RUN | {"history"},
    "decode": {"files", "schema"},
    "conflicts": {"result"},
    "lost": {"result"},
    "explain": {"run"},
    "report": {"results"},
}


def _name_places(parameter: Any, *, at_addresses: bool) -> None:
    """Make a parameter that is a path refuse addresses where it cannot be: `Path` would make local folders of them."""
    read = parameter.process_value
    option = max((name for name in parameter.opts if name.startswith("-")), key=len, default="")
    what = option or f"argument {parameter.metavar or parameter.name.upper()}"

    def read_local(ctx: Any, value: Any) -> Any:
        for text in value if isinstance(value, list | tuple) else [value]:
            if isinstance(text, str):
                lasts = not text.lower().startswith("memory:")  # fsspec's own, for who tries it in Python
                (place_of if at_addresses and lasts else refuse_address)(text, what)
        return with_addresses(read(ctx, value))

    parameter.process_value = read_local


def _name_nearest(parameter: Any, names: Sequence[str]) -> None:
    """Make a parameter that is one of some names say which one is meant."""
    read = parameter.process_value

    def read_name(ctx: Any, value: Any) -> Any:
        try:
            return read(ctx, value)
        except typer.BadParameter as error:
            for text in value if isinstance(value, list | tuple) else [value]:
                error.message += did_you_mean(str(text), names) if text not in names else ""
            raise

    parameter.process_value = read_name


def _group_of(commands: Mapping[str, tuple[str, str]]) -> type[TyperGroup]:
    """
    Return a group of commands for `typer.Typer(cls=...)`.

    Args:
        commands: By name, where its function is, as ``module:function``, and what it does.
    """

    class LazyGroup(TyperGroup):
        def __init__(self, **options: Any) -> None:
            super().__init__(**options)
            for name, (place, summary) in commands.items():
                self.add_command(_LazyCommand(name, place, summary))

        def invoke(self, ctx: Any) -> Any:
            """Import and run the command; an interruption at any moment of that ends as it does in the command."""
            try:
                with stopped_politely():
                    return super().invoke(ctx)
            except KeyboardInterrupt as error:
                raise interrupted() from error
            except BrokenPipeError as error:  # of the help of a command
                raise closed_pipe() from error

        def make_context(self, *args: Any, **extra: Any) -> Any:
            """Read the arguments; the help that they may ask for can meet a closed pipe."""
            try:
                return super().make_context(*args, **extra)
            except BrokenPipeError as error:
                raise closed_pipe() from error

    return LazyGroup


_SENTENCE = b"A file was cut short while it was read. Nothing was written; run the command again on a copy of it.\n"
_Handler = ctypes.CFUNCTYPE(None, ctypes.c_int)


def _end(_: int) -> None:
    os.write(2, _SENTENCE)
    os._exit(ExitCode.REFUSED)


_ended = _Handler(_end)  # lives as long as the program


def _say_cut_files() -> None:
    """Make SIGBUS end the program with a sentence. The handler of Python's `signal` would never get its turn."""
    libc = ctypes.CDLL(None)
    libc.signal.argtypes = (ctypes.c_int, _Handler)
    libc.signal.restype = ctypes.c_void_p
    libc.signal(signal.SIGBUS, _ended)


_WITHOUT_ARROW = {"check", "check-replica", "diverge", "init", "logging", "requirements", "rewrite"}


class _NoPandas(MetaPathFinder):
    """Finds modules as if pandas were not installed."""

    def find_spec(self, fullname: str, path: object = None, target: object = None) -> None:  # noqa: ARG002  # Python's
        """Find nothing; other finders are asked next, but for pandas."""
        if fullname == "pandas":
            raise ModuleNotFoundError(name=fullname)


def _spare_pandas() -> None:
    """Let pyarrow take it that there is no pandas, which it loads with its first array, for a fifth of a second."""
    import pyarrow as pa

    sys.meta_path.insert(0, _NoPandas())
    try:
        pa.array([])  # it asks once; pyarrow 17 does with each array
    finally:
        del sys.meta_path[0]


# Where each is, and what it does, in words that fit beside its name on 80 columns.
COMMANDS = {
    "demo": (
        "conflict.cli.commands.demo:demo",
        "Resolve a recording that comes with the program.",
    ),
    "resolve": (
        "conflict.cli.commands.resolve:resolve",
        "Find what was applied, what was rejected and why.",
    ),
    "conflicts": (
        "conflict.cli.commands.conflicts:conflicts",
        "Count the conflicts of a result: where, when and why.",
    ),
    "compare": (
        "conflict.cli.commands.compare:compare",
        "Try other functions and formats on the same changes.",
    ),
    "explain": (
        "conflict.cli.commands.explain:explain",
        "Show why a row ended as it did.",
    ),
    "lost": ("conflict.cli.commands.lost:lost", "List the changes of users that did not survive."),
    "repair": (
        "conflict.cli.commands.repair:repair",
        "Write SQL that makes rows equal, and applies lost changes.",
    ),
    "watch": (
        "conflict.cli.commands.watch:watch",
        "Follow logs that grow, and record conflicts as they come.",
    ),
    "window": (
        "conflict.cli.commands.window:window",
        "Show which side lags, and how long changes conflict.",
    ),
    "audit": (
        "conflict.cli.commands.audit:audit",
        "Check the values that functions compare: ties, clocks.",
    ),
    "channel": (
        "conflict.cli.commands.channel:channel",
        "Show where a channel goes on from another SQL node.",
    ),
    "init": (
        "conflict.cli.commands.init:init",
        "Write the run file for bare binlogs, with comments.",
    ),
    "ingest": (
        "conflict.cli.commands.ingest:ingest",
        "Read binlogs into a History, to resolve it often.",
    ),
    "check": (
        "conflict.cli.commands.check:check",
        "Check what a configuration will do, without binlogs.",
    ),
    "requirements": (
        "conflict.cli.commands.requirements:requirements",
        "Show which function works with which binlog type.",
    ),
    "check-replica": (
        "conflict.cli.commands.check_replica:check_replica",
        "Check whether a replica can apply what a source logs.",
    ),
    "logging": (
        "conflict.cli.commands.logging_format:logging",
        "Show which statements are logged as rows.",
    ),
    "sizes": (
        "conflict.cli.commands.sizes:sizes",
        "Show how many bytes a log takes in every format.",
    ),
    "rewrite": (
        "conflict.cli.commands.rewrite:rewrite",
        "Write the changes of binlogs in another format.",
    ),
    "decode": (
        "conflict.cli.commands.decode:decode",
        "Show what binlogs hold: text, JSON, CSV or Parquet.",
    ),
    "simulate": (
        "conflict.cli.commands.simulate:simulate",
        "Simulate a workload on two clusters.",
    ),
    "workload": (
        "conflict.cli.commands.workload:workload",
        "Learn a workload to simulate from binlogs.",
    ),
    "workers": (
        "conflict.cli.commands.workers:workers",
        "Show what parallel workers would bring to an applier.",
    ),
    "sweep": (
        "conflict.cli.commands.sweep:sweep",
        "Simulate a grid of models, and find where a limit lies.",
    ),
    "report": (
        "conflict.cli.commands.report:report",
        "Write results as one HTML page.",
    ),
    "diverge": (
        "conflict.cli.commands.diverge:diverge",
        "Search for the shortest way to make clusters differ.",
    ),
    "zoo": (
        "conflict.cli.commands.zoo:zoo",
        "Search what breaks, for every resolver, format and anomaly.",
    ),
    "warm-up": (
        "conflict.cli.commands.warm_up:warm_up",
        "Compile what later commands need, for all users.",
    ),
    "conformance": (
        "conflict.cli.commands.conformance:conformance",
        "Compare an engine with recordings of real clusters.",
    ),
}

app = typer.Typer(
    cls=_group_of(COMMANDS),
    help="Show how MySQL NDB Cluster logs changes, and what happens when changes of two clusters conflict.\n\n"
    "Start with: ndb-conflict demo",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"ndb-conflict {program_version()}")
        raise typer.Exit


@app.callback()
def _options(
    show: Annotated[  # the callback answers
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    pass


def main() -> None:
    """Run the command line."""
    _say_cut_files()
    gc.set_threshold(10_000)  # modules, rows and decisions stay; to look through them at every 700 costs up to a tenth
    try:
        app(obj=_spare_pandas)  # here alone: who calls a command in a process of their own may use pandas
    except BrokenPipeError:  # of a message about usage
        closed_pipe()
        sys.exit(ExitCode.PIPE_CLOSED)
