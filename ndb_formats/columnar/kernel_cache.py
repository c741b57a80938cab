"""
What numba asks for a compiled kernel, and gives one to be kept: one file for each kernel, stamp and types of arguments.

Its name says all that it depends on. So a file never goes stale: what was compiled from other code has another name.
"""

from __future__ import annotations

import hashlib
import pickle
from importlib import import_module
from pathlib import Path
from typing import Any

from ndb_formats.compiled_cache import KernelFiles


class KernelCache:
    """A cache as numba's dispatchers use one."""

    def __init__(self, files: KernelFiles) -> None:
        self._files = files

    @property
    def cache_path(self) -> str:
        """The folder."""
        return str(self._files.folder)

    def load_overload(self, signature: Any, target: Any) -> Any:
        """Return what was compiled for a signature; None if there is nothing, or nothing that can be read."""
        target.refresh()
        content = self._files.read(_key(signature, target.codegen()))
        if content is None:
            return None
        try:
            made = _numba("core.compiler").CompileResult._rebuild(target, *pickle.loads(content))  # noqa: SLF001  # as numba's own cache does
        except Exception:  # noqa: BLE001  # of a damaged file pickle raises anything, and whatever it is, it is of no use
            return None
        return made if made.signature.args == _arguments(signature) else None

    def save_overload(self, signature: Any, made: Any) -> None:
        """Keep what was compiled for a signature."""
        if not made.library.has_dynamic_globals:
            self._files.write(_key(signature, made.codegen), _numba("core.serialize").dumps(made._reduce()))  # noqa: SLF001  # as above

    def enable(self) -> None:
        """Do nothing; it is never disabled."""

    disable = flush = enable


def files_of(source: Path, name: str, stamp: str) -> KernelFiles:
    """Return the files of a kernel, by the source file and the name of its function."""
    return KernelFiles(source, f"{source.stem}.{name.replace('<', '').replace('>', '')}", stamp)


def _key(signature: Any, codegen: Any) -> str:
    """Return a text for a file name that tells types of arguments and processors apart."""
    whole = repr(([_text_of(each) for each in _arguments(signature)], codegen.magic_tuple()))
    return hashlib.sha256(whole.encode()).hexdigest()[:16]


def _arguments(signature: Any) -> tuple[Any, ...]:
    return tuple(_numba("core.sigutils").normalize_signature(signature)[0])


def _text_of(kind: Any) -> str:
    """Return a type, and the fields of named tuples in it: compiled code knows them by their places alone."""
    if not isinstance(kind, _numba("core.types").BaseTuple):
        return str(kind)
    made, fields = getattr(kind, "instance_class", tuple), getattr(kind, "fields", ())
    return f"{made.__module__}.{made.__qualname__}{fields!r}({', '.join(map(_text_of, kind))})"


def _numba(module: str) -> Any:
    """Return a module of numba, which interpreted kernels do without, and which gives its functions no types."""
    return import_module(f"numba.{module}")
