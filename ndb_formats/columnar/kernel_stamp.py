"""
What tells a compiled kernel from one that would be compiled otherwise: its stamp.

It is a digest of all that a compiled kernel is made of: the code of its function and of every kernel that it calls, at
any depth, the values of the names that they use, how each is compiled, and the versions of Python, numba, llvmlite and
numpy. It is taken of what this process has in memory, not of files: so it is right in a checkout, after an upgrade in
place, after the way back, in an archive, and for a process that was started before the upgrade.
"""

from __future__ import annotations

import hashlib
import platform
from collections.abc import Iterator
from enum import Enum
from functools import cache
from importlib.metadata import version
from types import CodeType, FunctionType
from typing import Any

import numpy as np

_PLAIN = (int, float, complex, str, bytes, type(None), type(...), Enum, np.dtype)


def stamp_of(kernel: Any) -> str:
    """
    Return the stamp of a kernel: 16 hexadecimal digits.

    Raises:
        TypeError: It uses a value of a kind that a stamp does not know.
    """
    digest, seen, left = hashlib.sha256(_versions().encode()), {id(kernel)}, [kernel]
    while left:
        part = left.pop()
        digest.update(repr(part.options).encode())
        for text in _function_parts(part.made_of):
            if isinstance(text, str):
                digest.update(f"{len(text)}:{text}".encode("utf-8", "surrogatepass"))
            elif id(text) not in seen:
                seen.add(id(text))
                left.append(text)
    return digest.hexdigest()[:16]


@cache
def _versions() -> str:
    return repr([platform.python_version(), *(version(name) for name in ("numba", "llvmlite", "numpy"))])


def _function_parts(function: FunctionType) -> Iterator[Any]:
    """Yield texts that together say what a function is, and the kernels that it names."""
    yield function.__qualname__
    yield from _code_parts(function.__code__, function.__doc__)
    cells = [each.cell_contents for each in function.__closure__ or ()]
    for value in (function.__defaults__, *cells):
        yield from _value_parts(value)
    for name in sorted(_names(function.__code__) & function.__globals__.keys()):
        yield name
        yield from _value_parts(function.__globals__[name])


def _names(code: CodeType) -> set[str]:
    """Return the names of globals and attributes in a piece of code."""
    inner = [each for each in code.co_consts if isinstance(each, CodeType)]
    return set(code.co_names).union(*map(_names, inner))


def _code_parts(code: CodeType, documentation: str | None = None) -> Iterator[Any]:
    """Yield what a piece of code is, wherever its lines stand and whatever is said of it."""
    yield repr((code.co_code, code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars))
    yield repr((code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags))
    yield code.co_exceptiontable.hex()
    for constant in code.co_consts:
        if constant is None or constant is not documentation:
            yield from _value_parts(constant)


def _value_parts(value: Any) -> Iterator[Any]:
    """Yield what a value is; a kernel stands for itself."""
    if hasattr(value, "made_of"):
        yield f"kernel {value.made_of.__module__}.{value.made_of.__qualname__}"
        yield value
    elif isinstance(value, CodeType):
        yield from _code_parts(value)
    elif isinstance(value, type):
        yield _class_text(value)
    elif isinstance(value, np.ndarray | np.generic) and not value.dtype.hasobject:
        yield f"{value.dtype!r} {value.shape} {value.tobytes().hex()}"
    elif isinstance(value, tuple | list | frozenset):
        yield f"{type(value).__qualname__} of {len(value)}"
        for each in sorted(value, key=repr) if isinstance(value, frozenset) else value:
            yield from _value_parts(each)
    elif value is np:
        yield "numpy"
    elif isinstance(value, _PLAIN):
        yield f"{type(value).__qualname__} {value!r}"
    else:
        message = f"a kernel uses {value!r}; ndb_formats.columnar.kernel_stamp has to know what tells it from another"
        raise TypeError(message)


def _class_text(value: type) -> str:
    """Return what compiled code knows of a class: members of an enum, or fields of a named tuple."""
    members = list(value) if issubclass(value, Enum) else getattr(value, "_fields", ())
    return f"{value.__module__}.{value.__qualname__} {members!r}"
