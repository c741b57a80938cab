"""
`ndb-conflict check`: whether the conflict functions of a run can work, from its run file alone.
"""

from __future__ import annotations

from collections.abc import Sequence

from conflict.cli.common import FunctionOption, PolicyOption, RunFileArgument, console, load_run
from conflict.cli.exit_codes import ExitCode, exit_with
from conflict.cli.outputs import ForceOption, JsonOption, check_output, write_json
from conflict.cli.views.check import checked_json, print_check
from conflict.compatibility.check import CheckedTable, check_run
from conflict.compatibility.deployment import Policy
from conflict.compatibility.requirements import Status
from conflict.history.definition_notes import sentences_on_rows

__all__ = ["check"]


def check(
    run_file: RunFileArgument,
    policy: PolicyOption = Policy.MANUAL,
    function: FunctionOption = None,
    json_file: JsonOption = None,
    force: ForceOption = False,
) -> None:
    """
    Check whether the conflict function of every table can judge what arrives; read no binlog.

    Example: ndb-conflict check run.toml
    """
    loaded = load_run(run_file, function)
    check_output(json_file, loaded.inputs, force=force)
    checked = check_run(loaded.configuration, policy)
    notes = sentences_on_rows(loaded.configuration)
    print_check(console, checked, notes)
    write_json(json_file, {"policy": policy.value, "tables": checked_json(checked), "notes": list(notes)})
    exit_with(_code(checked, notes))


def _code(checked: Sequence[CheckedTable], notes: Sequence[str]) -> ExitCode:
    if any(each.status is Status.REFUSED for each in checked):
        return ExitCode.REFUSED
    limited = bool(notes) or any(each.status is Status.USABLE_BUT or each.setup.warnings for each in checked)
    return ExitCode.WARNED if limited else ExitCode.DONE
