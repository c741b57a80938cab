"""
Which program this is: what it keeps for later, a state, goes on only with the rules by which it was decided.
"""

from __future__ import annotations

import hashlib
from functools import cache
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path


@cache
def program() -> str:
    """Return a digest of the version and of all modules."""
    digest = hashlib.sha256(version("ndb-conflict").encode())
    for package in ("conflict", "ndb_formats"):
        for file in sorted(Path(str(files(package))).rglob("*.py")):
            digest.update(file.read_bytes())
    return digest.hexdigest()
