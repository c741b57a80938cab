"""
Errors of `conflict`: bad input, and workers that died. A conflict between two changes is a result, never an error.
"""

from __future__ import annotations


class ConflictError(Exception):
    """Root of the package's errors."""


class ConfigurationError(ConflictError, ValueError):
    """A run file, replication row or option cannot be used as it is; the message says what to change."""


class HistoryError(ConflictError, ValueError):
    """Binlogs, schedule and configuration contradict each other."""


class MissingEpochsError(HistoryError):
    """
    The logs of a cluster lack epochs that another one applied, and go on after them.

    Attributes:
        cluster: The cluster.
        applier: The other one.
        epoch: The last missing epoch that it applied.
        before: The last epoch in the logs before that.
        after: The first one after it.
    """

    def __init__(self, cluster: str, applier: str, epoch: int, before: int, after: int) -> None:
        """Say what is missing, and what to give."""
        super().__init__(
            f"cluster {applier} applied epoch {epoch} of cluster {cluster}, whose binlogs hold epochs before and after "
            "it, but not this one; give all binlog files between the first and the last"
        )
        self.cluster, self.applier, self.epoch, self.before, self.after = cluster, applier, epoch, before, after


class NotBuiltError(ConflictError, LookupError):
    """Something that NDB Cluster has and this version does not; the message names it."""


class WorkerError(ConflictError, RuntimeError):
    """A job was given up: workers died, or Spark stopped it. The message says what Spark says."""


class LogWarning(UserWarning):
    """
    A log holds something besides the rows that are read of it: an incident, or changes that are statements.

    It is a warning, but an error where Spark reads, whose workers can warn nobody.
    """
