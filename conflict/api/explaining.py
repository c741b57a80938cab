"""
What explains a result, from the binlogs that it was made of.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from conflict.api.runs import resolve
from conflict.config.arguments import StageProgress, no_progress
from conflict.config.run_file import RunFile, is_run_file, load_run_file
from conflict.config.text_file import place_of
from conflict.discovery.logs import refuse_inputs
from conflict.engine.ledger.layout import RESOLVE_AGAIN
from conflict.explaining.explainer import Explainer
from conflict.history.grid.catalogue import refusing_contradictions
from conflict.history.grid.whole_files import refuse_moved_away
from conflict.history.preparing.definitions_over_time import make_run
from conflict.results.result import Result, read_result

Source = Result | RunFile | Path | str


@contextmanager
def opened(run: Source, progress: StageProgress = no_progress) -> Iterator[Explainer]:
    """
    Give the explainer of a result or of a run file; what has to be resolved for it is removed afterwards.

    Raises:
        HistoryError: A binlog has changed since the result was made, or `run` is a binlog.
    """
    if not isinstance(run, Result | RunFile):
        run = place_of(run)
        refuse_moved_away(run)
        if run.is_file() and not is_run_file(run):
            refuse_inputs(run)
    if isinstance(run, Result) or (isinstance(run, Path) and run.is_dir() and not is_run_file(run)):
        result = run if isinstance(run, Result) else read_result(str(run))
        with refusing_contradictions(result.folder, RESOLVE_AGAIN):
            yield Explainer.of_result(result, progress)
    else:
        loaded = run if isinstance(run, RunFile) else load_run_file(run)
        with tempfile.TemporaryDirectory(prefix="ndb-conflict-") as scratch:
            result = resolve(loaded, out=Path(scratch) / "result", progress=progress)
            yield Explainer(result, make_run(loaded.configuration), progress)
