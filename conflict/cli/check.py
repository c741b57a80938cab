"""
`ndb-conflict check`: whether the conflict functions of a run can work, told from its run file alone.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import attrs
import typer
from rich.console import Console

from conflict.cli.output_file import refuse_overwriting
from conflict.cli.requirements_view import checked_json, print_check
from conflict.compatibility.pairing import Policy
from conflict.compatibility.requirements import Status
from conflict.compatibility.whole_run import check_run
from conflict.config.run_file import load_run_file
from conflict.rules.user_policies import load_functions

__all__ = ["check"]

REFUSED = 2  # as of any other command whose input is refused

console = Console()


def check(
    run_file: Annotated[Path, typer.Argument(help="The run file (TOML).", exists=True, dir_okay=False)],
    policy: Annotated[Policy, typer.Option(help="How strictly the manual is taken.")] = Policy.MANUAL,
    function: Annotated[
        list[str] | None, typer.Option(metavar="MODULE:NAME", help="A conflict function of your own.")
    ] = None,
    json_file: Annotated[Path | None, typer.Option("--json", help="Also write the answers here.")] = None,
) -> None:
    """Say of every table on both clusters whether its conflict function can judge what arrives; reads no binlog."""
    loaded = load_run_file(run_file)
    refuse_overwriting(json_file, loaded.inputs)
    configuration = attrs.evolve(loaded.configuration, functions=load_functions(function or ()))
    checked = check_run(configuration, policy)
    print_check(console, checked)
    if json_file is not None:
        document = {"policy": policy.value, "tables": checked_json(checked)}
        json_file.write_text(json.dumps(document, indent=1) + "\n", "utf-8")
    if any(each.status is Status.REFUSED for each in checked):
        raise typer.Exit(REFUSED)
