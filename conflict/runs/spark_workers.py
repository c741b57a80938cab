"""
What runs the tasks of a job on Spark.
"""

from __future__ import annotations

from conflict.config.arguments import StageProgress
from conflict.history.grid.attempts import Seen
from conflict.history.grid.folder import Folder
from conflict.history.grid.manifest import MANIFEST
from conflict.history.grid.stored_folder import StoredFolder
from conflict.history.tasks import Runner


def spark_workers(
    out: Folder, progress: StageProgress, kept: Folder | None = None, read: Folder | None = None
) -> Runner:
    """
    Start Spark, and make sure that its tasks see the folders of the result and of a History.

    Args:
        out: Where tasks write.
        progress: Called with the name of the stage, what is done, and what there is to do.
        kept: Another folder where they write.
        read: A folder that they read.

    Raises:
        ConfigurationError: They do not, or Spark cannot be started.
    """
    from conflict.spark.session import check_shared, spark_session  # noqa: PLC0415  # only the jobs need pyspark
    from conflict.spark.spark_runner import runs_here, spark_runner  # noqa: PLC0415  # only the jobs need pyspark

    progress("starting Spark", 0, 1)
    spark = spark_session()
    folders = [each for each in (out, kept) if each is not None]
    seen = [Seen.of(read, MANIFEST)] if read is not None and read.exists(MANIFEST) else []
    for each in (*folders, read):
        if isinstance(each, StoredFolder) and not runs_here(spark):
            each.spread()
    check_shared(spark, folders, seen)
    progress("starting Spark", 1, 1)
    return spark_runner(spark, folders, seen)
