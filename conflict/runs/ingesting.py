"""
The binlogs of a run into a History, by this process or by Spark.

No engine is imported: where nothing is new, that is soon said.
"""

from __future__ import annotations

from functools import partial

import attrs

from conflict.config.arguments import StageProgress, no_progress
from conflict.config.run_file import RunFile
from conflict.errors import ConfigurationError, NotBuiltError
from conflict.history.grid.folder import Folder
from conflict.history.grid.stored_folder import folder_of
from conflict.history.grid.whole_files import only_writer
from conflict.history.ingestion.plan import refuse_other_folders
from conflict.history.preparing.log_files import check_log_files
from conflict.history.tasks import in_threads
from conflict.runs.engine_choice import EngineChoice, choose_workers
from conflict.runs.ingest_job import Ingested, outlines_by_tasks
from conflict.runs.ingest_job import ingest as ingest_binlogs
from conflict.runs.run_inputs import run_of
from conflict.runs.spark_workers import spark_workers
from ndb_formats.schema.row_keys import refuse_inexact_keys


def ingest(
    run_file: RunFile, out: Folder | str, progress: StageProgress = no_progress, *, engine: str = "auto"
) -> Ingested:
    """
    Read the binlogs of a run into a History on disk; see `conflict.runs.ingest_job.ingest`.

    Args:
        run_file: The run.
        out: Where the History goes.
        progress: Called with the name of the stage, what is done, and what there is to do.
        engine: ``local``, in threads of this process, or ``spark``; or ``auto``.

    Raises:
        ConfigurationError: Spark cannot be started, or `out` is not the same folder for its tasks.
        HistoryError: The folder holds a History of something else.
    """
    folder = folder_of(out)
    if not run_file.configuration.links.is_pair:
        message = (
            "a History on disk is one of two clusters that replicate to each other; resolve these binlogs as they are"
        )
        raise ConfigurationError(message)
    refuse_inexact_keys(run_file.configuration.data_schema.tables)
    check_log_files(run_file.configuration)
    refuse_other_folders(folder)
    choice = choose_workers(run_file.configuration) if engine == "auto" else EngineChoice(engine, "")
    with only_writer(folder):
        runner = spark_workers(folder, progress) if choice.engine == "spark" else in_threads
        try:
            run = run_of(run_file, folder, partial(outlines_by_tasks, runner, progress))
            done = ingest_binlogs(runner, run, folder, progress=progress)
            return attrs.evolve(done, engine=choice.engine, engine_reason=choice.reason)
        except NotBuiltError as error:
            message = f"{error}, and a History holds rows by their keys; resolve these binlogs as they are"
            raise ConfigurationError(message) from None
