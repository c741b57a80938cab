"""The figures of a result of the reference engine, without its files."""

import tempfile

from conflict.engine.ledger.resolution_ledger import ReferenceLedger, write_resolution
from conflict.engine.ledger.summary import RunSummary
from conflict.history.grid.folder import Folder

__all__ = ["figures"]


def figures(ledger: ReferenceLedger) -> RunSummary:
    """Write a result, and return its figures."""
    with tempfile.TemporaryDirectory() as folder:
        return write_resolution(Folder(folder), ledger)
