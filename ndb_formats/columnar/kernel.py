"""
Kernels: loops over arrays that numba compiles, or that Python runs as they are written.

To compile all kernels takes the better part of a minute, once a machine and version. A small log does not pay for
that. So a kernel runs *interpreted* while all that its process was asked to do is small and it is not compiled yet; its
results are the same. If that takes more than a few seconds after all, it is compiled beside the process; see
`ndb_formats.columnar.compiling`. To load numba and compiled kernels takes most of a second; what is tiny does not pay
for that either. numba is not even imported then.

What is compiled is kept by what it was compiled from; see `ndb_formats.columnar.kernel_stamp`.

A kernel calls other kernels by their names. What runs is a copy of its function, with the names bound to functions of
the same kind: numba's dispatchers, or plain Python functions.

Python and numpy count differently from numba in three ways, which kernels avoid:

* A number from an array keeps its type beside a Python int: ``uint8 << 8`` is 0, and ``uint8 * 300`` overflows. Make
  it an int64 first.
* numpy warns of an overflow that is meant: see `wrapping_product` and `wrapping_difference`.
* A negative Python int does not become an unsigned number by itself.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from enum import Enum, IntEnum, auto
from functools import cached_property, partial
from pathlib import Path
from time import perf_counter, thread_time
from types import FunctionType
from typing import Any

import numpy as np
import numpy.typing as npt

from ndb_formats.columnar.compiling import compile_beside
from ndb_formats.columnar.kernel_cache import KernelCache, files_of
from ndb_formats.columnar.kernel_mode import Mode, Process, numba_is_used, pays_to_compile, stay_interpreted
from ndb_formats.columnar.kernel_stamp import stamp_of
from ndb_formats.compiled_cache import KernelFiles

_ALL_BITS = (1 << 64) - 1
# Entrances of compiled functions that nobody uses; those of a function with many arguments take long to compile.
_NO_C, _NO_PYTHON = {"no_cfunc_wrapper": True}, {"no_cpython_wrapper": True}
_SECONDS_BETWEEN_LOOKS = 0.2  # for what another process compiled
_making = threading.RLock()
_linked: dict[tuple[int, Mode], dict[str, Any]] = {}


class Use(Enum):
    """Who calls a kernel: Python, or other kernels, in which it may be inlined."""

    CALLED = auto()
    PART = auto()
    INLINED = auto()


# What numba is told of each.
_OPTIONS: dict[Use, dict[str, Any]] = {
    Use.CALLED: {"nogil": True, **_NO_C},
    Use.PART: {**_NO_C, **_NO_PYTHON},
    Use.INLINED: {"inline": "always"},
}


class Kernel:
    """
    A function over arrays, compiled or interpreted.

    Attributes:
        function: The function as it is written.
        use: Who calls it.
        instead: What runs in its place where kernels are interpreted.
        python_values: Whether it has Python's values there; see `with_python_values`.
        seconds: How long it ran interpreted so far, in this process.
    """

    def __init__(self, function: Any, use: Use) -> None:
        self.function, self.use = function, use
        self.instead: Callable[..., Any] | None = None
        self.python_values, self.seconds = False, 0.0
        self.__doc__, self.__name__, self.__module__ = function.__doc__, function.__name__, function.__module__
        self._forms: dict[Mode, Callable[..., Any]] = {}
        self._compiled_entry: Callable[..., Any] | None = None
        self._looked = float("-inf")

    @property
    def made_of(self) -> Any:
        """The function that says what its compiled form is."""
        return self.function

    @property
    def options(self) -> dict[str, Any]:
        """What numba is told of it."""
        return _OPTIONS[self.use]

    def __call__(self, *arguments: Any) -> Any:
        """Run the kernel as its process does; called from Python, not from another kernel."""
        assert self.use is not Use.PART, f"{self.__name__} is compiled for other kernels alone"
        # Not `_forms`: while another thread binds the names that it calls, a form is there that cannot run yet.
        compiled = self._compiled_entry
        if compiled is not None:
            return compiled(*arguments)
        if Process.mode is Mode.INTERPRETED and not self._is_ready(arguments):
            return self._interpreted(self.form(Mode.INTERPRETED), *map(_as_numba_takes, arguments))
        self._compiled_entry = self.form(Mode.COMPILED)
        return self._compiled_entry(*arguments)

    def _interpreted(self, form: Callable[..., Any], *arguments: Any) -> Any:
        records: dict[int, _Records] = {}
        if self.python_values:
            arguments = _python_values(arguments, records)
        began = thread_time()
        with np.errstate(over=Process.overflow):
            result = _plain(form(*arguments))
        took = thread_time() - began
        Process.seconds, self.seconds = Process.seconds + took, self.seconds + took
        for each in records.values():
            each.write_back()
        return result

    def form(self, mode: Mode) -> Callable[..., Any]:
        """Return what runs in a mode, and what kernels in that mode call."""
        with _making:
            if mode not in self._forms:
                own = self.instead is None or mode is Mode.COMPILED
                function: Any = self.function if own else self.instead
                linked = FunctionType(
                    function.__code__, _names(function, mode), function.__name__, function.__defaults__
                )
                linked.__qualname__, linked.__doc__ = function.__qualname__, function.__doc__
                self._forms[mode] = self._compiled(linked) if mode is Mode.COMPILED else linked
        return self._forms[mode]

    def with_parts(self, **parts: Callable[..., Any]) -> Callable[..., Any]:
        """
        Return the kernel as Python runs it, with other functions in place of some that it calls.

        Args:
            parts: By the name of what it calls. They get what the kernel gives them: see `with_python_values`.
        """
        own: Any = self.form(Mode.INTERPRETED)
        form = FunctionType(own.__code__, {**own.__globals__, **parts}, own.__name__, own.__defaults__)
        return partial(self._interpreted, form) if self.use is Use.CALLED else form

    def _compiled(self, function: FunctionType) -> Any:
        numba_is_used()
        from numba import njit  # noqa: PLC0415  # which takes half a second, and small work does without

        made = njit(**self.options)(function)
        if self.use is Use.CALLED:
            made._cache = KernelCache(self.files)  # noqa: SLF001  # numba's own knows of no code but the function's
        return made

    def _is_ready(self, arguments: tuple[Any, ...]) -> bool:
        """Return whether the kernel runs compiled from now on: it is there, or it pays to compile it here."""
        if stay_interpreted():
            return False
        return self.is_kept() or (pays_to_compile(self.seconds) and not compile_beside(self, arguments))

    @cached_property
    def files(self) -> KernelFiles:
        """What is kept of it."""
        return files_of(Path(self.function.__code__.co_filename), self.function.__qualname__, stamp_of(self))

    def is_kept(self) -> bool:
        """Return whether it was compiled before, for any arguments; an answer may be a moment old."""
        if perf_counter() - self._looked < _SECONDS_BETWEEN_LOOKS:
            return False
        kept = self.files.are_there()
        self._looked = float("-inf") if kept else perf_counter()
        return kept


def kernel(function: Callable[..., Any]) -> Any:
    """Make a function over arrays, called from Python, a kernel."""
    return Kernel(function, Use.CALLED)


def part(function: Callable[..., Any]) -> Any:
    """Make a function that kernels call a part of them; Python cannot call it."""
    return Kernel(function, Use.PART)


def inlined(function: Callable[..., Any]) -> Any:
    """Make a function that kernels call a part of them, which is compiled anew in each place that calls it."""
    return Kernel(function, Use.INLINED)


def read_only(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return a view that cannot be written to: numba compiles a kernel once per kind of array."""
    # The system provides no memory for zeros that are only read.
    zeros = array.strides == (0,) and not array[:1].any()
    view = (np.zeros(array.shape, array.dtype) if zeros else np.ascontiguousarray(array)).view()
    view.setflags(write=False)
    return view


def each_read_only(*arrays: npt.NDArray[Any]) -> list[Any]:
    """Return such views of several arrays."""
    return [read_only(array) for array in arrays]


def interpreted_by(instead: Callable[..., Any]) -> Callable[[Kernel], Any]:
    """
    Give a kernel a function that runs in its place where kernels are interpreted.

    Args:
        instead: Takes the same arguments and gives the same results, faster when Python runs it.
    """

    def given(made: Kernel) -> Kernel:
        made.instead = instead
        return made

    return given


def with_python_values(made: Kernel) -> Kernel:
    """
    Let a kernel have dicts for records and Python's numbers for numpy's where it is interpreted.

    Python reads a field of a dict in a tenth of the time. The kernel must take single elements of its arrays, by
    numbers that are not negative, and no two arrays of records may share memory.
    """
    made.python_values = True
    return made


class _Records(dict[Any, dict[str, Any]]):
    """The records of an array that a kernel has used, by their index; of equal length and shape as the array."""

    def __init__(self, array: npt.NDArray[np.void]) -> None:
        super().__init__()
        self.array, self.shape, self._names = array, array.shape, array.dtype.names or ()

    def __len__(self) -> int:
        return len(self.array)

    def __missing__(self, index: Any) -> dict[str, Any]:
        self[index] = record = dict(zip(self._names, self.array[index].item(), strict=True))
        return record

    def write_back(self) -> None:
        """Give the array what its records are now."""
        if self.array.flags.writeable:
            for index, record in self.items():
                self.array[index] = tuple(record.values())


def _python_values(value: Any, made: dict[int, _Records]) -> Any:
    """Return arguments with `_Records` for arrays of records, each made once, and views of memory for other arrays."""
    if isinstance(value, tuple):
        parts = [_python_values(each, made) for each in value]
        return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)
    if not isinstance(value, np.ndarray):
        return value
    return made.setdefault(id(value), _Records(value)) if value.dtype.names else value.data


def _names(function: FunctionType, mode: Mode) -> dict[str, Any]:
    """Return the names of a function's module, with kernels as they are called in a mode."""
    given = function.__globals__
    names = _linked.get((id(given), mode))
    if names is None:
        # It is there before it is filled: kernels of two modules may call each other.
        names = _linked[id(given), mode] = dict(given)
        for name, value in given.items():
            if isinstance(value, Kernel):
                names[name] = value.form(mode)
    return names


def _as_numba_takes(argument: Any) -> Any:
    """Return an argument with members of enums and bools of Python as what numba makes of them."""
    return int(argument) if isinstance(argument, IntEnum) else argument


def _plain(result: Any) -> Any:
    """Return a result with numbers of Python, as numba gives them."""
    if isinstance(result, np.generic) and not isinstance(result, np.void):
        return result.item()
    if isinstance(result, tuple):
        plain = map(_plain, result)
        return type(result)(*plain) if hasattr(result, "_fields") else tuple(plain)
    return result


def _product(first: Any, second: Any) -> Any:
    return np.uint64(int(first) * int(second) & _ALL_BITS)


@interpreted_by(_product)
@inlined
def wrapping_product(first: Any, second: Any) -> Any:
    """Return the lowest 64 bits of the product of two unsigned numbers of 64 bits."""
    return first * second


def _number(number: Any) -> int:
    return int(number)


@interpreted_by(_number)
@part
def unsigned(number: Any) -> Any:
    """Return a number that is not negative as one of 64 bits without a sign; interpreted, as a number of Python."""
    return np.uint64(number)


def _difference(first: Any, second: Any) -> Any:
    return np.uint64(int(first) - int(second) & _ALL_BITS)


@interpreted_by(_difference)
@inlined
def wrapping_difference(first: Any, second: Any) -> Any:
    """Return the lowest 64 bits of the difference of two unsigned numbers of 64 bits."""
    return first - second
