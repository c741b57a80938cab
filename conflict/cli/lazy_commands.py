"""
Commands that are imported when they run, so that `ndb-conflict --help` does not load Arrow, the kernels and Spark.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from importlib import import_module
from pathlib import Path
from typing import Any, get_args, get_type_hints

import typer
from typer.core import TyperCommand, TyperGroup

from conflict.cli.refusals import closed_pipe, interrupted, refused, refusing_bad_input
from conflict.config.local_paths import refuse_address
from conflict.decoding.interruptions import stopped_politely
from conflict.errors import ConfigurationError
from ndb_formats.errors import did_you_mean

__all__ = ["group_of"]


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
                _keep_local(parameter)
            for one in (kind, *get_args(kind)):
                if isinstance(one, type) and issubclass(one, Enum):
                    _name_nearest(parameter, [str(each.value) for each in one])
        try:
            return command.make_context(info_name, args, parent, **extra)
        except ConfigurationError as error:
            raise refused(error) from error


def _keep_local(parameter: Any) -> None:
    """Make a parameter that is a path refuse addresses: as a path, one would be the name of a local folder."""
    read = parameter.process_value
    option = max((name for name in parameter.opts if name.startswith("-")), key=len, default="")
    what = option or f"argument {parameter.metavar or parameter.name.upper()}"

    def read_local(ctx: Any, value: Any) -> Any:
        for text in value if isinstance(value, list | tuple) else [value]:
            if isinstance(text, str):
                refuse_address(text, what)
        return read(ctx, value)

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


def group_of(commands: Mapping[str, tuple[str, str]]) -> type[TyperGroup]:
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
