"""
`ndb-conflict warm-up`: compiles the kernels, so that no later command has to.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

from rich.markup import escape

from conflict.cli.common import console, progress_bars
from conflict.cli.exit_codes import ExitCode
from conflict.errors import ConfigurationError

__all__ = ["warm_up"]

_LOG = "binlog.000001"
_MODEL = """
seconds = 20
seed = 1
function = "NDB$EPOCH_TRANS()"
recordcount = 2000
[workload]
transactions_per_second = 500
insertproportion = 0.1
deleteproportion = 0.1
updateproportion = 0.8
[clusters.A.link]
latency_ms = 40
[clusters.B.link]
latency_ms = 40
"""


def warm_up() -> None:
    """
    Compile the kernels by running the other commands on a simulated log, so that later commands start at full speed.

    Run by the owner of the installation, it compiles for every user, as in the build of a container.

    Example: ndb-conflict warm-up && ndb-conflict resolve run.toml --out result
    """
    from ndb_formats.columnar.kernel_mode import Mode, set_mode
    from ndb_formats.compiled_cache import is_lasting, kernels_place

    if not is_lasting():
        message = "what is compiled could not be kept: set NUMBA_CACHE_DIR to a folder that can be written"
        raise ConfigurationError(message)
    set_mode(Mode.COMPILED)
    with tempfile.TemporaryDirectory(prefix="ndb-conflict-") as folder, progress_bars() as progress:
        commands = _commands(Path(folder))
        for number, command in enumerate(commands):
            progress("compiling", number, len(commands))
            _run(command)
    place = kernels_place()
    kept = "beside the program, for all its users" if place is None else f"in {place}, for this user"
    console.print(f"The kernels are compiled, {escape(kept)}.", highlight=False, soft_wrap=True)


def _commands(folder: Path) -> list[list[str]]:
    """Return command lines that together call every kernel; each reads what those before it wrote."""
    (folder / "model.toml").write_text(_MODEL, "utf-8")
    log = folder / "log"
    run, schema, files = f"{log / 'run.toml'}", f"{log / 'schema.sql'}", [f"{log / name / _LOG}" for name in "AB"]
    return [
        ["simulate", f"{folder / 'model.toml'}", "--write-binlogs", f"{log}"],
        ["resolve", run, "--engine", "local", "--out", f"{folder / 'result'}"],
        ["compare", run, "--engine", "local", "--formats", "3,9"],
        ["workload", run, "--out", f"{folder / 'learnt.toml'}"],
        ["sizes", *files, "--schema", schema],
        *(
            ["decode", *files, "-vv", "--schema", schema, "--format", form, "--result-file", f"{folder / form}"]
            for form in ("text", "json", "csv", "parquet")
        ),
    ]


def _run(command: Sequence[str]) -> None:
    """Run a command without a word; what it finds in the log is of no interest here."""
    from conflict.cli.app import app

    with open(os.devnull, "w", encoding="utf-8") as nothing, redirect_stdout(nothing), redirect_stderr(nothing):
        code = app(list(command), standalone_mode=False)
    if code == ExitCode.REFUSED:
        message = f"ndb-conflict {command[0]} could not be run for its kernels"
        raise ConfigurationError(message)
