"""
Commands that are imported when they run, so that `ndb-conflict --help` does not load Arrow, the kernels and Spark.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

from conflict.cli.refusals import interrupted, refusing_bad_input
from conflict.decoding.interruptions import stopped_politely

__all__ = ["group_of"]


class _LazyCommand(TyperCommand):
    """A command that knows its name and what it does; its module is imported when the command line names it."""

    def __init__(self, name: str, place: str, summary: str) -> None:
        super().__init__(name, callback=None, help=summary)
        self._place = place

    def make_context(self, info_name: str | None, args: list[str], parent: Any = None, **extra: Any) -> Any:
        """Return the context of the real command, which then parses the arguments and runs."""
        return self._real().make_context(info_name, args, parent, **extra)

    def _real(self) -> Any:
        module, name = self._place.split(":")
        function: Callable[..., None] = getattr(import_module(module), name)
        app = typer.Typer(add_completion=False, rich_markup_mode=None)
        app.command(self.name)(refusing_bad_input(function))
        return typer.main.get_command(app)


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

    return LazyGroup
