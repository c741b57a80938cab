"""
`ndb-conflict rewrite`: binlog files with the same changes in another format.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape

import conflict.api.runs
from conflict.cli.common import console, load_definitions, progress_bars, warn_of
from conflict.cli.from_functions import options_of
from conflict.cli.outputs import JsonOption, write_json
from conflict.cli.refusals import ExitCode, messages
from conflict.config.text_file import what_commands_wrote
from conflict.decoding.staging import check_output, refuse_same_output, staged_file
from conflict.errors import ConfigurationError
from ndb_formats.errors import CutFileError

if TYPE_CHECKING:
    from conflict.config.arguments import StageProgress
    from ndb_formats.binlog_reader import Event
    from ndb_formats.rules.row_image_rules import RowImageRule
    from ndb_formats.rules.update_format import UpdateFormat
    from ndb_formats.writing.rewriting_plans import Plans


_SHOWN_EVERY = 1000  # events


@options_of(conflict.api.runs.resolve)
def rewrite(
    files: Annotated[list[Path], typer.Argument(help="Binlog files, in order.", exists=True)],
    *,
    out: Annotated[Path, typer.Option(help="Folder for the new files, which keep their names.", file_okay=False)],
    binlog_type: Annotated[str | None, typer.Option(help="Format of NDB tables, by number or name.")] = None,
    row_image: Annotated[str | None, typer.Option(help="Format of other tables: full, minimal or noblob.")] = None,
    schema: Annotated[
        Path | None, typer.Option(help="CREATE TABLE statements that are not in the log.", exists=True, dir_okay=False)
    ] = None,
    from_binlog_type: Annotated[str | None, typer.Option(help="Format of NDB tables in the log, if known.")] = None,
    from_row_image: Annotated[str | None, typer.Option(help="Format of other tables in the log, if known.")] = None,
    inexact_keys: bool,
    json_file: JsonOption = None,
    force: bool,
) -> None:
    """
    Write the changes of binlog files in another format, and say which changes the log has too few columns for.

    Example: ndb-conflict rewrite binlog.000001 --binlog-type 8 --out minimal
    """
    from conflict.cli.views.rewrite import counts_json, print_counts
    from ndb_formats.columnar.log_remarks import log_remarks
    from ndb_formats.rules.relogging import LoggedAs
    from ndb_formats.writing.rewriting_plans import Plans, Target

    if binlog_type is None and row_image is None:
        message = "give the format to write: --binlog-type for NDB tables, --row-image for others, or both"
        raise ConfigurationError(message)
    for folder in filter(Path.is_dir, files):
        written = what_commands_wrote(folder, "a binlog file", "the files, in order")
        raise ConfigurationError(written or f"{folder} is a folder, not a binlog file; give its files, in order")
    targets = [out / file.name for file in files]
    if len(set(targets)) < len(targets):
        message = "two of the binlog files have the same name; rewrite them into different folders"
        raise ConfigurationError(message)
    check_output(json_file, [*files, schema], force=force)
    refuse_same_output(*targets, json_file)
    plans = Plans(
        Target(_update_format(binlog_type), _row_image(row_image)),
        load_definitions(schema, files, inexact_keys=inexact_keys),
        LoggedAs(_update_format(from_binlog_type), _row_image(from_row_image)),
    )
    with _folder(out):
        for target in targets:
            check_output(target, [*files, schema], force=force)
        cut = _rewrite_all(files, targets, plans)
    print_counts(console, plans.counts)
    write_json(json_file, counts_json(plans.counts))
    warned = warn_of(log_remarks(files))
    if cut is not None:
        messages.print(
            f"[yellow]warning:[/yellow] {escape(str(cut))}; its complete transactions were written", soft_wrap=True
        )
        raise typer.Exit(ExitCode.CUT_SHORT)
    if warned or not plans.counts.complete:
        raise typer.Exit(ExitCode.WARNED)


def _update_format(value: str | None) -> UpdateFormat | None:
    from ndb_formats.rules.update_format import effective_format, parse_binlog_type

    return None if value is None else effective_format(parse_binlog_type(value))


def _row_image(value: str | None) -> RowImageRule | None:
    from ndb_formats.rules.row_image_rules import parse_row_image

    return None if value is None else parse_row_image(value)


@contextmanager
def _folder(out: Path) -> Iterator[None]:
    """Make the folder for the new files; it goes again if it is new and the block fails before a file is in it."""
    new = not out.exists()
    out.mkdir(parents=True, exist_ok=True)
    try:
        yield
    except BaseException:
        if new:
            with suppress(OSError):  # it holds a file
                out.rmdir()
        raise


def _rewrite_all(files: Sequence[Path], targets: Sequence[Path], plans: Plans) -> CutFileError | None:
    """Rewrite each file; return the fault of the last one if it ends too early."""
    from ndb_formats.binlog_reader import read_events
    from ndb_formats.writing.rewriting import Rewriter

    with progress_bars() as show:
        for file, target in zip(files, targets, strict=True):
            with staged_file(target) as out:
                try:
                    Rewriter(out, plans).rewrite(_shown(read_events(file), file, show))
                except CutFileError as fault:
                    if file != files[-1]:
                        raise
                    return fault
    return None


def _shown(events: Iterator[Event], file: Path, show: StageProgress) -> Iterator[Event]:
    """Yield events, and show how far they have come."""
    size = file.stat().st_size
    for number, event in enumerate(events):
        if number % _SHOWN_EVERY == 0:
            show(file.name, event.position, size)
        yield event
