"""Commands made from functions: what each type, default and docstring of Python becomes on the command line."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import pytest
import typer
from typer.testing import CliRunner

from conflict.cli.from_functions import Call, command_of, help_of, options_of
from conflict.cli.refusals import refusing_bad_input
from conflict.config.arguments import EPOCH, OnMissing, Typed, answering
from conflict.config.arguments import typed as typed_as
from conflict.config.option_values import Moment


def _doubled(found: dict[str, Any]) -> list[dict[str, Any]]:
    return [found, found]


@answering(_doubled)
@typed_as(sources=Typed("SOURCE..."), epoch=EPOCH, order=Typed(in_one=True), least=Typed(at_least=1))
def gather(
    *sources: Path,
    epoch: Mapping[str, int] | None = None,
    since: Moment | None = None,
    names: str | Sequence[str] | None = None,
    numbers: str | int | Iterable[int] | None = None,
    order: str | Sequence[str] = ("a", "b"),
    on_missing: OnMissing | str = "stop",
    rows: bool = True,
    wide: bool = False,
    least: int = 3,
    out: Path | str | None = None,
    progress: Callable[[], None] | None = None,
) -> dict[str, Any]:
    """
    Gather what is given.

    Args:
        sources: What to read.
        epoch: By cluster, an epoch;
            `since` is a moment.
        since: As ``2026-01-31``.
        names: A name.
        numbers: A number.
        order: An order.
        on_missing: As for `resolve`.
        rows: With rows.
        wide: In one.
        least: How many.
        out: Where.
        progress: Called.

    Returns:
        What is given: twice.
    """
    return {name: value for name, value in locals().items() if name != "progress"}


def typed(*words: str) -> dict[str, Any]:
    """Return what the function gets."""
    found: dict[str, Any] = {}

    @command_of(gather)
    def command(call: Call[dict[str, Any]], least: int, more: Annotated[int, typer.Option(help="More.")] = 0) -> None:
        found.update(call(), needed=least, more=more)

    done = run(command, *words)
    assert done.exit_code == 0, done.output
    return found


def run(command: Callable[..., None], *words: str) -> Any:
    """Run a command."""
    app = typer.Typer(add_completion=False, rich_markup_mode=None)
    app.command()(refusing_bad_input(command))
    return CliRunner().invoke(app, list(words), env={"COLUMNS": "200"})


def test_defaults_are_those_of_the_function() -> None:
    """Nothing is None, a list that is typed in one word is a text; what `call` is not given, the function has."""
    assert typed("x") == {
        "sources": (Path("x"),),
        "order": "a,b",
        "on_missing": OnMissing.STOP,
        "rows": True,
        "wide": False,
        "least": 3,
        "needed": 3,
        "more": 0,
        **dict.fromkeys(("epoch", "since", "names", "numbers", "out")),
    }


@pytest.mark.parametrize(
    ("words", "name", "value"),
    [
        (["--epoch", "A=5", "--epoch", "B=18446744073709551615"], "epoch", {"A": 5, "B": 2**64 - 1}),
        (["--since", "2026-01-31 08:00:00+01:00"], "since", datetime(2026, 1, 31, 7, tzinfo=UTC)),
        (["--names", "a,b", "--names", "c"], "names", ["a,b", "c"]),
        (["--numbers", "1", "--numbers", "2"], "numbers", [1, 2]),
        (["--order", "b"], "order", "b"),
        (["--on-missing", "skip"], "on_missing", OnMissing.SKIP),
        (["--no-rows"], "rows", False),
        (["--wide"], "wide", True),
        (["--least", "7"], "needed", 7),
        (["--out", "there"], "out", Path("there")),
        (["--more", "1"], "more", 1),
    ],
)
def test_what_is_typed_is_what_the_function_gets(words: list[str], name: str, value: object) -> None:
    """By the type of the argument."""
    assert typed("x", *words)[name] == value


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--epoch", "A=18446744073709551616"], "--epoch A=18446744073709551616 is not understood; give CLUSTER=EPOCH"),
        (["--epoch", "A"], "--epoch A is not understood; give CLUSTER=EPOCH"),
        (["--epoch", "A=1", "--epoch", "A=2"], "--epoch is given twice for A"),
        (["--since", "noon"], "--since noon: not a date and time"),
        (["--least", "0"], "--least"),
        (["--no-wide"], "--no-wide"),
        (["--progress", "x"], "--progress"),
        (["--names"], "--names"),
    ],
)
def test_what_is_refused_is_named_as_it_is_typed(words: list[str], said: str) -> None:
    """With exit code 2."""

    @command_of(gather)
    def command(call: Call[Any]) -> None:
        call()

    done = run(command, "x", *words)
    assert (done.exit_code, said in done.output) == (2, True), done.output


def test_the_help_is_the_docstring() -> None:
    """With options for arguments; what a command declares itself takes the place of the function's."""

    @command_of(gather)
    def command(call: Call[Any], out: Annotated[Path, typer.Option(help="The folder.")] = Path("result")) -> None:
        """Show what is given."""

    shown = " ".join(run(command, "--help").output.split())
    assert "Show what is given." in shown
    assert "--epoch CLUSTER=EPOCH By cluster, an epoch; --since is a moment. Can be repeated." in shown
    assert "As 2026-01-31." in shown
    assert "The folder. [default: result]" in shown
    assert help_of(gather)["on_missing"].startswith("Where an operation lacks the value to compare: stop")
    assert "twice" not in help_of(gather)["progress"]


def test_options_are_shared() -> None:
    """Those that a command names with a type alone, in its order; the others are its own."""
    found: list[object] = []

    @options_of(gather)
    def command(
        *, own: Annotated[int, typer.Option(help="Own.")] = 1, since: datetime | None, out: Path | None
    ) -> None:
        found.extend((own, since, out))

    assert [*inspect.signature(command).parameters] == ["own", "since", "out"]
    assert run(command, "--since", "2026-01-31").exit_code == 0
    assert found == [1, datetime(2026, 1, 31, tzinfo=UTC), None]


def test_python_users_get_the_answer() -> None:
    """What the signature says that they get; the command gets what the function found."""
    assert gather(Path("x"))[0]["sources"] == (Path("x"),)
    assert inspect.signature(gather).return_annotation == "list[dict[str, Any]]"
