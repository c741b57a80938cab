"""
Which log a result is of: the digests of its binlog files, and how a page names it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from conflict.telling.shown_text import counted

_MOST_FILES = 4  # of a log in a sentence


def log_of(files: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """Return the digest and the name of each binlog file that a document lists; none if it has no digests."""
    return {each["digest"]: _name(each["path"]) for each in files if "digest" in each}


def _name(path: str) -> str:
    """Return the last two parts of a path: files of both clusters can have one name."""
    return "/".join(Path(path).parts[-2:])


def log_words(log: Mapping[str, str]) -> str:
    """Return the names of some of the files of a log."""
    names = list(log.values())
    more = f" and {counted(len(names) - _MOST_FILES, 'more file')}" if len(names) > _MOST_FILES else ""
    return ", ".join(names[:_MOST_FILES]) + more
