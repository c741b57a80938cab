"""
`ndb-conflict report`: results as one HTML page to hand on.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from conflict.cli.common import console
from conflict.cli.outputs import ForceOption, check_output, refuse_same_output

__all__ = ["report"]


def report(
    results: Annotated[
        list[Path],
        typer.Argument(
            metavar="RESULT...",
            help="Result folders of resolve, compare or sweep; JSON files of compare, simulate, sizes or diverge.",
        ),
    ],
    out: Annotated[Path, typer.Option(help="The page.")] = Path("report.html"),
    figures: Annotated[
        Path | None, typer.Option(help="Folder for the figures as SVG and PNG, and their data as CSV.")
    ] = None,
    title: Annotated[str, typer.Option(help="Title of the page.")] = "Conflicts between clusters",
    force: ForceOption = False,
) -> None:
    """
    Write results as one HTML page: the question, the answer, figures, tables. It needs no network.

    Example: ndb-conflict report build/demo/result build/compare --out report.html
    """
    from conflict.history.grid.folder import Folder
    from conflict.reporting.joining import joined
    from conflict.reporting.reading import part_of
    from conflict.reporting.report import figure_count, write_figures, write_page
    from conflict.results.files import check_target, whole_or_not_at_all
    from conflict.shown_text import counted

    check_output(out, results, force=force)
    refuse_same_output(out, figures)
    folder = None if figures is None else Folder(str(figures.absolute()))
    if folder is not None:
        check_target(folder, [*results, out], replace=force)
    parts = joined([part_of(path) for path in results])
    if folder is not None:
        with whole_or_not_at_all(folder, replace=force) as work:
            write_figures(work, parts)
    write_page(out, title, parts)
    what = f"{counted(len(parts), 'result')}, {counted(figure_count(parts), 'figure')}"
    size = f"{out.stat().st_size / 1000:,.0f} kB"
    console.print(f"The report is in {escape(str(out))}: {what}, {size}.", highlight=False, soft_wrap=True)
