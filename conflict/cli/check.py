"""
`ndb-conflict check`: whether the conflict functions of a run can work, from its run file alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from conflict.cli.common import FunctionOption, PolicyOption, RunFileArgument, console, load_run
from conflict.cli.exit_codes import ExitCode, exit_with
from conflict.cli.outputs import ForceOption, JsonOption, check_output, write_json
from conflict.compatibility.deployment import Policy

if TYPE_CHECKING:
    from conflict.compatibility.check import CheckedTable

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
    from conflict.cli.views.check import checked_json, print_check
    from conflict.compatibility.check import check_run

    loaded = load_run(run_file, function)
    check_output(json_file, loaded.inputs, force=force)
    checked = check_run(loaded.configuration, policy)
    print_check(console, checked)
    write_json(json_file, {"policy": policy.value, "tables": checked_json(checked)})
    exit_with(_code(checked))


def _code(checked: Sequence[CheckedTable]) -> ExitCode:
    from conflict.compatibility.requirements import Status

    if any(each.status is Status.REFUSED for each in checked):
        return ExitCode.REFUSED
    limited = any(each.status is Status.USABLE_BUT or each.setup.warnings for each in checked)
    return ExitCode.WARNED if limited else ExitCode.DONE
