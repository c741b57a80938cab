"""
`ndb-conflict explain`: why a row ended as it did.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import conflict.api.results
from conflict.cli.common import console, progress_bars
from conflict.cli.from_functions import Call, command_of
from conflict.cli.outputs import ForceOption, JsonOption, no_standard_output, write_json, write_parquet
from conflict.config.option_values import full_name_of, moment_of
from conflict.decoding.staging import check_output, refuse_same_output
from conflict.errors import ConfigurationError

if TYPE_CHECKING:
    from conflict.explaining.story import Story


@command_of(conflict.api.results.explain)
def explain(
    call: Call[Story],
    run: Path,
    table: str | None,
    key: str | None,
    transaction: str | None,
    exception: str | None,
    differences: Annotated[bool, typer.Option("--differences", help="Explain every row that ends different.")] = False,
    top: Annotated[int, typer.Option(min=1, help="Rows to print with --differences.")] = 20,
    since: Annotated[
        str | None, typer.Option(metavar="DATETIME", help="Print events from then on; UTC without an offset.")
    ] = None,
    last: Annotated[int | None, typer.Option(metavar="N", min=1, help="Print the last N events.")] = None,
    json_file: JsonOption = None,
    parquet: Annotated[
        Path | None,
        typer.Option(metavar="FILE", callback=no_standard_output, help="Also write the events, as Parquet."),
    ] = None,
    plot: Annotated[Path | None, typer.Option(metavar="FILE", help="Draw the story: FILE.png or FILE.svg.")] = None,
    force: ForceOption = False,
) -> None:
    """
    Show why a row ended as it did: its changes on both clusters, and each decision with what was compared.

    Example: ndb-conflict explain build/result --table shop.orders --key 5

    Example: ndb-conflict explain build/result --differences
    """
    from conflict.api.explaining import opened
    from conflict.explaining.differences import differences_json, tell_differences
    from conflict.explaining.row_ends import differing_without_key, tables_not_known
    from conflict.explaining.story import events_table
    from conflict.telling.drawing import check_chart_file
    from conflict.telling.terminal import print_telling

    refuse_same_output(json_file, parquet, plot)
    for target in (json_file, parquet, plot):
        check_output(target, [run], force=force)
    check_chart_file(plot)
    if differences:
        if plot is not None or any(each is not None for each in (key, transaction, exception, since, last)):
            message = "--differences stands alone, or with --table; --plot draws one story"
            raise ConfigurationError(message)
        with progress_bars() as progress, opened(run, progress) as explainer:
            table = None if table is None else full_name_of(explainer.run.databases.run_name(table), explainer.tables)
            stories, doubts = explainer.differences(table), explainer.doubts
            asked = explainer.result, explainer.tables, table
            others, not_known = differing_without_key(*asked), tables_not_known(*asked)
        told = tell_differences(stories, doubts, others, not_known, table=table, top=top, run=str(run))
        print_telling(console, told)
        write_json(json_file, differences_json(stories, doubts, not_known))
        write_parquet(parquet, events_table(stories))
        return
    moment = None if since is None else moment_of(since, "--since")
    with progress_bars() as progress:
        story = call(progress=progress)
    print_telling(console, story.telling(str(run), moment, last))
    write_json(json_file, story.to_json())
    write_parquet(parquet, story.to_arrow())
    if plot is not None:
        from conflict.explaining.picture import draw_story

        draw_story(story, plot)
        console.print(f"The picture is in {plot}.", markup=False, highlight=False, soft_wrap=True)
