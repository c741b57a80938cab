"""
Restarts of servers: each writes an incident into the server's own log, and its counters begin again there.

So does the loss of the cluster, with another message.

Counters of conflicts belong to the SQL node on which an applier runs. Computes docs/result.md, "Counters by SQL node".
"""

from __future__ import annotations

from collections.abc import Mapping

import attrs
import numpy as np
import numpy.typing as npt

Bool = npt.NDArray[np.bool_]
Int64 = npt.NDArray[np.int64]
UInt64 = npt.NDArray[np.uint64]
Servers = npt.NDArray[np.unsignedinteger]

_NEVER = 2**64

# By server, the own epochs from which on its counters count anew after a restart, in order.
Restarts = Mapping[int, tuple[int, ...]]
# An SQL node; whether an epoch is taken to have been applied after its last restart; and whether that is open.
Stretch = tuple[int, bool, bool]


@attrs.frozen
class Restart:
    """
    A restart of a server in its log.

    Attributes:
        cluster: Name of its cluster.
        server_id: Its server id.
        file: The file that holds the incident.
        position: Position of the incident.
        second: Second since 1970 of the incident.
        epoch: The first own epoch that the server logged afterwards; None if none follows.
    """

    cluster: str
    server_id: int
    file: str
    position: int
    second: int
    epoch: int | None

    @property
    def counts_from(self) -> int:
        """The own epoch from which on its counters count anew; one after all others if none follows."""
        return _NEVER if self.epoch is None else self.epoch


@attrs.frozen
class Disconnect:
    """
    An incident by which an SQL node says that it lost its cluster.

    Attributes:
        cluster: Name of the cluster.
        server_id: The SQL node.
        file: The file that holds the incident.
        position: Position of the incident.
        earliest: Second since 1970 at which the incident was logged, or the start of that second.
        latest: The same, or the end of that second.
        last: The last own epoch before it; 0 if there is none.
    """

    cluster: str
    server_id: int
    file: str
    position: int
    earliest: float
    latest: float
    last: int


def stretches_of(server: Servers, epoch: UInt64, traced: Bool, restarts: Restarts) -> tuple[Int64, list[Stretch]]:
    """
    Return to which counters each epoch apply of a cluster belongs.

    One without a trace, between the last trace before a restart and the first one after it, may belong to either side.

    Args:
        server: The SQL node that applied each, in order. Shape (applies,).
        epoch: Own epoch in which it was applied. Shape (applies,).
        traced: Whether the log shows it. Shape (applies,).
        restarts: By server that was restarted.

    Returns:
        The number of the stretch of each, shape (applies,), and the stretches.
    """
    side, server = np.zeros(len(server), np.uint64), server.astype(np.uint64)
    for each, epochs in restarts.items():
        mine = np.flatnonzero(server == each)
        late = _at_least(epoch[mine], epochs[-1])
        last, following = np.flatnonzero(traced[mine] & ~late), np.flatnonzero(traced[mine] & late)
        place = np.arange(len(mine))
        between = (place > last.max(initial=-1)) & (place < following.min(initial=len(mine)))
        side[mine] = 2 * late + (between & ~traced[mine])
    stretch = server * np.uint64(4) + side
    if len(stretch) and (stretch == stretch[0]).all():  # mostly; sorting takes far longer
        found, of = stretch[:1], np.zeros(len(stretch), np.int64)
    else:
        found, of = np.unique(stretch, return_inverse=True)
    return of, [(each >> 2, bool(each & 2), bool(each & 1)) for each in found.tolist()]


def restarts_before(server: UInt64, epoch: UInt64, restarts: Restarts) -> Int64:
    """Return how often the SQL node of each epoch apply had been restarted; arguments as for `stretches_of`."""
    found = np.zeros(len(server), np.int64)
    for each, epochs in restarts.items():
        for first in epochs:
            found += (server == each) & _at_least(epoch, first)
    return found


def _at_least(epoch: UInt64, first: int) -> Bool:
    late: Bool = np.zeros(len(epoch), np.bool_) if first == _NEVER else epoch >= np.uint64(first)
    return late
