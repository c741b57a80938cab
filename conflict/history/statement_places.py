"""
Where statements stand in the logs of the servers that appliers read.

An applier that carries out a statement of its source can open a transaction of NDB, as for TRUNCATE and for an ALTER
that copies a table. It then writes `mysql.ndb_apply_status`: the epoch that it applied last, or 0 if it applied none,
and the file and the end of the statement in the source's log. By these such a row is told from that of an epoch.

Source: `Ndb_applier::define_apply_status_operations` of the server; recordings of TRUNCATE and ALTER.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Self

import attrs
import numpy as np
import numpy.typing as npt

from ndb_formats.columnar.log_scan import LogItem, ScannedStatement

_NUMBER = re.compile(r"\.(\d+)(?:\.(?:gz|zst))?$")
_ANY_FILE = -1


@attrs.frozen
class StatementPlaces:
    """
    Where statements end.

    Attributes:
        ends: The server in whose log a statement stands, the number of the file, and the position after its event, as
            the server named it. A file whose name has no number has -1, which stands for any.
    """

    ends: frozenset[tuple[int, int, int]] = frozenset()

    @classmethod
    def of(cls, items: Iterable[LogItem], server_ids: Mapping[str, int], otherwise: int) -> Self:
        """
        Return those of what the log of a cluster says.

        Args:
            items: What it says.
            server_ids: The server of each file.
            otherwise: The server of the files that are not among these.
        """
        statements = (item for item in items if isinstance(item, ScannedStatement) and item.stop)
        ends = ((server_ids.get(each.file, otherwise), _number(each.file), each.stop) for each in statements)
        return cls(frozenset(ends))

    def __or__(self, other: StatementPlaces) -> StatementPlaces:
        return StatementPlaces(self.ends | other.ends)

    def holds(self, server_id: int, log_name: bytes, end: int) -> bool:
        """Return whether a statement ends there; arguments are columns of a row of `ndb_apply_status`."""
        number = _number(log_name.decode("latin-1"))
        return any((server_id, each, end) in self.ends for each in (number, _ANY_FILE))

    def may_hold(self, server_id: npt.NDArray[np.uint64], end: npt.NDArray[np.uint64]) -> npt.NDArray[np.bool_]:
        """Return for which rows of `ndb_apply_status` a statement ends there in some file. Shape (rows,)."""
        found = np.zeros(len(end), np.bool_)
        for server, stop in {(server, stop) for server, _, stop in self.ends}:
            found |= (server_id == np.uint64(server)) & (end == np.uint64(stop))
        return found


NO_STATEMENTS = StatementPlaces()


def _number(file: str) -> int:
    """Return the number of a binlog file."""
    found = _NUMBER.search(file)
    return _ANY_FILE if found is None else int(found[1])
