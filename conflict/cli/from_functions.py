"""
Commands from functions: what `conflict` exports is declared once, as an ordinary Python function.

The names, types and defaults of its arguments are those of the options, and its docstring is their help. A function and
not a class of options, because editors, `help` and mypy read a signature as it stands, and no class can stand for
``*sources``. How an argument is typed on a terminal stands above the function (`conflict.config.arguments.typed`).

A command adds what only a terminal has, as arguments of its own with `typer.Option`; one that has the name of an
argument of the function takes its place. What it needs of the function's arguments it names, with a type alone; `Call`
is the function with all of them.
"""

from __future__ import annotations

import builtins
import inspect
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import date
from enum import Enum
from functools import cache, partial, wraps
from importlib import import_module
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Generic, Optional, TypeVar, Union, get_args, get_origin, get_type_hints

import attrs
import typer

from conflict.config.arguments import Typed, typed_of
from conflict.config.option_values import moment_of
from conflict.config.text_file import refuse_address
from conflict.errors import ConfigurationError

Found = TypeVar("Found")
_NOT_TYPED = {"progress"}
_DIGITS = 20  # of the highest epoch


@attrs.define
class Call(Generic[Found]):
    """
    A function of `conflict`, with what a user typed.

    Attributes:
        function: The function.
        sources: Its positional arguments, of those that take any number.
        options: Its other arguments.
    """

    function: Callable[..., Found]
    sources: Sequence[Any]
    options: dict[str, Any]

    def __call__(self, **more: Any) -> Found:
        """Call the function; `more` is what a user does not type."""
        return self.function(*self.sources, **self.options, **more)


def command_of(function: Callable[..., Any]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """
    Return a decorator for the command of a function, whose argument `call` is a `Call` of it.

    Args:
        function: One that `conflict` exports.
    """
    found = inspect.unwrap(function)
    declared = {name: each for name, each in _parameters(found).items() if name not in _NOT_TYPED}
    several = next((name for name, each in declared.items() if each.kind is each.VAR_POSITIONAL), None)

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        own = {name: each for name, each in _parameters(command).items() if name != "call"}
        taken = {name: _option(found, each) for name, each in declared.items()}
        added = {name: each for name, each in own.items() if name not in taken or _said(each)}

        def run(**typed: Any) -> None:
            options = {name: each.value(typed[name]) for name, each in taken.items()}
            needed = {name: options.get(name, typed[name]) for name in own}
            sources = (several and options.pop(several)) or ()
            command(call=Call(found, sources, options), **needed)

        return _declared(run, command, {name: each.parameter for name, each in taken.items()} | added)

    return decorate


def options_of(function: Callable[..., Any]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return a decorator for a command that shares options with a function: those that it names with a type alone."""
    found = inspect.unwrap(function)
    declared = _parameters(found)

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        own = _parameters(command)
        shared = {name: _option(found, declared[name]) for name in own if name in declared and not _said(own[name])}

        def run(**typed: Any) -> None:
            command(**typed | {name: each.value(typed[name]) for name, each in shared.items()})

        return _declared(run, command, own | {name: each.parameter for name, each in shared.items()})

    return decorate


def _declared(
    run: Callable[..., None], command: Callable[..., None], parameters: Mapping[str, inspect.Parameter]
) -> Callable[..., None]:
    """Return a function as the command of some parameters, which typer reads."""
    declared = wraps(command)(run)
    each_by_name = [each.replace(kind=each.KEYWORD_ONLY) for each in parameters.values()]
    declared.__signature__ = inspect.Signature(each_by_name)  # type: ignore[attr-defined]
    declared.__annotations__ = {name: each.annotation for name, each in parameters.items()}
    return declared


@attrs.frozen
class _Option:
    """An argument of a function as typer declares it, and what makes the function's value of a typed one."""

    parameter: inspect.Parameter
    value: Callable[[Any], Any]


class _Names(dict[str, Any]):
    """Names that annotations use; one that only type checkers know is a type of its own."""

    def __missing__(self, name: str) -> type:
        return type(name, (), {})


def _parameters(function: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    """Return the parameters of a function, with their types and what is said besides of each."""
    names = _Names({**vars(builtins), **function.__globals__})
    hints = get_type_hints(function, localns=names, include_extras=True)
    return {name: each.replace(annotation=hints[name]) for name, each in inspect.signature(function).parameters.items()}


def _said(parameter: inspect.Parameter) -> tuple[Any, ...]:
    """Return what stands beside the type of a parameter."""
    return get_args(parameter.annotation)[1:] if get_origin(parameter.annotation) is Annotated else ()


def _option(function: Callable[..., Any], parameter: inspect.Parameter) -> _Option:
    """Return the option of an argument: its kind by the type, its help by the docstring."""
    declared, typed = parameter.annotation, typed_of(function).get(parameter.name, Typed())
    name, default = _as_option(parameter.name), parameter.default
    is_option, several = parameter.kind is parameter.KEYWORD_ONLY, parameter.kind is parameter.VAR_POSITIONAL
    kind, value = _kind(Path | Iterable[Path] if several else declared, name, typed)
    if isinstance(default, tuple):
        default = ",".join(default)
    if isinstance(default, str) and isinstance(kind, type) and issubclass(kind, Enum | Path):
        default = kind(default)
    help_text = typed.help or help_of(function).get(parameter.name, "")  # none where Python drops docstrings
    details: dict[str, Any] = {
        "help": f"{help_text} Can be repeated." if is_option and get_origin(kind) is list else help_text,
        "metavar": typed.metavar,
        "min": typed.at_least,
        "max": typed.at_most,
        "exists": typed.is_file,
        "dir_okay": not typed.is_file,
    }
    flag = [name] if default is False else []  # without a --no-name
    shown = typer.Option(*flag, **details) if is_option else typer.Argument(**details)
    annotation: Any = Annotated[Optional[kind] if default is None else kind, shown]  # noqa: UP045  # kind is a value
    return _Option(parameter.replace(annotation=annotation, default=default), value)


def _kind(declared: Any, option: str, typed: Typed) -> tuple[Any, Callable[[Any], Any]]:
    """Return the type that typer reads for a type of Python, and what makes a value of that one of what is read."""
    members = get_args(declared) if get_origin(declared) in (Union, UnionType) else (declared,)
    plain = {each for each in members if isinstance(each, type) and each is not NoneType}
    origins = {origin: get_args(each) for each in members if (origin := get_origin(each)) is not None}
    if typed.in_one:
        return str, _as_it_is
    if origins.keys() == {Mapping} and not plain:
        read = partial(_by_cluster, option, typed.metavar, numbers=origins[Mapping] == (str, int))
        return list[str], read
    if origins.keys() & {Sequence, Iterable}:
        return list[next(each for each in (Path, int, str) if each in plain)], lambda given: given or None  # type: ignore[misc]
    if date in plain:
        return str, lambda given: None if given is None else moment_of(given, option)
    choices = [each for each in plain if issubclass(each, Enum)]
    return next(each for each in (*choices, Path, str, bool, int, float) if each in plain), _as_it_is


def _as_option(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def _as_it_is(given: Any) -> Any:
    return given


def _by_cluster(
    option: str, metavar: str | None, given: Sequence[str] | None, *, numbers: bool
) -> dict[str, Any] | None:
    """Return the values of an option by cluster: epochs, or files."""
    found: dict[str, Any] = {}
    for text in given or ():
        cluster, _, value = text.partition("=")
        wrong = numbers and not (value.isdecimal() and len(value) <= _DIGITS and int(value) < 2**64)
        if wrong or not (cluster and value):
            message = f"{option} {text} is not understood; give {metavar}"
            raise ConfigurationError(message)
        if cluster in found:
            message = f"{option} is given twice for {cluster}; give one per cluster"
            raise ConfigurationError(message)
        if not numbers:
            refuse_address(value, option)
        found[cluster] = int(value) if numbers else Path(value)
    return found or None


@cache
def help_of(function: Callable[..., Any]) -> dict[str, str]:
    """Return what the docstring of a function says of each argument; ``As for `resolve`.`` is what that one says."""
    _, _, rest = (inspect.getdoc(inspect.unwrap(function)) or "").partition("\nArgs:\n")
    arguments = re.split(r"\n(?=\S)", rest, maxsplit=1)[0]
    said = {
        name: " ".join(text.split()).replace("``", "")
        for name, text in re.findall(r"^    (\w+): (.*(?:\n {5,}.*)*)", arguments, re.MULTILINE)
    }
    for name, text in said.items():
        other = re.fullmatch(r"As for `(\w+)`\.", text)
        if other is not None:
            said[name] = help_of(getattr(import_module("conflict"), other[1]))[name]
        else:
            said[name] = re.sub(r"`(\w+)`", lambda found: _as_option(found[1]) if found[1] in said else found[0], text)
    return said
