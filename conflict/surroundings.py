"""
What libraries want of the surroundings, and this program does without: `ssl`, and a home that can be written.
"""

from __future__ import annotations

import os
import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType, SimpleNamespace

from ndb_formats.compiled_cache import can_be_written, private_folders

__all__ = ["allow_missing_ssl", "provide_matplotlib_folder"]

_MATPLOTLIB = "MPLCONFIGDIR"


def allow_missing_ssl() -> None:
    """
    Load pyarrow's file systems with a stand-in for `ssl`, if that cannot be loaded; nobody else sees the stand-in.

    As it is loaded, pyarrow asks `ssl` where certificates are. They concern no local file.
    """
    try:
        import_module("_ssl")
    except ImportError:
        import_module("pyarrow")
        stand_in = ModuleType("ssl")
        vars(stand_in)["get_default_verify_paths"] = lambda: SimpleNamespace(cafile=None, capath=None)
        sys.modules["ssl"] = stand_in
        try:
            import_module("pyarrow._fs")
        finally:
            del sys.modules["ssl"]


def provide_matplotlib_folder() -> None:
    """
    Make sure, before matplotlib is loaded, that it has a folder for the list of fonts, which takes seconds to make.

    Without one it warns, and makes the list every time.
    """
    if os.environ.get(_MATPLOTLIB):
        return
    config = Path(os.environ.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config"))  # noqa: PTH111  # raises nothing
    if config.is_absolute() and can_be_written(config / "matplotlib"):
        return
    folder = next(private_folders("ndb-conflict-matplotlib"), None)
    if folder is not None:
        os.environ[_MATPLOTLIB] = str(folder)
