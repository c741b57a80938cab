"""
Why a row ended as it did, from a result and the binlogs that it was made of: `conflict.explain`.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from conflict.config.arguments import StageProgress, no_progress
from conflict.config.run_file import RunFile, load_run_file
from conflict.discovery.logs import refuse_inputs
from conflict.errors import ConfigurationError
from conflict.explaining.explainer import Explainer
from conflict.explaining.story import Story
from conflict.history.definitions.following import make_run
from conflict.history.grid.catalogue import refusing_contradictions
from conflict.history.grid.whole_files import refuse_moved_away
from conflict.library import resolve
from conflict.result import Result, read_result
from conflict.results.catalogue import RESOLVE_AGAIN

__all__ = ["explain", "explain_differences", "opened"]

Source = Result | RunFile | Path | str


def explain(
    run: Source,
    *,
    table: str | None = None,
    key: str | int | Mapping[str, object] | None = None,
    transaction: int | str | None = None,
    exception: int | str | None = None,
    progress: StageProgress = no_progress,
) -> Story:
    """
    Return why a row ended as it did, or what became of a transaction; as the command ``explain``.

    Args:
        run: A result, its folder, or a run file, which is resolved first.
        table: ``database.table``, with `key`; with `exception`, the table whose exceptions table is meant.
        key: The key of the row: its values by column, or as text, ``a=1, b=two``.
        transaction: Id of a user transaction, in place of a row; ``cluster:id`` if two clusters have that id.
        exception: An exceptions row in place of a row: its number, from 1, or the four values of its primary key as
            text, ``1,2,5312874545162,1`` (docs/explain.md, "Exceptions rows").
        progress: As for `conflict.resolve`.

    Raises:
        ConfigurationError: Not one of the three is asked for, or what is asked for is not understood, or is not one.
        HistoryError: There is no such table, transaction or exceptions row, or a binlog has changed since.
    """
    asked = [key is not None, transaction is not None, exception is not None]
    if sum(asked) != 1 or (key is not None and table is None) or (transaction is not None and table is not None):
        message = "ask for one thing: a row (table and key), a transaction, or an exceptions row"
        raise ConfigurationError(message)
    with opened(run, progress) as explainer:
        if transaction is not None:
            return explainer.transaction(transaction)
        if exception is not None:
            return explainer.exception(exception, table)
        assert table is not None
        assert key is not None
        return explainer.row(table, key)


def explain_differences(run: Source, *, table: str | None = None, progress: StageProgress = no_progress) -> list[Story]:
    """
    Return the stories of the rows that end different, in the order of tables and keys of the result.

    Args:
        run: As for `explain`.
        table: Of this table alone, ``database.table``.
        progress: As for `conflict.resolve`.

    Raises:
        HistoryError: There is no such table, or a binlog has changed since.
    """
    with opened(run, progress) as explainer:
        return explainer.differences(table)


@contextmanager
def opened(run: Source, progress: StageProgress = no_progress) -> Iterator[Explainer]:
    """
    Give the explainer of a result or of a run file; what has to be resolved for it is removed afterwards.

    Raises:
        HistoryError: A binlog has changed since the result was made, or `run` is a binlog.
    """
    if not isinstance(run, Result | RunFile):
        refuse_moved_away(Path(run))
        if Path(run).suffix != ".toml" and Path(run).is_file():
            refuse_inputs(Path(run))
    if isinstance(run, Result) or (not isinstance(run, RunFile) and Path(run).is_dir()):
        result = run if isinstance(run, Result) else read_result(str(run))
        with refusing_contradictions(result.folder, RESOLVE_AGAIN):
            yield Explainer.of_result(result, progress)
    else:
        loaded = run if isinstance(run, RunFile) else load_run_file(run)
        with tempfile.TemporaryDirectory(prefix="ndb-conflict-") as scratch:
            result = resolve(loaded, out=Path(scratch) / "result", progress=progress)
            yield Explainer(result, make_run(loaded.configuration), progress)
