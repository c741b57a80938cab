"""
`ndb-conflict demo`: a recording that comes with the program, resolved, and what to type next.
"""

from __future__ import annotations

import shlex
from functools import partial
from importlib.resources import files
from inspect import unwrap
from pathlib import Path
from typing import Annotated

import typer

from conflict.cli.common import console
from conflict.cli.refusals import exit_with
from conflict.decoding.staging import staged_file
from conflict.errors import ConfigurationError

_KEY = 2  # of a row with a story of one rejected update
# Questions of somebody who has seen the summary, and the command that answers each.
_NEXT = (
    ("Why did a row of cft.t1 lose an update?", "explain {result} --table cft.t1 --key {key}"),
    ("Which tables, rows and hours have the most conflicts?", "conflicts {result}"),
    ("Which changes of users did not survive?", "lost {result}"),
    ("Why does a row differ at the end?", "explain {result} --differences"),
    ("What would other conflict functions have done?", "compare {run}"),
    ("All of it on one page, to send to somebody:", "report {result} --out {report}"),
)


def demo(
    folder: Annotated[Path, typer.Argument(help="Folder for the recording and its result.")] = Path("build/demo"),
    cases: Annotated[
        Path | None, typer.Option(help="Only write all recordings, for conformance, into this new folder.")
    ] = None,
) -> None:
    """
    Resolve a recording of two real clusters that comes with the program, and show what to type next.

    Example: ndb-conflict demo build/demo

    Example: ndb-conflict demo --cases build/cases
    """
    if cases is not None:
        _write_cases(cases)
        return
    from conflict.api.runs import resolve
    from conflict.cli.commands.resolve import code_of, show_resolved

    recording, result = folder / "recording", folder / "result"
    _copy(recording)
    call = partial(unwrap(resolve), recording / "run.toml", out=result, force=True)
    resolved, _ = show_resolved(call)
    exit_with(code_of(resolved))
    _print_next(folder)


def _write_cases(folder: Path) -> None:
    """Write the recordings that judge engines and resolvers."""
    from conflict.judge.bundled import write_cases

    count = write_cases(folder)
    console.print(f"{count} recordings of real clusters are in {folder}.", markup=False, highlight=False)
    console.print(f"    ndb-conflict conformance {shlex.quote(str(folder))}", markup=False, highlight=False)


def _copy(recording: Path) -> None:
    """
    Write the files of the recording into a folder; those that are there already stay.

    Raises:
        ConfigurationError: A file of the same name is another one.
    """
    recording.mkdir(parents=True, exist_ok=True)
    for source in (files("conflict") / "demo").iterdir():
        target, data = recording / source.name, source.read_bytes()
        if not target.exists():
            with staged_file(target) as out:
                out.write(data)
        elif target.read_bytes() != data:
            message = f"{target} is not that of the demo; give another folder: ndb-conflict demo FOLDER"
            raise ConfigurationError(message)


def _print_next(folder: Path) -> None:
    places = {"result": folder / "result", "run": folder / "recording" / "run.toml", "report": folder / "report.html"}
    quoted = {name: shlex.quote(str(path)) for name, path in places.items()}
    console.print("\n[bold]What to type next[/bold]")
    for question, command in _NEXT:
        console.print(f"  {question}", highlight=False)
        text = command.format(**quoted, key=_KEY)
        console.print(f"    ndb-conflict {text}", markup=False, highlight=False, soft_wrap=True)
    console.print(f"The recording is in {places['run'].parent}.", markup=False, highlight=False, soft_wrap=True)
