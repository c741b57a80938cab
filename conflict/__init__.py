"""
What happens when row changes of two MySQL NDB Clusters meet.

    import conflict

    run = conflict.load_run_file("run.toml")
    conflict.resolve(run, "result", engine="local")
    result = conflict.read_result("result")
    print(result.counters["A"], result.outcomes("A"))

Everything that users import is here; a name is loaded when it is first used, so that Spark and the compiled kernels
are loaded only where they are needed.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from conflict.config.run_file import RunFile, load_run_file
    from conflict.errors import ConfigurationError, ConflictError, HistoryError, NotBuiltError
    from conflict.jobs.data_source import register
    from conflict.jobs.session import spark_session
    from conflict.pipeline import ResolveOptions, ingest, resolve
    from conflict.results.result import Result, read_result
    from conflict.results.run_document import Run

__all__ = [
    "ConfigurationError",
    "ConflictError",
    "HistoryError",
    "NotBuiltError",
    "ResolveOptions",
    "Result",
    "Run",
    "RunFile",
    "ingest",
    "load_run_file",
    "read_result",
    "register",
    "resolve",
    "spark_session",
]

_MODULES = {
    "conflict.config.run_file": ("RunFile", "load_run_file"),
    "conflict.errors": ("ConfigurationError", "ConflictError", "HistoryError", "NotBuiltError"),
    "conflict.jobs.data_source": ("register",),
    "conflict.jobs.session": ("spark_session",),
    "conflict.pipeline": ("ResolveOptions", "ingest", "resolve"),
    "conflict.results.run_document": ("Run",),
    "conflict.results.result": ("Result", "read_result"),
}


def __getattr__(name: str) -> object:
    for module, names in _MODULES.items():
        if name in names:
            return getattr(import_module(module), name)
    message = f"module conflict has no attribute {name}"
    raise AttributeError(message)
