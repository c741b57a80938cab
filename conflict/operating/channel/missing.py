"""
What a channel would miss that goes on in the log of another SQL node, and what no log tells of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from conflict.history.ingestion.logged_epochs import LoggedEpochs
from ndb_formats.findings import LogRemark

UInt64 = npt.NDArray[np.uint64]


def missing_of(log: LoggedEpochs, sisters: Sequence[LoggedEpochs], epoch: int | None) -> Iterator[LogRemark]:
    """
    Yield what may be missing from a log after an epoch, or cannot be known.

    Args:
        log: The log in which a channel goes on; it holds an epoch.
        sisters: The logs of the other SQL nodes of the cluster.
        epoch: The last epoch that the channel applied; None if that is not known.
    """
    if epoch is None:
        return
    yield from _where_it_stands(log, sisters, epoch)
    later = log.number[log.number > epoch]
    for sister in sisters:
        yield from _gaps(log, sister, epoch)
        differing = log.differing(sister)
        differing = differing[differing > epoch]
        if len(differing):
            yield LogRemark(
                f"{len(differing):,} of the epochs that follow hold other changes in the log of server "
                f"{log.server_id} than in that of server {sister.server_id}; the first is {differing[0]}",
                contradicts=True,
            )
    incidents = sum(each >= len(log) - len(later) for each in log.incidents)
    if incidents:
        yield LogRemark(
            f"{incidents:,} of the incidents in the log of server {log.server_id} come after epoch {epoch}: an applier "
            "stops there with error 13119 until it is skipped, and changes may be missing there",
            lost=True,
        )
    if not log.whole:
        yield LogRemark(f"the log of server {log.server_id} cannot be read beyond epoch {log.number[-1]}", lost=True)


def _where_it_stands(log: LoggedEpochs, sisters: Sequence[LoggedEpochs], epoch: int) -> Iterator[LogRemark]:
    """Yield what is not known where the log does not hold the epoch itself."""
    place = log.count_up_to(epoch)
    if place and int(log.number[place - 1]) == epoch:
        return
    if place == len(log):
        yield LogRemark(
            f"the log of server {log.server_id} ends with epoch {log.number[-1]}, before epoch {epoch}, which was "
            "applied last: the place is its end, and what that server logs later up to that epoch comes again"
        )
        return
    following = int(log.number[place])
    holder = next((each for each in sisters if not each.broken(epoch, following)), None)
    lacks = f"the log of server {log.server_id} lacks epoch {epoch}, which was applied last, and goes on at {following}"
    if place == 0:
        lacks = (
            f"the log of server {log.server_id} begins with epoch {following}, after epoch {epoch}, which was applied "
            "last: its first files were purged, or it logged nothing before"
        )
    if holder is None:
        yield LogRemark(f"{lacks}; no log here tells whether there are epochs between them", lost=True)
    else:
        yield LogRemark(f"{lacks}; the log of server {holder.server_id} has it")


def _gaps(log: LoggedEpochs, sister: LoggedEpochs, epoch: int) -> Iterator[LogRemark]:
    """Yield which epochs after one the other SQL node alone logged."""
    lacking: UInt64 = np.setdiff1d(sister.number[sister.number > epoch], log.number)
    inside, beyond = lacking[lacking < log.number[-1]], lacking[lacking > log.number[-1]]
    for some, where in (
        (inside, f"are in the log of server {sister.server_id} alone, and would never be applied"),
        (beyond, f"are in the log of server {sister.server_id}, and that of server {log.server_id} ends before them"),
    ):
        if len(some):
            span = f"epochs {some[0]} to {some[-1]}" if len(some) > 1 else f"epoch {some[0]}"
            yield LogRemark(f"{len(some):,} of the epochs that follow ({span}) {where}", lost=True)
