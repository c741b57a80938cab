"""
States as bytes, for workers in other processes.

The layout of the table holds functions, which do not pickle; every worker has it from the scope.
"""

from __future__ import annotations

import io
import pickle
from typing import Any

from conflict.diverging.scope import Scope
from ndb_formats.events.row_image import RowLayout

__all__ = ["packed", "unpacked"]

_LAYOUT = "layout"


def packed(value: object) -> bytes:
    """Return something with states as bytes."""
    out = io.BytesIO()
    _Packer(out, pickle.HIGHEST_PROTOCOL).dump(value)
    return out.getvalue()


def unpacked(data: bytes, scope: Scope) -> Any:
    """Return what was packed in a scope."""
    return _Unpacker(data, scope.layout).load()


class _Packer(pickle.Pickler):
    def persistent_id(self, value: object) -> str | None:
        return _LAYOUT if isinstance(value, RowLayout) else None


class _Unpacker(pickle.Unpickler):
    def __init__(self, data: bytes, layout: RowLayout) -> None:
        super().__init__(io.BytesIO(data))
        self._layout = layout

    def persistent_load(self, _: object) -> RowLayout:
        return self._layout
